#include "base/placement.h"

#include <gtest/gtest.h>

#include <set>

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

// Two sockets with eight CPUs each; drives on both.
std::vector<DriveOfWriter> drives_on(const std::vector<int>& nodes) {
  std::vector<DriveOfWriter> drives;
  for (const int node : nodes) {
    const int first = 8 * node;
    std::vector<int> near(8);
    for (int i = 0; i < 8; ++i) near[static_cast<std::size_t>(i)] = first + i;
    drives.push_back(node < 0 ? DriveOfWriter{} : DriveOfWriter{near, node, {}, {}});
  }
  return drives;
}
const std::vector<int> kTwoSockets = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

void expect_all_different(const std::vector<Placement>& placements) {
  std::set<int> cpus;
  for (const Placement& each : placements) {
    EXPECT_TRUE(each.writer_cpu && cpus.insert(*each.writer_cpu).second);
    EXPECT_TRUE(each.source_cpu && cpus.insert(*each.source_cpu).second);
  }
}

TEST(DealPlacements, EachOnItsDrivesNodeWithCpusOfItsOwn) {
  const std::vector<int> nodes = {0, 1, 0, 1, 1, 0, 0, 1};
  const auto placed = deal_placements(kTwoSockets, drives_on(nodes));
  expect_all_different(placed);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(*placed[i].writer_cpu / 8, nodes[i]);
    EXPECT_EQ(*placed[i].source_cpu / 8, nodes[i]);
    EXPECT_EQ(placed[i].numa_node, nodes[i]);
    EXPECT_EQ(placed[i].note, "pinned to the drive's NUMA node");
  }
}

TEST(DealPlacements, WritersComeFirstAndANodeThatIsFullSpillsOver) {
  const auto placed = deal_placements(kTwoSockets, drives_on({0, 0, 0, 0, 0, 0, 1}));
  expect_all_different(placed);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_LT(*placed[i].writer_cpu, 8);
  EXPECT_GE(*placed[6].writer_cpu, 8);  // nobody who has no room took its node's
  EXPECT_GE(*placed[6].source_cpu, 8);
  EXPECT_NE(placed[5].note.find("source pinned to another node"), std::string::npos) << placed[5].note;

  const auto crowded = deal_placements({0, 1, 2, 3, 8, 9, 10, 11}, drives_on({0, 0, 0, 0}));
  expect_all_different(crowded);
  const auto unknown = deal_placements(kTwoSockets, drives_on({-1, 1, -1}));
  expect_all_different(unknown);
  EXPECT_EQ(unknown[1].note, "pinned to the drive's NUMA node");
}

TEST(DealPlacements, NoTwoWritersShareACpuWhileOneIsFree) {
  const auto placed = deal_placements(kTwoSockets, drives_on({0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, -1}));
  std::set<int> cpus;
  std::size_t sources = 0;
  for (const Placement& each : placed) {
    EXPECT_TRUE(each.writer_cpu && cpus.insert(*each.writer_cpu).second);
    if (!each.source_cpu) continue;
    EXPECT_TRUE(cpus.insert(*each.source_cpu).second);
    ++sources;
  }
  EXPECT_EQ(sources, 4u);  // the rest is bound to its node
  EXPECT_EQ(placed[8].note,
            "writer pinned to another node, where a CPU was free; source not pinned, since no CPU is free");
  EXPECT_EQ(placed[8].node_cpus, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(placed[9].note, "pinned to the drive's NUMA node");
}

TEST(DealPlacements, SeveralWritersOfAnApplicationHaveOneSource) {
  auto drives = drives_on({0, 0, 0, 1, 1, 1});
  for (const std::size_t i : {1, 2, 4, 5}) drives[i].source = false;
  const auto placed = deal_placements(kTwoSockets, drives);
  std::set<int> cpus;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    EXPECT_TRUE(placed[i].writer_cpu && cpus.insert(*placed[i].writer_cpu).second);
    EXPECT_EQ(*placed[i].writer_cpu / 8, i < 3 ? 0 : 1);
    EXPECT_EQ(placed[i].source_cpu.has_value(), i % 3 == 0);
    EXPECT_TRUE(!placed[i].source_cpu || cpus.insert(*placed[i].source_cpu).second);
    EXPECT_EQ(placed[i].note, "pinned to the drive's NUMA node");
  }
}

TEST(DealPlacements, WithFewerCpusThanWritersThreadsAreBoundToTheNodeOnly) {
  std::vector<int> nodes(17, 0);
  nodes[4] = 1;
  nodes[8] = -1;
  const auto placed = deal_placements(kTwoSockets, drives_on(nodes));
  for (const Placement& each : placed) EXPECT_FALSE(each.writer_cpu || each.source_cpu);
  EXPECT_EQ(placed[0].node_cpus, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(placed[4].node_cpus, (std::vector<int>{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_TRUE(placed[8].node_cpus.empty());
}

TEST(DealPlacements, WhatWasAskedForIsObeyedAndKeptFree) {
  auto drives = drives_on({0, 1});
  drives[0].asked_writer = 15;
  const auto placed = deal_placements(kTwoSockets, drives);
  EXPECT_EQ(placed[0].writer_cpu, 15);
  expect_all_different(placed);
  drives[1].asked_source = 99;
  EXPECT_THROW(deal_placements(kTwoSockets, drives), Refusal);
}

TEST(Placement, AListOfCpusHasAllowedOnesOnce) {
  check_cpus({0, 1, 5}, {5, 0}, "--cpus");
  for (const std::vector<int>& wrong : {std::vector<int>{}, {2}, {1, 1}}) {
    EXPECT_THROW(check_cpus({0, 1, 5}, wrong, "--cpus"), Refusal);
  }
}

}  // namespace
}  // namespace daqwriter
