// The interlock over a fake /sys, /proc and udev database: every reason to refuse, each by itself.
#include <linux/magic.h>

#include "base/status.h"
#include "support.h"
#include "target/target.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;
using testing::write_text;

constexpr DeviceNumber kDrive{259, 0};

class InterlockTest : public ::testing::Test {
 protected:
  InterlockTest() {
    disk("nvme0n1", kDrive.text());
    write_text(at("nvme0n1/device/serial"), "S123  \n");
    write_text(at("nvme0n1/wwid"), "eui.0011\n");
    disk("sda", "8:0");
    write_text(at("sda/sda1/partition"), "1\n");
    write_text(at("sda/sda1/dev"), "8:1\n");
    link("8:1", "sda/sda1");
    mounts("8:1 / / rw - ext4 /dev/sda1 rw");
    write_text(paths.proc + "/swaps", "Filename Type Size Used Priority\n");
  }

  std::string at(const std::string& relative) const { return paths.sys + "/devices/block/" + relative; }
  void link(const std::string& number, const std::string& relative) {
    fs::create_directories(paths.sys + "/dev/block");
    fs::create_directories(paths.sys + "/class/block");
    fs::create_directory_symlink(at(relative), paths.sys + "/dev/block/" + number);
    fs::create_directory_symlink(at(relative),
                                 paths.sys + "/class/block/" + fs::path(relative).filename().string());
  }
  void disk(const std::string& name, const std::string& number) {
    write_text(at(name + "/dev"), number + "\n");
    link(number, name);
  }
  void mounts(const std::string& more) {
    mountinfo += "36 35 " + more + "\n";
    write_text(paths.proc + "/self/mountinfo", mountinfo);
  }
  DeviceFacts facts() const { return read_device_facts(kDrive, paths); }
  std::string refusal(const DeviceFacts& f) const {
    return interlock_refusal(f, consent).value_or("(allowed)");
  }
  void expect_refusal(const DeviceFacts& f, const std::string& part) const {
    EXPECT_NE(refusal(f).find(part), std::string::npos) << refusal(f);
  }

  TempDir directory;
  SystemPaths paths{directory.path("sys"), directory.path("proc"), directory.path("udev")};
  std::string mountinfo;
  Consent consent{"S123", "", false};
};

TEST_F(InterlockTest, AllowsTheNamedIdleDriveBySerialOrWwn) {
  EXPECT_EQ(facts().serial, "S123");
  EXPECT_EQ(refusal(facts()), "(allowed)");
  consent.allow_serial = "eui.0011";
  EXPECT_EQ(refusal(facts()), "(allowed)");
}

TEST_F(InterlockTest, RefusesWithoutConsentAndForAnotherDrivesSerial) {
  consent.allow_serial = "";
  expect_refusal(facts(), "--allow-serial");
  consent.allow_serial = "S12";
  expect_refusal(facts(), "another drive");
}

TEST_F(InterlockTest, RefusesADriveThatCannotBeTold) {
  fs::remove(at("nvme0n1/device/serial"));
  fs::remove(at("nvme0n1/wwid"));
  expect_refusal(facts(), "neither serial nor WWN");
  consent.allow_serial = "(none)";
  expect_refusal(facts(), "neither serial nor WWN");
}

TEST_F(InterlockTest, FindsTheSerialWhereVirtioScsiAndUdevKeepIt) {
  fs::remove(at("nvme0n1/device/serial"));
  write_text(paths.udev + "/b259:0", "N:x\nE:ID_SERIAL_SHORT=U777\n");
  EXPECT_EQ(facts().serial, "U777");
  write_text(at("nvme0n1/device/vpd_pg80"), std::string("\0\x80\0\x06", 4) + "  P666");
  EXPECT_EQ(facts().serial, "P666");
  write_text(at("nvme0n1/serial"), "V888");
  EXPECT_EQ(facts().serial, "V888");
}

TEST_F(InterlockTest, RefusesAMountedDriveAndAMountedPartition) {
  mounts("259:0 / /data rw - xfs /dev/nvme0n1 rw");
  expect_refusal(facts(), "mounted: /dev/nvme0n1 on /data");
  write_text(at("nvme0n1/nvme0n1p2/partition"), "2\n");
  write_text(at("nvme0n1/nvme0n1p2/dev"), "259:2\n");
  mounts("259:2 / /more rw - xfs /dev/nvme0n1p2 rw");
  expect_refusal(facts(), "/dev/nvme0n1p2 on /more");
}

