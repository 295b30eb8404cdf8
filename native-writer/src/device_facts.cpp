#include "device_facts.h"

#include <blkid/blkid.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "status.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

fs::path sys_directory(DeviceNumber device, const SystemPaths& paths) {
  std::error_code missing;
  return fs::canonical(paths.sys + "/dev/block/" + device.text(), missing);
}

std::optional<std::string> read_text(const fs::path& file) {
  std::ifstream in(file);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto blank = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\0'; };
  while (!text.empty() && blank(text.back())) text.pop_back();
  while (!text.empty() && blank(text.front())) text.erase(0, 1);
  if (text.empty()) return std::nullopt;
  return text;
}

Strings entries(const fs::path& directory) {
  Strings names;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(directory, missing))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// The device's own directory and those of its partitions.
std::vector<fs::path> with_partitions(const fs::path& disk) {
  std::vector<fs::path> all = {disk};
  for (const std::string& name : entries(disk)) {
    if (fs::exists(disk / name / "partition")) all.push_back(disk / name);
  }
  return all;
}

// NVMe: the namespaces of a controller share its serial, and lie beside each other in its directory.
std::size_t namespaces_beside(const fs::path& disk) {
  const fs::path controller = disk / "device";
  const Strings names = entries(controller);
  return static_cast<std::size_t>(std::count_if(names.begin(), names.end(), [&](const std::string& name) {
    return name.starts_with("nvme") && fs::exists(controller / name / "size");
  }));
}

// The page 0x80 of a SCSI device: four bytes of header, then the serial.
std::optional<std::string> scsi_serial(const fs::path& disk) {
  const auto page = read_text(disk / "device/vpd_pg80");
  if (!page || page->size() < 4) return std::nullopt;
  const std::size_t start = page->find_first_not_of(std::string_view(" \0\t", 3), page->find('\x80') + 3);
  if (start == std::string::npos) return std::nullopt;
  return page->substr(start);
}

std::optional<std::string> udev_property(DeviceNumber device, const SystemPaths& paths,
                                         const std::string& key) {
  std::ifstream in(paths.udev + "/b" + device.text());
  const std::string wanted = "E:" + key + "=";
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(wanted) && line.size() > wanted.size()) return line.substr(wanted.size());
  }
  return std::nullopt;
}

std::optional<std::string> first_of(std::initializer_list<std::optional<std::string>> choices) {
  for (const auto& choice : choices) {
    if (choice) return choice;
  }
  return std::nullopt;
}

struct Mount {
  std::string device;  // major:minor
  std::string point;
  std::string source;
};

std::vector<Mount> read_mounts(const SystemPaths& paths) {
  std::vector<Mount> mounts;
  std::ifstream in(paths.proc + "/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    Mount mount;
    std::string skipped;
    std::istringstream fields(line);
    fields >> skipped >> skipped >> mount.device >> skipped >> mount.point;
    while (fields >> skipped && skipped != "-") {
    }
    fields >> skipped >> mount.source;
    mounts.push_back(mount);
  }
  if (mounts.empty())
    throw Refusal(paths.proc + "/self/mountinfo cannot be read: cannot tell what is mounted");
  return mounts;
}

// Whole disks below a device: a partition's parent, the members of RAID, LVM or encryption.
void collect_disks(const fs::path& directory, std::set<std::string>& names) {
  if (directory.empty() || !names.insert(directory.filename()).second) return;
  if (fs::exists(directory / "partition")) collect_disks(directory.parent_path(), names);
  for (const std::string& slave : entries(directory / "slaves")) {
    std::error_code missing;
    collect_disks(fs::canonical(directory / "slaves" / slave, missing), names);
  }
}

bool holds_the_system(const std::string& name, const std::vector<Mount>& mounts, const SystemPaths& paths) {
  static constexpr std::array<std::string_view, 6> points = {"/",    "/boot", "/boot/efi",
                                                             "/efi", "/usr",  "/var"};
  std::set<std::string> disks;
  for (const Mount& mount : mounts) {
    if (std::find(points.begin(), points.end(), mount.point) == points.end()) continue;
    std::error_code missing;
    collect_disks(fs::canonical(paths.sys + "/dev/block/" + mount.device, missing), disks);
    // File systems over several devices (btrfs) have an anonymous number: go by the source's name as well.
    const fs::path by_name = paths.sys + "/class/block/" + fs::path(mount.source).filename().string();
    if (mount.source.starts_with("/dev/")) collect_disks(fs::canonical(by_name, missing), disks);
  }
  return disks.contains(name);
}

}  // namespace

