// The real program while one call of the system does not return: it ends within its limits, says which call
// of which file, and leaves JSON.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/clock.h"
#include "io/call_watch.h"
#include "support.h"
#include "write/synthetic.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using testing::run_daqwriter;
using testing::TempDir;
using Arguments = std::vector<std::string>;

// One that hangs is killed after 30 s; a busy machine may take most of them.
constexpr double kHungS = 30;

class HangTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (SANITIZED) GTEST_SKIP() << "a sanitizer wants to be loaded before any other library";
  }
  // Runs a command of which a call hangs; its JSON, which must be there within the limit.
  nlohmann::json run(const std::string& call, const std::string& path, int after, Arguments arguments,
                     int signal_number = 0) {
    arguments.insert(arguments.end(), {"--json", json});
    setenv("HANG_CALL", call.c_str(), 1);
    setenv("HANG_PATH", path.c_str(), 1);
    setenv("HANG_AFTER", std::to_string(after).c_str(), 1);
    setenv("LD_PRELOAD", HANG_LIBRARY, 1);
    const std::int64_t since = monotonic_ns();
    const auto result = run_daqwriter(arguments, [&](pid_t child) {
      unsetenv("LD_PRELOAD");
      usleep(500'000);
      if (signal_number != 0) kill(child, signal_number);
      siginfo_t ended{};  // it is left for run_daqwriter() to collect; without JSON its end is waited for
      for (int i = 0; i < 3000 && ended.si_pid == 0 && !fs::exists(json); ++i) {
        usleep(10'000);
        waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT);
      }
      if (ended.si_pid == 0 && !fs::exists(json)) kill(child, SIGKILL);
    });
    took_s = seconds(monotonic_ns() - since);
    exit_code = result.exit_code;
    said = result.error_text;
    return fs::exists(json) ? testing::read_json(json) : nlohmann::json({{"error", ""}});
  }
  void expect_failed(const nlohmann::json& document, const std::vector<std::string>& parts) {
    EXPECT_EQ(exit_code, 1) << said;
    EXPECT_EQ(document["status"], "failed") << said;
    for (const std::string& part : parts)
      EXPECT_NE(document["error"].get<std::string>().find(part), std::string::npos) << document["error"];
    EXPECT_LT(took_s, kHungS);
    fs::remove(json);
  }
  Arguments write(const std::string& name) const {
    return {"write",        "--target", directory.path(name), "--bytes", "16MiB",
            "--block-size", "64KiB",    "--stall-limit",      "0.5"};
  }
  void make_run() {
    const auto made = run_daqwriter({"streams", "--target", directory.path("run"), "--bytes", "16MiB"});
    ASSERT_EQ(made.exit_code, 0) << made.error_text;
  }
  Arguments verify_run() const {
    return {"verify", "--target", directory.path("run"), "--stall-limit", "0.5"};
  }

  TempDir directory;
  std::string json = directory.path("result.json");
  int exit_code = -1;
  double took_s = 0;
  std::string said;
};

const std::string kHeld = "has not returned from the call that hands it requests";

TEST_F(HangTest, WritesThatTheKernelDoesNotLetGo) {
  const auto document = run("io_submit", "", 20, write("w"));
  EXPECT_GT(document["written_bytes"], 0);
  EXPECT_LT(document["written_bytes"], 16 << 20);
  expect_failed(document, {"/w", kHeld, "--stall-limit", "may be done or not"});
}

TEST_F(HangTest, ASignalEndsThemWithinFiveSeconds) {
  Arguments arguments = write("w");
  arguments.back() = "60";
  const auto document = run("io_submit", "", 20, arguments, SIGTERM);
  EXPECT_EQ(exit_code, 130) << said;
  EXPECT_EQ(document["status"], "interrupted");
  EXPECT_EQ(document["ended_by"], "signal");
  EXPECT_LT(took_s, kHungS);
}

TEST_F(HangTest, ARecord) {
  const Arguments arguments = {"minidaq",
                               "--target",
                               directory.path("r"),
                               "--links",
                               "2",
                               "--scale",
                               "0.002",
                               "--duration",
                               "20",
                               "--ring-size",
                               "8MiB",
                               "--block-size",
                               "64KiB",
                               "--stall-limit",
                               "0.5"};
  expect_failed(run("io_submit", "", 5, arguments), {"/r", kHeld});
  Arguments two = arguments;
  two.insert(two.end(), {"--writers", "2"});
  two[2] = directory.path("r2");
  expect_failed(run("io_submit", "", 5, two), {"/r2", kHeld});
  two[2] = directory.path("r4");
  two[14] = "60";
  fs::remove(json);
  EXPECT_EQ(run("io_submit", "", 5, two, SIGINT)["status"], "interrupted") << said;
  EXPECT_EQ(exit_code, 130);
}

