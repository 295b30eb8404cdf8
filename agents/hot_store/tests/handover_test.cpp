// How far apart two CPUs are: a number, or none where there is one CPU only.
#include "handover.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace hotstore {
namespace {

int usable_cpus() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  return sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : 0;
}

TEST(HandoverTest, IsLongerThanACycle) {
  if (usable_cpus() < 2) GTEST_SKIP() << "one CPU only: there is no distance to measure";
  const std::optional<double> found = handover_ns(0.1);
  ASSERT_TRUE(found.has_value());
  EXPECT_GT(*found, 1);  // how much more depends on the machine and its load
}

TEST(HandoverTest, IsNoneOnOneCpu) {
  std::optional<double> found = 1;
  std::thread([&found] {  // its affinity ends with it
    const int here = sched_getcpu();
    ASSERT_GE(here, 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(here), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    found = handover_ns(0.1);
  })
      .join();
  EXPECT_EQ(found, std::nullopt);
}

}  // namespace
}  // namespace hotstore
