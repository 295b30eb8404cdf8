// Promise: what the kernel says about a block device, read-only, from file trees that a test can replace.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace daqwriter {

struct SystemPaths {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string udev = "/run/udev/data";
};

struct DeviceNumber {
  unsigned major = 0;
  unsigned minor = 0;
  std::string text() const { return std::to_string(major) + ":" + std::to_string(minor); }
};

struct DeviceFacts {
  std::string name;  // "nvme0n1"
  bool partition = false;
  bool read_only = false;
  bool shared_serial = false;  // one of several NVMe namespaces: only its WWN tells it from the others
  bool system_drive = false;   // holds /, /boot, /usr or /var, directly or below RAID, LVM, encryption
  std::optional<std::string> serial;
  std::optional<std::string> wwn;
  std::vector<std::string> mounts;       // "/dev/nvme0n1p1 on /data", its partitions included
  std::vector<std::string> swaps;        // its partitions included
  std::vector<std::string> holders;      // "md0" or "loop3", its partitions' holders included
  std::optional<std::string> signature;  // what libblkid finds on it; not read by read_device_facts
};

DeviceFacts read_device_facts(DeviceNumber device, const SystemPaths& paths);

// Name, e.g. "vda1"; empty when the number belongs to no block device (tmpfs, overlay, network).
std::string device_name(DeviceNumber device, const SystemPaths& paths);
std::optional<int> device_numa_node(DeviceNumber device, const SystemPaths& paths);
std::optional<unsigned> device_logical_block_bytes(DeviceNumber device, const SystemPaths& paths);

// "ext4 filesystem", "linux_raid_member raid", "gpt partition table"; nothing when the device carries none.
// `fd` is open for buffered reading; `name` is for messages. Throws Refusal when it cannot be examined.
std::optional<std::string> probe_signature(int fd, const std::string& name);

}  // namespace daqwriter
