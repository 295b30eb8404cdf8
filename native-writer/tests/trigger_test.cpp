#include "source/trigger.h"

#include <gtest/gtest.h>

#include <thread>

namespace daqwriter {
namespace {

class TriggerTest : public ::testing::Test {
 protected:
  TriggerTest() {
    for (std::size_t link = 0; link < 2; ++link)
      rings.push_back(std::make_unique<LinkRing>(memory.data() + link * 1600, 100, 16));
  }
  void emit(std::uint64_t head) {
    for (const auto& ring : rings) ring->publish(head);
  }
  std::vector<std::byte> memory = std::vector<std::byte>(3200);
  std::vector<std::unique_ptr<LinkRing>> rings;
  ArrivalSchedule schedule{2, 1e6, 1.0};  // one superchunk per microsecond and link
};

TEST_F(TriggerTest, AsksForWhatArrivedUpToTheDecision) {
  TriggerEmulator trigger({10, 1, 50'000}, schedule, rings);  // a decision every 20 us
  emit(9);
  trigger.tick(9'000, false);
  EXPECT_EQ(trigger.decisions(), 0u);  // the first window is still arriving
  emit(25);
  trigger.tick(24'900, false);
  ASSERT_EQ(trigger.decisions(), 2u);
  const DataRequest* first = trigger.queue().take();
  EXPECT_EQ(first->intended_ns, 0);
  EXPECT_EQ(first->first[0], 0u);
  const DataRequest* second = trigger.queue().take();
  EXPECT_EQ(second->intended_ns, 20'000);
  EXPECT_EQ(second->first[0], 11u);  // 21 had arrived on link 0 by then, 20 on link 1
  EXPECT_EQ(second->first[1], 10u);
  EXPECT_EQ(trigger.queue().take(), nullptr);
  EXPECT_EQ(trigger.requested(), 40u);
}

TEST_F(TriggerTest, KeepsOutstandingWindowsAndLetsServedOnesGo) {
  TriggerEmulator trigger({10, 1, 50'000}, schedule, rings);
  emit(25);
  trigger.tick(24'900, false);
  EXPECT_FALSE(rings[0]->has_room(100));  // position 0 is held by the first request
  ASSERT_NE(trigger.queue().take(), nullptr);
  trigger.queue().finish();
  trigger.release_served();
  EXPECT_TRUE(rings[0]->has_room(110));  // now from 11 on
  EXPECT_FALSE(rings[0]->has_room(111));
  ASSERT_NE(trigger.queue().take(), nullptr);
  trigger.queue().finish();
  trigger.release_served();
  EXPECT_TRUE(rings[0]->has_room(124));  // all but the head may be overwritten
  EXPECT_DOUBLE_EQ(rings[0]->occupancy(), 0.0);
}

TEST_F(TriggerTest, VetoesWhileBusyAndNeverReachesOverAGap) {
  TriggerEmulator trigger({10, 1, 50'000}, schedule, rings);
  emit(15);
  trigger.tick(1'000, true);
  EXPECT_EQ(trigger.vetoed(), 1u);
  EXPECT_EQ(trigger.decisions(), 0u);
  trigger.missed(1, 14);
  emit(21);
  trigger.tick(20'500, false);
  EXPECT_EQ(trigger.decisions(), 0u);  // link 1 has 15 ... 20 only
  emit(25);
  trigger.tick(24'900, false);
  ASSERT_EQ(trigger.decisions(), 1u);
  const DataRequest* request = trigger.queue().take();
  EXPECT_EQ(request->first[0], 11u);
  EXPECT_EQ(request->first[1], 15u);
}

TEST_F(TriggerTest, WindowsBeginAtTheUnitAndNeverOverlap) {
  TriggerEmulator trigger({8, 8, 100'000}, schedule, rings);  // every 10 us
  emit(60);
  trigger.tick(59'900, false);
  std::uint64_t end = 0;
  int count = 0;
  while (const DataRequest* request = trigger.queue().take()) {
    EXPECT_EQ(request->first[0] % 8, 0u);
    EXPECT_GE(request->first[0], end);
    end = request->first[0] + 8;
    ++count;
  }
  EXPECT_EQ(count, 6);
}

TEST_F(TriggerTest, UnpacedWindowsFollowEachOtherWhileThereIsRoom) {
  TriggerEmulator trigger({10, 1, 0}, schedule, rings);
  std::uint64_t head = 0;
  for (; trigger.wants_more(); head += 10) {
    emit(head + 10);
    trigger.tick(1'000, false);
  }
  EXPECT_EQ(head, 70u);  // three quarters of 100, in tens
  for (std::uint64_t k = 0; k < 7; ++k) EXPECT_EQ(trigger.queue().take()->first[1], 10 * k);
}

// A request and the superchunks that it names are seen whole by the other thread (and TSan agrees).
TEST(RequestQueue, HandsRequestsOverInOrderBetweenTwoThreads) {
  constexpr std::uint64_t kCount = 20'000;
  RequestQueue queue(1);
  std::vector<std::uint64_t> data(64);
  std::thread emulator([&] {
    for (std::uint64_t n = 0; n < kCount;) {
      queue.collect();
      if (queue.outstanding() == data.size()) {
        std::this_thread::yield();
        continue;
      }
      data[n % data.size()] = n;
      queue.next().first[0] = n;
      queue.publish();
      ++n;
    }
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t n = 0; n < kCount;) {
    const DataRequest* request = queue.take();
    if (!request) {
      std::this_thread::yield();
      continue;
    }
    wrong += request->first[0] != n || data[n % data.size()] != n;
    queue.finish();
    ++n;
  }
  emulator.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace daqwriter
