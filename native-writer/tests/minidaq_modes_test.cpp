// The MiniDAQ beyond one paced, copied, continuous record: zero-copy, triggered requests, several
// applications, unpaced. On the real disk, or on an engine that completes late, out of order or not at all;
// verify judges.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <thread>

#include "base/status.h"
#include "io/null_engine.h"
#include "record/minidaq_search.h"
#include "support.h"

namespace daqwriter {
namespace {

using testing::MeddlingEngine;
using testing::record;
using testing::record_in_full;
using testing::TempDir;
using testing::verify;

constexpr std::uint64_t kChunkBytes = 64 * 5568;  // 87 pages: the smallest aligned run of superchunks

std::uint64_t lost(const MiniDaqResult& result) {
  return std::accumulate(result.lost_per_link.begin(), result.lost_per_link.end(), std::uint64_t{0});
}

EngineFactory slow(std::int64_t delay_ns) {
  return [=](unsigned depth) {
    return std::make_unique<MeddlingEngine>(testing::aio_engine()(depth), delay_ns);
  };
}

class MiniDaqModes : public ::testing::Test {
 protected:
  // 2000 Hz x 3 links; zero-copy chunks take 32 ms to arrive.
  MiniDaqOptions zero_copy() const {
    MiniDaqOptions options = testing::small_record(target);
    options.zero_copy = true;
    options.ring_bytes = 8 << 20;  // holds the whole record: a busy disk loses nothing
    return options;
  }
  // 20 Hz x 16 superchunks of each link: a sixth of what the links emit.
  MiniDaqOptions triggered() const {
    MiniDaqOptions options = testing::small_record(target);
    options.request_bytes = 3 * 16 * 5568;
    options.trigger_rate_hz = 20;
    options.ring_bytes = 8 << 20;  // holds everything: a busy disk vetoes nothing
    return options;
  }
  void expect_intact(const std::string& path, std::uint64_t present) {
    const testing::Verified verified = verify(directory, path);
    EXPECT_EQ(verified.exit_code, 0) << verified.json.dump();
    EXPECT_EQ(verified.count("present"), present);
    EXPECT_EQ(verified.count("expected"), present);
  }

