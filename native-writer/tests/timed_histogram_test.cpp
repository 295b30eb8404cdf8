#include "base/timed_histogram.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace daqwriter {
namespace {

constexpr std::int64_t kRow = TimedHistogram::kShortestRow;
constexpr std::int64_t kMs = 1'000'000;

std::uint64_t total(const TimedHistogram& one) {
  std::uint64_t sum = 0;
  for (std::size_t row = 0; row < one.rows(); ++row)
    for (std::size_t column = 0; column < TimedHistogram::kColumns; ++column) sum += one.count(row, column);
  return sum;
}

TEST(TimedHistogram, EachLengthLiesBetweenItsEdges) {
  for (std::int64_t value = 1; value < 3600 * 1000 * kMs; value += value / 7 + 1) {
    const std::size_t column = TimedHistogram::column_of(value);
    ASSERT_LT(column, TimedHistogram::kColumns);
    EXPECT_LE(TimedHistogram::lower_edge(column), value);
    EXPECT_LT(value, TimedHistogram::lower_edge(column + 1));
  }
}

TEST(TimedHistogram, AnEdgeBelongsToTheColumnThatItBegins) {
  for (std::size_t column = 1; column < TimedHistogram::kColumns; ++column) {
    EXPECT_EQ(TimedHistogram::column_of(TimedHistogram::lower_edge(column)), column);
    EXPECT_EQ(TimedHistogram::column_of(TimedHistogram::lower_edge(column) - 1), column - 1);
  }
}

TEST(TimedHistogram, LengthsAndMomentsOutOfRangeAreCountedAtTheEnds) {
  TimedHistogram one;
  one.record(-5, -5);
  one.record(0, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(one.count(0, 0), 1u);
  EXPECT_EQ(one.count(0, TimedHistogram::kColumns - 1), 1u);
}

TEST(TimedHistogram, CountsInTheRowOfTheMomentInAnyOrder) {
  TimedHistogram one;
  for (const std::int64_t at : {3 * kRow, kRow - 1, 3 * kRow + 1, std::int64_t{0}, kRow}) one.record(at, kMs);
  const std::size_t column = TimedHistogram::column_of(kMs);
  EXPECT_EQ(one.rows(), 4u);
  EXPECT_EQ(one.count(0, column), 2u);
  EXPECT_EQ(one.count(1, column), 1u);
  EXPECT_EQ(one.count(2, column), 0u);
  EXPECT_EQ(one.count(3, column), 2u);
}

TEST(TimedHistogram, RowsDoubleAndLoseNothing) {
  TimedHistogram one;
  const auto seconds = static_cast<std::int64_t>(10 * TimedHistogram::kMostRows);
  for (std::int64_t step = 0; step < seconds; ++step) one.record(step * kRow, kMs);
  EXPECT_EQ(one.row_duration(), 16 * kRow);
  EXPECT_EQ(one.rows(), 80u);
  EXPECT_EQ(total(one), static_cast<std::uint64_t>(seconds));
  for (std::size_t row = 0; row < one.rows(); ++row)
    EXPECT_EQ(one.count(row, TimedHistogram::column_of(kMs)), 16u) << row;
}

TEST(TimedHistogram, ASumHasTheLongerRowsAndGoesOnCounting) {
  TimedHistogram shorter;
  TimedHistogram longer;
  shorter.record(5 * kRow, kMs);
  longer.record(200 * kRow, 2 * kMs);
  ASSERT_EQ(longer.row_duration(), 2 * kRow);
  TimedHistogram sum = shorter;
  sum.add(longer);
  TimedHistogram other = longer;
  other.add(shorter);
  for (TimedHistogram* one : {&sum, &other}) {
    EXPECT_EQ(one->row_duration(), 2 * kRow);
    one->record(200 * kRow, 2 * kMs);
    EXPECT_EQ(one->count(2, TimedHistogram::column_of(kMs)), 1u);
    EXPECT_EQ(one->count(100, TimedHistogram::column_of(2 * kMs)), 2u);
    EXPECT_EQ(total(*one), 3u);
  }
}

TEST(TimedHistogram, AnEmptyOneHasNoRows) {
  EXPECT_EQ(TimedHistogram().rows(), 0u);
}

}  // namespace
}  // namespace daqwriter
