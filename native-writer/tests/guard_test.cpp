// `daqwriter guard` as the bench uses it: the real binary, a real loop device with a serial, the real fio.
// The serial stands in a udev database that only this test's mount namespace shows.
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/status.h"
#include "support.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using testing::run_daqwriter;
using testing::run_tool;
using Words = std::vector<std::string>;

class GuardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_LOOP_DEVICES();
    loop = std::make_unique<testing::LoopDevice>(directory.path("backing"), 16 << 20);
    testing::make_mounts_private();
    ASSERT_EQ(mount("none", "/run", "tmpfs", 0, nullptr), 0) << errno_text(errno);
    testing::write_text("/run/udev/data/b" + loop->number().text(), "E:ID_SERIAL_SHORT=L1\n");
  }
  testing::ProcessResult guard(
      const Words& command, const Words& consent = {"--allow-serial", "L1", "--destroy", "L1"},
      const std::function<void(pid_t)>& meanwhile = [](pid_t) {}) const {
    Words words = {"guard", "--target", loop->path()};
    words.insert(words.end(), consent.begin(), consent.end());
    words.push_back("--");
    words.insert(words.end(), command.begin(), command.end());
    return run_daqwriter(words, meanwhile);
  }
  void expect_refused(const std::string& part,
                      const Words& consent = {"--allow-serial", "L1", "--destroy", "L1"}) const {
    const auto result = guard({"touch", directory.path("started")}, consent);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.error_text.find(part), std::string::npos) << result.error_text;
    EXPECT_TRUE(result.error_text.starts_with("daqwriter: ")) << result.error_text;
    EXPECT_FALSE(fs::exists(directory.path("started")));
  }
  int claim() const { return open(loop->path().c_str(), O_RDONLY | O_EXCL | O_CLOEXEC); }

  testing::TempDir directory;
  std::unique_ptr<testing::LoopDevice> loop;
};

TEST_F(GuardTest, FioWritesToTheDriveThatIsClaimedForIt) {
  const auto result =
      guard({"fio", "--name=load", "--filename=" + loop->path(), "--rw=write", "--direct=1", "--bs=64k",
             "--size=1m", "--ioengine=libaio", "--buffer_pattern=0x77", "--output=" + directory.path("out")});
  EXPECT_EQ(result.exit_code, 0) << result.error_text;
  EXPECT_EQ(testing::read_bytes(loop->path(), 65536, 4096), std::vector<std::byte>(4096, std::byte{0x77}));
}

TEST_F(GuardTest, TheClaimLastsAsLongAsTheCommandHoweverThatEnds) {
  const std::string ready = directory.path("ready");
  // No child of the shell, which would inherit the claim and outlive it.
  const auto result = guard({"sh", "-c", ": > " + ready + "; exec sleep 60"},
                            {"--allow-serial", "L1", "--destroy", "L1"}, [&](pid_t child) {
                              while (!fs::exists(ready) && kill(child, 0) == 0)
                                std::this_thread::sleep_for(std::chrono::milliseconds(10));
                              EXPECT_LT(claim(), 0);
                              EXPECT_EQ(errno, EBUSY);
                              kill(child, SIGKILL);
                            });
  EXPECT_EQ(result.exit_code, -1);
  const int free = claim();
  EXPECT_GE(free, 0) << errno_text(errno);
  close(free);
}

TEST_F(GuardTest, ATwinIsClaimedForTheCommandToo) {
  fs::create_hard_link(directory.path("backing"), directory.path("same"));
  const testing::LoopDevice twin(directory.path("same"), 16 << 20);
  const auto result =
      guard({"sh", "-c", "mkfs.ext4 -q -F " + twin.path() + " 2> /dev/null && exit 9; exit 5"});
  EXPECT_EQ(result.exit_code, 5) << result.error_text;
}

TEST_F(GuardTest, TheCommandGetsItsWordsUnchangedAndItsExitCodeIsOurs) {
  EXPECT_EQ(guard({"sh", "-c", R"(test "$*" = "--destroy [a,b]  -- write" && exit 7)", "sh", "--destroy",
                   "[a,b]", "", "--", "write"})
                .exit_code,
            7);
}

TEST_F(GuardTest, TheCommandGetsTheClaimsNumberAndTheSignalsBack) {
  EXPECT_EQ(guard({"sh", "-c", "test $(readlink /proc/$$/fd/$DAQWRITER_CLAIM) = " + loop->path()}).exit_code,
            0);
  EXPECT_EQ(guard({"sh", "-c", "kill -PIPE $$; exit 0"}).exit_code, -1);
}

TEST_F(GuardTest, NothingIsStartedOnAnotherDriveOrWithoutConsent) {
  expect_refused("is another drive than", {"--allow-serial", "L2", "--destroy", "L2"});
  expect_refused("written only with --allow-serial", {});
  expect_refused("--destroy with the same serial", {"--allow-serial", "L1"});
  run_tool("mkfs.ext4 -q -F " + loop->path());
  expect_refused("carries a signature (ext4 filesystem)", {"--allow-serial", "L1"});
}

TEST_F(GuardTest, NothingIsStartedOnADriveInUse) {
  run_tool("mkfs.ext4 -q -F " + loop->path());
  fs::create_directory(directory.path("mnt"));
  ASSERT_EQ(mount(loop->path().c_str(), directory.path("mnt").c_str(), "ext4", 0, nullptr), 0);
  expect_refused("mounted: " + loop->path() + " on ");
  umount(directory.path("mnt").c_str());
  const int holder = claim();
  expect_refused("cannot be claimed for exclusive use");
  close(holder);
}

TEST_F(GuardTest, AFileIsNotGuardedAndACommandIsNeeded) {
  const auto file =
      run_daqwriter({"guard", "--target", directory.path("new"), "--allow-memory-target", "--", "true"});
  EXPECT_EQ(file.exit_code, 2);
  EXPECT_NE(file.error_text.find("guard claims whole drives"), std::string::npos) << file.error_text;
  EXPECT_EQ(guard({}).exit_code, 2);
  const auto missing = guard({"/no/such/program"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.error_text.find("cannot be started"), std::string::npos) << missing.error_text;
}

}  // namespace
}  // namespace daqwriter
