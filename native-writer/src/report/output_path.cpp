#include "report/output_path.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <random>

#include "base/file_identity.h"
#include "base/status.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using Identities = std::vector<FileIdentity>;
constexpr mode_t kResultMode = 0644;

bool meet(const Identities& one, const Identities& other) {
  return std::find_first_of(one.begin(), one.end(), other.begin(), other.end()) != one.end();
}

void require_apart(const std::string& result, const Identities& identities,
                   const std::vector<std::string>& used) {
  for (const std::string& path : used) {
    if (path.empty() || !meet(identities, all_that_is_in(path))) continue;
    throw Refusal(result + ": is, or lies in, " + path +
                  ", which the command itself reads or writes; give the results another file");
  }
}

// Refuses a descriptor that the shell has opened onto one of the `used` files.
void require_apart(int fd, const std::string& name, const std::vector<std::string>& used) {
  if (const auto identity = identity_of(fd)) require_apart(name, Identities{*identity}, used);
}

// The message must not be written to the data either: then the exit code alone says it.
void require_standard_error_apart(const std::vector<std::string>& used) {
  try {
    require_apart(STDERR_FILENO, "standard error", used);
  } catch (const Refusal&) {
    close(STDERR_FILENO);
    throw;
  }
}

bool is_open_for_writing(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

// A path without links: a name in a folder, or the number of one of our own descriptors.
struct Resolved {
  fs::path directory;
  std::string name;
  std::optional<int> descriptor;
};

bool lists_our_descriptors(const fs::path& directory) {
  const std::string own = "/proc/" + std::to_string(getpid());
  const std::string text = directory.string();
  return text == own + "/fd" || (text.starts_with(own + "/task/") && text.ends_with("/fd"));
}

Resolved resolve(const std::string& what, const std::string& text) {
  constexpr int kMostLinks = 40;  // as the kernel's own limit
  fs::path path = fs::absolute(text);
  for (int links = 0; links <= kMostLinks; ++links) {
    std::error_code error;
    const fs::path directory = fs::canonical(path.parent_path(), error);
    if (error || !fs::is_directory(directory))
      throw Refusal(what + ": the directory " + path.parent_path().string() + " does not exist");
    const std::string name = path.filename();
    if (name.empty()) throw Refusal(what + ": names a directory; name a file");
    if (lists_our_descriptors(directory)) {
      int number = -1;
      std::from_chars(name.data(), name.data() + name.size(), number);
      return {directory, name, number};
    }
    if (directory == "/proc" || directory.string().starts_with("/proc/"))
      throw Refusal(what +
                    ": names no file, but something of the kernel's or of another process; name a file");
    const fs::file_status status = fs::symlink_status(directory / name, error);
    if (!fs::is_symlink(status)) {
      if (links > 0 && !fs::exists(status))
        throw Refusal(what + ": a dangling symbolic link; name the file itself");
      if (fs::exists(status) && !fs::is_regular_file(status)) throw Refusal(what + ": not a regular file");
      return {directory, name, std::nullopt};
    }
    path = directory / fs::read_symlink(directory / name);
  }
  throw Refusal(what + ": more than " + std::to_string(kMostLinks) + " symbolic links lead on from it");
}

// Ours to write to: open for that, and given to us by who started us.
int duplicate_of(int fd, const std::string& what) {
  const int flags = fcntl(fd, F_GETFD);
  if (flags < 0 || !is_open_for_writing(fd) || (flags & FD_CLOEXEC) != 0)
    throw Refusal(what + " is closed, or not open for writing; open it or name a file");
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (copy < 0) throw Refusal(what + ": " + errno_text(errno));
  return copy;
}

// Nothing can be renamed over a file that is itself mounted there.
bool is_mount_point(int directory, const std::string& name) {
#ifdef STATX_ATTR_MOUNT_ROOT
  struct statx status {};
  return statx(directory, name.c_str(), AT_SYMLINK_NOFOLLOW, 0, &status) == 0 &&
         (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
#else
  (void)directory, (void)name;
  return false;
#endif
}

// A name that nobody can have foreseen, and that nobody else has.
std::string unused_name(const std::string& name) {
  std::random_device random;
  return name + ".tmp" + std::to_string(random()) + std::to_string(random());
}

int make_file(int directory, const std::string& name, int more = 0) {
  return openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | more,
                kResultMode);
}

void require_room_for_a_file(int directory, const std::string& name, const std::string& what) {
  const std::string temporary = unused_name(name);
  const OpenFile file = make_file(directory, temporary);
  if (file < 0) throw Refusal(what + ": no file can be made beside it: " + errno_text(errno));
  if (leads_to(directory, temporary, file)) unlinkat(directory, temporary.c_str(), 0);
}

int open_present(int directory, const std::string& name, int more, const std::string& what) {
  const int fd = openat(directory, name.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | more);
  if (fd < 0) throw Refusal(what + ": " + errno_text(errno));
  return fd;
}

// All of it, or Failure.
void write_all(int fd, const std::string& text, const std::string& name) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t put = write(fd, text.data() + done, text.size() - done);
    if (put > 0) {
      done += static_cast<std::size_t>(put);
    } else if (put < 0 && errno == EAGAIN) {
      pollfd room{fd, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (put == 0 || errno != EINTR) {
      throw Failure(name + ": cannot be written: " + errno_text(put < 0 ? errno : ENOSPC));
    }
  }
}

void sync(int fd, const std::string& name) {
  if (fsync(fd) != 0) throw Failure(name + ": cannot be written: " + errno_text(errno));
}

void sync_if_file(int fd, const std::string& name) {
  struct stat status {};
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) sync(fd, name);
}

