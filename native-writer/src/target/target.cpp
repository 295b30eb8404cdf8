#include "target/target.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <thread>
#include <utility>

#include "base/file_identity.h"
#include "base/status.h"
#include "format/record_format.h"

namespace daqwriter {
namespace {

constexpr long kXfsMagic = 0x58465342;
constexpr long kZfsMagic = 0x2fc12fc1;

std::string filesystem_name(long magic) {
  static constexpr std::array<std::pair<long, std::string_view>, 9> names = {
      {{EXT4_SUPER_MAGIC, "ext4"},
       {kXfsMagic, "xfs"},
       {BTRFS_SUPER_MAGIC, "btrfs"},
       {F2FS_SUPER_MAGIC, "f2fs"},
       {kZfsMagic, "zfs"},
       {NFS_SUPER_MAGIC, "nfs"},
       {TMPFS_MAGIC, "tmpfs"},
       {RAMFS_MAGIC, "ramfs"},
       {OVERLAYFS_SUPER_MAGIC, "overlay"}}};
  for (const auto& [known, name] : names) {
    if (known == magic) return std::string(name);
  }
  return "unknown (magic " + std::to_string(magic) + ")";
}

// Somebody uses the device, perhaps for a moment only.
class InUse : public Refusal {
  using Refusal::Refusal;
};

Descriptor owned(int fd) {
  return std::make_shared<const OpenFile>(fd);
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename();
}

Descriptor claim_node(const std::string& path, int access) {
  const int fd = open(path.c_str(), access | O_EXCL | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) return owned(fd);
  const std::string text = path + ": cannot be claimed for exclusive use: " + errno_text(errno);
  if (errno == EBUSY) throw InUse(text + "; a mount, swap, RAID or another process holds it");
  throw Refusal(text);
}

Descriptor claim_device(const std::string& path, DeviceNumber device) {
  Descriptor claim = claim_node(path, O_RDWR);
  struct stat status {};
  if (fstat(*claim, &status) != 0 || !S_ISBLK(status.st_mode) ||
      number_of(status.st_rdev).text() != device.text()) {
    throw Refusal(path + ": became another device while it was being examined");
  }
  return claim;
}

// Whoever uses a twin uses the device: its claims are held as long as the device's own.
std::vector<Descriptor> claim_twins(const std::vector<std::string>& twins) {
  std::vector<Descriptor> claims;
  for (const std::string& twin : twins) {
    try {
      claims.push_back(claim_node(twin, O_RDONLY));
    } catch (const InUse& in_use) {
      throw InUse("the same data by another way: " + std::string(in_use.what()));
    }
  }
  return claims;
}

TargetPlan examine_device(const std::string& path, DeviceNumber device, const Consent& consent,
                          const SystemPaths& paths) {
  const auto require_allowed = [&](const DeviceFacts& facts) {
    const auto reason = interlock_refusal(facts, consent);
    if (!reason) return;
    const std::string text = path + ": refused: " + *reason;
    if (!facts.writers.empty()) throw InUse(text);
    throw Refusal(text);
  };
  // A device that is refused for what the kernel says of it is not even opened.
  DeviceFacts facts = read_device_facts(device, paths);
  require_allowed(facts);
  const Descriptor claim = claim_device(path, device);
  const std::vector<Descriptor> twins = claim_twins(facts.twins);
  facts = read_device_facts(device, paths);  // true from now on
  read_contents(*claim, path, paths, facts);
  require_allowed(facts);
  std::uint64_t bytes = 0;
  int sector = 0;
  if (ioctl(*claim, BLKGETSIZE64, &bytes) != 0 || ioctl(*claim, BLKSSZGET, &sector) != 0)
    throw Refusal(path + ": cannot read its size: " + errno_text(errno));
  return {TargetKind::raw_device,
          path,
          "",
          bytes,
          std::max<std::uint32_t>(kBlockAlignment, static_cast<unsigned>(sector)),
          device,
          device_numa_node(device, paths),
          claim,
          nullptr,
          facts.unseen_writers,
          facts.numbers,
          twins};
}

TargetPlan plan_device(const std::string& path, DeviceNumber device, const Consent& consent,
                       const SystemPaths& paths) {
  constexpr auto kPause = std::chrono::milliseconds(250);
  for (int looks_left = 4; looks_left > 0; --looks_left) {
    try {
      return examine_device(path, device, consent, paths);
    } catch (const InUse&) {
      std::this_thread::sleep_for(kPause);
    }
  }
  return examine_device(path, device, consent, paths);
}

// The kernel's own word on what direct I/O to this file needs (Linux 6.1). Without it an ext4 that journals
// its data would accept O_DIRECT and write through the page cache.
void require_alignment(int fd, const TargetPlan& plan) {
#ifdef STATX_DIOALIGN
  struct statx status {};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) != 0 || !(status.stx_mask & STATX_DIOALIGN))
    return;
  if (status.stx_dio_offset_align == 0) {
    throw Refusal("--target " + plan.path + ": the file system (" + plan.filesystem +
                  ") says that it does not support direct I/O (O_DIRECT) here; use another one");
  }
  if (status.stx_dio_offset_align > plan.alignment || status.stx_dio_mem_align > kBlockAlignment) {
    throw Refusal("--target " + plan.path + ": direct I/O needs offsets aligned to " +
                  std::to_string(status.stx_dio_offset_align) + " B and memory to " +
                  std::to_string(status.stx_dio_mem_align) + " B; daqwriter aligns to " +
                  std::to_string(plan.alignment) + " B and " + std::to_string(kBlockAlignment) + " B");
  }
#endif
}

