// Promise: counts times by the moment at which they are taken and by their length, in constant memory and
// constant time: at most kMostRows rows of equal duration, which doubles whenever the moments outlast them,
// and two columns to each doubling of the length.
#pragma once

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
  void add(const TimedHistogram& other);

  std::int64_t row_duration() const { return row_; }
  std::size_t rows() const;  // up to the last one that counts anything
  std::uint64_t count(std::size_t row, std::size_t column) const { return counts_[row * kColumns + column]; }
  static std::size_t column_of(std::int64_t value);
  static std::int64_t lower_edge(std::size_t column);

 private:
  void find_row(std::int64_t at);
  void double_rows();

  std::vector<std::uint64_t> counts_;
  std::int64_t row_ = kShortestRow;
  std::int64_t row_begin_ = 0;  // of the row of the last moment, which is most often that of the next
  std::size_t row_index_ = 0;
};

}  // namespace daqwriter
