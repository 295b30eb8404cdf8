#include "base/timed_histogram.h"

#include <algorithm>
#include <bit>

namespace daqwriter {
namespace {

constexpr std::size_t kFirstBit = std::bit_width(static_cast<std::uint64_t>(TimedHistogram::kFirstEdge)) - 1;

}  // namespace

std::size_t TimedHistogram::column_of(std::int64_t value) {
  if (value < kFirstEdge) return 0;
  const auto v = static_cast<std::uint64_t>(value);
  const std::size_t highest = std::bit_width(v) - 1;
  const std::size_t upper_half = (v >> (highest - 1)) & 1;
  const std::size_t column = 1 + 2 * (highest - kFirstBit) + upper_half;
  return std::min(column, kColumns - 1);
}

std::int64_t TimedHistogram::lower_edge(std::size_t column) {
  if (column == 0) return 0;
  const std::int64_t octave = kFirstEdge << ((column - 1) / 2);
  return (column - 1) % 2 == 0 ? octave : octave + octave / 2;
}

std::size_t TimedHistogram::rows() const {
  const auto last =
      std::find_if(counts_.rbegin(), counts_.rend(), [](std::uint64_t one) { return one != 0; });
  const auto used = static_cast<std::size_t>(counts_.rend() - last);
  return (used + kColumns - 1) / kColumns;
}

void TimedHistogram::find_row(std::int64_t at) {
  const std::int64_t moment = std::max<std::int64_t>(at, 0);
  while (moment / row_ >= static_cast<std::int64_t>(kMostRows)) double_rows();
  row_index_ = static_cast<std::size_t>(moment / row_);
  row_begin_ = moment / row_ * row_;
}

void TimedHistogram::double_rows() {
  for (std::size_t row = 0; row < kMostRows; ++row) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      const std::uint64_t moved = counts_[row * kColumns + column];
      counts_[row * kColumns + column] = 0;
      counts_[row / 2 * kColumns + column] += moved;
    }
  }
  row_ *= 2;
}

void TimedHistogram::add(const TimedHistogram& other) {
  TimedHistogram one = other;
  while (row_ < one.row_) double_rows();
  while (one.row_ < row_) one.double_rows();
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += one.counts_[i];
  find_row(0);  // the row that was remembered may have become another
}

}  // namespace daqwriter
