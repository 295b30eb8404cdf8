// The interlock against the real kernel, with loop devices as drives. A loop device has no serial: one is
// given to it in a udev database of the test's own; all else is the machine's real state. Holders made by md
// or device mapper are tested over a replaced sysfs (interlock_test.cpp), since not every kernel has those
// drivers.
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/memory.h"
#include "base/status.h"
#include "support.h"
#include "target/target.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using testing::LoopDevice;
using testing::run_daqwriter;
using testing::run_tool;
using testing::TempDir;

// Another process that has a file open, until it goes out of scope or its time is over.
class OtherProcess {
 public:
  OtherProcess(const std::string& path, int flags, unsigned milliseconds = 60'000, bool only_mapped = false) {
    std::array<int, 2> told{};
    if (pipe(told.data()) != 0) throw std::runtime_error("no pipe");
    child_ = fork();
    if (child_ == 0) {
      const int fd = open(path.c_str(), flags);
      for (int other = 3; other < 1024; ++other) {
        if (other != fd && other != told[1]) close(other);
      }
      const bool mapped =
          only_mapped && mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED;
      if (only_mapped) close(fd);
      const bool said = write(told[1], fd < 0 || mapped != only_mapped ? "n" : "y", 1) == 1;
      usleep(said ? milliseconds * 1000 : 0);
      _exit(0);
    }
    char opened = 'n';
    const bool heard = read(told[0], &opened, 1) == 1;
    close(told[0]);
    close(told[1]);
    if (!heard || opened != 'y') throw std::runtime_error("cannot open " + path);
  }
  ~OtherProcess() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  std::string pid() const { return std::to_string(child_); }

 private:
  pid_t child_ = -1;
};

class LoopDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_LOOP_DEVICES();
    loop = std::make_unique<LoopDevice>(directory.path("backing"), kBytes);
    give_serial(*loop, "L1");
  }
  void give_serial(const LoopDevice& device, const std::string& serial) const {
    testing::write_text(paths.udev + "/b" + device.number().text(), "E:ID_SERIAL_SHORT=" + serial + "\n");
  }
  TargetPlan plan(const Consent& consent = {"L1", "", false}) const {
    return plan_target(loop->path(), consent, paths);
  }
  void expect_refused(const std::string& part, const Consent& consent = {"L1", "L1", false}) const {
    try {
      plan(consent);
      FAIL() << "was allowed";
    } catch (const Refusal& refusal) {
      EXPECT_NE(std::string(refusal.what()).find(part), std::string::npos) << refusal.what();
    }
  }
  void mount_at(const std::string& device, const std::string& point) const {
    fs::create_directory(point);
    ASSERT_EQ(mount(device.c_str(), point.c_str(), "ext4", 0, nullptr), 0) << errno_text(errno);
  }
  // One Linux partition over all but the first MiB, as fdisk would write it.
  void make_partition_table() const {
    std::vector<std::byte> sector(512);
    const std::array<std::uint8_t, 12> entry = {0x83, 0, 0, 0,    0, 8,
                                                0,    0, 0, 0xf8, 1, 0};  // type ... sectors
    std::memcpy(sector.data() + 450, entry.data(), entry.size());
    sector[510] = std::byte{0x55};
    sector[511] = std::byte{0xaa};
    testing::write_bytes(loop->path(), 0, sector);
    run_tool("partx -u " + loop->path());  // a kernel need not know this kind of table
  }

  static constexpr std::uint64_t kBytes = 64 << 20;
  TempDir directory;
  SystemPaths paths{"/sys", "/proc", directory.path("udev")};
  std::unique_ptr<LoopDevice> loop;
};

