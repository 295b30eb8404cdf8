// Synthetic writes: every block where and as often as asked for, on the real disk; and what is said
// when the kernel does not do its part, by an engine that misbehaves.
#include "write/synthetic.h"

#include <fcntl.h>
#include <signal.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <numeric>
#include <set>

#include "support.h"
#include "write/block_permutation.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using testing::FakeEngine;
using testing::TempDir;

constexpr std::uint64_t kPage = 4096;

TEST(BlockPermutationTest, VisitsEveryBlockOnceInAnOrderOfItsSeed) {
  for (const std::uint64_t count : {1u, 2u, 3u, 4u, 5u, 17u, 64u, 1000u, 4097u}) {
    std::set<std::uint64_t> seen;
    const BlockPermutation order(count, 7);
    for (std::uint64_t i = 0; i < count; ++i) seen.insert(order(i));
    EXPECT_EQ(seen.size(), count);
    EXPECT_EQ(*seen.rbegin(), count - 1);
  }
  const auto listed = [](std::uint64_t seed) {
    std::vector<std::uint64_t> places(1000);
    std::iota(places.begin(), places.end(), 0u);
    std::transform(places.begin(), places.end(), places.begin(), BlockPermutation(1000, seed));
    return places;
  };
  EXPECT_EQ(listed(1), listed(1));
  EXPECT_NE(listed(1), listed(2));
  EXPECT_FALSE(std::is_sorted(listed(1).begin(), listed(1).end()));
}

class SyntheticTest : public ::testing::Test {
 protected:
  SyntheticTest() {
    options.target = target;
    options.block_bytes = 3 * kPage;
    options.bytes = 48 * options.block_bytes;
    options.keep = true;
  }
  WriteResult run(const EngineFactory& engine = testing::aio_engine()) {
    plan = plan_write(options);
    return run_write(options, plan, engine, stop_signal);
  }
  // One thread over a fake engine; `engine` stays valid, its disk too, until the next run.
  WriteResult run_on_fake(const std::function<void(FakeEngine&)>& set_up) {
    return run([&](unsigned) {
      auto made = std::make_unique<FakeEngine>();
      set_up(*made);
      return made;
    });
  }
  // The first `bytes` of a request, into the file: its holes are looked for at the end.
  void store(const IoRequest& request, std::int64_t bytes) const {
    const int fd = open(target.c_str(), O_WRONLY | O_CLOEXEC);
    auto offset = static_cast<off_t>(request.offset);
    for (const iovec& piece : request.pieces) {
      const std::int64_t part = std::min(bytes, static_cast<std::int64_t>(piece.iov_len));
      if (part <= 0) break;
      EXPECT_EQ(pwrite(fd, piece.iov_base, static_cast<std::size_t>(part), offset), part);
      offset += part;
      bytes -= part;
    }
    close(fd);
  }
  // The two words that every page begins with: its offset, and the block's number in its thread's order.
  std::pair<std::uint64_t, std::uint64_t> stamp(std::uint64_t offset) const {
    std::array<std::uint64_t, 2> words{};
    std::memcpy(words.data(), testing::read_bytes(target, offset, sizeof words).data(), sizeof words);
    return {words[0], words[1]};
  }
  // The numbers in the order of the places within one thread's part; every page is checked.
  std::vector<std::uint64_t> turns(std::uint32_t thread) const {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t block = 0; block < plan.targets.front().part_blocks; ++block) {
      const std::uint64_t start = (thread * plan.targets.front().part_blocks + block) * options.block_bytes;
      numbers.push_back(stamp(start).second);
      for (std::uint64_t offset = start; offset < start + options.block_bytes; offset += kPage)
        EXPECT_EQ(stamp(offset), std::pair(offset, numbers.back()));
    }
    return numbers;
  }
  static std::vector<std::uint64_t> counted(std::uint64_t from, std::uint64_t count) {
    std::vector<std::uint64_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), from);
    return numbers;
  }

  TempDir directory;
  std::string target = directory.path("file");
  std::atomic<int> stop_signal{0};
  WriteOptions options;
  WritePlan plan;
};

class SyntheticThreadsTest : public SyntheticTest, public ::testing::WithParamInterface<std::uint32_t> {};

