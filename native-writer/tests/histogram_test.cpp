#include "base/histogram.h"

#include <gtest/gtest.h>
#include <libdeflate.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace daqwriter {
namespace {

using Encoded = std::vector<std::uint8_t>;

// An independent reader of the interchange format, written from its description, not from the encoder.
Encoded unbase64(const std::string& text) {
  Encoded out;
  std::uint32_t bits = 0;
  int have = 0;
  for (const char c : text) {
    if (c == '=') break;
    const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bits = bits << 6 | static_cast<std::uint32_t>(alphabet.find(c));
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out.push_back(static_cast<std::uint8_t>(bits >> have));
  }
  return out;
}

std::uint64_t big_endian(const Encoded& bytes, std::size_t at, int width) {
  std::uint64_t value = 0;
  for (int i = 0; i < width; ++i) value = value << 8 | bytes.at(at + static_cast<std::size_t>(i));
  return value;
}

std::vector<std::uint64_t> decode(const std::string& text) {
  const Encoded packed = unbase64(text);
  EXPECT_EQ(big_endian(packed, 0, 4), 0x1c849314u);
  EXPECT_EQ(big_endian(packed, 4, 4), packed.size() - 8);
  Encoded plain(1 << 20);
  std::size_t size = 0;
  libdeflate_decompressor* decompressor = libdeflate_alloc_decompressor();
  EXPECT_EQ(libdeflate_zlib_decompress(decompressor, packed.data() + 8, packed.size() - 8, plain.data(),
                                       plain.size(), &size),
            LIBDEFLATE_SUCCESS);
  libdeflate_free_decompressor(decompressor);
  plain.resize(size);
  EXPECT_EQ(big_endian(plain, 0, 4), 0x1c849313u);
  EXPECT_EQ(big_endian(plain, 4, 4), plain.size() - 40);
  EXPECT_EQ(big_endian(plain, 12, 4), 3u);
  EXPECT_EQ(big_endian(plain, 16, 8), 1u);
  EXPECT_EQ(big_endian(plain, 24, 8), static_cast<std::uint64_t>(Histogram::kHighestValue));
  EXPECT_EQ(big_endian(plain, 32, 8), 0x3ff0000000000000u);
  std::vector<std::uint64_t> counts;
  for (std::size_t at = 40; at < plain.size();) {
    std::uint64_t zigzag = 0;
    for (int shift = 0;; shift += 7) {
      const std::uint8_t byte = plain.at(at++);
      zigzag |= static_cast<std::uint64_t>(shift == 56 ? byte : byte & 0x7f) << shift;
      if (shift == 56 || byte < 0x80) break;
    }
    const auto value = static_cast<std::int64_t>(zigzag >> 1) ^ -static_cast<std::int64_t>(zigzag & 1);
    if (value < 0) {
      counts.insert(counts.end(), static_cast<std::size_t>(-value), 0);
    } else {
      counts.push_back(static_cast<std::uint64_t>(value));
    }
  }
  return counts;
}

TEST(Histogram, PercentilesAreWithinATenthOfAPercent) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> spread(13, 3);
  Histogram histogram;
  std::vector<std::int64_t> values;
  for (int i = 0; i < 100'000; ++i) {
    values.push_back(std::min(static_cast<std::int64_t>(spread(random)), Histogram::kHighestValue));
    histogram.record(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double percent : {0.1, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0}) {
    const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * 100'000)) - 1;
    const auto exact = static_cast<double>(values[rank]);
    const auto measured = static_cast<double>(histogram.percentile(percent));
    EXPECT_GE(measured, exact) << percent;
    EXPECT_LE(measured, exact * 1.001 + 1) << percent;
  }
  EXPECT_EQ(histogram.count(), 100'000u);
  EXPECT_EQ(histogram.min(), values.front());
  EXPECT_EQ(histogram.max(), values.back());
}

TEST(Histogram, EveryValueFallsIntoTheBucketThatEndsAtOrAboveIt) {
  for (std::int64_t value = 1; value < Histogram::kHighestValue; value += 1 + value / 97) {
    const std::size_t index = Histogram::index_of(value);
    EXPECT_GE(Histogram::highest_equivalent(index), value);
    EXPECT_LT(Histogram::highest_equivalent(index - 1), value);
  }
}

TEST(Histogram, BoundsWhatItCannotHold) {
  Histogram histogram;
  histogram.record(-5);
  histogram.record(Histogram::kHighestValue * 2);
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.max(), Histogram::kHighestValue);
  EXPECT_EQ(histogram.count(), 2u);
}

TEST(Histogram, EncodingDecodesToTheSameCounts) {
  std::mt19937_64 random(3);
  Histogram histogram;
  for (int i = 0; i < 50'000; ++i)
    histogram.record(static_cast<std::int64_t>(random() >> (22 + random() % 40)));
  for (int i = 0; i < 300; ++i) histogram.record(12'345);  // a count that needs two bytes
  std::vector<std::uint64_t> counts = decode(encode_hdr_v2(histogram));
  ASSERT_EQ(counts.size(), Histogram::index_of(histogram.max()) + 1);
  counts.resize(histogram.counts().size(), 0);
  EXPECT_EQ(counts, histogram.counts());
}

TEST(Histogram, EmptyEncodes) {
  EXPECT_TRUE(decode(encode_hdr_v2(Histogram())).empty());
  EXPECT_EQ(Histogram().percentile(99), 0);
}

TEST(Base64, PadsAsTheStandardSays) {
  const auto encode = [](std::string_view text) {
    return base64(std::as_bytes(std::span(text.data(), text.size())));
  };
  EXPECT_EQ(encode(""), "");
  EXPECT_EQ(encode("f"), "Zg==");
  EXPECT_EQ(encode("fo"), "Zm8=");
  EXPECT_EQ(encode("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace daqwriter