TEST_F(InterlockTest, SeesAMountWithAnAnonymousNumberByItsSource) {
  mounts("0:45 / /pool rw - btrfs /dev/nvme0n1 rw");
  expect_refusal(facts(), "/pool");
}

TEST_F(InterlockTest, RefusesSwapAndHolders) {
  write_text(paths.proc + "/swaps", "Filename Type\n/dev/nvme0n1\tpartition 1 0 -2\n");
  expect_refusal(facts(), "swap");
  write_text(paths.proc + "/swaps", "Filename Type\n");
  fs::create_directories(at("nvme0n1/holders/md0"));
  expect_refusal(facts(), "md0");
}

// Two paths to one drive without multipath: what uses the one uses the other.
TEST_F(InterlockTest, RefusesADriveWhoseOtherPathIsInUse) {
  consent.destroy_serial = "S123";
  disk("sdb", "8:16");
  write_text(at("sdb/wwid"), "eui.0011\n");
  EXPECT_EQ(facts().twins, std::vector<std::string>{"/dev/sdb"});
  EXPECT_EQ(refusal(facts()), "(allowed)");
  fs::create_directories(at("sdb/holders/dm-3"));
  expect_refusal(facts(), "in use by dm-3");
  fs::remove_all(at("sdb/holders"));
  write_text(at("sdb/sdb1/partition"), "1\n");
  write_text(at("sdb/sdb1/dev"), "8:17\n");
  link("8:17", "sdb/sdb1");
  mounts("8:17 / /data rw - xfs /dev/sdb1 rw");
  expect_refusal(facts(), "mounted: /dev/sdb1 on /data");
  EXPECT_EQ(facts().partitions.size(), 1u);
  mounts("8:17 / /usr rw - xfs /dev/sdb1 rw");
  expect_refusal(facts(), "running system");
}

// A set over drives, as multipath is: what uses a member uses the set, but for the set itself.
TEST_F(InterlockTest, RefusesASetWhoseMemberIsInUse) {
  disk("sdc", "8:32");
  disk("dm-0", "253:0");
  write_text(paths.udev + "/b253:0", "E:ID_SERIAL_SHORT=S5\n");
  consent = {"S5", "S5", false};
  fs::create_directories(at("dm-0/slaves"));
  fs::create_directory_symlink(at("sdc"), at("dm-0/slaves/sdc"));
  fs::create_directories(at("sdc/holders/dm-0"));
  const auto set = [&] { return read_device_facts({253, 0}, paths); };
  EXPECT_EQ(refusal(set()), "(allowed)");
  EXPECT_TRUE(set().twins.empty());  // the set's own claim is on them
  EXPECT_TRUE(set().numbers.contains("8:32"));
  fs::create_directories(at("sdc/holders/dm-1"));
  expect_refusal(set(), "in use by dm-1 ");
  fs::remove_all(at("sdc/holders/dm-1"));
  mounts("8:32 / /data rw - xfs /dev/sdc rw");
  expect_refusal(set(), "mounted: /dev/sdc on /data");
}

TEST_F(InterlockTest, RefusesADriveWithDataThatNoSignatureDescribes) {
  DeviceFacts f = facts();
  f.data_at = 4096;
  expect_refusal(
      f, "is not empty: it holds data without a known signature, as detectors write it (at offset 4096)");
  consent.destroy_serial = "S999";
  expect_refusal(f, "is not empty");
  consent.destroy_serial = "S123";
  EXPECT_EQ(refusal(f), "(allowed)");
}

TEST_F(InterlockTest, AnotherNamespaceOfTheControllerIsNoOtherPath) {
  disk("nvme0n2", "259:1");
  write_text(at("nvme0n2/device/serial"), "S123\n");
  write_text(at("nvme0n2/wwid"), "eui.0012\n");
  EXPECT_TRUE(facts().twins.empty());
  fs::remove(at("nvme0n2/wwid"));  // then only the serial is left to compare
  EXPECT_FALSE(facts().twins.empty());
}

TEST_F(InterlockTest, RefusesADriveThatAProcessHasOpenForWriting) {
  DeviceFacts f = facts();
  EXPECT_FALSE(f.unseen_writers.empty());  // an empty /proc shows nothing
  f.writers = {"qemu (PID 7)"};
  consent.destroy_serial = "S123";
  expect_refusal(f, "open for writing by qemu (PID 7)");
}

