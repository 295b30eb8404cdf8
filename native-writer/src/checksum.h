// Promise: the checksum of a byte range by libdeflate, equal to zlib's, chosen by name; and the copy into an
// I/O buffer that goes with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace daqwriter {

enum class ChecksumKind : std::uint32_t { off = 0, crc32 = 1, adler32 = 2 };

ChecksumKind parse_checksum_kind(std::string_view name);  // throws Refusal
std::string checksum_name(ChecksumKind kind);
std::uint32_t checksum(ChecksumKind kind, std::span<const std::byte> data);

// Copies with non-temporal stores: the buffer is read next by the drive, not by a core, so it must neither
// evict the source's lines nor be fetched for ownership first. Call publish_streamed() before handing the
// destination to anybody else.
void stream_copy(std::byte* destination, const std::byte* source, std::size_t bytes);
void publish_streamed();

}  // namespace daqwriter