Refusal no_direct_io(const TargetPlan& plan) {
  return Refusal("--target " + plan.path + ": the file system (" + plan.filesystem +
                 ") does not support direct I/O (O_DIRECT); use another one");
}

// Tries direct I/O on a file without a name, so that a dry run finds out as well and nothing is left behind.
void probe_direct_io(const TargetPlan& plan) {
  constexpr mode_t kMode = 0600;
  const OpenFile fd = openat(*plan.directory, ".", O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, kMode);
  if (fd < 0) {
    const int error = errno;
    if (error == EOPNOTSUPP || error == EISDIR || error == ENOENT)
      return;  // no nameless files: the record will tell
    if (error == EINVAL) throw no_direct_io(plan);
    throw Refusal("--target " + plan.path + ": cannot be created: " + errno_text(error));
  }
  require_alignment(fd, plan);
}

TargetPlan plan_file(const std::string& path, const Consent& consent, const SystemPaths& paths) {
  const std::filesystem::path parent = std::filesystem::absolute(path).parent_path();
  const Descriptor directory = owned(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (*directory < 0) {
    const int error = errno;
    const std::string text = "--target " + path + ": " + parent.string();
    if (error == ENOTDIR) throw Refusal(text + " is not a directory");
    throw Refusal(text + ": " + errno_text(error) + (error == ENOENT ? "; create the directory first" : ""));
  }
  // It describes what is open: between two looks a path can lead to two places.
  struct stat status {};
  struct statfs system {};
  if (fstat(*directory, &status) != 0 || fstatfs(*directory, &system) != 0)
    throw Refusal("--target " + path + ": " + parent.string() + ": " + errno_text(errno));
  const DeviceNumber device = number_of(status.st_dev);
  const auto reason = memory_backed_refusal(static_cast<long>(system.f_type), device_name(device, paths));
  if (reason && !consent.memory_target) {
    throw Refusal("--target " + path + ": " + *reason + "; use a directory on the drive under test");
  }
  const std::uint64_t free_bytes =
      static_cast<std::uint64_t>(system.f_bavail) * static_cast<std::uint64_t>(system.f_bsize);
  const unsigned logical = device_logical_block_bytes(device, paths).value_or(kBlockAlignment);
  TargetPlan plan{TargetKind::scratch_file,
                  path,
                  filesystem_name(static_cast<long>(system.f_type)),
                  free_bytes,
                  std::max<std::uint32_t>(kBlockAlignment, logical),
                  device,
                  device_numa_node(device, paths),
                  nullptr,
                  directory,
                  "",
                  {},
                  {}};
  probe_direct_io(plan);
  return plan;
}

Failure answered(const std::string& what, int error_number) {
  return Failure(what + ": " + errno_text(error_number), error_number);
}

}  // namespace