TEST_F(InterlockTest, RefusesAReadOnlyDrive) {
  write_text(at("nvme0n1/ro"), "1\n");
  expect_refusal(facts(), "read-only");
}

TEST_F(InterlockTest, ASerialDoesNotTellTheNamespacesOfOneControllerApart) {
  write_text(at("nvme0n1/device/nvme0n1/size"), "8\n");
  EXPECT_EQ(refusal(facts()), "(allowed)");
  write_text(at("nvme0n1/device/nvme0n2/size"), "8\n");
  expect_refusal(facts(), "give nvme0n1's WWN");
  consent.allow_serial = "eui.0011";
  EXPECT_EQ(refusal(facts()), "(allowed)");
  DeviceFacts f = facts();
  f.signature = "xfs filesystem";
  consent.destroy_serial = "S123";
  expect_refusal(f, "xfs");
}

TEST_F(InterlockTest, RefusesASignatureUnlessTheSameSerialIsToBeDestroyed) {
  DeviceFacts f = facts();
  f.signature = "linux_raid_member raid";
  expect_refusal(f, "linux_raid_member");
  consent.destroy_serial = "S999";
  expect_refusal(f, "linux_raid_member");
  consent.destroy_serial = "S123";
  EXPECT_EQ(refusal(f), "(allowed)");
}

TEST_F(InterlockTest, DestroyCoversNeitherASetOfDrivesNorWhatThisSystemWants) {
  consent.destroy_serial = "S123";
  DeviceFacts f = facts();
  f.sets = {"nvme0n1p1 (LVM2_member)"};
  expect_refusal(f, "belongs to a set of drives: nvme0n1p1 (LVM2_member); take it out");
  f = facts();
  f.named = {"UUID=u-1 in /etc/fstab"};
  expect_refusal(f, "named by this system: UUID=u-1 in /etc/fstab");
}

TEST_F(InterlockTest, DestroyDoesNotLiftWhatIsInUse) {
  consent.destroy_serial = "S123";
  mounts("259:0 / /data rw - xfs /dev/nvme0n1 rw");
  expect_refusal(facts(), "mounted");
}

TEST_F(InterlockTest, NeverAllowsTheSystemDriveDirectlyOrBelowRaid) {
  DeviceFacts system = read_device_facts({8, 0}, paths);
  system.serial = "S123";
  consent.destroy_serial = "S123";
  expect_refusal(system, "running system");

  disk("md0", "9:0");
  fs::create_directories(at("md0/slaves"));
  fs::create_directory_symlink(at("nvme0n1"), at("md0/slaves/nvme0n1"));
  EXPECT_FALSE(facts().system_drive);
  mounts("9:0 / /boot rw - ext4 /dev/md0 rw");
  expect_refusal(facts(), "running system");
}

TEST_F(InterlockTest, RefusesAPartition) {
  expect_refusal(read_device_facts({8, 1}, paths), "partition");
}

TEST_F(InterlockTest, RefusesWhenItCannotTellWhatIsMounted) {
  fs::remove(paths.proc + "/self/mountinfo");
  EXPECT_THROW(facts(), Refusal);
  EXPECT_THROW(read_device_facts({1, 1}, paths), Refusal);
}

TEST_F(InterlockTest, FindsTheNumaNodeAboveTheDriveAndBelowRaid) {
  EXPECT_EQ(device_numa_node(kDrive, paths), std::nullopt);
  write_text(paths.sys + "/devices/numa_node", "1\n");  // the PCIe function, two directories up
  EXPECT_EQ(device_numa_node(kDrive, paths), 1);
  disk("md0", "9:0");
  fs::create_directories(at("md0/slaves"));
  fs::create_directory_symlink(at("nvme0n1"), at("md0/slaves/nvme0n1"));
  EXPECT_EQ(device_numa_node({9, 0}, paths), 1);
  write_text(paths.sys + "/devices/numa_node", "-1\n");
  EXPECT_EQ(device_numa_node(kDrive, paths), std::nullopt);
}

