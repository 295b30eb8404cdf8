// The same against the real kernel, with a loop device over a scratch file. Needs root and a free loop
// device.
#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "status.h"
#include "support.h"
#include "target.h"

namespace daqwriter {
namespace {

using testing::TempDir;

class LoopDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to set up a loop device";
    const int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control < 0) GTEST_SKIP() << "this machine has no /dev/loop-control";
    const int number = ioctl(control, LOOP_CTL_GET_FREE);
    close(control);
    backing = open(directory.path("backing").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(ftruncate(backing, kBytes), 0);
    device = "/dev/loop" + std::to_string(number);
    loop = open(device.c_str(), O_RDWR | O_CLOEXEC);
    if (loop < 0 || ioctl(loop, LOOP_SET_FD, backing) != 0)
      GTEST_SKIP() << device << " cannot be set up in this environment";
    attached = true;
  }
  void TearDown() override {
    if (attached) ioctl(loop, LOOP_CLR_FD, 0);
    if (loop >= 0) close(loop);
    if (backing >= 0) close(backing);
  }
  void make_ext4() {
    const std::string command = "mkfs.ext4 -q -F " + device + " >/dev/null 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  DeviceNumber number() const {
    struct stat status {};
    stat(device.c_str(), &status);
    return {major(status.st_rdev), minor(status.st_rdev)};
  }
  // As plan_target() would give it if the loop device had an allowed serial.
  TargetPlan allowed_plan() const {
    return {TargetKind::raw_device, device, "", kBytes, 4096, number(), std::nullopt};
  }

  static constexpr off_t kBytes = 64 << 20;
  TempDir directory;
  std::string device;
  int backing = -1;
  int loop = -1;
  bool attached = false;
};

TEST_F(LoopDeviceTest, IsRefusedForItsMissingSerial) {
  try {
    plan_target(device, {"anything", "anything", false});
    FAIL() << "was allowed";
  } catch (const Refusal& refusal) {
    EXPECT_NE(std::string(refusal.what()).find("neither serial nor WWN"), std::string::npos)
        << refusal.what();
  }
}

TEST_F(LoopDeviceTest, SignatureIsFoundByLibblkid) {
  EXPECT_EQ(probe_signature(device), std::nullopt);
  make_ext4();
  EXPECT_EQ(probe_signature(device), "ext4 filesystem");
  DeviceFacts facts = read_device_facts(number(), {});
  facts.serial = "L1";
  facts.signature = probe_signature(device);
  EXPECT_NE(interlock_refusal(facts, {"L1", "", false}).value_or("").find("ext4"), std::string::npos);
}

TEST_F(LoopDeviceTest, MountedIsSeenAndCannotBeClaimedEither) {
  make_ext4();
  const std::string point = directory.path("mnt");
  std::filesystem::create_directory(point);
  if (mount(device.c_str(), point.c_str(), "ext4", 0, nullptr) != 0)
    GTEST_SKIP() << "mount is not permitted here";
  const DeviceFacts facts = read_device_facts(number(), {});
  EXPECT_THROW(Target(allowed_plan(), 0, false), Refusal);  // O_EXCL, should the look ever fail
  umount(point.c_str());
  ASSERT_EQ(facts.mounts.size(), 1u);
  EXPECT_NE(facts.mounts[0].find(device + " on "), std::string::npos);
}

TEST_F(LoopDeviceTest, IsHeldExclusivelyWhileARecordRuns) {
  {
    const Target target(allowed_plan(), 0, false);
    EXPECT_LT(open(device.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC), 0);
    EXPECT_EQ(errno, EBUSY);
    EXPECT_THROW(Target(allowed_plan(), 0, false), Refusal);
  }
  EXPECT_NO_THROW(Target(allowed_plan(), 0, false));
}

TEST_F(LoopDeviceTest, IsNotWrittenWhenItBecameAnotherDevice) {
  TargetPlan plan = allowed_plan();
  plan.device.minor += 1;
  EXPECT_THROW(Target(plan, 0, false), Refusal);
}

TEST_F(LoopDeviceTest, ARawRecordIsWrittenFoundAndVerified) {
  MiniDaqOptions options = testing::small_record("unused");
  MiniDaqOptions for_plan = options;
  for_plan.null_sink = true;
  MiniDaqPlan plan = plan_minidaq(for_plan);
  plan.applications.front().target = allowed_plan();
  const std::atomic<int> never{0};
  const MiniDaqResult result = run_minidaq(options, plan, testing::aio_engine(), never);
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  const testing::Verified intact = testing::verify(directory, device);
  EXPECT_EQ(intact.exit_code, 0);
  EXPECT_EQ(intact.count("present"), 3000u);

  // A shorter record over it, with losses: its trailer stands where only a walk finds it, and what remains of
  // the older record behind it does not count.
  options.ring_bytes = 5 * 5568;
  plan.slots_per_link = 5;
  const EngineFactory slow = [](unsigned depth) {
    return std::make_unique<testing::MeddlingEngine>(testing::aio_engine()(depth), 20'000'000);
  };
  const MiniDaqResult lossy = run_minidaq(options, plan, slow, never);
  ASSERT_LT(lossy.stored, 3000u);
  const testing::Verified again = testing::verify(directory, device);
  EXPECT_EQ(again.exit_code, 0) << again.json.dump();
  EXPECT_EQ(again.count("present"), lossy.stored);
  EXPECT_EQ(again.json["lost_at_source"], 3000 - lossy.stored);
}

}  // namespace
}  // namespace daqwriter
