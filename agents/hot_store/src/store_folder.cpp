#include "store_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "base/status.h"

namespace hotstore {
namespace {

using daqwriter::errno_text;
using daqwriter::Failure;
using daqwriter::OpenFile;
using daqwriter::Refusal;
namespace fs = std::filesystem;

constexpr const char* kMarker = "hotstore.level";
constexpr const char* kNotSynced = "hotstore.not-synced";
constexpr const char* kFormat = "1";
constexpr mode_t kFolderMode = 0644;
constexpr auto kLockPause = std::chrono::milliseconds(10);
constexpr int kLockTries = 3000;  // 30 s

std::string line_of_kernel(const char* file) {
  std::ifstream stream(file);
  std::string line;
  if (!std::getline(stream, line) || line.empty()) throw Failure(std::string(file) + ": cannot be read");
  return line;
}

std::string boot_identity() {
  return line_of_kernel("/proc/sys/kernel/random/boot_id");
}

std::string marker_text(int level, const std::string& store, const std::string& own) {
  return std::string("hotstore format ") + kFormat + " level " + std::to_string(level) + " store " + store +
         " own " + own + "\n";
}

struct Marker {
  std::string format, store, own;
  int level = 0;
};

std::optional<Marker> parse_marker(const std::string& text) {
  std::istringstream stream(text);
  Marker marker;
  std::string tool, format, level, store, own;
  stream >> tool >> format >> marker.format >> level >> marker.level >> store >> marker.store >> own >>
      marker.own;
  const bool right = stream && tool == "hotstore" && format == "format" && level == "level" &&
                     store == "store" && own == "own";
  return right ? std::optional(marker) : std::nullopt;
}

// Reads a regular file in the folder; nothing when it is not there. It follows no link.
std::optional<std::string> content(int folder, const char* name) {
  const OpenFile fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 && errno == ENOENT) return std::nullopt;
  if (fd < 0) throw Refusal(std::string(name) + ": " + errno_text(errno));
  std::array<char, 512> buffer{};
  const ssize_t bytes = read(fd, buffer.data(), buffer.size());
  if (bytes < 0) throw Refusal(std::string(name) + ": is not a file of a store");
  return std::string(buffer.data(), static_cast<std::size_t>(bytes));
}

// A whole file ends with the end of its last line: a process that was killed while it wrote leaves less.
bool is_whole(const std::optional<std::string>& text) {
  return text && text->ends_with('\n');
}

void write_durably(int folder, const char* name, const std::string& text) {
  const OpenFile fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFolderMode);
  if (fd < 0) throw Refusal(std::string(name) + ": " + errno_text(errno));
  if (write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0 &&
      fsync(folder) == 0)
    return;
  const int cause = errno;
  unlinkat(folder, name, 0);
  throw Refusal(std::string(name) + ": cannot be written: " + errno_text(cause));
}

bool is_same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

struct stat facts(int fd) {
  struct stat found {};
  if (fstat(fd, &found) != 0) throw Failure("fstat: " + errno_text(errno));
  return found;
}

// Is `inner` the folder `outer`, or anywhere below it?
bool is_within(int inner, int outer) {
  const struct stat wanted = facts(outer);
  for (OpenFile at = dup(inner);;) {
    const struct stat here = facts(at);
    if (is_same(here, wanted)) return true;
    at = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0 || is_same(facts(at), here)) return false;  // the root
  }
}

void make_durable(const fs::path& folder) {
  const OpenFile fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) fsync(fd);
}

}  // namespace

LevelFolder::LevelFolder(const fs::path& path, Access access, const LevelFolder* fast)
    : path_(path), access_(access), option_(fast ? "--level2-dir" : "--dir"), level_(fast ? 2 : 1) {
  open();
  try {
    if (fast) refuse_nesting(*fast);
    lock();
    identify(fast);
  } catch (const Refusal& refusal) {
    release();
    throw Refusal(name() + ": " + refusal.what());
  } catch (...) {
    release();
    throw;
  }
}

LevelFolder::~LevelFolder() {
  release();
}

void LevelFolder::open() {
  std::error_code error;
  if (access_ == Access::change && !fs::is_directory(path_, error)) {
    made_ = fs::create_directory(path_, error);
    if (!made_) throw Refusal(name() + ": " + (error ? error.message() : "is not a directory"));
    make_durable(fs::absolute(path_ / "..").lexically_normal());
  }
  fd_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ < 0) throw Refusal(name() + ": " + errno_text(errno));
}