TEST_P(SyntheticThreadsTest, EveryBlockOfEveryPartIsWrittenOnceInItsOrder) {
  options.threads = GetParam();
  for (const bool random : {false, true}) {
    options.random = random;
    fs::remove(target);
    const WriteResult result = run();
    ASSERT_EQ(result.status, RunStatus::complete) << result.error;
    EXPECT_EQ(result.ended_by, "bytes");
    EXPECT_EQ(result.bytes, fs::file_size(target));
    EXPECT_EQ(result.latency_ns.count() * options.block_bytes, result.bytes);
    ASSERT_EQ(result.threads.size(), options.threads);
    for (std::uint32_t thread = 0; thread < options.threads; ++thread) {
      std::vector<std::uint64_t> numbers = turns(thread);
      EXPECT_EQ(std::is_sorted(numbers.begin(), numbers.end()),
                !random || plan.targets.front().part_blocks < 2)
          << thread;
      std::sort(numbers.begin(), numbers.end());
      EXPECT_EQ(numbers, counted(0, plan.targets.front().part_blocks));
      EXPECT_EQ(result.threads[thread].bytes, plan.targets.front().part_blocks * options.block_bytes);
      EXPECT_LE(result.threads[thread].end_ns, result.write_ns);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, SyntheticThreadsTest, ::testing::Values(1, 2, 3, 8));

TEST_F(SyntheticTest, BytesAreRoundedUpToWholeBlocksOfEveryThread) {
  options.threads = 3;
  options.bytes = 1'000'000;
  EXPECT_EQ(run().bytes, 28u * 3 * 12'288);
  EXPECT_EQ(plan.span_bytes(options.block_bytes), 28u * 3 * 12'288);
  fs::remove(target);
  options.span_bytes = 2'000'000;
  EXPECT_EQ(run().bytes, 28u * 3 * 12'288);                           // 27.1 blocks for each of the three
  EXPECT_EQ(plan.span_bytes(options.block_bytes), 54u * 3 * 12'288);  // 54.3: the span is rounded down
}

TEST_F(SyntheticTest, FreshEndsWithTheSpanAndOverwriteGoesRound) {
  options.bytes = 0;
  options.duration_s = 30;
  options.span_bytes = 16 * options.block_bytes;
  const WriteResult fresh = run();
  EXPECT_EQ(fresh.ended_by, "span");
  EXPECT_EQ(fresh.bytes, options.span_bytes);
  EXPECT_EQ(turns(0), counted(0, 16));

  fs::remove(target);
  options.overwrite = true;
  options.duration_s = 0;
  options.bytes = 40 * options.block_bytes;  // two and a half times round
  const WriteResult round = run();
  ASSERT_EQ(round.status, RunStatus::complete) << round.error;
  EXPECT_EQ(round.bytes, options.bytes);
  EXPECT_EQ(fs::file_size(target), options.span_bytes);
  std::vector<std::uint64_t> expected = counted(32, 8);
  for (const std::uint64_t number : counted(24, 8)) expected.push_back(number);
  EXPECT_EQ(turns(0), expected);
}

TEST_F(SyntheticTest, ADurationEndsIt) {
  options.null_sink = true;
  options.target.clear();
  options.bytes = 0;
  options.duration_s = 0.1;
  WriteResult result;
  for (int trial = 0; trial < 5;
       ++trial) {  // on a busy machine its last request may complete long before the end
    result = run(engine_factory(Engine::null));
    EXPECT_EQ(result.ended_by, "duration");
    EXPECT_EQ(result.status, RunStatus::complete);
    if (result.write_ns >= 90'000'000) break;
  }
  EXPECT_GE(result.write_ns, 90'000'000);
}

TEST_F(SyntheticTest, TheSeriesAndTheThreadsSumToTheTotal) {
  options.threads = 2;
  options.interval_s = 0.01;
  options.line_protocol_path = directory.path("lines");
  const WriteResult result = run([](unsigned depth) {
    return std::make_unique<testing::MeddlingEngine>(testing::aio_engine()(depth), 5'000'000);
  });
  EXPECT_GE(result.series_bytes.size(), 2u);
  EXPECT_EQ(std::accumulate(result.series_bytes.begin(), result.series_bytes.end(), 0ull), result.bytes);
  EXPECT_TRUE(std::is_sorted(result.series_t_s.begin(), result.series_t_s.end()));
  EXPECT_EQ(result.threads[0].bytes + result.threads[1].bytes, result.bytes);
  std::ifstream in(options.line_protocol_path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  EXPECT_EQ(lines.size(), result.series_bytes.size());
  const std::string last =
      "daqwriter,command=write,phase=write written_bytes=" + std::to_string(result.bytes) + "i,elapsed_s=";
  EXPECT_TRUE(lines.back().starts_with(last)) << lines.back();
}

TEST_F(SyntheticTest, TheFileIsRemovedUnlessItIsToBeKept) {
  options.keep = false;
  EXPECT_EQ(run().status, RunStatus::complete);
  EXPECT_FALSE(fs::exists(target));
}

TEST_F(SyntheticTest, AStopBeforeTheLoadWritesNothing) {
  for (const bool overwrite : {false, true}) {
    options.overwrite = overwrite;
    options.keep = false;
    stop_signal = SIGTERM;
    const WriteResult result = run();
    EXPECT_EQ(result.status, RunStatus::interrupted);
    EXPECT_EQ(result.ended_by, "signal");
    EXPECT_EQ(result.bytes, 0u);
  }
}

TEST_F(SyntheticTest, ReadsFindWhatWasWrittenBefore) {
  options.reads = true;
  options.span_bytes = 16 * options.block_bytes;
  for (const bool random : {false, true}) {
    options.random = random;
    options.threads = random ? 3 : 1;
    const WriteResult result = run();
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.ended_by, "bytes");
    EXPECT_EQ(result.bytes, 48 * options.block_bytes);
    const auto document = write_result_json(options, plan, result);
    EXPECT_EQ(document["command"], "read");
    EXPECT_EQ(document["read_bytes"], result.bytes);
    EXPECT_EQ(document["prefilled_bytes"], plan.span_bytes(options.block_bytes));
    EXPECT_FALSE(document.contains("written_bytes") || document.contains("bytes_per_s_with_flush"));
    fs::remove(target);
  }
}

// Buffers that keep what they held, as after a read that a drive or a driver only claims.
TEST_F(SyntheticTest, ReadsThatReturnOtherDataAreAFailureWithItsPlace) {
  options.reads = true;
  const WriteResult result = run_on_fake([](FakeEngine&) {});
  EXPECT_EQ(result.status, RunStatus::failed);
  EXPECT_NE(result.error.find("at offset 0 returned other data at offset 0"), std::string::npos)
      << result.error;
  EXPECT_EQ(result.bytes, 0u);
}

TEST_F(SyntheticTest, ShortWritesAndRefusalsAreContinued) {
  const WriteResult result = run_on_fake([this](FakeEngine& engine) {
    engine.on_submit = [](std::size_t n) { return n % 3 == 1 ? -EAGAIN : 0; };
    engine.on_complete = [this](std::size_t n, const IoRequest& r) {
      const std::size_t all = bytes_of(r.pieces);
      // Nothing, too little for a page, a page and something, all.
      const auto whole = static_cast<std::int64_t>(all);
      const std::array<std::int64_t, 5> results = {-EAGAIN, 100, 5000, whole, whole};
      const std::int64_t done = std::min(results.at(n % 5), whole);
      store(r, done);
      return done;
    };
  });
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  EXPECT_EQ(result.bytes, options.bytes);
  EXPECT_EQ(result.latency_ns.count(), 48u);  // one for each block, not for each part
}

struct Fault {
  std::string name;
  std::function<void(FakeEngine&)> set_up;
  std::vector<std::string> said;
  int answered = 0;  // by the target
};

void PrintTo(const Fault& fault, std::ostream* out) {
  *out << fault.name;
}

class SyntheticFaultTest : public SyntheticTest, public ::testing::WithParamInterface<Fault> {};

TEST_P(SyntheticFaultTest, EndsTheLoadWithPlaceAndCause) {
  const WriteResult result = run_on_fake(GetParam().set_up);
  EXPECT_EQ(result.status, RunStatus::failed);
  EXPECT_EQ(result.ended_by, "error");
  for (const std::string& part : GetParam().said)
    EXPECT_NE(result.error.find(part), std::string::npos) << result.error;
  EXPECT_EQ(result.target_errno, GetParam().answered);
  EXPECT_LT(result.bytes, options.bytes);
  EXPECT_EQ(result.bytes, result.latency_ns.count() * options.block_bytes);
}

FakeEngine& answers(FakeEngine& engine, std::size_t from, std::int64_t result) {
  engine.on_complete = [=](std::size_t n, const IoRequest& r) {
    return n < from ? static_cast<std::int64_t>(bytes_of(r.pieces)) : result;
  };
  return engine;
}

INSTANTIATE_TEST_SUITE_P(
    Faults, SyntheticFaultTest,
    ::testing::Values(
        Fault{"Eio", [](FakeEngine& e) { answers(e, 5, -EIO); }, {"offset 61440", "EIO", "12288 B"}, EIO},
        Fault{"Enospc", [](FakeEngine& e) { answers(e, 0, -ENOSPC); }, {"offset 0", "ENOSPC"}, ENOSPC},
        Fault{"NoProgress", [](FakeEngine& e) { answers(e, 2, 0); }, {"no progress", "EIO"}},
        Fault{"EagainForEver", [](FakeEngine& e) { answers(e, 0, -EAGAIN); }, {"EAGAIN"}},
        Fault{"Submission",
              [](FakeEngine& e) { e.on_submit = [](std::size_t n) { return n > 6 ? -EBADF : 0; }; },
              {"submit", "EBADF"}}),
    [](const auto& test) { return test.param.name; });

TEST_F(SyntheticTest, OneThreadsErrorEndsTheOthers) {
  options.threads = 4;
  options.bytes = 0;
  options.overwrite = true;
  options.span_bytes = 16 * options.block_bytes;
  options.duration_s = 600;
  std::atomic<int> made{0};
  const WriteResult result = run([&](unsigned depth) -> std::unique_ptr<IoEngine> {
    if (made++ != 2) return testing::aio_engine()(depth);
    return std::make_unique<testing::MeddlingEngine>(testing::aio_engine()(depth), 0, 20, EIO);
  });
  EXPECT_EQ(result.status, RunStatus::failed);
  EXPECT_NE(result.error.find("EIO"), std::string::npos) << result.error;
  EXPECT_EQ(result.target_errno, EIO);
  EXPECT_EQ(result.targets.front().target_errno, EIO);
  EXPECT_LT(result.write_ns, 300'000'000'000);
}

}  // namespace
}  // namespace daqwriter
