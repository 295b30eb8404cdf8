#include "source/link_ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace daqwriter {
namespace {

TEST(LinkRing, IsFullAfterItsSlotsAndHasRoomAgainAfterRelease) {
  std::vector<std::byte> memory(4 * 16);
  LinkRing ring(memory.data(), 4, 16);
  for (std::uint64_t n = 0; n < 4; ++n) EXPECT_TRUE(ring.has_room(n));
  EXPECT_FALSE(ring.has_room(4));
  ring.publish(4);
  EXPECT_DOUBLE_EQ(ring.occupancy(), 1.0);
  EXPECT_EQ(ring.available(), 4u);
  ring.take(1);
  ring.release(1);
  EXPECT_DOUBLE_EQ(ring.occupancy(), 0.75);
  EXPECT_TRUE(ring.has_room(4));
  EXPECT_FALSE(ring.has_room(5));
  EXPECT_EQ(ring.slot(4), memory.data());
}

// Every value arrives once, in order, whole: a missing release or acquire tears a slot (and TSan reports it).
TEST(LinkRing, HandsEverySlotOverWholeAndInOrderBetweenTwoThreads) {
  constexpr std::uint64_t kCount = 300'000;
  constexpr std::size_t kSlotBytes = 72;  // more than a cache line
  std::vector<std::byte> memory(37 * kSlotBytes);
  LinkRing ring(memory.data(), 37, kSlotBytes);
  std::thread producer([&] {
    for (std::uint64_t n = 0; n < kCount; ++n) {
      while (!ring.has_room(n)) std::this_thread::yield();
      for (std::size_t i = 0; i < kSlotBytes; i += sizeof n) std::memcpy(ring.slot(n) + i, &n, sizeof n);
      if (n % 5 == 0 || n + 1 == kCount) ring.publish(n + 1);
    }
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t next = 0; next < kCount;) {
    const std::uint64_t count = ring.available();
    if (count == 0) std::this_thread::yield();
    for (std::uint64_t k = 0; k < count; ++k, ++next) {
      for (std::size_t i = 0; i < kSlotBytes; i += sizeof next)
        wrong += std::memcmp(ring.slot(next) + i, &next, sizeof next) != 0;
    }
    ring.take(count);
    ring.release(count);
    EXPECT_LE(ring.occupancy(), 1.0);
  }
  producer.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(ring.available(), 0u);
}

TEST(LinkRing, AWalkMeetsTheSlotsThatTheirNumbersName) {
  std::vector<std::byte> memory(7 * 65);
  const LinkRing ring(memory.data(), 7, 65);
  std::byte* slot = ring.slot(3);
  for (std::uint64_t n = 3; n < 40; ++n, slot = ring.next(slot)) ASSERT_EQ(slot, ring.slot(n)) << n;
}

}  // namespace
}  // namespace daqwriter