std::optional<std::string> memory_backed_refusal(long filesystem_magic, const std::string& device_name) {
  if (filesystem_magic == TMPFS_MAGIC || filesystem_magic == RAMFS_MAGIC) {
    return "memory-backed file system (" + filesystem_name(filesystem_magic) +
           "): its speed says nothing about a drive";
  }
  if (filesystem_magic == OVERLAYFS_SUPER_MAGIC)
    return "overlay file system: which drive lies below it cannot be known";
  if (device_name.starts_with("zram") || device_name.starts_with("ram")) {
    return "file system on the memory-backed device " + device_name +
           ": its speed says nothing about a drive";
  }
  return std::nullopt;
}

std::string target_kind_name(TargetKind kind) {
  static constexpr std::array kNames = {"scratch-file", "raw-device", "null"};
  return kNames[static_cast<std::size_t>(kind)];
}

TargetPlan plan_target(const std::string& path, const Consent& consent, const SystemPaths& paths) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) throw Refusal("--target " + path + ": " + errno_text(errno));
    struct stat link {};
    if (lstat(path.c_str(), &link) == 0)
      throw Refusal("--target " + path + ": a dangling symbolic link; name the file itself");
    return plan_file(path, consent, paths);
  }
  if (S_ISBLK(status.st_mode)) return plan_device(path, number_of(status.st_rdev), consent, paths);
  if (S_ISREG(status.st_mode)) {
    throw Refusal("--target " + path +
                  ": the file exists and is never overwritten; name a new file or remove this one");
  }
  throw Refusal("--target " + path + ": neither a new file nor a block device");
}

