// Promise: what the kernel says about a block device and about who uses it, read-only, from file trees that a
// test can replace.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace daqwriter {

struct SystemPaths {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string udev = "/run/udev/data";
  std::string dev = "/dev";
  std::string etc = "/etc";
};

struct DeviceNumber {
  unsigned major = 0;
  unsigned minor = 0;
  std::string text() const { return std::to_string(major) + ":" + std::to_string(minor); }
};

DeviceNumber number_of(dev_t device);

// As the kernel knows it, whatever stands on the drive.
struct Partition {
  std::string name;
  std::uint64_t start_bytes = 0;
  std::uint64_t bytes = 0;
};

// The facts on its use hold for its partitions and its twins too.
struct DeviceFacts {
  std::string name;  // "nvme0n1"
  bool partition = false;
  bool read_only = false;
  bool shared_serial = false;      // one of several NVMe namespaces: only its WWN tells it from the others
  bool system_drive = false;       // holds /, /boot, /usr or /var, directly or below RAID, LVM, encryption
  std::vector<std::string> twins;  // nodes of other devices with the same data: a second path, a second loop
  std::set<std::string> numbers;  // "major:minor" of the device, its twins and the partitions of all of these
  std::optional<std::string> serial;
  std::optional<std::string> wwn;
  std::vector<std::string> mounts;  // "/dev/nvme0n1p1 on /data"
  std::vector<std::string> swaps;
  std::vector<std::string> holders;  // "md0" or "loop3"
  std::vector<std::string> writers;  // "qemu (PID 4711)": other processes that have it open for writing
  std::string unseen_writers;        // why there may be others; empty if there are none
  std::vector<Partition> partitions;
  // Found on the drive itself, by read_contents alone.
  std::optional<std::string> signature;
  std::optional<std::uint64_t> data_at;  // offset of data that no signature describes
  std::vector<std::string> sets;         // "nvme0n1p1 (linux_raid_member)": it belongs to other drives too
  std::vector<std::string> named;        // "UUID=... in /etc/fstab": this system wants it at its next start
};

DeviceFacts read_device_facts(DeviceNumber device, const SystemPaths& paths);

// Name, e.g. "vda1"; empty when the number belongs to no block device (tmpfs, overlay, network).
std::string device_name(DeviceNumber device, const SystemPaths& paths);
std::optional<int> device_numa_node(DeviceNumber device, const SystemPaths& paths);
std::optional<unsigned> device_logical_block_bytes(DeviceNumber device, const SystemPaths& paths);

// Signature, data_at, sets and named of `facts`. `fd` is open for buffered reading; `path` is for messages.
// Throws Refusal when it cannot be examined.
void read_contents(int fd, const std::string& path, const SystemPaths& paths, DeviceFacts& facts);

// "ext4 filesystem", "linux_raid_member raid", "gpt partition table"; nothing when the device carries none.
// The rest of a damaged partition table counts, and so do partitions that only the kernel knows. `fd` is
// open for buffered reading; `name` is for messages. Throws Refusal when it cannot be examined.
std::optional<std::string> probe_signature(int fd, const std::string& name,
                                           const std::vector<Partition>& partitions = {});

}  // namespace daqwriter
