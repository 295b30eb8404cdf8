// Checksums are zlib's, whatever the length, the alignment and the split; the copy that goes with them copies
// exactly and nothing else.
#include "checksum/checksum.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <random>

#include "support.h"

namespace daqwriter {
namespace {

using testing::random_bytes;

std::uint32_t by_zlib(ChecksumKind kind, std::uint32_t running, std::span<const std::byte> data) {
  const auto* bytes = reinterpret_cast<const Bytef*>(data.data());
  return static_cast<std::uint32_t>(kind == ChecksumKind::crc32 ? crc32_z(running, bytes, data.size())
                                                                : adler32_z(running, bytes, data.size()));
}

class ChecksumTest : public ::testing::TestWithParam<ChecksumKind> {};
std::string name_of(const ::testing::TestParamInfo<ChecksumKind>& kind) {
  return checksum_name(kind.param);
}
INSTANTIATE_TEST_SUITE_P(Kinds, ChecksumTest, ::testing::Values(ChecksumKind::crc32, ChecksumKind::adler32),
                         name_of);

TEST_P(ChecksumTest, IsZlibsForEveryLengthAndAlignment) {
  const auto data = random_bytes(5064);
  for (std::size_t length = 0; length <= 5000; ++length) {
    const std::span<const std::byte> part(data.data() + length % 64, length);
    ASSERT_EQ(checksum(GetParam(), part), by_zlib(GetParam(), checksum_initial(GetParam()), part)) << length;
  }
}

TEST_P(ChecksumTest, IsTheSameForEverySplit) {
  const auto data = random_bytes(700);
  const std::span<const std::byte> all(data);
  for (std::size_t length : {1u, 2u, 63u, 64u, 65u, 257u, 700u}) {
    const std::uint32_t expected = by_zlib(GetParam(), checksum_initial(GetParam()), all.first(length));
    for (std::size_t split = 0; split <= length; ++split) {
      const std::uint32_t first = checksum(GetParam(), all.first(split));
      ASSERT_EQ(checksum_update(GetParam(), first, all.subspan(split, length - split)), expected)
          << split << " of " << length;
    }
  }
}

// All bytes 0xff: the sums of Adler-32 reach their highest values.
TEST_P(ChecksumTest, DoesNotOverflow) {
  const std::vector<std::byte> data(1 << 20, std::byte{0xff});
  constexpr std::uint32_t kHighestAdler = 65520u << 16 | 65520u;
  EXPECT_EQ(checksum_update(GetParam(), kHighestAdler, data), by_zlib(GetParam(), kHighestAdler, data));
}

TEST_P(ChecksumTest, TheCopyIsExactAndTouchesNothingElse) {
  constexpr std::byte kGuard{0xa5};
  constexpr std::size_t kMargin = 64;
  const auto data = random_bytes(20000);
  std::mt19937_64 random(7);
  for (std::size_t turn = 0; turn < 3000; ++turn) {
    const std::size_t bytes = turn < 300 ? turn : random() % 19000;
    const std::size_t from = random() % kMargin;
    const std::size_t to = kMargin + random() % kMargin;
    const auto running = static_cast<std::uint32_t>(random() % 65521);
    std::vector<std::byte> destination(bytes + 3 * kMargin, kGuard);
    std::vector<std::byte> expected = destination;
    std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(to));
    const std::uint32_t value =
        copy_checksum(GetParam(), running, destination.data() + to, data.data() + from, bytes);
    publish_streamed();
    ASSERT_EQ(value, by_zlib(GetParam(), running, {data.data() + from, bytes})) << bytes;
    ASSERT_EQ(destination, expected) << bytes << " B from +" << from << " to +" << to;
  }
}

TEST(StreamCopy, IsExactAtEveryWidthAndTouchesNothingElse) {
  constexpr std::byte kGuard{0xa5};
  const auto data = random_bytes(6000);
  for (const CopyWidth width : {CopyWidth::bits128, CopyWidth::bits256, CopyWidth::bits512}) {
    if (!supports(width)) continue;
    for (std::size_t bytes = 0; bytes < 5700; bytes = bytes < 300 ? bytes + 1 : bytes + 61) {
      const std::size_t to = 64 + bytes * 7 % 64;
      const std::size_t from = bytes * 13 % 64;
      std::vector<std::byte> destination(bytes + 192, kGuard);
      std::vector<std::byte> expected = destination;
      std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                  expected.begin() + static_cast<std::ptrdiff_t>(to));
      stream_copy_as(width, destination.data() + to, data.data() + from, bytes);
      publish_streamed();
      ASSERT_EQ(destination, expected) << bytes << " B, width " << static_cast<int>(width);
    }
  }
  EXPECT_TRUE(supports(widest_copy()));
}

TEST(ChecksumOffTest, CopiesAndLeavesTheRunningValue) {
  const auto data = random_bytes(9999);
  std::vector<std::byte> destination(data.size());
  EXPECT_EQ(copy_checksum(ChecksumKind::off, 42, destination.data(), data.data(), data.size()), 42u);
  publish_streamed();
  EXPECT_EQ(destination, data);
  EXPECT_EQ(checksum(ChecksumKind::off, data), 0u);
}

}  // namespace
}  // namespace daqwriter