// Removes what this process has made, unless something is kept in it.
void LevelFolder::release() {
  if (is_new_) unlinkat(fd_, kMarker, 0);
  if (made_) rmdir(path_.c_str());
}

void LevelFolder::refuse_nesting(const LevelFolder& fast) const {
  if (is_same(facts(fd_), facts(fast.fd_)))
    throw Refusal("is the folder of " + fast.name() + ": give level 2 a folder of its own");
  if (is_within(fd_, fast.fd_) || is_within(fast.fd_, fd_))
    throw Refusal("and " + fast.name() + " lie one inside the other: give each level a folder of its own");
}

// Takes the lock alone where nobody else is there, else with those that have finished opening it.
bool LevelFolder::try_to_lock() {
  alone_ = flock(fd_, LOCK_EX | LOCK_NB) == 0;
  if (alone_) return true;
  if (access_ == Access::read) return false;
  if (flock(fd_, LOCK_SH | LOCK_NB) != 0) return false;
  if (is_whole(content(fd_, kMarker))) return true;
  flock(fd_, LOCK_UN);
  return false;
}

void LevelFolder::lock() {
  for (int tries = 0; !try_to_lock(); ++tries) {
    if (tries == kLockTries)
      throw Refusal("another process has it open: end that one, or try again when it is done");
    std::this_thread::sleep_for(kLockPause);
  }
}

void LevelFolder::identify(const LevelFolder* fast) {
  const std::optional<std::string> text = content(fd_, kMarker);
  if (is_whole(text)) {
    adopt_identity(*text, fast);
    return;
  }
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string found = entry.path().filename().string();
    if (found == kMarker) continue;
    if (found == "data.mdb")
      throw Refusal(
          "holds a database without a store's identity (of another program, or of a hotstore before "
          "identities): "
          "it is left as it is; give another folder, or remove it");
    throw Refusal("holds '" + found + "' and is no store: give an empty folder, or one that is not there");
  }
  if (access_ == Access::read) throw Refusal("holds no store");
  if (text) unlinkat(fd_, kMarker, 0);
  make_identity(fast);
}

void LevelFolder::adopt_identity(const std::string& text, const LevelFolder* fast) {
  const std::optional<Marker> marker = parse_marker(text);
  if (!marker) throw Refusal(std::string(kMarker) + " is garbled: the store is damaged; give another folder");
  if (marker->format != kFormat)
    throw Refusal("is kept in form " + marker->format + ", this hotstore knows form " + kFormat +
                  ": use the version that made it, or another folder");
  if (marker->level != level_)
    throw Refusal("is level " + std::to_string(marker->level) + " of store " + marker->store +
                  ", not a level " + std::to_string(level_) + ": give another folder");
  if (fast && marker->store != fast->store_)
    throw Refusal("is level 2 of store " + marker->store + ", not of " + fast->store_ + " (" + fast->name() +
                  "): give each store a level 2 of its own");
  if (marker_text(level_, marker->store, marker->own) != text)
    throw Refusal(std::string(kMarker) + " is garbled: the store is damaged; give another folder");
  store_ = marker->store;
  own_ = marker->own;
}

void LevelFolder::make_identity(const LevelFolder* fast) {
  own_ = line_of_kernel("/proc/sys/kernel/random/uuid");
  store_ = fast ? fast->store_ : own_;
  write_durably(fd_, kMarker, marker_text(level_, store_, own_));
  is_new_ = true;
}

void LevelFolder::share() {
  if (!alone_) return;
  alone_ = false;
  if (flock(fd_, LOCK_SH) != 0) throw Failure("flock " + path_.string() + ": " + errno_text(errno));
}

bool LevelFolder::lost_by_crash() const {
  const std::optional<std::string> mark = content(fd_, kNotSynced);
  return is_whole(mark) && *mark != boot_identity() + "\n";
}

bool LevelFolder::is_marked_not_synced() const {
  return content(fd_, kNotSynced).has_value();
}

void LevelFolder::mark_not_synced() {
  const std::optional<std::string> mark = content(fd_, kNotSynced);
  if (is_whole(mark)) return;
  if (mark) unlinkat(fd_, kNotSynced, 0);
  try {
    write_durably(fd_, kNotSynced, boot_identity() + "\n");
  } catch (const Refusal& refusal) {
    // Another process that shares the store was quicker.
    if (!content(fd_, kNotSynced)) throw Refusal(name() + ": " + refusal.what());
  }
}

void LevelFolder::clear_not_synced() {
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) return;
  if (unlinkat(fd_, kNotSynced, 0) == 0) fsync(fd_);
}

}  // namespace hotstore
