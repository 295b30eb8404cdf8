#include "verify/link_order.h"

#include <gtest/gtest.h>

#include "verify/damage.h"

namespace daqwriter {
namespace {

struct Seen {
  std::vector<std::uint64_t> duplicated;  // ordinals
  std::vector<std::uint64_t> out_of_order;
  std::vector<std::uint64_t> missing;
};

// Walks ordinals as they lie in the record.
Seen walk(const std::vector<std::uint64_t>& ordinals, std::optional<std::uint64_t> stored = std::nullopt) {
  LinkOrder order;
  std::uint64_t offset = 0;
  Seen seen;
  const auto tell = [&](FaultKind kind, const Sighting& where) {
    (kind == FaultKind::duplicated ? seen.duplicated : seen.out_of_order).push_back(where.ordinal);
  };
  for (const std::uint64_t ordinal : ordinals) order.observe({ordinal, ordinal, offset++}, tell);
  for (const Hole& hole : order.finish(stored, offset)) {
    EXPECT_EQ(hole.sequence, hole.first);  // nothing was lost here
    for (std::uint64_t i = hole.first; i <= hole.last; ++i) seen.missing.push_back(i);
  }
  return seen;
}

void expect(const Seen& seen, std::vector<std::uint64_t> duplicated, std::vector<std::uint64_t> out_of_order,
            std::vector<std::uint64_t> missing) {
  EXPECT_EQ(seen.duplicated, duplicated);
  EXPECT_EQ(seen.out_of_order, out_of_order);
  EXPECT_EQ(seen.missing, missing);
}

TEST(LinkOrder, AcceptsTheOrder) {
  expect(walk({0, 1, 2, 3}), {}, {}, {});
  expect(walk({}), {}, {}, {});
}

TEST(LinkOrder, FindsAGap) {
  expect(walk({0, 1, 4, 5, 6}), {}, {}, {2, 3});
  expect(walk({2, 3}), {}, {}, {0, 1});
  expect(walk({0, 1, 3}), {}, {}, {2});
}

TEST(LinkOrder, FindsWhatTheTrailerPromisedAndIsNotThere) {
  expect(walk({0, 1}, 4), {}, {}, {2, 3});
  expect(walk({}, 2), {}, {}, {0, 1});
  expect(walk({0, 1, 2}, 3), {}, {}, {});
}

TEST(LinkOrder, BlamesOnlyTheSwappedOnes) {
  expect(walk({0, 2, 1, 3, 4}), {}, {2}, {});
  expect(walk({0, 4, 2, 3, 1, 5, 6}), {}, {4, 1}, {});
  expect(walk({0, 1, 3, 2}), {}, {3}, {});
  expect(walk({4, 1, 2, 3, 0}), {}, {4, 0}, {});
}

TEST(LinkOrder, FindsCopiesBehindAndAheadOfTheOriginal) {
  expect(walk({0, 1, 2, 1, 4}), {1}, {}, {3});
  expect(walk({0, 3, 2, 3, 4}), {3}, {3}, {1});  // a copy of 3 over 1: it comes early, then again
  expect(walk({0, 1, 1, 2}), {1}, {}, {});
  expect(walk({0, 5, 5, 1}, 2), {5}, {5}, {2, 3, 4});
}

TEST(LinkOrder, FindsALateOneInsideAGap) {
  expect(walk({0, 5, 6, 3, 7}), {}, {3}, {1, 2, 4});
}

TEST(LinkOrder, SequenceOfAHoleFollowsTheLastOneSeen) {
  LinkOrder order;
  const auto tell = [](FaultKind, const Sighting&) { FAIL(); };
  order.observe({0, 10, 0}, tell);  // ten were lost before it
  order.observe({3, 15, 1}, tell);
  order.observe({4, 16, 2}, tell);
  const auto holes = order.finish(std::nullopt, 3);
  ASSERT_EQ(holes.size(), 1u);
  EXPECT_EQ(holes[0].sequence, 11u);
  EXPECT_EQ(holes[0].offset, 1u);
  EXPECT_EQ(order.sequences_seen(), 17u);
}

class DamageTest : public ::testing::Test {
 protected:
  DamageTest() : good(3000), bad(good.size()) {
    for (std::size_t i = 0; i < good.size(); ++i) good[i] = static_cast<std::byte>(i * 131 + i / 7);
    bad = good;
  }
  std::vector<std::byte> good;
  std::vector<std::byte> bad;
};

TEST_F(DamageTest, FlippedBitsAreCorruption) {
  bad[700] ^= std::byte{1};
  bad[1900] ^= std::byte{0x80};
  const Damage damage = compare_superchunk(bad, good, 1000);
  EXPECT_FALSE(damage.torn);
  EXPECT_EQ(damage.first_offset, 1700u);
  EXPECT_EQ(damage.end_offset, 2901u);
}

TEST_F(DamageTest, AReplacedSectorIsATear) {
  for (std::size_t i = 24; i < 536; ++i) bad[i] = ~good[i];  // the sector [1024, 1536) of the target
  const Damage damage = compare_superchunk(bad, good, 1000);
  EXPECT_TRUE(damage.torn);
  EXPECT_EQ(damage.first_offset, 1024u);
  EXPECT_EQ(damage.end_offset, 1536u);
  EXPECT_FALSE(damage.all_zero);
}

TEST_F(DamageTest, NothingGoodLeftIsCorruption) {
  for (std::byte& b : bad) b = ~b;
  EXPECT_FALSE(compare_superchunk(bad, good, 0).torn);
}

TEST_F(DamageTest, NoDifferenceIsAnEmptyRange) {
  const Damage damage = compare_superchunk(bad, good, 5);
  EXPECT_EQ(damage.first_offset, damage.end_offset);
}

}  // namespace
}  // namespace daqwriter
