#include "format/payload.h"

#include <gtest/gtest.h>
#include <libdeflate.h>

#include <cstring>
#include <vector>

#include "checksum/checksum.h"

namespace daqwriter {
namespace {

std::vector<std::byte> payload(std::uint64_t seed, std::uint8_t id, std::uint32_t link, std::uint64_t slot,
                               std::size_t size) {
  std::vector<std::byte> bytes(size);
  fill_payload(bytes, payload_key(seed, RecordId{id}), link, slot);
  return bytes;
}

TEST(Payload, DependsOnEveryInputAndOnNothingElse) {
  const auto base = payload(1, 1, 1, 1, 5504);
  EXPECT_EQ(base, payload(1, 1, 1, 1, 5504));
  for (const auto& other : {payload(2, 1, 1, 1, 5504), payload(1, 2, 1, 1, 5504), payload(1, 1, 2, 1, 5504),
                            payload(1, 1, 1, 2, 5504)}) {
    std::size_t equal = 0;
    for (std::size_t i = 0; i < base.size(); ++i) equal += base[i] == other[i];
    EXPECT_LT(equal, base.size() / 100);  // by chance: one byte in 256
  }
}

TEST(Payload, AShorterOneIsTheBeginningOfALongerOne) {
  const auto longer = payload(9, 9, 3, 7, 64);
  for (std::size_t size = 1; size < 64; ++size) {
    const auto shorter = payload(9, 9, 3, 7, size);
    EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin()));
  }
}

TEST(Payload, CannotBeCompressed) {
  const auto bytes = payload(1, 1, 0, 0, 1 << 20);
  std::vector<std::byte> out(2 << 20);
  libdeflate_compressor* compressor = libdeflate_alloc_compressor(6);
  const std::size_t size =
      libdeflate_deflate_compress(compressor, bytes.data(), bytes.size(), out.data(), out.size());
  libdeflate_free_compressor(compressor);
  EXPECT_GE(size, bytes.size());
}

// The check values of the two algorithms for "123456789".
TEST(Checksum, GivesThePublishedCheckValues) {
  const auto data = std::as_bytes(std::span("123456789", 9));
  EXPECT_EQ(checksum(ChecksumKind::crc32, data), 0xcbf43926u);
  EXPECT_EQ(checksum(ChecksumKind::adler32, data), 0x091e01deu);
  EXPECT_EQ(checksum(ChecksumKind::off, data), 0u);
}

TEST(StreamCopy, CopiesEverySizeAtEveryAlignment) {
  const auto source = payload(1, 1, 0, 0, 512);
  for (std::size_t size = 0; size < 300; ++size) {
    for (std::size_t shift = 0; shift < 17; ++shift) {
      std::vector<std::byte> destination(512, std::byte{0xee});
      stream_copy(destination.data() + shift, source.data() + size % 7, size);
      publish_streamed();
      ASSERT_EQ(std::memcmp(destination.data() + shift, source.data() + size % 7, size), 0)
          << size << " " << shift;
      ASSERT_EQ(destination[shift + size], std::byte{0xee});
      if (shift > 0) {
        ASSERT_EQ(destination[shift - 1], std::byte{0xee});
      }
    }
  }
}

}  // namespace
}  // namespace daqwriter