  TempDir directory;
  std::string target = directory.path("record");
};

TEST_F(MiniDaqModes, ZeroCopyCopiesOnlyWhatIsLessThanAChunk) {
  const MiniDaqResult result = record_in_full(zero_copy());
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  EXPECT_EQ(result.stored, 3000u);
  EXPECT_EQ(lost(result), 0u);
  EXPECT_EQ(result.copied_bytes, 3 * (1000 % 64) * 5568u);
  expect_intact(target, 3000);
}

TEST_F(MiniDaqModes, ZeroCopyOverloadedLosesCountablyAndStoresTheRestIntact) {
  MiniDaqOptions options = zero_copy();
  options.ring_bytes = 2 * kChunkBytes;
  const MiniDaqResult result = record(options, slow(60'000'000));
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  EXPECT_GT(lost(result), 0u);
  EXPECT_EQ(result.stored + lost(result), 3000u);
  expect_intact(target, result.stored);
}

// The engine copies the data when it is reaped, newest first: a slot given back before its completion would
// be overwritten by then, and the record would not verify.
TEST_F(MiniDaqModes, ZeroCopyGivesSlotsBackOnlyWhenTheirWriteHasCompleted) {
  class LateEngine : public IoEngine {
   public:
    LateEngine(int fd) : fd_(fd) { fake_.newest_first = true; }
    std::string_view name() const override { return "late"; }
    int submit(std::span<const IoRequest> requests) override { return fake_.submit(requests); }
    int reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) override {
      if (min_count == 0) return 0;
      sleep_until_monotonic_ns(monotonic_ns() + 20'000'000);  // the source goes on in the meantime
      const int count = fake_.reap(out.first(1), min_count, timeout_ns);
      std::vector<std::byte> page(4096);
      for (std::size_t at = 4096; count > 0 && at + 4096 <= fake_.disk.size(); at += 4096) {
        page.assign(fake_.disk.begin() + static_cast<std::ptrdiff_t>(at),
                    fake_.disk.begin() + static_cast<std::ptrdiff_t>(at + 4096));
        const bool empty =
            std::all_of(page.begin(), page.end(), [](std::byte b) { return b == std::byte{0}; });
        if (!empty && pwrite(fd_, page.data(), page.size(), static_cast<off_t>(at)) != 4096) return -EIO;
      }
      return count;
    }

   private:
    int fd_;
    testing::FakeEngine fake_;
  };
  MiniDaqOptions options = zero_copy();
  options.ring_bytes = 4 * kChunkBytes;
  options.block_bytes = 384 << 10;
  options.io_depth = 3;
  int fd = -1;
  const MiniDaqResult result = record(options, [&](unsigned) {
    fd = open(target.c_str(), O_WRONLY | O_CLOEXEC);
    return std::make_unique<LateEngine>(fd);
  });
  fsync(fd);
  close(fd);
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  EXPECT_GT(result.stored, 600u);  // the rings, 256 slots each, came round
  expect_intact(target, result.stored);
}

TEST_F(MiniDaqModes, TriggeredRequestsAreStoredWhole) {
  for (const bool zero : {false, true}) {
    MiniDaqOptions options = triggered();
    options.zero_copy = zero;
    const MiniDaqResult result = record(options);
    ASSERT_EQ(result.status, RunStatus::complete) << result.error;
    const std::uint64_t window = zero ? 64 : 16;  // rounded up to an aligned chunk
    EXPECT_EQ(result.decisions, 10u);
    EXPECT_EQ(result.vetoed, 0u);
    EXPECT_EQ(result.stored, 10 * 3 * window);
    EXPECT_EQ(result.offered, result.stored);
    EXPECT_EQ(result.emitted, 3000u);
    EXPECT_EQ(lost(result), 0u);
    expect_intact(target, result.stored);
    std::filesystem::remove(target);
  }
}

TEST_F(MiniDaqModes, AnInhibitVetoesTriggersAndLosesNothingThatWasAskedFor) {
  for (const bool zero : {false, true}) {
    MiniDaqOptions options = triggered();
    options.zero_copy = zero;
    options.request_bytes = 3 * 64 * 5568;
    options.trigger_rate_hz = 30;
    options.duration_s = 1;
    options.ring_bytes = 4 * kChunkBytes;
    options.block_bytes = kChunkBytes / 87 * 29;  // a third of a chunk
    const MiniDaqResult result = record(options, slow(60'000'000));
    ASSERT_EQ(result.status, RunStatus::complete) << result.error;
    EXPECT_GT(result.vetoed, 0u);
    EXPECT_GT(result.busy.count(), 0u);
    EXPECT_GT(result.unbuffered, 0u);
    EXPECT_EQ(lost(result), 0u);
    EXPECT_EQ(result.stored, result.decisions * 3 * 64);
    EXPECT_LE(result.decisions + result.vetoed, 30u);
    expect_intact(target, result.stored);
    std::filesystem::remove(target);
  }
}

TEST_F(MiniDaqModes, DamageInATriggeredRecordIsFound) {
  ASSERT_EQ(record(triggered()).status, RunStatus::complete);
  const std::uint64_t at = 4096 + 100 * 5568 + 700;
  std::vector<std::byte> bytes = testing::read_bytes(target, at, 1);
  bytes[0] ^= std::byte{4};
  testing::write_bytes(target, at, bytes);
  const testing::Verified verified = verify(directory, target);
  EXPECT_EQ(verified.exit_code, 3);
  EXPECT_EQ(verified.wrong(), (std::map<std::string, std::uint64_t>{{"corrupt", 1}}));
  EXPECT_EQ(verified.json["faults"][0]["offset_bytes"], at);
}

TEST_F(MiniDaqModes, SeveralApplicationsHaveRecordsOfTheirOwnThatAddUp) {
  MiniDaqOptions options = testing::small_record(target);
  options.applications = 2;
  options.ring_bytes = 8 << 20;
  const MiniDaqResult result = record(options);
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  ASSERT_EQ(result.applications.size(), 2u);
  EXPECT_EQ(result.stored, 6000u);
  EXPECT_EQ(result.lost_per_link.size(), 6u);
  EXPECT_NE(result.applications[0].record_id, result.applications[1].record_id);
  EXPECT_EQ(std::accumulate(result.series.stored_bytes.begin(), result.series.stored_bytes.end(), 0ull),
            6000u * 5568);
  EXPECT_EQ(result.latency_ns.count(), 6000u);
  expect_intact(target + ".0", 3000);
  expect_intact(target + ".1", 3000);
}

TEST_F(MiniDaqModes, WhenOneApplicationFailsTheOthersCloseTheirRecords) {
  MiniDaqOptions options = testing::small_record(target);
  options.applications = 2;
  options.duration_s = 20;
  std::size_t made = 0;
  const MiniDaqResult result = record(options, [&](unsigned depth) {
    return std::make_unique<MeddlingEngine>(testing::aio_engine()(depth), 0, made++ == 0 ? 3 : SIZE_MAX, EIO);
  });
  EXPECT_EQ(result.status, RunStatus::failed);
  EXPECT_LT(result.total_ns, 15'000'000'000);
  EXPECT_NE(result.error.find(target + ".0"), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("EIO"), std::string::npos);
  EXPECT_EQ(result.applications[1].status, RunStatus::interrupted);
  expect_intact(target + ".1", result.applications[1].stored);
  EXPECT_EQ(verify(directory, target + ".0").exit_code, 3);
}

TEST_F(MiniDaqModes, UnpacedEndsAfterItsBytesAndLosesNothing) {
  for (const std::uint64_t request : {0, 3 * 16 * 5568}) {
    MiniDaqOptions options = testing::small_record(target);
    options.unpaced = true;
    options.request_bytes = request;
    options.duration_s = 30;
    options.most_bytes = 40'000'000;
    const MiniDaqResult result = record(options);
    ASSERT_EQ(result.status, RunStatus::complete) << result.error;
    EXPECT_LT(result.total_ns, 25'000'000'000);
    EXPECT_EQ(lost(result), 0u);
    EXPECT_LE(result.stored * 5568, 40'000'000u);
    EXPECT_GT(result.stored * 5568, 38'000'000u);
    EXPECT_EQ(result.stored % 3, 0u);  // every link its share: verify relies on it
    expect_intact(target, result.stored);
    std::filesystem::remove(target);
  }
}

TEST_F(MiniDaqModes, ATrialLeavesNoFile) {
  MiniDaqOptions options = testing::small_record(target);
  options.keep = false;
  EXPECT_EQ(record(options).status, RunStatus::complete);
  EXPECT_FALSE(std::filesystem::exists(target));
}

// Left to itself it takes the path without a copy, but never changes for it what was asked for.
TEST_F(MiniDaqModes, ChoosesZeroCopyWhereChunksAlignAndSaysWhy) {
  const auto path = [&](const std::function<void(MiniDaqOptions&)>& change) {
    MiniDaqOptions options = testing::small_record(target);
    options.zero_copy.reset();
    options.ring_bytes = 8 << 20;
    options.block_bytes = 1 << 20;
    change(options);
    const MiniDaqPlan plan = plan_minidaq(options);
    return (plan.zero_copy() ? "zero-copy: " : "copy: ") + plan.data_path_reason;
  };
  const auto triggered = [](std::uint64_t window) {
    return [window](MiniDaqOptions& o) {
      o.request_bytes = 3 * window * 5568;
      o.trigger_rate_hz = 5;
    };
  };
  EXPECT_EQ(path([](auto&) {}), "zero-copy: 64 superchunks of 5568 B make an aligned chunk");
  EXPECT_EQ(path([](auto& o) { o.superchunk_bytes = 7001; }),
            "copy: 4096 superchunks of 7001 B make an aligned chunk, more than the 64 of a turn");
  EXPECT_EQ(path([](auto& o) { o.block_bytes = 256 << 10; }),
            "copy: 64 superchunks of 5568 B make an aligned chunk, more than --block-size 256KiB");
  EXPECT_EQ(path([](auto& o) { o.ring_bytes = kChunkBytes; }).substr(0, 14), "copy: a ring o");
  EXPECT_EQ(path(triggered(16)).substr(0, 16), "copy: a request ");
  EXPECT_EQ(path(triggered(128)).substr(0, 10), "zero-copy:");
  EXPECT_EQ(path([](auto& o) { o.zero_copy = false; }), "copy: --data-path asks for it");
  EXPECT_EQ(path([](auto& o) { o.zero_copy = true; }), "zero-copy: --data-path asks for it");
}

TEST_F(MiniDaqModes, EveryPathWithEveryEngineIsIntact) {
  for (const Engine engine : kEngines) {
    for (const std::optional<bool> zero : {std::optional<bool>(false), std::optional<bool>(true), {}}) {
      for (const std::uint64_t window : {0, 16, 64}) {
        for (const std::uint32_t applications : {1u, 2u}) {
          MiniDaqOptions options = testing::small_record(target);
          options.engine = engine;
          options.zero_copy = zero;
          options.applications = applications;
          options.request_bytes = 3 * window * 5568;
          options.ring_bytes = 2 << 20;  // several turns
          options.block_bytes = 384 << 10;
          options.unpaced = true;
          options.most_bytes = applications * 30'000'000ull;
          options.duration_s = 30;
          const MiniDaqPlan plan = plan_minidaq(options);
          const std::atomic<int> never{0};
          const MiniDaqResult result = run_minidaq(options, plan, engine_factory(engine), never);
          ASSERT_EQ(result.status, RunStatus::complete) << result.error;
          EXPECT_EQ(lost(result), 0u);
          const auto json = minidaq_json(options, plan, result);
          EXPECT_EQ(json["engine"], engine_name(engine));
          EXPECT_EQ(json["engine_features"].empty(), engine == Engine::libaio);
          EXPECT_EQ(json["parameters"]["data_path"], plan.zero_copy() ? "zero-copy" : "copy");
          for (std::uint32_t i = 0; i < applications; ++i) {
            const std::string path = applications > 1 ? target + "." + std::to_string(i) : target;
            expect_intact(path, result.applications[i].stored);
            std::filesystem::remove(path);
          }
        }
      }
    }
  }
}

TEST_F(MiniDaqModes, RefusesWhatCannotBe) {
  const auto refused = [](MiniDaqOptions options, const std::string& word) {
    try {
      plan_minidaq(options);
      ADD_FAILURE() << word << " was not refused";
    } catch (const Refusal& refusal) {
      EXPECT_NE(std::string(refusal.what()).find(word), std::string::npos) << refusal.what();
    }
  };
  MiniDaqOptions options = triggered();
  options.trigger_rate_hz = 200;  // 3200 superchunks a second of links that emit 2000
  refused(options, "--trigger-rate 200");
  options = triggered();
  options.trigger_rate_hz = 0;
  refused(options, "--trigger-rate");
  options = triggered();
  options.ring_bytes = 20 * 5568;
  refused(options, "three requests");
  options = zero_copy();
  options.ring_bytes = kChunkBytes;
  refused(options, "--ring-size");
  options = testing::small_record(target);
  options.most_bytes = 1;
  refused(options, "--bytes");
}

// Threads that take the CPU away lengthen the copy's wall time, not its CPU time.
TEST(CopyShare, IsAShareOfTheCpuTimeOnABusyMachineToo) {
  const TempDir directory;
  const std::string json = directory.path("result.json");
  {
    std::vector<std::jthread> busy;
    for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i) {
      busy.emplace_back([](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
        }
      });
    }
    const auto result =
        testing::run_daqwriter({"minidaq", "--target", directory.path("r"), "--links", "2", "--unpaced",
                                "--duration", "0.2", "--ring-size", "8MiB", "--json", json});
    ASSERT_EQ(result.exit_code, 0) << result.error_text;
  }
  const auto cpu = testing::read_json(json)["cpu"];
  const double copy_s = cpu["copy_s"];
  EXPECT_GT(copy_s, 0);
  EXPECT_LE(copy_s, cpu["writer"]["user_s"].get<double>() + cpu["writer"]["system_s"].get<double>() + 1e-5);
  EXPECT_GT(cpu["copy_share"], 0);
  EXPECT_LE(cpu["copy_share"], 1);
}

TEST(RateSearch, FindsTheEdgeFromBothSidesAndWantsItTwice) {
  for (const double edge : {0.02, 0.37, 0.9}) {
    for (const double guess : {0.01, 0.3, 5.0}) {
      const RateSearch found = search_rate(guess, 0.02, [&](double f) { return f <= edge; });
      ASSERT_TRUE(found.highest) << edge << " from " << guess;
      EXPECT_LE(*found.highest, edge);
      EXPECT_GE(*found.highest, edge / 1.021);
      EXPECT_GT(*found.lowest_refused, edge);
    }
  }
  int calls = 0;
  const RateSearch lucky = search_rate(0.5, 0.02, [&](double) { return calls++ == 0; });
  EXPECT_FALSE(lucky.highest);  // stood once, never twice
  EXPECT_DOUBLE_EQ(search_rate(1, 0.02, [](double) { return true; }).highest.value_or(0), 1.0);
  EXPECT_EQ(search_rate(0.5, 0.02, [](double) { return std::nullopt; }).trials, 0u);
}

}  // namespace
}  // namespace daqwriter
