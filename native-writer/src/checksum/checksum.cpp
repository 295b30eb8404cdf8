#include "checksum/checksum.h"

#include <isa-l/crc.h>
#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <cstring>

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "base/status.h"

namespace daqwriter {

std::string checksum_name(ChecksumKind kind) {
  static constexpr std::array kNames = {"off", "crc32", "adler32"};
  const auto index = static_cast<std::size_t>(kind);
  if (index < kNames.size()) return kNames[index];
  throw Refusal("checksum kind " + std::to_string(static_cast<std::uint32_t>(kind)) + " is unknown");
}

std::uint32_t checksum_update(ChecksumKind kind, std::uint32_t running, std::span<const std::byte> data) {
  switch (kind) {
    case ChecksumKind::crc32:
      return crc32_gzip_refl(running, reinterpret_cast<const unsigned char*>(data.data()), data.size());
    case ChecksumKind::adler32:
      return libdeflate_adler32(running, data.data(), data.size());
    case ChecksumKind::off:
      break;
  }
  return running;
}

std::uint32_t copy_checksum(ChecksumKind kind, std::uint32_t running, std::byte* destination,
                            const std::byte* source, std::size_t bytes) {
  // Small enough for the second pass to read it from L1, large enough to turn the memory bus around between
  // reading and writing only rarely: that is why this is not slower than the plain copy.
  constexpr std::size_t kStrip = 4096;
  while (bytes > 0) {
    // Strips end on whole lines of the destination: a line that is stored half past the cache and half into
    // it costs more than the checksum.
    const std::size_t part = std::min(bytes, kStrip - reinterpret_cast<std::uintptr_t>(destination) % kStrip);
    running = checksum_update(kind, running, {source, part});
    stream_copy(destination, source, part);
    destination += part;
    source += part;
    bytes -= part;
  }
  return running;
}

#ifdef __SSE2__

namespace {

constexpr std::size_t kLine = 64;  // of a cache

// Each copies a multiple of 64 B to a destination that begins a line; `width` of the machine's vectors. Whole
// lines, one after the other: a line that is stored in one go never waits half-filled in a store buffer.
using CopyLines = void (*)(std::byte* destination, const std::byte* source, std::size_t bytes);

void copy_lines_128(std::byte* destination, const std::byte* source, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += kLine) {
    const auto* from = reinterpret_cast<const __m128i*>(source + i);
    auto* to = reinterpret_cast<__m128i*>(destination + i);
    const __m128i a = _mm_loadu_si128(from);
    const __m128i b = _mm_loadu_si128(from + 1);
    const __m128i c = _mm_loadu_si128(from + 2);
    const __m128i d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
  }
}

__attribute__((target("avx2"))) void copy_lines_256(std::byte* destination, const std::byte* source,
                                                    std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += kLine) {
    const auto* from = reinterpret_cast<const __m256i*>(source + i);
    auto* to = reinterpret_cast<__m256i*>(destination + i);
    const __m256i a = _mm256_loadu_si256(from);
    const __m256i b = _mm256_loadu_si256(from + 1);
    _mm256_stream_si256(to, a);
    _mm256_stream_si256(to + 1, b);
  }
}

__attribute__((target("avx512f"))) void copy_lines_512(std::byte* destination, const std::byte* source,
                                                       std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += kLine)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(destination + i), _mm512_loadu_si512(source + i));
}

CopyLines copy_lines_of(CopyWidth width) {
  return width == CopyWidth::bits512   ? copy_lines_512
         : width == CopyWidth::bits256 ? copy_lines_256
                                       : copy_lines_128;
}

void copy_streaming(CopyLines copy_lines, std::byte* destination, const std::byte* source,
                    std::size_t bytes) {
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(destination) % kLine;
  const std::size_t head = std::min(bytes, misaligned == 0 ? 0 : kLine - misaligned);
  const std::size_t lines = (bytes - head) / kLine * kLine;
  std::memcpy(destination, source, head);
  copy_lines(destination + head, source + head, lines);
  std::memcpy(destination + head + lines, source + head + lines, bytes - head - lines);
}

}  // namespace

bool supports(CopyWidth width) {
  return width == CopyWidth::bits512   ? __builtin_cpu_supports("avx512f")
         : width == CopyWidth::bits256 ? __builtin_cpu_supports("avx2")
                                       : true;
}

CopyWidth widest_copy() {
  return supports(CopyWidth::bits512)   ? CopyWidth::bits512
         : supports(CopyWidth::bits256) ? CopyWidth::bits256
                                        : CopyWidth::bits128;
}

void stream_copy_as(CopyWidth width, std::byte* destination, const std::byte* source, std::size_t bytes) {
  copy_streaming(copy_lines_of(width), destination, source, bytes);
}

void stream_copy(std::byte* destination, const std::byte* source, std::size_t bytes) {
  static const CopyLines kCopyLines = copy_lines_of(widest_copy());
  copy_streaming(kCopyLines, destination, source, bytes);
}

void publish_streamed() {
  _mm_sfence();
}

#else

bool supports(CopyWidth width) {
  return width == CopyWidth::bits128;
}

CopyWidth widest_copy() {
  return CopyWidth::bits128;
}

void stream_copy_as(CopyWidth, std::byte* destination, const std::byte* source, std::size_t bytes) {
  stream_copy(destination, source, bytes);
}

void stream_copy(std::byte* destination, const std::byte* source, std::size_t bytes) {
  std::memcpy(destination, source, bytes);
}

void publish_streamed() {}

#endif

}  // namespace daqwriter