TEST_F(LoopDeviceTest, IsRefusedWithoutSerialByTheBinaryToo) {
  const auto result = run_daqwriter({"write", "--target", loop->path(), "--bytes", "1MiB", "--block-size",
                                     "64KiB", "--allow-serial", "L1", "--destroy", "L1"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.error_text.find("neither serial nor WWN"), std::string::npos) << result.error_text;
}

TEST_F(LoopDeviceTest, IsAllowedByItsSerialOnly) {
  EXPECT_EQ(plan().free_bytes, kBytes);
  expect_refused("another drive", {"L2", "", false});
  expect_refused("--allow-serial", {"", "", false});
}

TEST_F(LoopDeviceTest, IsFoundByASymbolicLink) {
  const std::string link = directory.path("by-id");
  fs::create_symlink(loop->path(), link);
  EXPECT_EQ(plan_target(link, {"L1", "", false}, paths).device.text(), loop->number().text());
  EXPECT_THROW(plan_target(link, {"L2", "", false}, paths), Refusal);
}

TEST_F(LoopDeviceTest, IsRefusedWhileItIsMounted) {
  testing::make_mounts_private();
  run_tool("mkfs.ext4 -q -F " + loop->path());
  expect_refused("ext4 filesystem", {"L1", "", false});
  EXPECT_NO_THROW(plan({"L1", "L1", false}));
  mount_at(loop->path(), directory.path("mnt"));
  expect_refused("mounted: " + loop->path() + " on ");
  umount(directory.path("mnt").c_str());
}

// Each of the three shows the same data; a mount at the bottom is the drive's own.
TEST_F(LoopDeviceTest, IsRefusedWhileWhatIsTwoLoopsBelowIsMounted) {
  testing::make_mounts_private();
  run_tool("mkfs.ext4 -q -F " + loop->path());
  const LoopDevice middle(loop->path(), kBytes), top(middle.path(), kBytes);
  give_serial(top, "L3");
  const auto planned = [&] { return plan_target(top.path(), {"L3", "L3", false}, paths); };
  EXPECT_TRUE(planned().same_data.contains(loop->number().text()));
  mount_at(loop->path(), directory.path("mnt"));
  try {
    planned();
    ADD_FAILURE() << "was allowed";
  } catch (const Refusal& refusal) {
    EXPECT_NE(std::string(refusal.what()).find("mounted: " + loop->path() + " on "), std::string::npos)
        << refusal.what();
  }
  umount(directory.path("mnt").c_str());
  EXPECT_NO_THROW(planned());
}

// Detector data on raw blocks has no signature.
TEST_F(LoopDeviceTest, IsRefusedWhileItHoldsDataUnlessItMayBeDestroyed) {
  EXPECT_NO_THROW(plan({"L1", "", false}));
  struct Data {
    std::uint64_t offset, bytes;
  };
  for (const Data data : {Data{0, 1}, Data{kBytes / 2, 2 << 20}, Data{kBytes - 1, 1}}) {
    testing::write_bytes(loop->path(), data.offset, std::vector<std::byte>(data.bytes, std::byte{7}));
    expect_refused("is not empty: it holds data without a known signature", {"L1", "", false});
    EXPECT_NO_THROW(plan({"L1", "L1", false}));
    testing::write_bytes(loop->path(), data.offset, std::vector<std::byte>(data.bytes));
  }
  EXPECT_NO_THROW(plan({"L1", "", false}));
}

// A drive that drops the data of the second record still holds that of the first, of the same id and seed.
TEST_F(LoopDeviceTest, TheDataOfAnEarlierRecordWithTheSameIdAndSeedDoesNotCount) {
  const std::vector<std::string> record = {
      "minidaq", "--links", "2",           "--ring-size",        "8MiB",    "--duration", "0.3",
      "--scale", "0.02",    "--record-id", std::string(32, '7'), "--target"};
  const auto make = [&](const std::string& name) {
    auto arguments = record;
    arguments.push_back(directory.path(name));
    ASSERT_EQ(run_daqwriter(arguments).exit_code, 0);
  };
  make("first");
  make("second");
  const auto size = std::min(fs::file_size(directory.path("first")), fs::file_size(directory.path("second")));
  EXPECT_EQ(testing::verify(directory, directory.path("second"), 0).exit_code, 0);
  testing::write_bytes(directory.path("second"), 4096,
                       testing::read_bytes(directory.path("first"), 4096, size - 2 * 4096));
  EXPECT_EQ(testing::verify(directory, directory.path("second"), 0).exit_code, 3);
}

TEST_F(LoopDeviceTest, AWriterThatMapsItAndClosesItsDescriptorIsSeen) {
  EXPECT_TRUE(read_device_facts(loop->number(), paths).writers.empty());
  const OtherProcess other(loop->path(), O_RDWR, 60'000, true);
  const auto writers = read_device_facts(loop->number(), paths).writers;
  ASSERT_EQ(writers.size(), 1u);
  EXPECT_NE(writers.front().find("(PID "), std::string::npos);
}

// Another mount namespace, a container's for instance, is not in our mountinfo; the kernel knows
// nevertheless.
TEST_F(LoopDeviceTest, IsRefusedWhileItIsMountedWhereWeCannotSeeIt) {
  run_tool("mkfs.ext4 -q -F " + loop->path());
  fs::create_directory(directory.path("mnt"));
  int told[2];
  int go[2];
  ASSERT_EQ(pipe(told), 0);
  ASSERT_EQ(pipe(go), 0);
  const pid_t other = fork();
  if (other == 0) {
    close(go[1]);
    testing::make_mounts_private();
    const bool good = mount(loop->path().c_str(), directory.path("mnt").c_str(), "ext4", 0, nullptr) == 0;
    char byte = good ? 'y' : 'n';
    const bool said = write(told[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 0;
    _exit(said ? 0 : 1);
  }
  char mounted = 'n';
  EXPECT_EQ(read(told[0], &mounted, 1), 1);
  EXPECT_EQ(mounted, 'y');
  EXPECT_TRUE(read_device_facts(loop->number(), paths).mounts.empty());
  expect_refused("cannot be claimed for exclusive use");
  close(go[1]);
  waitpid(other, nullptr, 0);
}

TEST_F(LoopDeviceTest, IsRefusedWhileAPartitionIsMountedAndForItsTable) {
  testing::make_mounts_private();
  make_partition_table();
  expect_refused("dos partition table", {"L1", "", false});
  const std::string part = loop->path() + "p1";
  run_tool("mkfs.ext4 -q -F " + part);
  mount_at(part, directory.path("mnt"));
  expect_refused("mounted: " + part + " on ");
  umount(directory.path("mnt").c_str());
  EXPECT_NO_THROW(plan({"L1", "L1", false}));
  try {
    plan_target(part, {"L1", "L1", false}, paths);
    FAIL() << "a partition was allowed";
  } catch (const Refusal& refusal) {
    EXPECT_NE(std::string(refusal.what()).find("is a partition"), std::string::npos) << refusal.what();
  }
}

TEST_F(LoopDeviceTest, IsRefusedWhenThisSystemWantsItAtItsNextStart) {
  const std::string uuid = "1f0b3f5c-6d0e-4b5e-9d59-0a3a6f7c2b11";
  run_tool("mkfs.ext4 -q -F -L data -U " + uuid + " " + loop->path());
  paths.etc = directory.path("etc");
  const auto table = [&](const std::string& line) { testing::write_text(paths.etc + "/fstab", line + "\n"); };
  table("# UUID=" + uuid + " / ext4\n\nLABEL=other /other ext4");
  EXPECT_NO_THROW(plan({"L1", "L1", false}));
  const std::string link = directory.path("by-path");
  fs::create_symlink(loop->path(), link);
  for (const std::string& name : {"UUID=\"" + uuid + "\"", "/dev/disk/by-uuid/" + uuid,
                                  std::string("LABEL=data"), loop->path(), link}) {
    table("proc /proc proc defaults\n" + name + " /home ext4");
    expect_refused("named by this system");
  }
  table("");
  paths.proc = directory.path("proc");
  testing::write_text(paths.proc + "/cmdline", "quiet resume=UUID=" + uuid + " rw\n");
  testing::write_text(paths.proc + "/self/mountinfo", "1 0 0:45 / / rw - ext4 none rw\n");
  expect_refused("in the kernel's command line");
}

TEST_F(LoopDeviceTest, IsRefusedWhileItIsSwap) {
  run_tool("mkswap " + loop->path());
  expect_refused("swap other", {"L1", "", false});
  ASSERT_EQ(swapon(loop->path().c_str(), 0), 0) << errno_text(errno);
  expect_refused("used as swap: " + loop->path());
  swapoff(loop->path().c_str());
}

TEST_F(LoopDeviceTest, IsRefusedWhileALoopDeviceLiesOverIt) {
  const LoopDevice above(loop->path(), kBytes);
  expect_refused("in use by " + above.name());
}

TEST_F(LoopDeviceTest, IsRefusedWhileALoopDeviceLiesOverAnotherNodeOfIt) {
  const std::string node = directory.path("node");
  ASSERT_EQ(mknod(node.c_str(), S_IFBLK | 0600, makedev(loop->number().major, loop->number().minor)), 0);
  const LoopDevice above(node, kBytes);
  expect_refused("in use by " + above.name());
  fs::remove(node);
  expect_refused("in use by " + above.name());
}

// Two loop devices over one file are two names of the same data.
TEST_F(LoopDeviceTest, IsRefusedWhileItsTwinIsMounted) {
  testing::make_mounts_private();
  run_tool("mkfs.ext4 -q -F " + loop->path());
  fs::create_hard_link(directory.path("backing"), directory.path("same"));
  const LoopDevice twin(directory.path("same"), kBytes);
  {
    const TargetPlan idle = plan({"L1", "L1", false});
    EXPECT_LT(open(twin.path().c_str(), O_RDONLY | O_EXCL | O_CLOEXEC), 0);  // and cannot be mounted any more
  }
  mount_at(twin.path(), directory.path("mnt"));
  expect_refused("mounted: " + twin.path() + " on ");
  umount(directory.path("mnt").c_str());
  const int holder =
      open(twin.path().c_str(), O_RDONLY | O_EXCL | O_CLOEXEC);  // as a mount that we cannot see
  expect_refused("the same data by another way: " + twin.path());
  close(holder);
  EXPECT_NO_THROW(plan({"L1", "L1", false}));
}

TEST_F(LoopDeviceTest, IsRefusedWhileTheSameDriveIsMountedByAnotherPath) {
  testing::make_mounts_private();
  const LoopDevice path(directory.path("path"), kBytes);
  give_serial(path, "L1");
  run_tool("mkfs.ext4 -q -F " + path.path());
  mount_at(path.path(), directory.path("mnt"));
  expect_refused("mounted: " + path.path() + " on ");
  umount(directory.path("mnt").c_str());
  EXPECT_NO_THROW(plan());
}

// A virtual machine holds it like this: open, and claimed by nobody.
TEST_F(LoopDeviceTest, IsRefusedWhileAnotherProcessCanWriteToIt) {
  {
    const OtherProcess machine(loop->path(), O_RDWR);
    expect_refused(" (PID " + machine.pid() + "); end that first");
  }
  {
    const OtherProcess machine(directory.path("backing"), O_WRONLY);  // the same data from below
    expect_refused("PID " + machine.pid());
  }
  const int ours = open(loop->path().c_str(), O_RDWR | O_CLOEXEC);
  const OtherProcess reader(loop->path(), O_RDONLY);
  EXPECT_NO_THROW(plan());
  close(ours);
}

TEST_F(LoopDeviceTest, IsAllowedWhenItWasOpenForAMomentOnly) {
  const OtherProcess udev(loop->path(), O_RDWR, 400);
  EXPECT_NO_THROW(plan());
}

TEST_F(LoopDeviceTest, IsRefusedForAFileSystemInAPartitionThatOnlyTheKernelKnows) {
  run_tool("addpart " + loop->path() + " 1 2048 65536");
  expect_refused("partitions that the kernel knows: " + loop->name() + "p1", {"L1", "", false});
  run_tool("mkfs.ext4 -q -F -E offset=1048576 " + loop->path() + " 32M");
  expect_refused(loop->name() + "p1 with ext4 filesystem", {"L1", "", false});
  EXPECT_NO_THROW(plan({"L1", "L1", false}));
  run_tool("delpart " + loop->path() + " 1");
}

TEST_F(LoopDeviceTest, IsNotWhereTheResultsOfItsReadBackGo) {
  const auto result =
      run_daqwriter({"verify", "--target", loop->path(), "--line-protocol", directory.path("backing")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.error_text.find("reads or writes"), std::string::npos) << result.error_text;
}

TEST_F(LoopDeviceTest, IsRefusedWhileAnotherProcessHoldsIt) {
  const int holder = open(loop->path().c_str(), O_RDONLY | O_EXCL | O_CLOEXEC);
  ASSERT_GE(holder, 0);
  expect_refused("cannot be claimed for exclusive use: " + errno_text(EBUSY));
  close(holder);
  EXPECT_NO_THROW(plan());
}

TEST_F(LoopDeviceTest, IsRefusedWhenItIsReadOnly) {
  const int on = 1;
  ASSERT_EQ(ioctl(loop->fd(), BLKROSET, &on), 0);
  expect_refused("read-only");
  const int off = 0;  // the kernel keeps it for whoever gets this loop device next
  ASSERT_EQ(ioctl(loop->fd(), BLKROSET, &off), 0);
}

// The facts found under the claim stay true: nobody can mount it between the look and the first write.
TEST_F(LoopDeviceTest, IsClaimedFromTheLookToTheEndOfTheRecord) {
  testing::make_mounts_private();
  run_tool("mkfs.ext4 -q -F " + loop->path());
  {
    const TargetPlan held = plan({"L1", "L1", false});
    fs::create_directory(directory.path("mnt"));
    EXPECT_NE(mount(loop->path().c_str(), directory.path("mnt").c_str(), "ext4", 0, nullptr), 0);
    EXPECT_EQ(errno, EBUSY);
    const Target target(held, 0, false);
    EXPECT_LT(open(loop->path().c_str(), O_RDONLY | O_EXCL | O_CLOEXEC), 0);
    EXPECT_EQ(errno, EBUSY);
  }
  EXPECT_NO_THROW(plan({"L1", "L1", false}));
}

// The path leads elsewhere after the look: what was examined is written, not what the path now names.
TEST_F(LoopDeviceTest, IsWrittenEvenWhenItsNodeWasReplaced) {
  const LoopDevice other(directory.path("other"), kBytes);
  const std::string node = directory.path("node");
  const auto make_node = [&](DeviceNumber number) {
    return mknod(node.c_str(), S_IFBLK | 0600, makedev(number.major, number.minor));
  };
  ASSERT_EQ(make_node(loop->number()), 0);
  const TargetPlan held = plan_target(node, {"L1", "", false}, paths);
  fs::remove(node);
  ASSERT_EQ(make_node(other.number()), 0);
  Memory page(4096, std::nullopt);
  std::memset(page.data(), 0x77, page.size());
  Target(held, 0, false).write_block(page.data(), page.size(), 0);
  EXPECT_EQ(testing::read_bytes(loop->path(), 0, 1)[0], std::byte{0x77});
  EXPECT_EQ(testing::read_bytes(other.path(), 0, 1)[0], std::byte{0});
}

// Only looked at: the facts alone refuse it, before it is opened.
TEST(RunningSystem, IsNeverAllowedWhateverIsSaid) {
  struct stat root {};
  ASSERT_EQ(stat("/", &root), 0);
  const DeviceNumber number{major(root.st_dev), minor(root.st_dev)};
  const std::string name = device_name(number, {});
  if (name.empty()) GTEST_SKIP() << "/ lies on no block device here";
  DeviceFacts facts = read_device_facts(number, {});
  facts.serial = "S1";
  facts.partition = false;
  EXPECT_TRUE(facts.system_drive || fs::exists("/sys/class/block/" + name + "/partition"));
  const std::string known = facts.wwn.value_or(*facts.serial);
  EXPECT_THROW(plan_target("/dev/" + name, {known, known, false}), Refusal);
}

TEST_F(LoopDeviceTest, ARawRecordIsWrittenFoundAndVerified) {
  MiniDaqOptions options = testing::small_record("unused");
  options.ring_bytes = 8 << 20;  // holds the whole record: a busy disk loses nothing
  MiniDaqOptions for_plan = options;
  for_plan.null_sink = true;
  MiniDaqPlan record = plan_minidaq(for_plan);
  record.applications.front().target = plan();
  const std::atomic<int> never{0};
  const MiniDaqResult result = run_minidaq(options, record, testing::aio_engine(), never);
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  const testing::Verified intact = testing::verify(directory, loop->path());
  EXPECT_EQ(intact.exit_code, 0);
  EXPECT_EQ(intact.count("present"), 3000u);

  // A shorter record over it, with losses: its trailer stands where only a walk finds it, and what remains of
  // the older record behind it does not count.
  options.ring_bytes = 5 * 5568;
  record.slots_per_link = 5;
  const EngineFactory slow = [](unsigned depth) {
    return std::make_unique<testing::MeddlingEngine>(testing::aio_engine()(depth), 20'000'000);
  };
  const MiniDaqResult lossy = run_minidaq(options, record, slow, never);
  ASSERT_LT(lossy.stored, 3000u);
  const testing::Verified again = testing::verify(directory, loop->path());
  EXPECT_EQ(again.exit_code, 0) << again.json.dump();
  EXPECT_EQ(again.count("present"), lossy.stored);
  EXPECT_EQ(again.json["lost_at_source"], 3000 - lossy.stored);
}

// The same id again, and a writer that dies: what the first record left must not vouch for the second.
TEST_F(LoopDeviceTest, TheTrailerOfAnEarlierRecordWithTheSameIdDoesNotCount) {
  MiniDaqOptions options = testing::small_record("unused");
  options.record_id = parse_record_id("00112233445566778899aabbccddeeff");
  MiniDaqOptions for_plan = options;
  for_plan.null_sink = true;
  MiniDaqPlan record = plan_minidaq(for_plan);
  record.applications.front().target = plan();
  const std::atomic<int> never{0};
  ASSERT_EQ(run_minidaq(options, record, testing::aio_engine(), never).status, RunStatus::complete);
  const std::uint64_t trailer = record.record_bytes - 4096;
  const auto old_trailer = testing::read_bytes(loop->path(), trailer, 4096);
  const pid_t child = fork();
  if (child == 0) {
    const EngineFactory dying = [](unsigned) -> std::unique_ptr<IoEngine> {
      auto engine = std::make_unique<testing::FakeEngine>();
      engine->on_submit = [](std::size_t) -> int { _exit(9); };
      return engine;
    };
    run_minidaq(options, record, dying, never);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 9);
  const testing::Verified cut_short = testing::verify(directory, loop->path());
  EXPECT_EQ(cut_short.exit_code, 3) << cut_short.json.dump(1);
  EXPECT_EQ(cut_short.json["complete_trailer"], false);
  EXPECT_EQ(testing::read_bytes(loop->path(), trailer, 4096), std::vector<std::byte>(4096));
  // Nor would it if it stood there still.
  testing::write_bytes(loop->path(), trailer, old_trailer);
  const testing::Verified restored = testing::verify(directory, loop->path());
  EXPECT_EQ(restored.exit_code, 3);
  EXPECT_EQ(restored.json["complete_trailer"], false);
  EXPECT_EQ(restored.count("present"), 0u);  // the earlier record's data are not taken for this one's
}

TEST_F(LoopDeviceTest, TwoApplicationsShareADeviceInPartsOfTheirOwn) {
  MiniDaqOptions options = testing::small_record("unused");
  options.applications = 2;
  options.ring_bytes = 8 << 20;
  MiniDaqOptions for_plan = options;
  for_plan.null_sink = true;
  MiniDaqPlan record = plan_minidaq(for_plan);
  const TargetPlan claimed = plan();
  for (std::size_t i = 0; i < 2; ++i) {
    record.applications[i].target = claimed;
    record.applications[i].base = i * (32 << 20);
  }
  const std::atomic<int> never{0};
  const MiniDaqResult result = run_minidaq(options, record, testing::aio_engine(), never);
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  EXPECT_EQ(testing::verify(directory, loop->path()).count("present"), 3000u);
  EXPECT_EQ(testing::verify(directory, loop->path(), 32 << 20).count("present"), 3000u);
}

}  // namespace
}  // namespace daqwriter