TargetPlan make_directory(const TargetPlan& plan) {
  constexpr mode_t kMode = 0755;
  const std::string name = file_name(plan.path);
  TargetPlan made = plan;
  const bool good = mkdirat(*plan.directory, name.c_str(), kMode) == 0;
  if (good) made.directory = owned(openat(*plan.directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!good || *made.directory < 0 || fsync(*plan.directory) != 0)
    throw Refusal("--target " + plan.path + ": cannot be created: " + errno_text(errno));
  return made;
}

Target::Target(const TargetPlan& plan, std::uint64_t record_bytes, bool preallocate) : plan_(plan) {
  try {
    if (plan_.kind == TargetKind::scratch_file) open_scratch_file(record_bytes, preallocate);
    if (plan_.kind == TargetKind::raw_device) open_device();
  } catch (...) {
    close();  // a constructor that throws has no destructor
    throw;
  }
}

std::shared_ptr<Target> open_target(const TargetPlan& plan, std::uint64_t record_bytes, bool preallocate,
                                    const CallLimits& limits) {
  return limits.answer<std::shared_ptr<Target>>(plan.path + ": making or preallocating it", [=] {
    return std::make_shared<Target>(plan, record_bytes, preallocate);
  });
}

void Target::close() {
  if (fd_ < 0 || plan_.claim) return;
  if (created_ && !keep_) remove_file();
  ::close(fd_);
  fd_ = -1;
}

// While it is open: its number cannot be given to another file.
void Target::remove_file() {
  const std::string name = file_name(plan_.path);
  if (leads_to(*plan_.directory, name, fd_)) {
    unlinkat(*plan_.directory, name.c_str(), 0);
  } else if (faccessat(*plan_.directory, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
    std::cerr << "daqwriter: " << plan_.path << ": has become another file, which is left as it is\n";
  }
}

void Target::open_scratch_file(std::uint64_t record_bytes, bool preallocate) {
  constexpr mode_t kMode = 0644;
  fd_ = openat(*plan_.directory, file_name(plan_.path).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
  if (fd_ < 0) throw Refusal("--target " + plan_.path + ": cannot be created: " + errno_text(errno));
  created_ = true;
  // Not in the same step: some file systems make the file before they refuse this.
  if (fcntl(fd_, F_SETFL, O_DIRECT) != 0) throw no_direct_io(plan_);
  require_alignment(fd_, plan_);
  if (!preallocate) return;
  if (fallocate(fd_, 0, 0, static_cast<off_t>(record_bytes)) != 0) {
    throw Refusal("--target " + plan_.path + ": cannot preallocate " + std::to_string(record_bytes) +
                  " B: " + errno_text(errno) + "; use --preallocate none or another target");
  }
}

void Target::open_device() {
  fd_ = *plan_.claim;
  // Not before: the look for signatures reads what is not aligned.
  if (fcntl(fd_, F_SETFL, O_DIRECT) != 0)
    throw Refusal(plan_.path + ": does not support direct I/O (O_DIRECT): " + errno_text(errno));
}

void Target::write_block(const std::byte* block, std::size_t bytes, std::uint64_t offset) {
  if (plan_.kind == TargetKind::null_sink) return;
  const ssize_t written = pwrite(fd_, block, bytes, static_cast<off_t>(offset));
  const int error_number = errno;
  if (written == static_cast<ssize_t>(bytes)) return;
  const std::string what = plan_.path + ": write of " + std::to_string(bytes) + " B at offset " +
                           std::to_string(offset) + " failed";
  if (written < 0) throw answered(what, error_number);
  throw Failure(what + ": only " + std::to_string(written) + " B were written");
}

void Target::discard(std::uint64_t offset, std::uint64_t bytes) {
  if (plan_.kind != TargetKind::raw_device) return;
  std::array<std::uint64_t, 2> range = {offset, bytes};
  if (ioctl(fd_, BLKDISCARD, range.data()) != 0) {
    throw Failure(plan_.path + ": cannot be discarded to make its blocks fresh: " + errno_text(errno) +
                  "; use --condition overwrite");
  }
}

void Target::flush() {
  if (plan_.kind == TargetKind::null_sink) return;
  if (fdatasync(fd_) != 0) throw answered(plan_.path + ": fdatasync failed", errno);
  if (!created_ || name_durable_) return;
  if (fsync(*plan_.directory) != 0) throw answered(plan_.path + ": fsync of its directory failed", errno);
  name_durable_ = true;
}

void Target::require_in_place() const {
  if (plan_.kind == TargetKind::null_sink) return;
  struct stat status {};
  const bool there = plan_.kind == TargetKind::scratch_file
                         ? leads_to(AT_FDCWD, plan_.path, fd_)
                         : stat(plan_.path.c_str(), &status) == 0 && S_ISBLK(status.st_mode) &&
                               number_of(status.st_rdev).text() == plan_.device.text();
  if (!there) {
    throw Failure(
        plan_.path +
        ": was removed, renamed or replaced while it was written; what was written does not have this "
        "name any more");
  }
}

void Target::require_whole(std::uint64_t written) const {
  // Who has a device open at this moment says nothing: smartctl opens a SAS drive for writing to ask it.
  if (plan_.kind != TargetKind::scratch_file) return;
  struct stat status {};
  if (fstat(fd_, &status) != 0) throw answered(plan_.path + ": cannot be looked at", errno);
  off_t data = 0;
  off_t first_hole = 0;
  for (off_t at = 0; at < status.st_size;) {
    const off_t from = lseek(fd_, at, SEEK_DATA);
    if (from < 0 && errno == EINVAL) return;
    if (from < 0 && errno != ENXIO) throw answered(plan_.path + ": its holes cannot be looked for", errno);
    at = from < 0 ? status.st_size : lseek(fd_, from, SEEK_HOLE);
    if (at < 0) throw answered(plan_.path + ": its holes cannot be looked for", errno);
    if (from < 0) break;
    if (from == first_hole) first_hole = at;
    data += at - from;
  }
  if (static_cast<std::uint64_t>(data) >= written) return;
  throw Failure(plan_.path + ": holds " + std::to_string(data) + " B of the " + std::to_string(written) +
                " B that were written, the first " + (first_hole < status.st_size ? "hole" : "loss") +
                " is at offset " + std::to_string(first_hole) +
                "; another process cut it or took data out of it: keep others away and record again");
}

void Target::truncate_file(std::uint64_t bytes) {
  if (plan_.kind != TargetKind::scratch_file) return;
  if (ftruncate(fd_, static_cast<off_t>(bytes)) != 0) {
    throw answered(plan_.path + ": cannot be cut to its " + std::to_string(bytes) + " B", errno);
  }
}

}  // namespace daqwriter
