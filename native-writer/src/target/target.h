// Promise: nothing is written to anything that might be somebody's data. A regular file is always created
// anew; a block device passes the interlock or is refused with the reason; the record fits before it starts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/file_identity.h"
#include "base/worker_thread.h"
#include "target/device_facts.h"

namespace daqwriter {

// Serials or WWNs of drives; usually one.
class Serials {
 public:
  Serials() = default;
  Serials(std::vector<std::string> names) : names_(std::move(names)) { std::erase(names_, ""); }
  Serials(const std::string& name) : names_(name.empty() ? 0 : 1, name) {}
  Serials(const char* name) : Serials(std::string(name)) {}

  bool empty() const { return names_.empty(); }
  bool contain(const std::string& name) const {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  }
  std::string text() const;  // separated by commas

 private:
  std::vector<std::string> names_;
};

// The operator's permissions.
struct Consent {
  Serials allow_serial;        // the drives whose raw blocks may be written
  Serials destroy_serial;      // ... and whose old signatures may be destroyed
  bool memory_target = false;  // tests only
  bool own_data = false;       // what no signature describes is of this command's own trial before
};

// The reason why this device must not be written, or nothing. Pure.
std::optional<std::string> interlock_refusal(const DeviceFacts& facts, const Consent& consent);

// The reason why a file system with this statfs magic says nothing about a drive, or nothing. Pure.
std::optional<std::string> memory_backed_refusal(long filesystem_magic, const std::string& device_name);

enum class TargetKind { scratch_file, raw_device, null_sink };
std::string target_kind_name(TargetKind kind);

// A file descriptor that its last owner closes.
using Descriptor = std::shared_ptr<const OpenFile>;

// The facts that are known before anything is written.
struct TargetPlan {
  TargetKind kind = TargetKind::null_sink;
  std::string path;
  std::string filesystem;  // "ext4"; empty for a device
  std::uint64_t free_bytes = 0;
  std::uint32_t alignment = 4096;
  DeviceNumber device;  // the device itself, or the one below the file system
  std::optional<int> numa_node;
  // The exclusive claim on a block device: from the look until the end nobody else can mount, assemble or
  // claim it, and no other one can take its place.
  Descriptor claim;
  Descriptor directory;             // of a file: the one that was examined, wherever its path leads later
  std::string caution;              // what could not be looked at; empty if all could
  std::set<std::string> same_data;  // of a device: the numbers of all devices that show its data or a part
  std::vector<Descriptor> twin_claims;  // of a device: those on the other ways to its data
};

// Looks, claims, decides, writes nothing. Throws Refusal. Waits for users that hold a device for a moment
// only, as udev does.
TargetPlan plan_target(const std::string& path, const Consent& consent, const SystemPaths& paths = {});

// Makes the directory that the plan of a file names; the result is the plan of files in it, its path that of
// the directory. Throws Refusal.
TargetPlan make_directory(const TargetPlan& plan);

// The opened target of a record. Until keep() was called, closing it removes the file that it created, unless
// its name has become another file's.
class Target {
 public:
  Target(const TargetPlan& plan, std::uint64_t record_bytes, bool preallocate);
  ~Target() { close(); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  int fd() const { return fd_; }
  void keep() { keep_ = true; }
  // Synchronous, whole, aligned. Throws Failure.
  void write_block(const std::byte* block, std::size_t bytes, std::uint64_t offset);
  // Tells a device that nothing in [offset, offset + bytes) is needed any more; no effect on a (new) file.
  // Throws Failure.
  void discard(std::uint64_t offset, std::uint64_t bytes);
  // Closes a file; a device stays open as long as a plan holds its claim.
  void close();
  void flush();                             // fdatasync, a new file's name as well; throws Failure
  void truncate_file(std::uint64_t bytes);  // no effect on a device; throws Failure
  // Throws Failure when the path does not lead to what was written any more.
  void require_in_place() const;
  // Throws Failure when another process visibly took data out of what was written: the file holds less than
  // `written` bytes (a hole, a cut, a collapsed range). After flush(). A file system that knows no holes says
  // nothing, and neither does a device.
  void require_whole(std::uint64_t written) const;

 private:
  void open_scratch_file(std::uint64_t record_bytes, bool preallocate);
  void open_device();
  void remove_file();

  TargetPlan plan_;
  int fd_ = -1;
  bool created_ = false;
  bool name_durable_ = false;
  bool keep_ = false;
};

// Opens one within the limits: Unanswered when the system does not return from making or preallocating a
// file. One that is made later after all is removed.
std::shared_ptr<Target> open_target(const TargetPlan& plan, std::uint64_t record_bytes, bool preallocate,
                                    const CallLimits& limits);

}  // namespace daqwriter
