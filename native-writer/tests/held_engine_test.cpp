// Calls of the engine that do not return, within one program: submit, or reap, of a fake engine.
#include <unistd.h>

#include <set>
#include <thread>

#include "io/aio_engine.h"
#include "io/call_watch.h"
#include "io/requests.h"
#include "support.h"
#include "write/synthetic.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

const std::string kHeld = "has not returned from the call that hands it requests";

class HeldEngine : public IoEngine {
 public:
  HeldEngine(std::size_t good, bool in_reap, std::shared_ptr<std::atomic<bool>> let_go,
             std::shared_ptr<std::atomic<std::size_t>> calls)
      : good_(good), in_reap_(in_reap), let_go_(std::move(let_go)), calls_(std::move(calls)) {}
  std::string_view name() const override { return "held"; }
  int submit(std::span<const IoRequest> requests) override {
    ++*calls_;
    for (const IoRequest& each : requests) {
      if (!in_reap_) hold();
      done_.push_back({each.tag, static_cast<std::int64_t>(bytes_of(each.pieces))});
    }
    return static_cast<int>(requests.size());
  }
  int reap(std::span<IoCompletion> out, unsigned, std::int64_t) override {
    ++*calls_;
    if (in_reap_) hold();
    const std::size_t count = std::min(out.size(), done_.size());
    std::copy_n(done_.begin(), count, out.begin());
    done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
    return static_cast<int>(count);
  }

 private:
  void hold() {
    while (taken_ >= good_ && !*let_go_) usleep(1'000);
    ++taken_;
  }
  std::size_t good_;
  bool in_reap_;
  std::shared_ptr<std::atomic<bool>> let_go_;
  std::shared_ptr<std::atomic<std::size_t>> calls_;
  std::size_t taken_ = 0;
  std::vector<IoCompletion> done_;
};

class HeldEngineTest : public ::testing::TestWithParam<bool> {
 protected:
  // Which of the engines, in the order of their making, are held after so many requests or answers.
  EngineFactory held(std::set<std::size_t> which, std::size_t good) const {
    const auto number = std::make_shared<std::size_t>(0);
    return [=, this](unsigned depth) -> std::unique_ptr<IoEngine> {
      if (!which.contains((*number)++)) return std::make_unique<AioEngine>(depth);
      return std::make_unique<HeldEngine>(good, GetParam(), let_go, calls);
    };
  }
  // Lets the held calls return; whoever was held must do nothing more.
  void come_back() const {
    const std::size_t before = *calls;
    *let_go = true;
    usleep(200'000);
    EXPECT_EQ(*calls, before);
  }

  const TempDir directory{testing::memory()};
  const std::shared_ptr<std::atomic<bool>> let_go = std::make_shared<std::atomic<bool>>(false);
  const std::shared_ptr<std::atomic<std::size_t>> calls = std::make_shared<std::atomic<std::size_t>>(0);
};

constexpr std::uint64_t kBlock = 64 << 10;

// Four requests in flight. In submit, the sixth request holds the second four; in reap, the sixth call leaves
// the sixth four without an answer.
TEST_P(HeldEngineTest, AWriteIsGivenUp) {
  static std::atomic<int> signal{0};
  WriteOptions options;
  options.target = directory.path("file");
  options.bytes = 4 << 20;
  options.block_bytes = kBlock;
  options.threads = 2;
  options.stall_limit_s = testing::kPatienceS;
  options.consent.memory_target = true;
  const WritePlan plan = plan_write(options);
  const WriteResult result = run_write(options, plan, held({1}, 5), signal);
  EXPECT_EQ(result.status, RunStatus::failed);
  EXPECT_NE(result.error.find(options.target), std::string::npos) << result.error;
  EXPECT_NE(result.error.find(kHeld), std::string::npos) << result.error;
  const WriteTargetResult& one = result.targets.front();
  ASSERT_EQ(one.threads.size(), 2u);
  EXPECT_EQ(one.threads[1].bytes, (GetParam() ? 20 : 4) * kBlock);
  EXPECT_EQ(result.bytes, one.threads[0].bytes + one.threads[1].bytes);
  EXPECT_EQ(result.unanswered_bytes, 4 * kBlock);
  come_back();
}

TEST_P(HeldEngineTest, OneOfTwoTargetsOfAWrite) {
  static std::atomic<int> signal{0};
  WriteOptions options;
  options.target = directory.path("held");
  options.further_targets = {directory.path("good")};
  options.duration_s = 600;
  options.span_bytes = 4 << 20;
  options.block_bytes = kBlock;
  options.stall_limit_s = testing::kPatienceS;
  options.consent.memory_target = true;
  const WriteResult result = run_write(options, plan_write(options), held({0}, 5), signal);
  EXPECT_EQ(result.status, RunStatus::failed);
  EXPECT_NE(result.error.find(options.target), std::string::npos) << result.error;
  EXPECT_EQ(result.targets[0].status, RunStatus::failed);
  EXPECT_EQ(result.targets[0].error, result.error);
  EXPECT_EQ(result.targets[0].unanswered_bytes, 4 * kBlock);
  EXPECT_EQ(result.targets[1].error, "");
  EXPECT_NE(result.targets[1].status, RunStatus::failed);
  EXPECT_GT(result.targets[1].bytes, 0u);
  EXPECT_EQ(result.targets[1].unanswered_bytes, 0u);
  come_back();
}

MiniDaqOptions two_records(const TempDir& directory) {
  MiniDaqOptions options = testing::small_record(directory.path("one"));
  options.further_targets = {directory.path("two")};
  options.block_bytes = kBlock;
  options.superchunk_rate_hz = 200;
  options.preallocate = false;
  options.consent.memory_target = true;
  options.duration_s = 60;
  options.stall_limit_s = testing::kPatienceS;
  return options;
}

TEST_P(HeldEngineTest, OneOfTwoTargetsOfARecord) {
  for (const std::uint32_t writers : {1, 2}) {
    MiniDaqOptions options = two_records(directory);
    options.writers = writers;
    const MiniDaqResult result = testing::record(options, held({writers}, 5));
    EXPECT_EQ(result.status, RunStatus::failed);
    EXPECT_NE(result.error.find(directory.path("two")), std::string::npos) << result.error;
    EXPECT_EQ(result.error.find(directory.path("one")), std::string::npos) << result.error;
    EXPECT_EQ(result.targets[1].error, result.error);
    EXPECT_NE(result.error.find(kHeld), std::string::npos) << result.error;
    EXPECT_GT(result.targets[1].unanswered_bytes, 0u);
    EXPECT_EQ(result.targets[0].status, RunStatus::interrupted);
    EXPECT_EQ(result.targets[0].error, "");
    EXPECT_EQ(result.targets[0].unanswered_bytes, 0u);
    const testing::Verified verified = testing::verify(directory, options.target);
    EXPECT_EQ(verified.exit_code, 0) << verified.json.dump(1);
    EXPECT_EQ(verified.json["trailer_status"], "interrupted");
    EXPECT_EQ(verified.count("present"), result.targets[0].stored);
    EXPECT_GT(result.targets[0].stored, 0u);
    come_back();
    *let_go = false;
    fs::remove(directory.path("one"));
    fs::remove(directory.path("two"));
  }
}

TEST_P(HeldEngineTest, BothTargetsOfARecordAreNamed) {
  const MiniDaqResult result = testing::record(two_records(directory), held({0, 1}, 5));
  EXPECT_EQ(result.status, RunStatus::failed);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string path = directory.path(i == 0 ? "one" : "two");
    EXPECT_EQ(result.targets[i].status, RunStatus::failed);
    EXPECT_NE(result.targets[i].error.find(path), std::string::npos) << result.targets[i].error;
    EXPECT_NE(result.error.find(result.targets[i].error), std::string::npos) << result.error;
  }
  come_back();
}

INSTANTIATE_TEST_SUITE_P(Held, HeldEngineTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "InReap" : "InSubmit"; });

