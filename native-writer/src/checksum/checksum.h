// Promise: the checksum of a byte range, equal to zlib's, chosen by name and computed by the library that is
// the fastest for its kind; and the copy into an I/O buffer that goes with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace daqwriter {

enum class ChecksumKind : std::uint32_t { off = 0, crc32 = 1, adler32 = 2 };

std::string checksum_name(ChecksumKind kind);
// Running values, as zlib's: checksum(AB) == update(update(initial, A), B). `off` leaves the value alone.
constexpr std::uint32_t checksum_initial(ChecksumKind kind) {
  return kind == ChecksumKind::adler32 ? 1 : 0;
}
std::uint32_t checksum_update(ChecksumKind kind, std::uint32_t running, std::span<const std::byte> data);
inline std::uint32_t checksum(ChecksumKind kind, std::span<const std::byte> data) {
  return checksum_update(kind, checksum_initial(kind), data);
}

// Copies with non-temporal stores: the buffer is read next by the drive, not by a core, so it must neither
// evict the source's lines nor be fetched for ownership first. Call publish_streamed() before handing the
// destination to anybody else. By the widest vectors that this processor has.
void stream_copy(std::byte* destination, const std::byte* source, std::size_t bytes);
enum class CopyWidth { bits128, bits256, bits512 };
CopyWidth widest_copy();
bool supports(CopyWidth width);
// By vectors of a width that supports() grants.
void stream_copy_as(CopyWidth width, std::byte* destination, const std::byte* source, std::size_t bytes);
void publish_streamed();

// stream_copy() and checksum_update() in one go over memory, at the speed of the copy alone.
std::uint32_t copy_checksum(ChecksumKind kind, std::uint32_t running, std::byte* destination,
                            const std::byte* source, std::size_t bytes);

}  // namespace daqwriter
