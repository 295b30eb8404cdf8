// The real program when it is told to end, or kept from what it needs: signals while a drive hangs, a closed
// terminal, a process that was stopped, no threads, no memory, no large files. Each time it says so, also in
// its JSON, and it ends.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstddef>
#include <fstream>
#include <thread>

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
using testing::LoopDevice;
using testing::run_daqwriter;
using testing::TempDir;
using Arguments = std::vector<std::string>;

// A drive that takes requests and does not answer: the file system that holds its image is frozen.
class FrozenDriveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_LOOP_DEVICES();
    testing::make_mounts_private();
    below = std::make_unique<LoopDevice>(directory.path("below"), 256 << 20);
    testing::run_tool("mkfs.ext4 -q -F -m 0 " + below->path());
    fs::create_directory(mnt);
    ASSERT_EQ(mount(below->path().c_str(), mnt.c_str(), "ext4", 0, nullptr), 0) << errno_text(errno);
    mnt_fd = open(mnt.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    drive = std::make_unique<LoopDevice>(mnt + "/image", 200 << 20);
    ASSERT_EQ(mount("tmpfs", "/run", "tmpfs", 0, nullptr), 0) << errno_text(errno);
    testing::write_text("/run/udev/data/b" + drive->number().text(), "E:ID_SERIAL_SHORT=L1\n");
  }
  void TearDown() override {
    thaw();
    if (mnt_fd >= 0) close(mnt_fd);
    drive.reset();
    umount2(mnt.c_str(), MNT_DETACH);
  }
  void freeze() { ASSERT_EQ(ioctl(mnt_fd, FIFREEZE, 0), 0) << errno_text(errno); }
  void thaw() {
    if (mnt_fd >= 0) ioctl(mnt_fd, FITHAW, 0);
  }
  // Freezes the drive of a running command, sends the signals, waits for the JSON, and lets the kernel go on.
  nlohmann::json end_frozen(Arguments arguments, const std::vector<int>& signals) {
    arguments.insert(arguments.end(), {"--target", drive->path(), "--allow-serial", "L1", "--destroy", "L1",
                                       "--json", json, "--line-protocol", lines});
    bool in_time = false;
    const auto result = run_daqwriter(arguments, [&](pid_t child) {
      testing::wait_for_lines(lines, 5);
      freeze();
      usleep(300'000);
      for (const int number : signals) {
        kill(child, number);
        usleep(100'000);
      }
      in_time = testing::wait_until([&] { return fs::exists(json); });
      thaw();
    });
    EXPECT_TRUE(in_time);
    exit_code = result.exit_code;
    said = result.error_text;
    return fs::exists(json) ? testing::read_json(json) : nlohmann::json();
  }

  const TempDir directory{testing::memory()};
  std::string mnt = directory.path("mnt");
  std::string json = directory.path("result.json");
  std::string lines = directory.path("lines");
  std::unique_ptr<LoopDevice> below;
  std::unique_ptr<LoopDevice> drive;
  int mnt_fd = -1;
  int exit_code = -1;
  std::string said;
};

const Arguments kRecord = {"minidaq", "--duration",  "30",   "--links",      "2",    "--scale",
                           "0.002",   "--ring-size", "8MiB", "--block-size", "64KiB"};

TEST_F(FrozenDriveTest, OneSignalEndsTheRecordWithinItsBound) {
  const auto document = end_frozen(kRecord, {SIGINT});
  EXPECT_EQ(exit_code, 130) << said;
  EXPECT_EQ(document["status"], "interrupted");
  EXPECT_GT(document["bytes"]["unanswered"], 0);
  const std::string error = document["error"];
  EXPECT_NE(error.find("whether they are stored is unknown"), std::string::npos) << error;
  EXPECT_NE(error.find("the record is incomplete: " +
                       std::to_string(document["superchunks"]["stored"].get<std::uint64_t>())),
            std::string::npos)
      << error;
}

TEST_F(FrozenDriveTest, OneSignalEndsBothWritersOfARecord) {
  Arguments arguments = kRecord;
  arguments.insert(arguments.end(), {"--writers", "2"});
  const auto document = end_frozen(arguments, {SIGINT});
  EXPECT_EQ(exit_code, 130) << said;
  EXPECT_EQ(document["status"], "interrupted");
  const std::string error = document["error"];
  EXPECT_NE(error.find("writer 0: "), std::string::npos) << error;
  EXPECT_NE(error.find("writer 1: "), std::string::npos) << error;
}

TEST_F(FrozenDriveTest, ASecondSignalOfAnotherKindEndsItWithJson) {
  const auto document = end_frozen(kRecord, {SIGINT, SIGTERM});
  EXPECT_EQ(exit_code, 130) << said;
  EXPECT_EQ(document["status"], "interrupted");
}

TEST_F(FrozenDriveTest, SyntheticWritesToo) {
  const auto document = end_frozen(
      {"write", "--duration", "40", "--condition", "overwrite", "--span", "8MiB", "--block-size", "64KiB"},
      {SIGTERM});
  EXPECT_EQ(exit_code, 130) << said;
  EXPECT_EQ(document["status"], "interrupted");
  EXPECT_EQ(document["ended_by"], "signal");
  EXPECT_GT(document["unanswered_bytes"], 0);
}

TEST_F(FrozenDriveTest, SilenceWithoutASignalIsAFailure) {
  Arguments arguments = kRecord;
  arguments.insert(arguments.end(), {"--stall-limit", testing::kPatience});
  const auto document = end_frozen(arguments, {});
  EXPECT_EQ(exit_code, 1) << said;
  EXPECT_EQ(document["status"], "failed");
  const std::string error = document["error"];
  EXPECT_NE(error.find("--stall-limit"), std::string::npos) << error;
}

// The file system of the target itself is frozen: the kernel holds the thread inside io_submit.
TEST_F(FrozenDriveTest, AFrozenFileSystemHoldsTheCallAndIsAFailureToo) {
  for (const char* engine : {"libaio", "io_uring"}) {
    fs::remove(json);
    fs::remove(lines);
    const Arguments arguments = {"write",
                                 "--duration",
                                 "40",
                                 "--condition",
                                 "overwrite",
                                 "--span",
                                 "8MiB",
                                 "--block-size",
                                 "64KiB",
                                 "--target",
                                 mnt + "/file",
                                 "--json",
                                 json,
                                 "--line-protocol",
                                 lines,
                                 "--engine",
                                 engine,
                                 "--stall-limit",
                                 testing::kPatience};
    bool in_time = false;
    const auto result = run_daqwriter(arguments, [&](pid_t) {
      testing::wait_for_lines(lines, 5);
      freeze();
      in_time = testing::wait_until([&] { return fs::exists(json); });
      thaw();
    });
    EXPECT_TRUE(in_time) << engine;
    EXPECT_EQ(result.exit_code, 1) << result.error_text;
    const auto document = testing::read_json(json);
    EXPECT_EQ(document["status"], "failed");
    const std::string error = document["error"];
    EXPECT_NE(error.find("/file"), std::string::npos) << error;
    EXPECT_NE(error.find("--stall-limit"), std::string::npos) << error;
    fs::remove(mnt + "/file");
  }
}

// A drive that answers no read: the kernel lets the command have a byte of it in a second.
class HeldBackDriveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_LOOP_DEVICES();
    if (!fs::exists(kThrottle / "blkio.throttle.read_bps_device"))
      GTEST_SKIP() << "no controller blkio of cgroup v1 here: nothing holds a drive's reads back";
    testing::make_mounts_private();
    drive = std::make_unique<LoopDevice>(directory.path("image"), 200 << 20);
    ASSERT_EQ(mount("tmpfs", "/run", "tmpfs", 0, nullptr), 0) << errno_text(errno);
    testing::write_text("/run/udev/data/b" + drive->number().text(), "E:ID_SERIAL_SHORT=L1\n");
    const auto written =
        run_daqwriter({"minidaq", "--duration", "1", "--links", "2", "--scale", "0.02", "--ring-size", "8MiB",
                       "--target", drive->path(), "--allow-serial", "L1"});
    ASSERT_EQ(written.exit_code, 0) << written.error_text;
    fs::create_directory(group);
  }
  void TearDown() override {
    if (!drive) return;
    hold_back(0);
    std::error_code ignored;  // the group goes when its last process has
    for (int i = 0; i < 500 && fs::exists(group) && rmdir(group.c_str()) != 0; ++i) usleep(10'000);
    drive.reset();
  }
  // 0: no longer.
  void hold_back(std::uint64_t bytes_per_s) {
    testing::write_text(group / "blkio.throttle.read_bps_device",
                        drive->number().text() + " " + std::to_string(bytes_per_s));
  }
  // `verify` from its start in the group; the drive answers again when the JSON is there.
  nlohmann::json verify(std::uint64_t bytes_per_s, const Arguments& more, const std::vector<int>& signals,
                        int limit_s = 45) {
    hold_back(bytes_per_s);
    Arguments arguments = {"verify", "--target", drive->path(), "--json", json};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const std::string own = own_group();
    testing::write_text(group / "cgroup.procs", std::to_string(getpid()));  // what is started is in it too
    bool in_time = false;
    const auto result = run_daqwriter(arguments, [&](pid_t child) {
      testing::write_text(own + "/cgroup.procs", std::to_string(getpid()));
      usleep(700'000);
      for (const int number : signals) {
        kill(child, number);
        usleep(100'000);
      }
      in_time = testing::wait_until([&] { return fs::exists(json); }, limit_s);
      hold_back(0);
    });
    EXPECT_TRUE(in_time);
    exit_code = result.exit_code;
    said = result.error_text;
    return fs::exists(json) ? testing::read_json(json) : nlohmann::json();
  }
  static std::string own_group() {
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
      const auto at = line.find(":blkio:");
      if (at != std::string::npos) return (kThrottle / line.substr(at + 8)).string();
    }
    return kThrottle.string();
  }

  inline static const fs::path kThrottle = "/sys/fs/cgroup/blkio";
  const TempDir directory{testing::memory()};
  fs::path group = kThrottle / ("daqwriter-test-" + std::to_string(getpid()));
  std::string json = directory.path("result.json");
  std::unique_ptr<LoopDevice> drive;
  int exit_code = -1;
  std::string said;
};

TEST_F(HeldBackDriveTest, ADriveWhoseFirstBlockDoesNotComeIsAFailureWithJson) {
  const auto document = verify(1, {"--stall-limit", testing::kPatience}, {});
  EXPECT_EQ(exit_code, 1) << said;
  EXPECT_EQ(document["status"], "failed");
  const std::string error = document["error"];
  EXPECT_NE(error.find("the read at offset 0"), std::string::npos) << error;
  EXPECT_NE(error.find("--stall-limit"), std::string::npos) << error;
}

TEST_F(HeldBackDriveTest, ReadsThatAreNotAnsweredAreNamed) {
  const auto document = verify(100'000, {"--stall-limit", testing::kPatience}, {});
  EXPECT_EQ(exit_code, 1) << said;
  EXPECT_EQ(document["status"], "failed");
  const std::string error = document["error"];
  EXPECT_NE(error.find("have had no answer for 5.5 s"), std::string::npos) << error;
}

TEST_F(HeldBackDriveTest, OneSignalEndsItWithinItsBound) {
  const auto document = verify(100'000, {}, {SIGTERM});
  EXPECT_EQ(exit_code, 130) << said;
  EXPECT_EQ(document["status"], "interrupted");
}

TEST_F(HeldBackDriveTest, ADriveThatIsSlowIsNotSilent) {
  // 37 MB take 10 s, longer than the limit; eight reads of 1 MiB that wait for each other take 2.3 s, however
  // busy the machine is.
  const auto document = verify(3'700'000, {"--stall-limit", "8"}, {}, 120);
  EXPECT_EQ(exit_code, 0) << said;
  EXPECT_EQ(document["status"], "intact");
}

class EndingTest : public ::testing::Test {
 protected:
  Arguments record(const Arguments& more) const {
    Arguments all = {"minidaq", "--target", target, "--links",         "2",  "--scale", "0.01", "--ring-size",
                     "8MiB",    "--json",   json,   "--line-protocol", lines};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  void expect_failed(const testing::ProcessResult& result, const std::string& part) {
    EXPECT_EQ(result.exit_code, 1) << result.error_text;
    EXPECT_NE(result.error_text.find(part), std::string::npos) << result.error_text;
    ASSERT_TRUE(fs::exists(json)) << result.error_text;
    EXPECT_EQ(testing::read_json(json)["status"], "failed");
    EXPECT_NE(testing::read_json(json)["error"].get<std::string>().find(part), std::string::npos);
    fs::remove(json);
  }
  // The child inherits the limit; this process keeps its own.
  testing::ProcessResult run_limited(__rlimit_resource resource, rlim_t limit, const Arguments& arguments) {
    rlimit before{};
    getrlimit(resource, &before);
    const rlimit lower{limit, before.rlim_max};
    setrlimit(resource, &lower);
    const auto result = run_daqwriter(arguments);
    setrlimit(resource, &before);
    return result;
  }

  TempDir directory;
  std::string target = directory.path("target");
  std::string json = directory.path("result.json");
  std::string lines = directory.path("lines");
};

TEST_F(EndingTest, AClosedTerminalClosesTheRecord) {
  const auto result = run_daqwriter(record({"--duration", "40"}), [&](pid_t child) {
    testing::wait_for_lines(lines, 3);
    kill(child, SIGHUP);
  });
  EXPECT_EQ(result.exit_code, 130) << result.error_text;
  EXPECT_EQ(testing::read_json(json)["status"], "interrupted");
  EXPECT_EQ(run_daqwriter({"verify", "--target", target, "--json", json}).exit_code, 0);
  EXPECT_EQ(testing::read_json(json)["trailer_status"], "interrupted");
}

// The source did not offer its load in the meantime, though it caught up.
TEST_F(EndingTest, AStoppedProcessDidNotOfferItsLoad) {
  const auto result = run_daqwriter(record({"--duration", "5"}), [&](pid_t child) {
    testing::wait_for_lines(lines, 5);
    kill(child, SIGSTOP);
    usleep(2'000'000);
    kill(child, SIGCONT);
  });
  EXPECT_EQ(result.exit_code, 0) << result.error_text;
  const auto source = testing::read_json(json)["source"];
  EXPECT_LT(source["achieved_fraction"], 0.8);
  EXPECT_GT(source["achieved_fraction"], 0.2);
  EXPECT_GT(source["too_late_superchunks"], 0);
}

TEST_F(EndingTest, AStoppedStorageApplicationNeither) {
  const auto result = run_daqwriter({"streams", "--sink", "null", "--rate", "20MB", "--duration", "5",
                                     "--json", json, "--line-protocol", lines},
                                    [&](pid_t child) {
                                      testing::wait_for_lines(lines, 5);
                                      kill(child, SIGSTOP);
                                      usleep(2'000'000);
                                      kill(child, SIGCONT);
                                    });
  EXPECT_EQ(result.exit_code, 0) << result.error_text;
  EXPECT_LT(testing::read_json(json)["source"]["achieved_fraction"], 0.8);
}

TEST_F(EndingTest, ANullSinkStoresNothing) {
  const auto result = run_daqwriter(
      {"minidaq", "--sink", "null", "--duration", "0.3", "--links", "2", "--scale", "0.01", "--json", json});
  EXPECT_EQ(result.exit_code, 0) << result.error_text;
  EXPECT_NE(result.error_text.find("discarded"), std::string::npos) << result.error_text;
  EXPECT_EQ(result.error_text.find("stored"), std::string::npos) << result.error_text;
  EXPECT_EQ(testing::read_json(json)["discarded"], true);
}

TEST_F(EndingTest, AFileMayNotBecomeThatLarge) {
  constexpr rlim_t kLimit = 20 << 20;
  const auto refused = run_limited(RLIMIT_FSIZE, kLimit, record({"--duration", "3"}));  // before it begins
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.error_text.find("EFBIG"), std::string::npos) << refused.error_text;
  for (const char* writers : {"1", "2"}) {
    const auto command = record({"--duration", "3", "--preallocate", "none", "--writers", writers});
    expect_failed(run_limited(RLIMIT_FSIZE, kLimit, command), "EFBIG");
    fs::remove(target);
  }
  const std::vector<Arguments> commands = {
      {"write", "--target", directory.path("w"), "--bytes", "64MiB", "--json", json, "--preallocate", "none"},
      {"streams", "--target", directory.path("s"), "--bytes", "64MiB", "--json", json}};
  for (const Arguments& command : commands)
    expect_failed(run_limited(RLIMIT_FSIZE, kLimit, command), "EFBIG");
}

TEST_F(EndingTest, ThereIsNotEnoughMemory) {
  if (SANITIZED) GTEST_SKIP() << "a sanitizer's own memory exceeds any such limit";
  constexpr rlim_t kLimit = 200 << 20;
  const std::vector<Arguments> commands = {
      {"minidaq", "--target", target, "--duration", "1", "--links", "2", "--scale", "0.01", "--ring-size",
       "200MiB", "--json", json},
      {"write", "--target", directory.path("w"), "--bytes", "1GiB", "--block-size", "64MiB", "--json", json},
      {"streams", "--target", directory.path("s"), "--bytes", "64MiB", "--queue-size", "200MiB", "--json",
       json}};
  for (const Arguments& command : commands) expect_failed(run_limited(RLIMIT_AS, kLimit, command), "ENOMEM");
}

// No new threads for this thread and for the programs that it starts.
void forbid_threads() {
  constexpr auto kFail = [](std::uint32_t error) { return SECCOMP_RET_ERRNO | error; };
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kFail(ENOSYS)),  // glibc then calls clone
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kFail(EAGAIN)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(code), code};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0) << errno_text(errno);
}

TEST_F(EndingTest, TheSystemGivesNoThreads) {
  const std::vector<Arguments> commands = {
      record({"--duration", "1"}),
      {"write", "--target", directory.path("w"), "--bytes", "1MiB", "--json", json},
      {"streams", "--target", directory.path("s"), "--bytes", "16MiB", "--json", json}};
  for (const Arguments& command : commands) {
    testing::ProcessResult result;
    std::thread([&] {  // the filter stays with this thread
      forbid_threads();
      result = run_daqwriter(command);
    })
        .join();
    expect_failed(result, "no more threads");
  }
}

}  // namespace
}  // namespace daqwriter
