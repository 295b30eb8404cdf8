#include "base/placement.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace daqwriter {
namespace {

TEST(Placement, UsesTwoCpusOfTheDrivesNode) {
  const Placement p = choose_placement({0, 1, 2, 3, 4, 5, 6, 7}, {4, 5, 6, 7}, 1, {}, {});
  EXPECT_EQ(p.writer_cpu, 7);
  EXPECT_EQ(p.source_cpu, 6);
  EXPECT_EQ(p.numa_node, 1);
}

TEST(Placement, StaysInsideTheAllowedCpus) {
  const Placement p = choose_placement({0, 1, 4}, {4, 5, 6}, 1, {}, {});
  EXPECT_EQ(p.writer_cpu, 4);
  EXPECT_EQ(p.source_cpu, 1);
}

TEST(Placement, TakesTwoDifferentCpusWhenTheNodeIsUnknown) {
  const Placement p = choose_placement({0, 1}, {}, {}, {}, {});
  EXPECT_EQ(p.writer_cpu, 1);
  EXPECT_EQ(p.source_cpu, 0);
}

TEST(Placement, DoesNotPinOnOneCpuAndSaysSo) {
  const Placement p = choose_placement({3}, {}, {}, {}, {});
  EXPECT_FALSE(p.writer_cpu);
  EXPECT_FALSE(p.source_cpu);
  EXPECT_NE(p.note.find("only one CPU"), std::string::npos);
}

TEST(Placement, ObeysAndKeepsTheOtherThreadAway) {
  EXPECT_EQ(choose_placement({0, 1}, {}, {}, 0, {}).source_cpu, 1);
  EXPECT_EQ(choose_placement({0, 1}, {}, {}, {}, 1).writer_cpu, 0);
  EXPECT_THROW(choose_placement({0, 1}, {}, {}, 2, {}), Refusal);
  EXPECT_THROW(choose_placement({0, 1}, {}, {}, {}, 9), Refusal);
}

TEST(Placement, AListOfCpusHasAllowedOnesOnce) {
  check_cpus({0, 1, 5}, {5, 0}, "--cpus");
  for (const std::vector<int>& wrong : {std::vector<int>{}, {2}, {1, 1}}) {
    EXPECT_THROW(check_cpus({0, 1, 5}, wrong, "--cpus"), Refusal);
  }
}

}  // namespace
}  // namespace daqwriter
