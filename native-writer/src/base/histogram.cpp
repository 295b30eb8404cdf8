#include "base/histogram.h"

#include <libdeflate.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <string_view>

#include "base/status.h"

namespace daqwriter {
namespace {

constexpr std::size_t kHalf = std::size_t{1} << Histogram::kSubBucketHalfBits;
constexpr std::uint64_t kSubBucketMask = 2 * kHalf - 1;

constexpr std::uint32_t kCookieV2 = 0x1c849313;            // 0x1c849303 | word-size nibble 0x10
constexpr std::uint32_t kCookieV2Compressed = 0x1c849314;  // 0x1c849304 | word-size nibble 0x10
using Bytes = std::vector<std::byte>;

void put_big_endian(Bytes& out, std::uint64_t value, int width) {
  for (int shift = (width - 1) * 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<std::byte>(value >> shift & 0xff));
  }
}

// ZigZag, then LEB128 of at most nine bytes, the ninth carrying eight bits.
void put_zigzag(Bytes& out, std::int64_t value) {
  auto rest = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  for (int i = 0; i < 8 && rest > 0x7f; ++i, rest >>= 7) out.push_back(static_cast<std::byte>(rest | 0x80));
  out.push_back(static_cast<std::byte>(rest));
}

// Counts in order; a run of n zeros is written as -n; nothing after the last used bucket.
Bytes encode_counts(const Histogram& histogram) {
  Bytes out;
  if (histogram.count() == 0) return out;
  const auto& counts = histogram.counts();
  const std::size_t end = Histogram::index_of(histogram.max()) + 1;
  for (std::size_t i = 0; i < end;) {
    std::size_t zeros = 0;
    while (i + zeros < end && counts[i + zeros] == 0) ++zeros;
    if (zeros > 0) {
      put_zigzag(out, -static_cast<std::int64_t>(zeros));
      i += zeros;
    } else {
      put_zigzag(out, static_cast<std::int64_t>(counts[i++]));
    }
  }
  return out;
}

Bytes encode_plain(const Histogram& histogram) {
  const Bytes counts = encode_counts(histogram);
  Bytes out;
  put_big_endian(out, kCookieV2, 4);
  put_big_endian(out, counts.size(), 4);
  put_big_endian(out, 0, 4);  // normalizing index offset
  put_big_endian(out, Histogram::kSignificantDigits, 4);
  put_big_endian(out, 1, 8);  // lowest discernible value
  put_big_endian(out, Histogram::kHighestValue, 8);
  put_big_endian(out, std::bit_cast<std::uint64_t>(1.0), 8);  // integer to double conversion ratio
  out.insert(out.end(), counts.begin(), counts.end());
  return out;
}

Bytes deflate(const Bytes& plain) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(6), &libdeflate_free_compressor);
  if (!compressor) throw Failure("histogram: no memory for the compressor");
  Bytes out(libdeflate_zlib_compress_bound(compressor.get(), plain.size()));
  out.resize(libdeflate_zlib_compress(compressor.get(), plain.data(), plain.size(), out.data(), out.size()));
  return out;
}

}  // namespace

Histogram::Histogram() : counts_(index_of(kHighestValue) + 1, 0) {}

std::size_t Histogram::index_of(std::int64_t value) {
  const auto v = static_cast<std::uint64_t>(value);
  const int bucket = 64 - std::countl_zero(v | kSubBucketMask) - (kSubBucketHalfBits + 1);
  // In every bucket but the first, only the upper half of the sub-buckets is in use: hence - kHalf.
  return static_cast<std::size_t>(bucket + 1) * kHalf + static_cast<std::size_t>(v >> bucket) - kHalf;
}

std::int64_t Histogram::highest_equivalent(std::size_t index) {
  if (index < 2 * kHalf) return static_cast<std::int64_t>(index);
  const std::size_t bucket = index / kHalf - 1;
  const std::size_t sub_bucket = index % kHalf + kHalf;
  return static_cast<std::int64_t>(((sub_bucket + 1) << bucket) - 1);
}

void Histogram::record(std::int64_t value) {
  const std::int64_t bounded = std::clamp<std::int64_t>(value, 0, kHighestValue);
  ++counts_[index_of(bounded)];
  ++count_;
  min_ = std::min(min_, bounded);
  max_ = std::max(max_, bounded);
  sum_ += static_cast<double>(bounded);
}

void Histogram::add(const Histogram& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

std::int64_t Histogram::percentile(double percent) const {
  if (count_ == 0) return 0;
  const double share = std::clamp(percent, 0.0, 100.0) / 100.0;
  const auto wanted =
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_))));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= wanted) return std::min(highest_equivalent(i), max_);
  }
  return max_;
}

std::string base64(std::span<const std::byte> bytes) {
  static constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out += i + k <= bytes.size() ? alphabet[group >> (18 - 6 * k) & 0x3f] : '=';
    }
  }
  return out;
}

std::string encode_hdr_v2(const Histogram& histogram) {
  const Bytes compressed = deflate(encode_plain(histogram));
  Bytes out;
  put_big_endian(out, kCookieV2Compressed, 4);
  put_big_endian(out, compressed.size(), 4);
  out.insert(out.end(), compressed.begin(), compressed.end());
  return base64(out);
}

}  // namespace daqwriter