// Calls that are long, but return, are no hang; neither is a thread that does other things between them. Two
// looks at each call count for at most Silence::kMostBetweenLooksNs of it.
TEST(CallWatchTest, ASlowEngineIsNotHeld) {
  CallWatch watch;
  std::atomic<int> begun{0}, ended{0}, signal{0};
  const StopClock stop(signal);
  testing::FakeEngine engine;
  engine.on_submit = [&](std::size_t) {
    for (const int call = ++begun; ended < call;) usleep(1'000);
    return 0;
  };
  const auto look = [&] { return watch.held(stop, Silence::kMostBetweenLooksNs + 50'000'000); };
  std::thread caller([&] {
    Requests requests({.fd = 0, .target = "slow", .watch = &watch}, 1, engine);
    for (int call = 0; call < 6; ++call) {
      std::byte data{};
      iovec piece{&data, 1};
      requests.ask(0, {&piece, 1}, 0, 1);
      requests.submit();
      requests.reap(1, 0, [](std::size_t) {});
    }
  });
  for (int call = 1; call <= 6; ++call) {
    while (begun < call) usleep(1'000);
    EXPECT_EQ(look(), nullptr);
    usleep(60'000);
    EXPECT_EQ(look(), nullptr);
    ended = call;
  }
  caller.join();
  for (int i = 0; i < 5; ++i, usleep(60'000)) EXPECT_EQ(look(), nullptr);
  EXPECT_EQ(engine.accepted.size(), 6u);
}

}  // namespace
}  // namespace daqwriter
