#include "source/readout_emulator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace daqwriter {
namespace {

class ReadoutEmulatorTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kSlotBytes = 128;

  void make(std::uint32_t links, std::uint64_t slots) {
    memory.resize(links * slots * kSlotBytes);
    for (std::uint32_t link = 0; link < links; ++link) {
      rings.push_back(
          std::make_unique<LinkRing>(memory.data() + link * slots * kSlotBytes, slots, kSlotBytes));
    }
    prepare_rings(rings, 1, RecordId{}, ChecksumKind::off);
  }
  SuperchunkHeader header(std::uint32_t link, std::uint64_t ordinal) {
    SuperchunkHeader h;
    std::memcpy(&h, rings[link]->slot(ordinal), sizeof h);
    return h;
  }

  std::vector<std::byte> memory;
  std::vector<std::unique_ptr<LinkRing>> rings;
  std::atomic<int> stop{0};
  std::atomic<bool> abort{false};
  std::atomic<bool> writer_done{true};
};

TEST_F(ReadoutEmulatorTest, OffersTheWholeScheduleInOrderWithIntendedTimes) {
  make(2, 1000);
  const ArrivalSchedule schedule(2, 10'000, 0.05);
  ReadoutEmulator source(rings, schedule, {}, stop, abort);
  source.run(monotonic_ns(), writer_done);
  EXPECT_TRUE(source.finished());
  EXPECT_EQ(source.offered(), 1000u);
  EXPECT_EQ(source.lost(), 0u);
  for (std::uint32_t link = 0; link < 2; ++link) {
    ASSERT_EQ(rings[link]->available(), 500u);
    for (std::uint64_t i = 0; i < 500; ++i) {
      const SuperchunkHeader h = header(link, i);
      ASSERT_EQ(h.sequence, i);
      ASSERT_EQ(h.ordinal, i);
      ASSERT_EQ(h.intended_ns, schedule.intended_ns(link, i));
      ASSERT_EQ(h.link, link);
    }
  }
}

TEST_F(ReadoutEmulatorTest, NeverEmitsBeforeTheIntendedArrival) {
  make(1, 1000);
  const ArrivalSchedule schedule(1, 1000, 0.1);
  ReadoutEmulator source(rings, schedule, {}, stop, abort);
  const std::int64_t start = monotonic_ns() + 20'000'000;
  std::thread thread([&] { source.run(start, writer_done); });
  for (std::uint64_t seen = 0; seen < 100;) {
    const std::uint64_t available = rings[0]->available();
    const std::int64_t t = monotonic_ns() - start;  // after the look: later than any emission seen
    for (std::uint64_t k = 0; k < available; ++k) EXPECT_LE(header(0, seen + k).intended_ns, t);
    rings[0]->release(available);
    seen += available;
  }
  thread.join();
}

TEST_F(ReadoutEmulatorTest, LosesWhatFindsTheRingFullAndSkipsItsSequence) {
  make(1, 10);
  const ArrivalSchedule schedule(1, 200, 0.5);  // refilling takes 50 ms: time to see that it was empty
  ReadoutEmulator source(rings, schedule, {}, stop, abort);
  std::thread thread([&] { source.run(monotonic_ns(), writer_done); });
  while (source.offered() < 20) std::this_thread::yield();
  EXPECT_EQ(rings[0]->available(), 10u);
  EXPECT_EQ(header(0, 9).sequence, 9u);
  rings[0]->release(10);
  thread.join();
  EXPECT_EQ(source.offered(), 100u);
  EXPECT_EQ(source.lost(), 80u);
  EXPECT_EQ(source.lost_per_link()[0], 80u);
  EXPECT_EQ(header(0, 10).ordinal, 10u);
  EXPECT_GE(header(0, 10).sequence, 20u);
  EXPECT_EQ(source.busy().count(), 2u);  // full, emptied, full again
}

TEST_F(ReadoutEmulatorTest, ShowsThatItCouldNotOfferTheLoad) {
  make(1, 10);
  const ArrivalSchedule schedule(1, 1e10, 0.1);  // ten superchunks per nanosecond: nobody can
  ReadoutEmulator source(rings, schedule, {}, stop, abort);
  source.run(monotonic_ns(), writer_done);
  EXPECT_LT(source.offered(), schedule.total());
  EXPECT_EQ(source.offered(), source.accepted() + source.lost());
  EXPECT_LE(source.emission_ns(), schedule.duration_ns() + ReadoutEmulator::kOverrunNs);
}

TEST_F(ReadoutEmulatorTest, CountsALateStart) {
  make(1, 1000);
  const ArrivalSchedule schedule(1, 1000, 0.1);
  ReadoutEmulator source(rings, schedule, {}, stop, abort);
  source.run(monotonic_ns() - 50'000'000, writer_done);
  EXPECT_GE(source.worst_lateness_ns(), 50'000'000);
  EXPECT_GE(source.late_superchunks(), 48u);
  EXPECT_EQ(source.offered(), 100u);
}

TEST_F(ReadoutEmulatorTest, StopsOnASignalAndOnAnAbort) {
  make(1, 100'000);
  const ArrivalSchedule schedule(1, 1000, 60);
  ReadoutEmulator source(rings, schedule, {}, stop, abort);
  std::thread thread([&] { source.run(monotonic_ns(), writer_done); });
  while (source.offered() < 5) std::this_thread::yield();
  stop = 2;
  thread.join();
  EXPECT_LT(source.offered(), 10'000u);
  abort = true;
  ReadoutEmulator other(rings, schedule, {}, stop, abort);
  other.run(monotonic_ns(), writer_done);
  EXPECT_EQ(other.offered(), 0u);
}

}  // namespace
}  // namespace daqwriter
