#include "base/file_identity.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <linux/major.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>

namespace daqwriter {
namespace {

namespace fs = std::filesystem;

FileIdentity identity_in(const struct stat& status) {
  return {status.st_dev, status.st_ino, ""};
}

// By the node of a loop device; nothing for anything else.
std::optional<FileIdentity> file_below(const std::string& node) {
  struct stat status {};
  if (stat(node.c_str(), &status) != 0 || !S_ISBLK(status.st_mode) || major(status.st_rdev) != LOOP_MAJOR)
    return std::nullopt;
  const OpenFile fd = open(node.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  const auto backing = loop_backing(fd);
  return backing ? std::optional(backing->file) : std::nullopt;
}

}  // namespace

std::optional<FileIdentity> identity_of(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return std::nullopt;
  return identity_in(status);
}

std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) return identity_in(status);
  const fs::path absolute = fs::absolute(path).lexically_normal();
  // "new/" is the name of a directory that does not exist yet.
  const fs::path entry = absolute.has_filename() ? absolute : absolute.parent_path();
  if (stat(entry.parent_path().c_str(), &status) != 0) return std::nullopt;
  return FileIdentity{status.st_dev, status.st_ino, entry.filename().string()};
}

std::optional<Backing> loop_backing(int loop_fd) {
  loop_info64 info{};
  if (ioctl(loop_fd, LOOP_GET_STATUS64, &info) != 0) return std::nullopt;
  return Backing{{info.lo_device, info.lo_inode, ""}, info.lo_rdevice};
}

std::vector<FileIdentity> all_that_is_in(const std::string& path) {
  std::vector<FileIdentity> found;
  const auto add = [&](const std::optional<FileIdentity>& identity) {
    if (identity) found.push_back(*identity);
  };
  add(identity_of(path));
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(path, none)) add(identity_of(entry.path().string()));
  add(file_below(path));
  return found;
}

std::vector<FileIdentity> all_that_holds(const std::string& path) {
  std::vector<FileIdentity> found;
  if (const auto identity = identity_of(path)) found.push_back(*identity);
  std::error_code missing;
  fs::path above = fs::canonical(fs::absolute(path).parent_path(), missing);
  for (; !above.empty(); above = above.parent_path()) {
    if (const auto identity = identity_of(above.string())) found.push_back(*identity);
    if (above == above.root_path()) break;
  }
  return found;
}

bool leads_to(int directory, const std::string& name, int fd) {
  struct stat status {};
  if (fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  return identity_in(status) == identity_of(fd);
}

}  // namespace daqwriter