// As a server shows it (a listing of /sys/block in a sosreport: the drive nvme10n1 hangs on nvme-subsys10,
// and its path nvme10c65n1 on the controller nvme6), with the second port of a dual-port drive on nvme7.
class MultipathTest : public InterlockTest {
 protected:
  MultipathTest() {
    const std::string subsystem = paths.sys + "/devices/virtual/nvme-subsystem/nvme-subsys10";
    write_text(subsystem + "/serial", "S10\n");
    write_text(subsystem + "/nvme10n1/dev", "259:7\n");
    write_text(subsystem + "/nvme10n1/wwid", "eui.0010\n");
    write_text(subsystem + "/nvme10n1/size", "8\n");
    fs::create_directory_symlink(subsystem, subsystem + "/nvme10n1/device");
    fs::create_directory_symlink(subsystem + "/nvme10n1", paths.sys + "/dev/block/259:7");
    fs::create_directory_symlink(subsystem + "/nvme10n1", paths.sys + "/class/block/nvme10n1");
    port(subsystem, "nvme6", "nvme10c65n1", "0000:b7:00.0");
    port(subsystem, "nvme7", "nvme10c66n1", "0000:b8:00.0");
    consent.allow_serial = "S10";
  }
  void port(const std::string& subsystem, const std::string& controller, const std::string& path,
            const std::string& function) const {
    const std::string at = paths.sys + "/devices/pci0000:ae/" + function + "/nvme/" + controller;
    write_text(paths.sys + "/devices/pci0000:ae/" + function + "/numa_node", "1\n");
    write_text(at + "/serial", "S10\n");
    write_text(at + "/" + path + "/hidden", "1\n");
    write_text(at + "/" + path + "/wwid", "eui.0010\n");
    write_text(at + "/" + path + "/size", "8\n");
    fs::create_directory_symlink(at, at + "/" + path + "/device");
    fs::create_directory_symlink(at, subsystem + "/" + controller);
    fs::create_directory_symlink(at + "/" + path, paths.sys + "/class/block/" + path);
  }
  static constexpr DeviceNumber kHead{259, 7};
};

TEST_F(MultipathTest, TwoPathsAreOneDrive) {
  const DeviceFacts f = read_device_facts(kHead, paths);
  EXPECT_EQ(f.serial, "S10");
  EXPECT_FALSE(f.shared_serial);
  EXPECT_TRUE(f.twins.empty());
  EXPECT_EQ(f.numbers, std::set<std::string>{"259:7"});
  EXPECT_EQ(refusal(f), "(allowed)");
  EXPECT_EQ(device_numa_node(kHead, paths), 1);
}

TEST_F(MultipathTest, ASecondNamespaceIsNoPath) {
  const std::string subsystem = paths.sys + "/devices/virtual/nvme-subsystem/nvme-subsys10";
  write_text(subsystem + "/nvme10n2/size", "8\n");
  expect_refusal(read_device_facts(kHead, paths), "give nvme10n1's WWN");
}

TEST_F(MultipathTest, TheDriveOfTheSystemIsRefusedAsEver) {
  mounts("259:7 / / rw - xfs /dev/nvme10n1 rw");
  expect_refusal(read_device_facts(kHead, paths), "running system");
}

// Native multipath off: each port is a block device of its own, over which dm-multipath may lie.
TEST_F(InterlockTest, RefusesOnePathOfADriveThatDmMultipathHolds) {
  disk("nvme1n1", "259:1");
  write_text(at("nvme1n1/device/serial"), "S123\n");
  write_text(at("nvme1n1/wwid"), "eui.0011\n");
  EXPECT_EQ(facts().twins, std::vector<std::string>{"/dev/nvme1n1"});
  fs::create_directories(at("nvme1n1/holders/dm-0"));
  expect_refusal(facts(), "in use by dm-0");
}

TEST(MemoryBacked, RefusesWhatSaysNothingAboutADrive) {
  EXPECT_TRUE(memory_backed_refusal(TMPFS_MAGIC, ""));
  EXPECT_TRUE(memory_backed_refusal(RAMFS_MAGIC, ""));
  EXPECT_TRUE(memory_backed_refusal(OVERLAYFS_SUPER_MAGIC, ""));
  EXPECT_TRUE(memory_backed_refusal(EXT4_SUPER_MAGIC, "zram0"));
  EXPECT_FALSE(memory_backed_refusal(EXT4_SUPER_MAGIC, "nvme0n1"));
}

}  // namespace
}  // namespace daqwriter
