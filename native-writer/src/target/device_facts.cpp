#include "target/device_facts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/file_identity.h"
#include "base/status.h"
#include "base/units.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

fs::path sys_directory(DeviceNumber device, const SystemPaths& paths) {
  std::error_code missing;
  return fs::canonical(paths.sys + "/dev/block/" + device.text(), missing);
}

std::string node_of(const fs::path& directory, const SystemPaths& paths) {
  return paths.dev + "/" + directory.filename().string();
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

DeviceNumber device_number(const fs::path& directory) {
  DeviceNumber number;
  char colon = 0;
  std::istringstream(read_text(directory / "dev").value_or("")) >> number.major >> colon >> number.minor;
  return number;
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

bool holds_the_system(const Strings& names, const std::vector<Mount>& mounts, const SystemPaths& paths) {
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
  return std::any_of(names.begin(), names.end(), [&](const auto& name) { return disks.contains(name); });
}

// Not by the name in sysfs, which is text: nodes have other names, or none any more.
std::optional<Backing> backing_of(const fs::path& directory, const SystemPaths& paths) {
  if (!fs::exists(directory / "loop/backing_file")) return std::nullopt;  // no loop device, or an idle one
  const std::string node = node_of(directory, paths);
  const OpenFile fd = open(node.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  struct stat status {};
  const bool itself =
      fd >= 0 && fstat(fd, &status) == 0 && number_of(status.st_rdev).text() == read_text(directory / "dev");
  const std::optional<Backing> backing = itself ? loop_backing(fd) : std::nullopt;
  const int error = errno;
  if (backing || (itself && error == ENXIO)) return backing;  // ENXIO: it was detached meanwhile
  throw Refusal(node + ": cannot tell what this loop device lies over: " +
                (fd >= 0 && !itself ? "it is another device" : errno_text(error)) +
                "; detach it (losetup -d) or run where its node can be opened");
}

// A device and what else shows the same data.
struct Disk {
  fs::path directory;
  std::optional<std::string> serial;
  std::optional<std::string> wwn;
  std::optional<Backing> backing;
};

Disk read_disk(const fs::path& directory, const SystemPaths& paths) {
  const DeviceNumber number = device_number(directory);
  return {directory,
          first_of({read_text(directory / "device/serial"), read_text(directory / "serial"),
                    scsi_serial(directory), udev_property(number, paths, "ID_SERIAL_SHORT")}),
          first_of({read_text(directory / "wwid"), read_text(directory / "device/wwid"),
                    udev_property(number, paths, "ID_WWN")}),
          backing_of(directory, paths)};
}

// All whole drives that have a node.
std::vector<Disk> read_disks(const SystemPaths& paths) {
  std::vector<Disk> disks;
  for (const std::string& name : entries(fs::path(paths.sys) / "class/block")) {
    std::error_code missing;
    const fs::path directory = fs::canonical(fs::path(paths.sys) / "class/block" / name, missing);
    const bool whole = !directory.empty() && !fs::exists(directory / "partition");
    if (whole && read_text(directory / "hidden") != "1") disks.push_back(read_disk(directory, paths));
  }
  return disks;
}

// Two paths to one drive, or two loop devices over one file.
bool same_data(const Disk& one, const Disk& other) {
  if (one.backing && other.backing) {
    const bool nodes = one.backing->node != 0;
    if (nodes ? one.backing->node == other.backing->node : one.backing->file == other.backing->file)
      return true;
  }
  if (one.wwn && other.wwn) return one.wwn == other.wwn;
  return one.serial && one.serial == other.serial;
}

// One of the devices that show the data of the device in question.
struct Same {
  Disk disk;
  bool below;   // the device itself or one of the layers that it lies over, and no other way to its data
  bool member;  // of a RAID, LVM or encryption, whose claim it has; the data stands elsewhere on it
};

// Through any number of layers: a second path, a second loop over its file, the device below a loop, the
// members of a set, and what is below and beside those. The device itself is the first.
std::vector<Same> all_with_the_data_of(const Disk& device, const std::vector<Disk>& all,
                                       const SystemPaths& paths) {
  std::vector<Same> found = {{device, true, false}};
  const auto add = [&](const Disk& other, bool below, bool member) {
    for (Same& known : found) {
      if (known.disk.directory != other.directory) continue;
      known.below |= below;
      return;
    }
    found.push_back({other, below, member});
  };
  const auto add_below = [&](const fs::path& link, const Same& above, bool member) {
    std::error_code missing;
    const fs::path directory = fs::canonical(link, missing);
    if (!directory.empty()) add(read_disk(directory, paths), above.below, member);
  };
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Same each = found[i];
    for (const Disk& other : all) {
      if (same_data(each.disk, other)) add(other, false, each.member);
    }
    if (each.disk.backing && each.disk.backing->node != 0)
      add_below(paths.sys + "/dev/block/" + number_of(each.disk.backing->node).text(), each, each.member);
    for (const std::string& slave : entries(each.disk.directory / "slaves"))
      add_below(each.disk.directory / "slaves" / slave, each, true);
  }
  return found;
}

struct Observed {
  const SystemPaths& paths;
  std::vector<Mount> mounts;
  std::vector<Disk> disks;
};

// Adds what uses one device or partition, but for the layers of the device itself.
void add_uses(const fs::path& part, const Observed& observed, const Strings& layers, DeviceFacts& facts) {
  const auto add_holder = [&](const std::string& name) {
    if (std::find(layers.begin(), layers.end(), name) == layers.end()) facts.holders.push_back(name);
  };
  const std::string node = node_of(part, {});
  const auto number = read_text(part / "dev");
  for (const Mount& mount : observed.mounts) {
    if (mount.device == number || mount.source == node) facts.mounts.push_back(node + " on " + mount.point);
  }
  std::ifstream swaps(observed.paths.proc + "/swaps");
  for (std::string line; std::getline(swaps, line);) {
    if (line.starts_with(node + " ") || line.starts_with(node + "\t")) facts.swaps.push_back(node);
  }
  for (const std::string& holder : entries(part / "holders")) add_holder(holder);
  // A loop device over a drive neither claims it nor is among its holders.
  for (const Disk& loop : observed.disks) {
    if (loop.backing && loop.backing->node != 0 && number_of(loop.backing->node).text() == number)
      add_holder(loop.directory.filename());
  }
}

std::uint64_t read_sectors(const fs::path& file) {
  constexpr std::uint64_t kSector = 512;  // sysfs counts in these, whatever the drive's own are
  return parse_number<std::uint64_t>(read_text(file).value_or("")).value_or(0) * kSector;
}

// By what is open, not by its name: as virtual machines and copying tools use a drive, without claiming it.
class OpenFiles {
 public:
  OpenFiles(std::set<std::string> devices, std::optional<FileIdentity> file)
      : devices_(std::move(devices)), file_(std::move(file)) {}

  // Looks at all processes but this one.
  void look(const SystemPaths& paths, DeviceFacts& facts) {
    for (const std::string& pid : entries(paths.proc)) {
      const bool process = std::all_of(pid.begin(), pid.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (process && pid != std::to_string(getpid()) && writes(fs::path(paths.proc) / pid))
        facts.writers.push_back(read_text(fs::path(paths.proc) / pid / "comm").value_or("?") + " (PID " +
                                pid + ")");
    }
    if (hidden_ > 0)
      facts.unseen_writers =
          "the open files of " + std::to_string(hidden_) + " processes are not ours to see";
    if (!fs::exists(paths.proc + "/1")) facts.unseen_writers = "processes of other users are hidden";
    constexpr ino_t kFirstNamespace = 0xEFFFFFFC;  // the kernel's number of the one that sees all processes
    struct stat status {};
    if (stat((paths.proc + "/self/ns/pid").c_str(), &status) == 0 && status.st_ino != kFirstNamespace)
      facts.unseen_writers = "processes outside this PID namespace (container) cannot be seen";
  }

 private:
  bool writes(const fs::path& process) {
    std::error_code error;
    fs::directory_iterator descriptors(process / "fd", error);
    if (error == std::errc::permission_denied) ++hidden_;
    for (; !error && descriptors != fs::directory_iterator(); descriptors.increment(error)) {
      const std::string number = descriptors->path().filename();
      // The flags first: asking a dead network server about a file would take for ever.
      if (for_writing(process / "fdinfo" / number) && is_wanted(descriptors->path())) return true;
    }
    return maps(process);
  }

  // A mapping outlives its descriptor.
  bool maps(const fs::path& process) {
    std::ifstream in(process / "maps");
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::string range;
      std::string access;
      if (!(words >> range >> access) || access.size() < 4 || access[1] != 'w' || access[3] != 's') continue;
      // The kernel names the link without the zeros that stand before its numbers here.
      const auto number = [](const std::string& text) { return text.substr(text.find_first_not_of('0')); };
      const std::size_t dash = range.find('-');
      if (is_wanted(process / "map_files" /
                    (number(range.substr(0, dash)) + "-" + number(range.substr(dash + 1)))))
        return true;
    }
    return false;
  }

  static bool for_writing(const fs::path& information) {
    std::ifstream in(information);
    for (std::string word; in >> word;) {
      if (word != "flags:") continue;
      unsigned flags = 0;
      in >> std::oct >> flags;
      return (flags & O_ACCMODE) == O_WRONLY || (flags & O_ACCMODE) == O_RDWR;
    }
    return false;
  }

  bool is_wanted(const fs::path& descriptor) const {
    struct statx status {};
    if (statx(AT_FDCWD, descriptor.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &status) != 0)
      return false;
    if (S_ISBLK(status.stx_mode))
      return devices_.contains(DeviceNumber{status.stx_rdev_major, status.stx_rdev_minor}.text());
    return file_ == FileIdentity{makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino, ""};
  }

  std::set<std::string> devices_;
  std::optional<FileIdentity> file_;
  std::size_t hidden_ = 0;
};

}  // namespace

DeviceNumber number_of(dev_t device) {
  return {major(device), minor(device)};
}

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
  const Disk itself = read_disk(disk, paths);
  facts.serial = itself.serial;
  facts.wwn = itself.wwn;
  const Observed observed{paths, read_mounts(paths), read_disks(paths)};
  Strings names, layers;
  const std::vector<Same> same = all_with_the_data_of(itself, observed.disks, paths);
  for (const Same& each : same) {
    names.push_back(each.disk.directory.filename());
    if (each.below) layers.push_back(names.back());
    if (names.size() > 1 && !each.member) facts.twins.push_back(node_of(each.disk.directory, paths));
  }
  for (const Same& each : same) {
    for (const fs::path& part : with_partitions(each.disk.directory)) {
      add_uses(part, observed, layers, facts);
      facts.numbers.insert(read_text(part / "dev").value_or(""));
      if (part != each.disk.directory && !each.member)
        facts.partitions.push_back(
            {part.filename(), read_sectors(part / "start"), read_sectors(part / "size")});
    }
  }
  facts.system_drive = holds_the_system(names, observed.mounts, paths);
  OpenFiles(facts.numbers, itself.backing ? std::optional(itself.backing->file) : std::nullopt)
      .look(paths, facts);
  return facts;
}

std::optional<int> device_numa_node(DeviceNumber device, const SystemPaths& paths) {
  fs::path directory = sys_directory(device, paths);
  const Strings slaves = directory.empty() ? Strings{} : entries(directory / "slaves");
  // A RAID sits where its first member sits: good enough to choose a CPU by.
  if (!slaves.empty()) directory = fs::canonical(directory / "slaves" / slaves.front());
  // A drive of native NVMe multipath hangs on a virtual subsystem, which links to its controllers.
  for (const std::string& name : entries(directory / "device")) {
    if (name.starts_with("nvme") && fs::is_symlink(directory / "device" / name)) {
      directory = fs::canonical(directory / "device" / name);
      break;
    }
  }
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

}  // namespace daqwriter