TEST_F(HangTest, AStorageApplication) {
  const Arguments arguments = {"streams",       "--target", directory.path("s"), "--bytes", "64MiB",
                               "--stall-limit", "0.5"};
  expect_failed(run("io_submit", "", 3, arguments), {directory.path("s"), kHeld});
}

TEST_F(HangTest, AReadBackOfARecord) {
  const auto made = run_daqwriter({"minidaq", "--target", directory.path("r"), "--links", "2", "--scale",
                                   "0.02", "--duration", "0.5", "--ring-size", "8MiB"});
  ASSERT_EQ(made.exit_code, 0) << made.error_text;
  const Arguments arguments = {"verify", "--target", directory.path("r"), "--stall-limit", "0.5"};
  expect_failed(run("io_submit", "", 1, arguments), {"/r", kHeld});
  expect_failed(run("open", "/r", 0, arguments), {"/r: opening it has not returned", "--stall-limit"});
}

// Where the results may go is not known then: there is a message, and no JSON.
TEST_F(HangTest, LookingWhetherTheResultsLieApart) {
  testing::write_text(directory.path("r"), "a record");
  for (const Arguments& command : {Arguments{"verify", "--target", directory.path("r")}, write("r")}) {
    Arguments arguments = command;
    arguments.insert(arguments.end(), {"--json", json});
    if (command.front() == "verify") arguments.insert(arguments.end(), {"--stall-limit", "0.5"});
    setenv("HANG_CALL", "stat", 1);
    setenv("HANG_PATH", "/r", 1);
    setenv("HANG_AFTER", "0", 1);
    setenv("LD_PRELOAD", HANG_LIBRARY, 1);
    const auto result = run_daqwriter(arguments, [](pid_t) { unsetenv("LD_PRELOAD"); });
    EXPECT_EQ(result.exit_code, 1) << result.error_text;
    EXPECT_NE(result.error_text.find("/r: looking whether the results lie apart from it has not returned"),
              std::string::npos)
        << result.error_text;
    EXPECT_FALSE(fs::exists(json));
  }
}

// Before a load: there is a message, and no JSON, and nothing was made.
TEST_F(HangTest, LookingWhetherTheTargetMayBeWritten) {
  // The directory is opened to examine it and for nothing else before.
  const std::string parent = directory.path("drive"), target = parent + "/w";
  fs::create_directory(parent);
  const Arguments record = {"minidaq", "--target", target, "--duration", "1", "--stall-limit", "0.5"};
  const Arguments events = {"streams", "--target", target, "--bytes", "16MiB", "--stall-limit", "0.5"};
  for (const Arguments& command : {write("drive/w"), record, events}) {
    run("open", parent, 0, command);
    EXPECT_EQ(exit_code, 1) << said;
    EXPECT_NE(said.find("/w: looking whether it may be written has not returned"), std::string::npos) << said;
    EXPECT_FALSE(fs::exists(json));
    EXPECT_FALSE(fs::exists(target));
    EXPECT_LT(took_s, kHungS);
  }
}

TEST_F(HangTest, ASignalEndsTheLookAtATarget) {
  const std::string parent = directory.path("drive");
  fs::create_directory(parent);
  Arguments arguments = write("drive/w");
  arguments.back() = "60";
  run("open", parent, 0, arguments, SIGTERM);
  EXPECT_EQ(exit_code, 130) << said;
  EXPECT_NE(said.find("in the time that an interruption leaves"), std::string::npos) << said;
  EXPECT_LT(took_s, kHungS);
}

TEST_F(HangTest, TheManifestOfARun) {
  make_run();
  expect_failed(run("fopen", "/manifest.jsonl", 0, verify_run()),
                {"manifest.jsonl: reading it has not returned"});
}

TEST_F(HangTest, TheManifestAndASignal) {
  make_run();
  Arguments arguments = verify_run();
  arguments.back() = "60";
  EXPECT_EQ(run("fopen", "/manifest.jsonl", 0, arguments, SIGINT)["status"], "interrupted");
  EXPECT_EQ(exit_code, 130) << said;
  EXPECT_LT(took_s, kHungS);
}

// The report keeps the findings from before the hang.
TEST_F(HangTest, AFileOfARun) {
  make_run();
  std::string second;
  for (const auto& entry : fs::directory_iterator(directory.path("run"))) {
    const std::string name = entry.path().filename().string();
    if (name.find("manifest") == std::string::npos) second = std::max(second, name);
  }
  const auto document = run("open", "/" + second, 0, verify_run());
  EXPECT_GT(document["bytes_read"], 0);
  EXPECT_GT(document["files"]["listed"], 1);
  expect_failed(document, {second + ": opening it has not returned"});
}

