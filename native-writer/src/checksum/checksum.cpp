#include "checksum/checksum.h"

#include <isa-l/crc.h>
#include <libdeflate.h>

#include <algorithm>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/status.h"

namespace daqwriter {

ChecksumKind parse_checksum_kind(std::string_view name) {
  if (name == "off") return ChecksumKind::off;
  if (name == "crc32") return ChecksumKind::crc32;
  if (name == "adler32") return ChecksumKind::adler32;
  throw Refusal("--checksum '" + std::string(name) + "': use crc32, adler32 or off");
}

std::string checksum_name(ChecksumKind kind) {
  switch (kind) {
    case ChecksumKind::off:
      return "off";
    case ChecksumKind::crc32:
      return "crc32";
    case ChecksumKind::adler32:
      return "adler32";
  }
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

void stream_copy(std::byte* destination, const std::byte* source, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kVector = sizeof(__m128i);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(destination) % kVector;
  const std::size_t head = std::min(bytes, misaligned == 0 ? 0 : kVector - misaligned);
  std::memcpy(destination, source, head);
  std::size_t i = head;
  for (; i + kLine <= bytes; i += kLine) {
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
  std::memcpy(destination + i, source + i, bytes - i);
}

void publish_streamed() {
  _mm_sfence();
}

#else

void stream_copy(std::byte* destination, const std::byte* source, std::size_t bytes) {
  std::memcpy(destination, source, bytes);
}

void publish_streamed() {}

#endif

}  // namespace daqwriter
