// Tools that the fuzzers share: bytes as the structures of the formats, with their checksums made right, for
// no fuzzer guesses a checksum.
#pragma once

#include <libdeflate.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "format/record_format.h"

namespace daqwriter::fuzz {

using Bytes = std::vector<std::byte>;

inline std::span<const std::byte> as_input(const std::uint8_t* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

// Takes up to `bytes` from the front.
inline std::span<const std::byte> take(std::span<const std::byte>& input, std::size_t bytes) {
  const auto front = input.first(std::min(bytes, input.size()));
  input = input.subspan(front.size());
  return front;
}

inline void seal_at(std::span<std::byte> bytes, std::size_t crc_offset) {
  std::memset(bytes.data() + crc_offset, 0, sizeof(std::uint32_t));
  const std::uint32_t crc = libdeflate_crc32(0, bytes.data(), bytes.size());
  std::memcpy(bytes.data() + crc_offset, &crc, sizeof crc);
}

constexpr std::size_t kHeaderCrc = 20;   // in a record header block
constexpr std::size_t kTrailerCrc = 12;  // in a trailer block
constexpr std::size_t kFrameCrc = 4;     // in a superchunk's or an event's header

// A block that begins with `content`.
inline Bytes block_of(std::span<const std::byte> content, std::size_t crc_offset) {
  Bytes block(kBlockAlignment);
  std::copy(content.begin(), content.end(), block.begin());
  seal_at(block, crc_offset);
  return block;
}

// Makes the checksum of every frame's header right, where the magic stands.
inline void seal_frames(std::span<std::byte> bytes, std::uint32_t magic) {
  constexpr std::size_t kFrameHeader = 64;
  for (std::size_t at = 0; at + kFrameHeader <= bytes.size(); ++at) {
    if (std::memcmp(bytes.data() + at, &magic, sizeof magic) != 0) continue;
    seal_at(bytes.subspan(at, kFrameHeader), kFrameCrc);
    at += kFrameHeader - 1;
  }
}

inline void require(bool good) {
  if (!good) __builtin_trap();
}

}  // namespace daqwriter::fuzz
