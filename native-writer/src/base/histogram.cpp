#include "base/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace daqwriter {
namespace {

constexpr std::size_t kHalf = std::size_t{1} << Histogram::kSubBucketHalfBits;
constexpr std::uint64_t kSubBucketMask = 2 * kHalf - 1;

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

}  // namespace daqwriter
