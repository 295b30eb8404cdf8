// Tools that several tests share: a directory of their own beside the build, small records, engines that
// misbehave on request, and the real binary as a child process.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/io_engine.h"
#include "record/minidaq.h"
#include "verify/verify_command.h"

namespace daqwriter::testing {

// Created in the working directory (the build tree, on a real disk) and removed with all that is in it.
class TempDir {
 public:
  explicit TempDir(const std::filesystem::path& parent = std::filesystem::current_path());
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

 private:
  std::filesystem::path directory_;
};

// A loop device over a new file (or another block device): a block device of the real kernel. It is detached
// when the test ends, however it ends. Only for tests that start with SKIP_WITHOUT_LOOP_DEVICES.
class LoopDevice {
 public:
  LoopDevice(const std::string& backing, std::uint64_t bytes);
  ~LoopDevice();
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;

  const std::string& path() const { return path_; }
  std::string name() const { return path_.substr(5); }
  DeviceNumber number() const;
  int fd() const { return fd_; }
  // Takes the drive away behind its first `bytes`, of which the backing file keeps no more. A write that is
  // on its way makes the file longer again, and the capacity follows the file: so it is asked for until it
  // fits.
  void shorten(const std::string& backing, std::uint64_t bytes) const;

 private:
  std::string path_;
  int fd_ = -1;
};

#define SKIP_WITHOUT_LOOP_DEVICES()                             \
  if (geteuid() != 0 || access("/dev/loop-control", R_OK) != 0) \
  GTEST_SKIP() << "needs root and loop "                        \
                  "devices"

// Mounts made from now on are seen by this process and its children only, and end with them.
void make_mounts_private();
void run_tool(const std::string& command);  // throws when it fails
// Where a file in memory takes direct I/O (Linux 6.6); elsewhere it has to be the disk.
std::filesystem::path memory();
// A stall limit, in s, for tests in which one call never returns: a busy machine keeps the other calls for
// less, if their files lie in memory(). As an option's text too.
constexpr double kPatienceS = 5.5;
constexpr const char* kPatience = "5.5";

// Memory as the target; every request is answered by a rule that the test sets. Default: all is written.
class FakeEngine : public IoEngine {
 public:
  // Given the n-th submission (from 0), what submit() returns: 0 or -errno.
  std::function<int(std::size_t)> on_submit = [](std::size_t) { return 0; };
  // Given the n-th accepted request, its result: bytes (also fewer) or -errno.
  std::function<std::int64_t(std::size_t, const IoRequest&)> on_complete =
      [](std::size_t, const IoRequest& r) { return static_cast<std::int64_t>(bytes_of(r.pieces)); };
  bool newest_first = false;  // complete out of order

  std::string_view name() const override { return "fake"; }
  int submit(std::span<const IoRequest> requests) override;
  int reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) override;

  std::vector<std::byte> disk;
  struct Accepted {
    std::uint64_t offset;
    std::size_t bytes;
    const void* data;
  };
  std::vector<Accepted> accepted;
  std::size_t submissions = 0;
  std::size_t most_in_flight = 0;

 private:
  struct Pending {
    std::size_t number;
    IoRequest request;
    std::vector<iovec> pieces;
  };
  std::deque<Pending> pending_;
};

// Passes on to a real engine; can delay submissions and spoil a completion.
class MeddlingEngine : public IoEngine {
 public:
  MeddlingEngine(std::unique_ptr<IoEngine> inner, std::int64_t delay_ns, std::size_t spoil_at = SIZE_MAX,
                 int error = 0)
      : inner_(std::move(inner)), delay_ns_(delay_ns), spoil_at_(spoil_at), error_(error) {}
  std::string_view name() const override { return inner_->name(); }
  int submit(std::span<const IoRequest> requests) override;
  int reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) override;

 private:
  std::unique_ptr<IoEngine> inner_;
  std::int64_t delay_ns_;
  std::size_t spoil_at_;
  int error_;
  std::size_t completed_ = 0;
};

// Counts its completions, so that another thread can wait for what a run has done and not for the clock.
class CountedEngine : public MeddlingEngine {
 public:
  CountedEngine(std::unique_ptr<IoEngine> inner, std::atomic<std::size_t>& completed)
      : MeddlingEngine(std::move(inner), 0), completed_(completed) {}
  int reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) override;

 private:
  std::atomic<std::size_t>& completed_;
};
// For at most 20 s.
void wait_for_count(const std::atomic<std::size_t>& count, std::size_t enough);

// 3 links x 2000 Hz x 5568 B for half a second: 3000 superchunks, more than one turn of the rings, copied.
MiniDaqOptions small_record(const std::string& target);
EngineFactory aio_engine();
MiniDaqResult record(const MiniDaqOptions& options, const EngineFactory& engine = aio_engine());
// For tests of what a record is when nothing was lost: other work that kept the machine busy for longer than
// the rings last is no fault of the writer. Records anew, at most five times, into the same file.
MiniDaqResult record_in_full(const MiniDaqOptions& options, const EngineFactory& engine = aio_engine());

struct Verified {
  int exit_code = 0;
  nlohmann::json json;
  std::uint64_t count(const std::string& kind) const { return json["superchunks"][kind]; }
  // Counts that are not zero, "present" and "expected" left out: {"corrupt": 1}.
  std::map<std::string, std::uint64_t> wrong() const;
};
Verified verify(const TempDir& directory, const std::string& target, std::uint64_t offset = 0,
                const std::optional<Sought>& sought = std::nullopt);

// The JSON of a read-back of a streams run, which must end with this exit code.
nlohmann::json verify_directory(const TempDir& scratch, const std::string& target, int exit_code);

struct ProcessResult {
  int exit_code = 0;
  std::string error_text;
};
// Runs the daqwriter binary, doing something meanwhile. A killed process has the exit code -1.
ProcessResult run_daqwriter(
    const std::vector<std::string>& arguments, const std::function<void(pid_t)>& meanwhile = [](pid_t) {});
// For commands that write no line protocol.
std::function<void(pid_t)> signal_after(int delay_ms, int signal_number);
// Whether it comes true in time: a busy machine may be late, and the --stall-limit of 60 s that a command has
// unless it is told another would end what hangs.
bool wait_until(const std::function<bool()>& holds, int limit_s = 45);
// Until a running command has written so many lines of line protocol: by what it does and not by the clock,
// for a sanitizer starts slowly.
void wait_for_lines(const std::string& file, std::size_t count);
// The same until a record has something stored.
void wait_for_stored(const std::string& file);

nlohmann::json read_json(const std::string& path);
std::vector<std::byte> random_bytes(std::size_t bytes);  // the same ones at every call
std::vector<std::byte> read_bytes(const std::string& path, std::uint64_t offset, std::size_t bytes);
void write_bytes(const std::string& path, std::uint64_t offset, const std::vector<std::byte>& bytes);
void write_text(const std::string& path, const std::string& text);  // creates directories

}  // namespace daqwriter::testing
