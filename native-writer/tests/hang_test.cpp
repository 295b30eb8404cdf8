// The real program while one call of the system does not return: it ends within its limits, says which call
// of which file, and leaves JSON.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "base/clock.h"
#include "io/aio_engine.h"
#include "io/call_watch.h"
#include "io/requests.h"
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
// How long a target that works may be silent. It lies in memory, where it does not wait for a busy disk.
constexpr double kPatienceS = 5;
// Where a file in memory takes direct I/O (Linux 6.6); elsewhere it has to be the disk.
fs::path memory() {
  const fs::path shared = "/dev/shm";
  const int fd = open(shared.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0 ? shared : fs::current_path();
}

class HangTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (SANITIZED) GTEST_SKIP() << "a sanitizer wants to be loaded before any other library";
  }
  // Runs a command of which a call hangs; its JSON, which must be there within the limit.
  nlohmann::json run(
      const std::string& call, const std::string& path, int after, Arguments arguments, int signal_number = 0,
      const std::function<void()>& meanwhile = [] {}) {
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
      meanwhile();
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

// Nothing was written, and the JSON says where.
TEST_F(HangTest, MakingATarget) {
  const std::string target = directory.path("new-file");
  const Arguments record = {"minidaq", "--target", target, "--duration", "1", "--stall-limit", "0.5"};
  const Arguments events = {"streams", "--target", target, "--bytes", "16MiB", "--stall-limit", "0.5"};
  const std::string held = "making or preallocating it has not returned";
  for (const std::string call : {"create", "fallocate"}) {
    for (const Arguments& command : {write("new-file"), record}) {
      expect_failed(run(call, "new-file", 0, command), {"/new-file: " + held, "--stall-limit"});
      fs::remove(target);  // whoever is held in fallocate() has made it
    }
    expect_failed(run(call, ".events", 0, events), {target, ".events: " + held, "--stall-limit"});
    fs::remove_all(target);
  }
  expect_failed(run("mkdirat", "new-file", 0, events), {target + ": making it has not returned"});
  expect_failed(run("open", "/manifest.jsonl", 0, events), {target + ": beginning the manifest"});
}

TEST_F(HangTest, ASignalEndsTheMakingOfATarget) {
  const std::string target = directory.path("new-file");
  const Arguments record = {"minidaq", "--target", target, "--duration", "1", "--stall-limit", "60"};
  const Arguments events = {"streams", "--target", target, "--bytes", "16MiB", "--stall-limit", "60"};
  Arguments load = write("new-file");
  load.back() = "60";
  for (const Arguments& command : {load, record, events}) {
    run(command == events ? "mkdirat" : "create", "new-file", 0, command, SIGTERM);
    EXPECT_EQ(exit_code, 130) << said;
    EXPECT_NE(said.find("making "), std::string::npos) << said;
    EXPECT_NE(said.find("in the time that an interruption leaves"), std::string::npos) << said;
    EXPECT_LT(took_s, kHungS);
    EXPECT_FALSE(fs::exists(target));
  }
}

// Each application of a target that does not answer is held in its own flush at the same time.
TEST_F(HangTest, ApplicationsOfOneTargetWaitTogether) {
  const std::string until = directory.path("until");
  setenv("HANG_UNTIL", until.c_str(), 1);
  const auto held = [&](int i) { return fs::exists(until + ".begun-r." + std::to_string(i)); };
  bool together = false;
  const Arguments arguments = {"minidaq",     "--target",      directory.path("r"),
                               "--duration",  "0.5",           "--links",
                               "2",           "--scale",       "0.002",
                               "--ring-size", "8MiB",          "--applications",
                               "3",           "--stall-limit", "60"};
  const auto document = run("fdatasync", "", 1, arguments, 0, [&] {
    for (int i = 0; i < 2000 && !together; ++i, usleep(10'000)) together = held(0) && held(1) && held(2);
    std::ofstream(until) << "go on";
  });
  unsetenv("HANG_UNTIL");
  EXPECT_TRUE(together);
  EXPECT_EQ(exit_code, 0) << said;
  EXPECT_EQ(document["status"], "complete");
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

// Two targets, and one hangs in a call: the other one closes its record, or flushes what was written.
struct HungCall {
  const char* name;
  const char* command;
  const char* call;
  int after;
};

class TwoTargets : public HangTest, public ::testing::WithParamInterface<HungCall> {
 protected:
  const std::string& good() const { return targets[0]; }
  Arguments command() const {
    const std::string both = targets[0] + "," + targets[1];
    const bool ends =
        std::string(GetParam().call) != "io_submit" && std::string(GetParam().call) != "io_getevents";
    Arguments all = {GetParam().command,
                     "--target",
                     both,
                     "--duration",
                     ends ? "1" : "40",
                     "--block-size",
                     "64KiB",
                     "--stall-limit",
                     "5",
                     "--engine",
                     "libaio",
                     "--preallocate",
                     "none",
                     "--allow-memory-target"};
    const Arguments more = writes() ? Arguments{"--span", "4MiB"}
                                    : Arguments{"--links", "2", "--scale", "0.002", "--ring-size", "8MiB"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  bool writes() const { return std::string(GetParam().command) == "write"; }
  void expect_named(const nlohmann::json& document, const std::vector<std::size_t>& hung) {
    EXPECT_EQ(exit_code, 1) << said;
    EXPECT_EQ(document["status"], "failed") << said;
    for (const std::size_t i : hung) {
      const nlohmann::json& one = document["targets"][i];
      EXPECT_EQ(one["status"], "failed");
      EXPECT_NE(one["error"].get<std::string>().find(targets[i] + ": "), std::string::npos) << one["error"];
      EXPECT_NE(document["error"].get<std::string>().find(one["error"].get<std::string>()), std::string::npos)
          << document["error"];
    }
  }

  const TempDir drives{memory()};
  const std::string targets[2] = {drives.path("good-drive"), drives.path("hung-drive")};
};

TEST_P(TwoTargets, OneHangs) {
  const auto document = run(GetParam().call, "/hung-drive", GetParam().after, command());
  expect_named(document, {1});
  const nlohmann::json& one = document["targets"][0];
  EXPECT_EQ(one["error"], nullptr);
  EXPECT_NE(one["status"], "failed");
  if (writes()) {
    EXPECT_GT(one["written_bytes"], 0);
    return;
  }
  const testing::Verified verified = testing::verify(directory, good());
  EXPECT_EQ(verified.json["complete_trailer"], true) << verified.json.dump(1);
  EXPECT_EQ(verified.json["trailer_status"], one["status"]);
  EXPECT_EQ(verified.count("present"), one["superchunks"]["stored"]);
}

class BothTargets : public TwoTargets {};

TEST_P(BothTargets, HangAndAreNamed) {
  const auto document = run(GetParam().call, "-drive", GetParam().after, command());
  expect_named(document, {0, 1});
}

// In time: nothing is lost but the pace.
class TargetThatComesBack : public TwoTargets {};

TEST_P(TargetThatComesBack, IsComplete) {
  const std::string until = directory.path("until");
  setenv("HANG_UNTIL", until.c_str(), 1);
  Arguments arguments = command();
  arguments[4] = "2";
  arguments[8] = "60";
  const auto document = run(GetParam().call, "/hung-drive", GetParam().after, arguments, 0, [&] {
    for (int i = 0; i < 2000 && !fs::exists(until + ".begun"); ++i) usleep(10'000);
    usleep(300'000);
    std::ofstream(until) << "go on";
  });
  unsetenv("HANG_UNTIL");
  EXPECT_TRUE(fs::exists(until + ".begun"));
  EXPECT_EQ(exit_code, 0) << said;
  EXPECT_EQ(document["status"], "complete");
  if (writes()) return;
  for (const std::string& each : targets)
    EXPECT_EQ(testing::verify(directory, each).json["trailer_status"], "complete");
}

const HungCall kRecordInSubmit = {"RecordInSubmit", "minidaq", "io_submit", 8};
const HungCall kRecordInReap = {"RecordInReap", "minidaq", "io_getevents", 8};
const HungCall kRecordInHeader = {"RecordInHeader", "minidaq", "pwrite", 0};
const HungCall kRecordInFlush = {"RecordInFlush", "minidaq", "fdatasync", 1};
const HungCall kRecordInTrailer = {"RecordInTrailer", "minidaq", "pwrite", 1};
const HungCall kRecordInCut = {"RecordInCut", "minidaq", "ftruncate", 0};
const HungCall kRecordInClose = {"RecordInClose", "minidaq", "close", 0};
const HungCall kWriteInSubmit = {"WriteInSubmit", "write", "io_submit", 8};
const HungCall kWriteInReap = {"WriteInReap", "write", "io_getevents", 8};
const HungCall kWriteInFlush = {"WriteInFlush", "write", "fdatasync", 0};
const HungCall kWriteInClose = {"WriteInClose", "write", "close", 0};
const auto call_name = [](const auto& test) { return test.param.name; };

INSTANTIATE_TEST_SUITE_P(Hang, TwoTargets,
                         ::testing::Values(kRecordInSubmit, kRecordInReap, kRecordInHeader, kRecordInFlush,
                                           kRecordInTrailer, kRecordInCut, kRecordInClose, kWriteInSubmit,
                                           kWriteInReap, kWriteInFlush, kWriteInClose),
                         call_name);
INSTANTIATE_TEST_SUITE_P(Hang, BothTargets,
                         ::testing::Values(kRecordInHeader, kRecordInSubmit, kRecordInFlush, kRecordInClose,
                                           kWriteInReap, kWriteInClose),
                         call_name);
INSTANTIATE_TEST_SUITE_P(Hang, TargetThatComesBack,
                         ::testing::Values(kRecordInSubmit, kRecordInReap, kRecordInTrailer, kRecordInClose,
                                           kWriteInReap, kWriteInFlush),
                         call_name);

// The same within one program: submit, or reap, of a fake engine does not return.
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

  const TempDir directory{memory()};
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
  options.stall_limit_s = kPatienceS;
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
  options.stall_limit_s = kPatienceS;
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
  options.stall_limit_s = kPatienceS;
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
