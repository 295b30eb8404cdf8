// Promise: whether two names lead to the same file is decided by what the file is, not by how it is spelt.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace daqwriter {

// A file descriptor, which is closed when nobody has it any more; -1: none.
class OpenFile {
 public:
  OpenFile(int fd = -1) : fd_(fd) {}
  OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OpenFile& operator=(OpenFile other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  operator int() const { return fd_; }

 private:
  int fd_;
};

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  std::string new_name;  // of a file that does not exist yet, in the directory device:inode

  bool operator==(const FileIdentity&) const = default;
};

// Nothing when the descriptor is closed, or when not even the directory of the path exists. Links are
// followed.
std::optional<FileIdentity> identity_of(int fd);
std::optional<FileIdentity> identity_of(const std::string& path);

// The kernel says what a loop device lies over.
struct Backing {
  FileIdentity file;
  dev_t node = 0;  // the block device that this file is the node of, or 0
};
std::optional<Backing> loop_backing(int loop_fd);

// The file, all members of a directory, and the file below a loop device: writing to any of them changes it.
std::vector<FileIdentity> all_that_is_in(const std::string& path);
// The file and every directory above it.
std::vector<FileIdentity> all_that_holds(const std::string& path);

// Whether a name, which is not followed if it is a link, is that of the open file. `directory`: an open one,
// or AT_FDCWD.
bool leads_to(int directory, const std::string& name, int fd);

}  // namespace daqwriter
