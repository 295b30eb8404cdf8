// The real program while one call of the system does not return: it ends within its limits, says which call
// of which file, and leaves JSON.
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "base/clock.h"
#include "base/status.h"
#include "support.h"

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
  Arguments with_json(Arguments arguments) const {
    arguments.insert(arguments.end(), {"--json", json});
    if (arguments.front() != "verify") arguments.push_back("--allow-memory-target");
    // Room for a file is memory here, and a file has 2 GB of it unless told otherwise.
    if (arguments.front() == "streams") arguments.insert(arguments.end(), {"--file-size", "64MiB"});
    return arguments;
  }
  // Runs a command of which a call hangs; its JSON, which must be there within the limit.
  nlohmann::json run(
      const std::string& call, const std::string& path, int after, Arguments arguments, int signal_number = 0,
      const std::function<void()>& meanwhile = [] {}) {
    arguments = with_json(arguments);
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
    return {"write",        "--target", directory.path(name), "--bytes",         "16MiB",
            "--block-size", "64KiB",    "--stall-limit",      testing::kPatience};
  }
  // It has so many events that more than one stream gets some, whatever the run's id draws.
  void make_run() {
    const auto made = run_daqwriter(with_json(
        {"streams", "--target", directory.path("run"), "--bytes", "16MiB", "--event-size", "100KiB"}));
    fs::remove(json);
    ASSERT_EQ(made.exit_code, 0) << made.error_text;
  }
  Arguments verify_run() const {
    return {"verify", "--target", directory.path("run"), "--stall-limit", testing::kPatience};
  }

  const TempDir directory{testing::memory()};
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
                               testing::kPatience};
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
  const Arguments arguments = {"streams", "--target",      directory.path("s"), "--bytes",
                               "64MiB",   "--stall-limit", testing::kPatience};
  expect_failed(run("io_submit", "", 3, arguments), {directory.path("s"), kHeld});
}

TEST_F(HangTest, AReadBackOfARecord) {
  const auto made = run_daqwriter(with_json({"minidaq", "--target", directory.path("r"), "--links", "2",
                                             "--scale", "0.02", "--duration", "0.5", "--ring-size", "8MiB"}));
  fs::remove(json);
  ASSERT_EQ(made.exit_code, 0) << made.error_text;
  const Arguments arguments = {"verify", "--target", directory.path("r"), "--stall-limit",
                               testing::kPatience};
  expect_failed(run("io_submit", "", 1, arguments), {"/r", kHeld});
  expect_failed(run("open", "/r", 0, arguments), {"/r: opening it has not returned", "--stall-limit"});
}

// Where the results may go is not known then: there is a message, and no JSON.
TEST_F(HangTest, LookingWhetherTheResultsLieApart) {
  testing::write_text(directory.path("r"), "a record");
  for (const Arguments& command : {Arguments{"verify", "--target", directory.path("r")}, write("r")}) {
    Arguments arguments = with_json(command);
    if (command.front() == "verify") arguments.insert(arguments.end(), {"--stall-limit", testing::kPatience});
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
  const Arguments record = {"minidaq",       "--target",        target, "--duration", "1",
                            "--stall-limit", testing::kPatience};
  const Arguments events = {"streams",       "--target",        target, "--bytes", "16MiB",
                            "--stall-limit", testing::kPatience};
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
  const Arguments record = {"minidaq",       "--target",        target, "--duration", "1",
                            "--stall-limit", testing::kPatience};
  const Arguments events = {"streams",       "--target",        target, "--bytes", "16MiB",
                            "--stall-limit", testing::kPatience};
  const std::string held = "making or preallocating it has not returned for 5.5 s";
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

// A loop device of two whole pieces of 4 GiB and a part, with a serial that this process and its children
// see.
class DriveThatIsDiscarded : public HangTest {
 protected:
  void SetUp() override {
    HangTest::SetUp();
    SKIP_WITHOUT_LOOP_DEVICES();
    if (IsSkipped()) return;
    testing::make_mounts_private();
    drive = std::make_unique<testing::LoopDevice>(backing, kBytes);
    ASSERT_EQ(mount("tmpfs", "/run", "tmpfs", 0, nullptr), 0) << errno_text(errno);
    testing::write_text("/run/udev/data/b" + drive->number().text(), "E:ID_SERIAL_SHORT=L1\n");
    for (const std::uint64_t at : kData)
      testing::write_bytes(backing, at, std::vector<std::byte>(kBlock, std::byte{0x77}));
  }
  Arguments load(const std::string& stall_limit) const {
    return {"write", "--target",     drive->path(), "--span",        "9GiB",     "--duration",
            "0.1",   "--block-size", "4KiB",        "--io-depth",    "1",        "--allow-serial",
            "L1",    "--destroy",    "L1",          "--stall-limit", stall_limit};
  }
  bool holds_data(std::uint64_t at) const {
    return testing::read_bytes(backing, at, kBlock) == std::vector<std::byte>(kBlock, std::byte{0x77});
  }

  static constexpr std::uint64_t kBytes = std::uint64_t{9} << 30, kPiece = std::uint64_t{4} << 30,
                                 kBlock = 4096;
  static constexpr std::array<std::uint64_t, 4> kData = {kPiece - kBlock, kPiece, 2 * kPiece,
                                                         kBytes - kBlock};
  const std::string backing = directory.path("backing");  // holes but for the blocks with data
  std::unique_ptr<testing::LoopDevice> drive;
};

TEST_F(DriveThatIsDiscarded, IsEmptyToItsEnd) {
  const auto result = run_daqwriter(load(testing::kPatience));
  EXPECT_EQ(result.exit_code, 0) << result.error_text;
  for (const std::uint64_t at : kData) EXPECT_FALSE(holds_data(at)) << at;
}

TEST_F(DriveThatIsDiscarded, APieceThatDoesNotReturnIsNamed) {
  const auto document = run("discard", "", 1, load(testing::kPatience));
  EXPECT_EQ(document["written_bytes"], 0);
  expect_failed(document, {drive->path() + ": the discard from offset 4294967296 on has not returned",
                           "--stall-limit"});
  EXPECT_FALSE(holds_data(kData[0]));
  EXPECT_TRUE(holds_data(kData[1]));
}

TEST_F(DriveThatIsDiscarded, ASignalEndsAPieceThatDoesNotReturn) {
  run("discard", "", 0, load("60"), SIGTERM);
  EXPECT_EQ(exit_code, 130) << said;
  EXPECT_LT(took_s, kHungS);
  EXPECT_TRUE(holds_data(kData[0]));
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
    together = testing::wait_until([&] { return held(0) && held(1) && held(2); });
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

  const TempDir drives{testing::memory()};
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
    testing::wait_until([&] { return fs::exists(until + ".begun"); });
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

}  // namespace
}  // namespace daqwriter
