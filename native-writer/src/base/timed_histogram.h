// Promise: counts times by the moment at which they are taken and by their length, in constant memory and
// constant time: at most kMostRows rows of equal duration, which doubles whenever the moments outlast them,
// and two columns to each doubling of the length.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace daqwriter {

class TimedHistogram {
 public:
  static constexpr std::size_t kMostRows = 128;
  static constexpr std::int64_t kShortestRow = 100'000'000;  // nanoseconds
  static constexpr std::int64_t kFirstEdge = 1024;           // nanoseconds; shorter ones share a column
  static constexpr std::size_t kColumns = 66;                // the last begins beyond an hour

  TimedHistogram() : counts_(kMostRows * kColumns, 0) {}

  // Nanoseconds; a moment or a length below 0 counts as 0.
  void record(std::int64_t at, std::int64_t value) {
    if (at < row_begin_ || at >= row_begin_ + row_) find_row(at);
    ++counts_[row_index_ * kColumns + column_of(value)];
  }
  void add(const TimedHistogram& other) {
    TimedHistogram one = other;
    while (row_ < one.row_) double_rows();
    while (one.row_ < row_) one.double_rows();
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += one.counts_[i];
    find_row(0);  // the row that was remembered may have become another
  }

  std::int64_t row_duration() const { return row_; }
  // Up to the last one that counts anything.
  std::size_t rows() const {
    const auto last =
        std::find_if(counts_.rbegin(), counts_.rend(), [](std::uint64_t one) { return one != 0; });
    const auto used = static_cast<std::size_t>(counts_.rend() - last);
    return (used + kColumns - 1) / kColumns;
  }

  std::uint64_t count(std::size_t row, std::size_t column) const { return counts_[row * kColumns + column]; }
  static std::size_t column_of(std::int64_t value) {
    if (value < kFirstEdge) return 0;
    const auto v = static_cast<std::uint64_t>(value);
    const std::size_t highest = std::bit_width(v) - 1;
    const std::size_t upper_half = (v >> (highest - 1)) & 1;
    const std::size_t column = 1 + 2 * (highest - kFirstBit) + upper_half;
    return std::min(column, kColumns - 1);
  }

  static std::int64_t lower_edge(std::size_t column) {
    if (column == 0) return 0;
    const std::int64_t octave = kFirstEdge << ((column - 1) / 2);
    return (column - 1) % 2 == 0 ? octave : octave + octave / 2;
  }

 private:
  static constexpr std::size_t kFirstBit = std::bit_width(static_cast<std::uint64_t>(kFirstEdge)) - 1;

  void find_row(std::int64_t at) {
    const std::int64_t moment = std::max<std::int64_t>(at, 0);
    while (moment / row_ >= static_cast<std::int64_t>(kMostRows)) double_rows();
    row_index_ = static_cast<std::size_t>(moment / row_);
    row_begin_ = moment / row_ * row_;
  }

  void double_rows() {
    for (std::size_t row = 0; row < kMostRows; ++row) {
      for (std::size_t column = 0; column < kColumns; ++column) {
        const std::uint64_t moved = counts_[row * kColumns + column];
        counts_[row * kColumns + column] = 0;
        counts_[row / 2 * kColumns + column] += moved;
      }
    }
    row_ *= 2;
  }

  std::vector<std::uint64_t> counts_;
  std::int64_t row_ = kShortestRow;
  std::int64_t row_begin_ = 0;  // of the row of the last moment, which is most often that of the next
  std::size_t row_index_ = 0;
};

}  // namespace daqwriter
