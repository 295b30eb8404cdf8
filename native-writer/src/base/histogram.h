// Promise: records non-negative integers up to a fixed highest value with a relative error below 0.1 %
// (three significant digits) in constant memory and constant time; exact count, minimum, maximum and mean.
// The bucket layout is HdrHistogram's, whose tools can read what encode_hdr_v2() gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace daqwriter {

class Histogram {
 public:
  static constexpr int kSignificantDigits = 3;
  static constexpr int kSubBucketHalfBits = 10;  // 2^11 >= 2 * 10^3 values are exact in the first bucket
  static constexpr std::int64_t kHighestValue = 3'600'000'000'000;  // one hour in nanoseconds

  Histogram();

  // Values below 0 count as 0 and values above kHighestValue as kHighestValue.
  void record(std::int64_t value);
  void add(const Histogram& other);

  std::uint64_t count() const { return count_; }
  std::int64_t min() const { return count_ == 0 ? 0 : min_; }
  std::int64_t max() const { return max_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  // The smallest recorded magnitude that at least `percent` of the values do not exceed (upper edge of its
  // bucket).
  std::int64_t percentile(double percent) const;

  const std::vector<std::uint64_t>& counts() const { return counts_; }
  static std::size_t index_of(std::int64_t value);
  static std::int64_t highest_equivalent(std::size_t index);

 private:
  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::int64_t min_ = kHighestValue;
  std::int64_t max_ = 0;
  double sum_ = 0;
};

// As HdrHistogram's compressed V2 interchange text (base64 over zlib), readable by any HdrHistogram library.
// The unit of the values travels beside it, since the format has no field for it.
std::string encode_hdr_v2(const Histogram& histogram);
std::string base64(std::span<const std::byte> bytes);

}  // namespace daqwriter