void replace_file(int directory, const std::string& name, const std::string& text, const std::string& path) {
  const std::string temporary = unused_name(name);
  const OpenFile file = make_file(directory, temporary);
  if (file < 0) throw Failure(path + ": no file can be made beside it: " + errno_text(errno));
  try {
    write_all(file, text, path);
    sync(file, path);
    if (renameat(directory, temporary.c_str(), directory, name.c_str()) != 0)
      throw Failure(path + ": cannot be replaced: " + errno_text(errno));
  } catch (...) {
    if (leads_to(directory, temporary, file)) unlinkat(directory, temporary.c_str(), 0);
    throw;
  }
  const OpenFile readable = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (readable >= 0) sync(readable, path);  // one that cannot be read cannot be synced either
}

}  // namespace

void OutputPath::settle(const std::string& what, bool append) const {
  Place& place = *place_;
  const Resolved found = text_ == "-" ? Resolved{"", "", STDOUT_FILENO} : resolve(what, text_);
  if (found.descriptor) {
    place.descriptor = duplicate_of(*found.descriptor, what);
    return;
  }
  place.directory = open(found.directory.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (place.directory < 0) throw Refusal(what + ": " + found.directory.string() + ": " + errno_text(errno));
  place.path = found.directory / found.name;
  place.name = found.name;
  struct stat status {};
  const bool there = fstatat(place.directory, place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (there && (append || is_mount_point(place.directory, place.name))) {
    place.descriptor = open_present(place.directory, place.name, append ? O_APPEND : 0, what);
  } else {
    require_room_for_a_file(place.directory, place.name, what);
  }
}

void OutputPath::hold(const std::string& option, const std::vector<std::string>& used, bool append) const {
  require_standard_error_apart(used);
  if (empty()) return;
  const std::string what = option + " " + text_ + (text_ == "-" ? ": standard output" : "");
  if (!place_->held) settle(what, append);
  place_->held = true;
  if (place_->path.empty()) {
    require_apart(place_->descriptor, what, used);
  } else {
    require_apart(what, all_that_holds(place_->path), used);
  }
}

void OutputPath::hold_for_replacement(const std::string& option, const std::vector<std::string>& used) const {
  hold(option, used, false);
}

void OutputPath::hold_for_appending(const std::string& option, const std::vector<std::string>& used) const {
  hold(option, used, true);
}

void OutputPath::replace(const std::string& content) const {
  if (empty()) return;
  if (!place_->held) hold_for_replacement("--json", {});
  const std::string what = text_ == "-" ? "--json -: standard output" : text_;
  if (place_->descriptor < 0) return replace_file(place_->directory, place_->name, content, what);
  if (place_->directory >= 0 && ftruncate(place_->descriptor, 0) != 0)
    throw Failure(what + ": cannot be written: " + errno_text(errno));
  write_all(place_->descriptor, content, what);
  sync_if_file(place_->descriptor, what);
}

int OutputPath::appending() const {
  if (!place_->held) hold_for_appending("--line-protocol", {});
  if (place_->descriptor < 0) {
    place_->descriptor = make_file(place_->directory, place_->name, O_APPEND);
    if (place_->descriptor < 0)
      throw Refusal("--line-protocol " + text_ + ": " +
                    (errno == EEXIST ? "another file has taken its name meanwhile" : errno_text(errno)));
  }
  return place_->descriptor;
}

}  // namespace daqwriter
