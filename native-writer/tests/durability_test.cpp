#include "io/durability.h"

#include <gtest/gtest.h>

namespace daqwriter {
namespace {

Arrivals nothing_arrives() {
  return {[](std::int64_t) { return 0ull; }, [] { return 0ull; }};
}

TEST(Durability, LatencyRunsFromIntendedArrivalToTheReapedCompletion) {
  DurabilityLedger ledger(1, 1000, nothing_arrives());
  ledger.note_superchunk(0, 0, 10);
  ledger.note_superchunk(0, 1, 20);
  const std::uint64_t block = ledger.seal_block(200, false, 0);
  ledger.complete_block(block, 1050, 1040);
  EXPECT_EQ(ledger.latency_ns().min(), 30);
  EXPECT_EQ(ledger.latency_ns().max(), 40);
  EXPECT_EQ(ledger.write_latency_ns().max(), 10);
  EXPECT_EQ(ledger.durable_bytes(), 200u);
  EXPECT_EQ(ledger.latency_over_time().count(0, 0), 2u);
}

// One superchunk lies in blocks 0 and 1; block 1 completes first: durable is when block 0 has followed.
TEST(Durability, AStraddlingSuperchunkWaitsForTheLaterOfItsBlocks) {
  DurabilityLedger ledger(2, 0, nothing_arrives());
  ledger.note_superchunk(0, 0, 5);
  const std::uint64_t first = ledger.seal_block(100, true, 0);
  ledger.note_superchunk(1, 0, 20);
  ledger.note_superchunk(1, 1, 30);
  const std::uint64_t second = ledger.seal_block(100, false, 0);
  ledger.complete_block(second, 60, 50);
  EXPECT_EQ(ledger.superchunks_stored(), 0u);
  EXPECT_EQ(ledger.durable_bytes(), 100u);
  ledger.complete_block(first, 90, 40);
  EXPECT_EQ(ledger.superchunks_stored(), 3u);
  EXPECT_EQ(ledger.latency_ns().max(), 85);           // the first: 90 - 5
  EXPECT_EQ(ledger.latency_ns().min(), 30);           // the last: 60 - 30
  EXPECT_EQ(ledger.latency_ns().percentile(50), 70);  // the one in between: 90 - 20
  EXPECT_EQ(ledger.accounts()[1].stored, 2u);
  EXPECT_EQ(ledger.accounts()[1].last_sequence, 1u);
}

TEST(Durability, ASuperchunkOverThreeBlocksWaitsForAllOfThem) {
  DurabilityLedger ledger(1, 0, nothing_arrives());
  const std::uint64_t a = ledger.seal_block(10, true, 0);
  const std::uint64_t b = ledger.seal_block(10, true, 0);
  ledger.note_superchunk(0, 0, 0);
  const std::uint64_t c = ledger.seal_block(10, false, 0);
  ledger.complete_block(b, 700, 0);
  ledger.complete_block(c, 500, 0);
  ledger.complete_block(a, 300, 0);
  EXPECT_EQ(ledger.latency_ns().max(), 700);
}

TEST(Durability, BacklogIsTakenImmediatelyBeforeACompletion) {
  std::uint64_t accepted = 80;
  DurabilityLedger ledger(
      1, 0, {[](std::int64_t t) { return static_cast<std::uint64_t>(t); }, [&] { return accepted; }});
  ledger.complete_block(ledger.seal_block(60, false, 0), 100, 0);
  EXPECT_EQ(ledger.service_curve().needed_bytes(), 100u);
  EXPECT_EQ(ledger.held().needed_bytes(), 80u);
  ledger.observe(150);
  EXPECT_EQ(ledger.service_curve().needed_bytes(), 100u);
  ledger.observe(170);
  EXPECT_EQ(ledger.service_curve().needed_bytes(), 110u);
}

}  // namespace
}  // namespace daqwriter