TEST_F(HangTest, ReadsOfARun) {
  make_run();
  const auto document = run("io_submit", "", 1, verify_run());
  EXPECT_GT(document["files"]["listed"], 1);
  expect_failed(document, {directory.path("run"), kHeld});
}

// The same within one program: submit, or reap, of a fake engine does not return.
class HeldEngine : public IoEngine {
 public:
  HeldEngine(std::size_t good, bool in_reap, std::shared_ptr<std::atomic<bool>> let_go = {})
      : good_(good), in_reap_(in_reap), let_go_(std::move(let_go)) {}
  std::string_view name() const override { return "held"; }
  int submit(std::span<const IoRequest> requests) override {
    for (const IoRequest& each : requests) {
      if (!in_reap_) hold();
      done_.push_back({each.tag, static_cast<std::int64_t>(bytes_of(each.pieces))});
    }
    return static_cast<int>(requests.size());
  }
  int reap(std::span<IoCompletion> out, unsigned, std::int64_t) override {
    if (in_reap_) hold();
    const std::size_t count = std::min(out.size(), done_.size());
    std::copy_n(done_.begin(), count, out.begin());
    done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
    return static_cast<int>(count);
  }

 private:
  void hold() {
    while (taken_ >= good_ && !(let_go_ && *let_go_)) usleep(1'000);
    ++taken_;
  }
  std::size_t good_;
  bool in_reap_;
  std::shared_ptr<std::atomic<bool>> let_go_;
  std::size_t taken_ = 0;
  std::vector<IoCompletion> done_;
};

class HeldEngineTest : public ::testing::TestWithParam<bool> {};

std::ptrdiff_t threads_of_this_process() {
  return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
}

// The call returns at last, when what the caller had is gone: the load ends on what is its own.
TEST_P(HeldEngineTest, AWriteIsGivenUp) {
  const TempDir directory;
  static std::atomic<int> signal{0};
  const auto let_go = std::make_shared<std::atomic<bool>>(false);
  std::thread([] {}).join();  // a sanitizer starts one of its own with the first
  const std::ptrdiff_t threads_before = threads_of_this_process();
  {
    WriteOptions options;
    options.target = directory.path("file");
    options.bytes = 4 << 20;
    options.block_bytes = 64 << 10;
    options.threads = 2;
    options.stall_limit_s = 0.3;
    const WritePlan plan = plan_write(options);
    const auto number = std::make_shared<std::size_t>(0);
    const auto make = [number, let_go](unsigned) {
      return std::make_unique<HeldEngine>((*number)++ == 0 ? 1000 : 5, GetParam(), let_go);
    };
    const WriteResult result = run_write(options, plan, make, signal);
    EXPECT_EQ(result.status, RunStatus::failed);
    EXPECT_NE(result.error.find(kHeld), std::string::npos) << result.error;
    EXPECT_GE(result.bytes, 2u << 20);  // the other thread's
    EXPECT_LT(result.bytes, 4u << 20);
  }
  EXPECT_GT(threads_of_this_process(), threads_before);
  *let_go = true;
  for (int i = 0; i < 1000 && threads_of_this_process() > threads_before; ++i) usleep(10'000);
  EXPECT_EQ(threads_of_this_process(), threads_before);
}

INSTANTIATE_TEST_SUITE_P(Held, HeldEngineTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "InReap" : "InSubmit"; });

// Calls that are long, but return, are no hang; neither is a thread that does other things between them.
TEST(CallWatchTest, ASlowEngineIsNotHeld) {
  class Slow : public HeldEngine {
   public:
    Slow() : HeldEngine(1000, false) {}
    int submit(std::span<const IoRequest> requests) override {
      usleep(60'000);
      return HeldEngine::submit(requests);
    }
  };
  CallWatch watch;
  const auto engine = watch.watched(std::make_unique<Slow>());
  std::atomic<int> signal{0};
  const StopClock stop(signal);
  int calls = 0;
  watch.run(stop, 100'000'000, [&] {
    for (; calls < 5; ++calls) engine->submit(std::vector<IoRequest>(1));
    usleep(300'000);
  });
  EXPECT_EQ(calls, 5);
  EXPECT_THROW(watch.run(stop, 100'000'000, [] { throw std::runtime_error("x"); }), std::runtime_error);
}

}  // namespace
}  // namespace daqwriter
