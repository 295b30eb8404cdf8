#include "base/pacing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <utility>

#include "source/busy.h"

namespace daqwriter {
namespace {

TEST(ArrivalSchedule, StaggersTheLinksWithinOnePeriod) {
  const ArrivalSchedule schedule(4, 1e6, 1.0);  // a period of 1000 ns
  EXPECT_EQ(schedule.intended_ns(0, 0), 0);
  EXPECT_EQ(schedule.intended_ns(1, 0), 250);
  EXPECT_EQ(schedule.intended_ns(3, 0), 750);
  EXPECT_EQ(schedule.intended_ns(3, 2), 2750);
}

TEST(ArrivalSchedule, CountsExactlyThoseThatAreDue) {
  const ArrivalSchedule schedule(2, 1e6, 1.0);
  EXPECT_EQ(schedule.due_by(0, -1), 0u);
  EXPECT_EQ(schedule.due_by(0, 0), 1u);
  EXPECT_EQ(schedule.due_by(0, 999), 1u);
  EXPECT_EQ(schedule.due_by(0, 1000), 2u);
  EXPECT_EQ(schedule.due_by(1, 499), 0u);
  EXPECT_EQ(schedule.due_by(1, 500), 1u);
  EXPECT_EQ(schedule.due_by(1000), 3u);
}

TEST(ArrivalSchedule, AsksForThePapersDemand) {
  const ArrivalSchedule schedule(10, 166'000, 100);
  EXPECT_EQ(schedule.total(), 166'000'000u);
  EXPECT_EQ(schedule.total() * 5568, 924'288'000'000u);  // seed-facts: 100 s at the real rate
  EXPECT_EQ(schedule.due_by(INT64_MAX), schedule.total());
}

TEST(ArrivalSchedule, DueByAgreesWithIntendedTimesAtAnOddRate) {
  const ArrivalSchedule schedule(3, 166'000 * 0.137, 2.0);
  for (std::uint64_t i = 0; i + 1 < schedule.due_by(2, schedule.duration_ns()); i += 7) {
    const std::int64_t intended = schedule.intended_ns(2, i);
    EXPECT_EQ(schedule.due_by(2, intended), i + 1);
    EXPECT_EQ(schedule.due_by(2, intended - 1), i);
  }
}

// Worked by hand: arrivals 10 B per ns. Before t=5: 50-0. Before t=8: 80-30. Before t=20: 200-80.
TEST(ServiceCurve, NeedsTheLargestGapBetweenArrivedAndDurable) {
  ServiceCurve curve;
  curve.completed(5, 50, 30);
  EXPECT_EQ(curve.needed_bytes(), 50u);
  curve.completed(8, 80, 50);
  EXPECT_EQ(curve.needed_bytes(), 50u);
  EXPECT_EQ(curve.needed_at_ns(), 5);
  curve.completed(20, 200, 100);
  EXPECT_EQ(curve.needed_bytes(), 120u);
  EXPECT_EQ(curve.needed_at_ns(), 20);
  curve.observe(30, 250);
  EXPECT_EQ(curve.needed_bytes(), 120u);  // 250 - 180
}

// 9.127 GB/s of service for 100 s of 9.243 GB/s: seed-facts gives 11.6 GB of transient buffer.
TEST(ServiceCurve, GivesThePapersTransientBuffer) {
  ServiceCurve curve;
  constexpr double kArrival = 9.24288;  // bytes per nanosecond
  constexpr double kService = 9.126806;
  std::uint64_t durable = 0;
  for (std::int64_t t = 1'000'000; t <= 100'000'000'000; t += 1'000'000) {
    const auto served = static_cast<std::uint64_t>(kService * static_cast<double>(t));
    curve.completed(t, static_cast<std::uint64_t>(kArrival * static_cast<double>(t)), served - durable);
    durable = served;
  }
  EXPECT_NEAR(static_cast<double>(curve.needed_bytes()), 11.6e9, 0.05e9);
}

TEST(ServiceCurve, IsZeroWhenServiceRunsAhead) {
  ServiceCurve curve;
  curve.completed(1, 0, 10);
  curve.observe(2, 5);
  EXPECT_EQ(curve.needed_bytes(), 0u);
}

TEST(Busy, AssertsAboveEightyAndReleasesAtFiftyPercent) {
  BusyTracker busy;
  busy.observe(10, 0.8);
  EXPECT_FALSE(busy.busy());
  busy.observe(20, 0.81);
  EXPECT_TRUE(busy.busy());
  busy.observe(30, 0.51);
  busy.observe(40, 0.95);
  EXPECT_TRUE(busy.busy());
  EXPECT_EQ(busy.count(), 1u);
  busy.observe(50, 0.5);
  EXPECT_FALSE(busy.busy());
  busy.observe(60, 0.9);
  busy.finish(75);
  ASSERT_EQ(busy.episodes().size(), 2u);
  EXPECT_EQ(busy.episodes()[0].start_ns, 20);
  EXPECT_EQ(busy.episodes()[0].duration_ns, 30);
  EXPECT_EQ(busy.episodes()[1].duration_ns, 15);
  EXPECT_EQ(busy.total_ns(), 45);
}

TEST(Busy, CountsEpisodesBeyondThoseItKeeps) {
  BusyTracker busy;
  for (std::int64_t i = 0; i < 1500; ++i) {
    busy.observe(2 * i, 1.0);
    busy.observe(2 * i + 1, 0.0);
  }
  EXPECT_EQ(busy.count(), 1500u);
  EXPECT_EQ(busy.total_ns(), 1500);
  EXPECT_EQ(busy.episodes().size(), BusyTracker::kMaxEpisodes);
}

// 8 B per ns while there is work; 4 ms idle of 10: 48 MB in 10 ms, of which 6 ms with work.
class ServiceRecordTest : public ::testing::Test {
 protected:
  ServiceRecordTest() {
    for (std::int64_t ms = 1; ms <= 6; ++ms)
      record.sample(ms * 1'000'000, ms * 1'000'000, static_cast<std::uint64_t>(ms - 1) * 8'000'000);
    record.end(10'000'000, 6'000'000, 48'000'000);
  }
  ServiceRecord record;
};

TEST_F(ServiceRecordTest, SaysHowMuchOfTheTimeTheDeviceHadWork) {
  EXPECT_DOUBLE_EQ(record.busy_fraction(), 0.6);
  EXPECT_DOUBLE_EQ(record.busy_bytes_per_s(), 8e9);
}

// 10 GB/s for 10 ms = 100 MB. Estimate: 8 GB/s without pause makes 80 MB durable by then. Upper bound: the
// 48 MB that were seen. Each with 1 ms of the load, 10 MB, for what the samples do not resolve.
TEST_F(ServiceRecordTest, ReplaysTheServiceAgainstAnotherLoad) {
  const ServiceRecord::Needed needed = record.needed(10e9, 0.010);
  EXPECT_NEAR(static_cast<double>(needed.estimate), 30e6, 10);
  EXPECT_NEAR(static_cast<double>(needed.upper_bound), 62e6, 10);
}

TEST_F(ServiceRecordTest, GoesOnAtTheMeanRateBehindTheEnd) {
  const ServiceRecord::Needed needed = record.needed(10e9, 0.100);
  EXPECT_NEAR(static_cast<double>(needed.estimate), 1e9 - 0.8e9 + 10e6, 10);
  EXPECT_NEAR(static_cast<double>(needed.upper_bound), 1e9 - 0.48e9 + 10e6, 10);
}

// seed-facts: 9.127 GB/s for 100 s leaves 87 GB of backlog at 10 GB/s, 11.6 GB at the real rate.
TEST(ServiceRecord, GivesThePapersArithmetic) {
  ServiceRecord record;
  record.end(100'000'000'000, 100'000'000'000, 912'700'000'000);
  EXPECT_NEAR(static_cast<double>(record.needed(10e9, 100).estimate), 87.3e9, 0.02e9);
  EXPECT_NEAR(static_cast<double>(record.needed(9.24288e9, 100).estimate), 11.6e9, 0.02e9);
}

TEST(ServiceRecord, StaysBoundedAndKeepsTheShape) {
  ServiceRecord record;
  const std::int64_t ms = 1'000'000;
  const std::int64_t end = 3 * static_cast<std::int64_t>(ServiceRecord::kMostSamples);
  for (std::int64_t t = 1; t < end; ++t)
    record.sample(t * ms, t * ms, static_cast<std::uint64_t>(t) * 1'000'000);  // 1 GB/s
  record.end(end * ms, end * ms, static_cast<std::uint64_t>(end) * 1'000'000);
  EXPECT_EQ(record.spacing_ns(), 4 * ms);
  EXPECT_LE(record.needed(1e9, 600).estimate, 6'000'000u);  // keeps up, to within the resolution
}

// Three writers with bursts of their own over the same arrivals of 1 B/ns and writer.
class JointServiceCurveTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kEnd = 100'000;
  struct Completion {
    std::int64_t t_ns;
    std::uint64_t bytes;
  };
  static std::vector<Completion> completions(std::size_t writer) {
    std::mt19937 random(static_cast<unsigned>(writer));
    std::vector<Completion> all;
    std::int64_t t = 0, done = 0;
    while (t < kEnd) {
      t += static_cast<std::int64_t>(random() % (10 + 400 * (writer + 1)));
      const std::int64_t bytes = std::max<std::int64_t>(0, std::min(t, kEnd) - done) / (1 + random() % 3);
      done += bytes;
      all.push_back({t, static_cast<std::uint64_t>(bytes)});
    }
    return all;
  }
  static std::uint64_t arrived(std::int64_t t) { return static_cast<std::uint64_t>(std::min(t, kEnd)); }

  JointServiceCurveTest() {
    std::vector<std::pair<Completion, std::size_t>> merged;
    for (std::size_t writer = 0; writer < 3; ++writer) {
      ServiceCurve alone;
      for (const Completion& each : completions(writer)) {
        merged.push_back({each, writer});
        alone.completed(each.t_ns, arrived(each.t_ns), each.bytes);
      }
      sum_of_maxima += alone.needed_bytes();
    }
    std::sort(merged.begin(), merged.end(),
              [](const auto& one, const auto& other) { return one.first.t_ns < other.first.t_ns; });
    ServiceCurve together;  // one account of all, as a lock on the data path would have kept it
    for (const auto& [each, writer] : merged)
      together.completed(each.t_ns, 3 * arrived(each.t_ns), each.bytes);
    exactly = together.needed_bytes();
  }
  JointServiceCurve joint(std::size_t most_steps, bool schedule_known) {
    histories.clear();
    for (std::size_t writer = 0; writer < 3; ++writer) {
      histories.emplace_back(most_steps);
      std::uint64_t durable = 0;
      std::int64_t last = 0;
      for (const Completion& each : completions(writer)) {
        durable += each.bytes;
        histories.back().completed(each.t_ns, arrived(each.t_ns), durable);
        last = each.t_ns;
      }
      histories.back().end(last, arrived(last));
    }
    return {{&histories[0], &histories[1], &histories[2]},
            schedule_known ? [](std::int64_t t) { return 3 * arrived(t); }
                           : std::function<std::uint64_t(std::int64_t)>()};
  }

  std::deque<ServiceHistory> histories;
  std::uint64_t exactly = 0;
  std::uint64_t sum_of_maxima = 0;
};

TEST_F(JointServiceCurveTest, IsExactWhereTheArrivalsAreKnown) {
  const JointServiceCurve curve = joint(1 << 20, true);
  EXPECT_TRUE(curve.exact());
  EXPECT_EQ(curve.needed_bytes(), exactly);
  EXPECT_LT(curve.needed_bytes(), sum_of_maxima);
}

TEST_F(JointServiceCurveTest, IsABoundWhereTheyAreNot) {
  const JointServiceCurve curve = joint(1 << 20, false);
  EXPECT_FALSE(curve.exact());
  EXPECT_GE(curve.needed_bytes(), exactly);
  EXPECT_LE(curve.needed_bytes(), 2 * exactly);
}

TEST_F(JointServiceCurveTest, IsABoundWhenCompletionsWereForgotten) {
  for (const bool known : {true, false}) {
    for (const std::size_t most : {2u, 3u, 16u, 100u}) {
      const JointServiceCurve curve = joint(most, known);
      EXPECT_FALSE(curve.exact()) << most;
      EXPECT_GE(curve.needed_bytes(), exactly) << most;
    }
  }
  EXPECT_LE(joint(100, true).needed_bytes(), 2 * exactly);
}

TEST(JointServiceCurve, OfOneWriterIsItsOwn) {
  ServiceHistory history(16);
  history.completed(100, 100, 60);
  history.end(170, 170);
  const JointServiceCurve curve({&history}, {});
  EXPECT_TRUE(curve.exact());
  EXPECT_EQ(curve.needed_bytes(), 110u);
  EXPECT_EQ(curve.needed_at_ns(), 170);
}

}  // namespace
}  // namespace daqwriter