std::string device_name(DeviceNumber device, const SystemPaths& paths) {
  return sys_directory(device, paths).filename();
}

DeviceFacts read_device_facts(DeviceNumber device, const SystemPaths& paths) {
  const fs::path disk = sys_directory(device, paths);
  if (disk.empty())
    throw Refusal("block device " + device.text() + " is not known to " + paths.sys + "/dev/block");
  DeviceFacts facts;
  facts.name = disk.filename();
  facts.partition = fs::exists(disk / "partition");
  facts.read_only = read_text(disk / "ro") == "1";
  facts.shared_serial = namespaces_beside(disk) > 1;
  facts.serial = first_of({read_text(disk / "device/serial"), read_text(disk / "serial"), scsi_serial(disk),
                           udev_property(device, paths, "ID_SERIAL_SHORT")});
  facts.wwn = first_of(
      {read_text(disk / "wwid"), read_text(disk / "device/wwid"), udev_property(device, paths, "ID_WWN")});
  const std::vector<Mount> mounts = read_mounts(paths);
  facts.system_drive = holds_the_system(facts.name, mounts, paths);
  for (const fs::path& part : with_partitions(disk)) {
    const std::string node = "/dev/" + part.filename().string();
    const auto number = read_text(part / "dev");
    for (const Mount& mount : mounts) {
      if (mount.device == number || mount.source == node) facts.mounts.push_back(node + " on " + mount.point);
    }
    std::ifstream swaps(paths.proc + "/swaps");
    for (std::string line; std::getline(swaps, line);) {
      if (line.starts_with(node + " ") || line.starts_with(node + "\t")) facts.swaps.push_back(node);
    }
    for (const std::string& holder : entries(part / "holders")) facts.holders.push_back(holder);
    // A loop device over a drive neither claims it nor is among its holders.
    for (const std::string& name : entries(paths.sys + "/class/block")) {
      if (read_text(fs::path(paths.sys) / "class/block" / name / "loop/backing_file") == node)
        facts.holders.push_back(name);
    }
  }
  return facts;
}

std::optional<int> device_numa_node(DeviceNumber device, const SystemPaths& paths) {
  fs::path directory = sys_directory(device, paths);
  const Strings slaves = directory.empty() ? Strings{} : entries(directory / "slaves");
  // A RAID sits where its first member sits: good enough to choose a CPU by.
  if (!slaves.empty()) directory = fs::canonical(directory / "slaves" / slaves.front());
  for (; directory.has_relative_path(); directory = directory.parent_path()) {
    const auto text = read_text(directory / "numa_node");
    if (text) return *text == "-1" ? std::nullopt : std::optional<int>(std::stoi(*text));
  }
  return std::nullopt;
}

std::optional<unsigned> device_logical_block_bytes(DeviceNumber device, const SystemPaths& paths) {
  fs::path directory = sys_directory(device, paths);
  if (directory.empty()) return std::nullopt;
  if (fs::exists(directory / "partition")) directory = directory.parent_path();
  const auto text = read_text(directory / "queue/logical_block_size");
  return text ? std::optional<unsigned>(static_cast<unsigned>(std::stoul(*text))) : std::nullopt;
}

std::optional<std::string> probe_signature(int fd, const std::string& name) {
  const std::unique_ptr<blkid_struct_probe, decltype(&blkid_free_probe)> probe(blkid_new_probe(),
                                                                               &blkid_free_probe);
  if (!probe || blkid_probe_set_device(probe.get(), fd, 0, 0) != 0)
    throw Refusal(name + ": cannot be examined for signatures");
  blkid_probe_enable_superblocks(probe.get(), 1);
  blkid_probe_set_superblocks_flags(probe.get(), BLKID_SUBLKS_TYPE | BLKID_SUBLKS_USAGE);
  blkid_probe_enable_partitions(probe.get(), 1);
  const int found = blkid_do_safeprobe(probe.get());
  if (found == 1) return std::nullopt;
  if (found == -2) return "several contradicting signatures";
  if (found < 0) throw Refusal(name + ": the examination for signatures failed");
  const auto value = [&](const char* key) {
    const char* text = nullptr;
    return blkid_probe_lookup_value(probe.get(), key, &text, nullptr) == 0 ? std::string(text)
                                                                           : std::string();
  };
  if (!value("TYPE").empty()) return value("TYPE") + " " + value("USAGE");
  return value("PTTYPE") + " partition table";
}

}  // namespace daqwriter
