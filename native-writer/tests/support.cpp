#include "support.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <regex>

#include "base/clock.h"
#include "base/status.h"
#include "io/aio_engine.h"
#include "verify/verify_command.h"

namespace daqwriter::testing {

namespace fs = std::filesystem;

TempDir::TempDir(const fs::path& parent) {
  std::string name = (parent / "scratch-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("mkdtemp " + name);
  directory_ = name;
}

TempDir::~TempDir() {
  fs::remove_all(directory_);
}

LoopDevice::LoopDevice(const std::string& backing, std::uint64_t bytes) {
  const int file = open(backing.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  const bool sized = fs::is_block_file(backing) || ftruncate(file, static_cast<off_t>(bytes)) == 0;
  if (file < 0 || control < 0 || !sized) throw std::runtime_error("cannot back a loop device by " + backing);
  loop_config config{};
  config.fd = static_cast<unsigned>(file);
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_PARTSCAN;
  // Another test may take the free number first: ask again.
  for (int attempt = 0; attempt < 1000 && fd_ < 0; ++attempt) {
    path_ = "/dev/loop" + std::to_string(ioctl(control, LOOP_CTL_GET_FREE));
    fd_ = open(path_.c_str(), O_RDWR | O_CLOEXEC);
    if (fd_ < 0 || ioctl(fd_, LOOP_CONFIGURE, &config) == 0) continue;
    close(fd_);
    fd_ = -1;
  }
  close(file);
  close(control);
  // Kept for reading only: a test that has its drive open for writing would be somebody who uses it.
  const int writing = fd_;
  fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (writing >= 0) close(writing);
  if (fd_ < 0) throw std::runtime_error(path_ + ": " + errno_text(errno));
}

LoopDevice::~LoopDevice() {
  close(fd_);
}

DeviceNumber LoopDevice::number() const {
  struct stat status {};
  fstat(fd_, &status);
  return {major(status.st_rdev), minor(status.st_rdev)};
}

void LoopDevice::shorten(const std::string& backing, std::uint64_t bytes) const {
  std::uint64_t capacity = 0;
  do {
    if (truncate(backing.c_str(), static_cast<off_t>(bytes)) != 0 || ioctl(fd_, LOOP_SET_CAPACITY, 0) != 0 ||
        ioctl(fd_, BLKGETSIZE64, &capacity) != 0)
      throw std::runtime_error("cannot shorten " + path_ + ": " + errno_text(errno));
  } while (capacity != bytes);
}

void make_mounts_private() {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    throw std::runtime_error("cannot have mounts of its own: " + errno_text(errno));
}

std::filesystem::path memory() {
  const std::filesystem::path shared = "/dev/shm";
  const int fd = open(shared.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0 ? shared : std::filesystem::current_path();
}

void run_tool(const std::string& command) {
  if (std::system((command + " >/dev/null 2>&1").c_str()) != 0)
    throw std::runtime_error("failed: " + command);
}

int FakeEngine::submit(std::span<const IoRequest> requests) {
  int taken = 0;
  for (const IoRequest& request : requests) {
    const int result = on_submit(submissions++);
    if (result != 0) return taken > 0 ? taken : result;
    pending_.push_back({accepted.size(), request, {request.pieces.begin(), request.pieces.end()}});
    pending_.back().request.pieces = pending_.back().pieces;
    accepted.push_back({request.offset, bytes_of(request.pieces), request.pieces.front().iov_base});
    most_in_flight = std::max(most_in_flight, pending_.size());
    ++taken;
  }
  return taken;
}

int FakeEngine::reap(std::span<IoCompletion> out, unsigned, std::int64_t) {
  std::size_t count = 0;
  for (; count < out.size() && !pending_.empty(); ++count) {
    const Pending done = newest_first ? std::move(pending_.back()) : std::move(pending_.front());
    newest_first ? pending_.pop_back() : pending_.pop_front();
    const std::int64_t result = on_complete(done.number, done.request);
    std::uint64_t offset = done.request.offset;
    auto left = static_cast<std::size_t>(std::max<std::int64_t>(result, 0));
    disk.resize(std::max<std::size_t>(disk.size(), offset + left));
    for (const iovec& piece : done.pieces) {
      const std::size_t part = std::min(left, piece.iov_len);
      std::copy_n(static_cast<const std::byte*>(piece.iov_base), part,
                  disk.begin() + static_cast<std::ptrdiff_t>(offset));
      offset += part;
      left -= part;
    }
    out[count] = {done.request.tag, result};
  }
  return static_cast<int>(count);
}

int MeddlingEngine::submit(std::span<const IoRequest> requests) {
  sleep_until_monotonic_ns(monotonic_ns() + delay_ns_);
  return inner_->submit(requests);
}

int MeddlingEngine::reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) {
  const int count = inner_->reap(out, min_count, timeout_ns);
  for (int i = 0; i < count; ++i) {
    if (completed_++ == spoil_at_) out[static_cast<std::size_t>(i)].result = -error_;
  }
  return count;
}

int CountedEngine::reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) {
  const int count = MeddlingEngine::reap(out, min_count, timeout_ns);
  if (count > 0) completed_ += static_cast<std::size_t>(count);
  return count;
}

bool wait_until(const std::function<bool()>& holds, int limit_s) {
  for (int i = 0; i < limit_s * 100 && !holds(); ++i) usleep(10'000);
  return holds();
}

void wait_for_count(const std::atomic<std::size_t>& count, std::size_t enough) {
  wait_until([&] { return count >= enough; });
}

MiniDaqOptions small_record(const std::string& target) {
  MiniDaqOptions options;
  options.target = target;
  options.links = 3;
  options.superchunk_rate_hz = 2000;
  options.duration_s = 0.5;
  options.ring_bytes = 5 << 20;  // 470 ms of slack for a busy disk, and still more than one turn
  options.block_bytes = 256 << 10;
  options.seed = 42;
  options.zero_copy = false;
  return options;
}

EngineFactory aio_engine() {
  return [](unsigned depth) { return std::make_unique<AioEngine>(depth); };
}

MiniDaqResult record(const MiniDaqOptions& options, const EngineFactory& engine) {
  const std::atomic<int> never{0};
  return run_minidaq(options, plan_minidaq(options), engine, never);
}

MiniDaqResult record_in_full(const MiniDaqOptions& options, const EngineFactory& engine) {
  for (int trial = 1;; ++trial) {
    MiniDaqResult result = record(options, engine);
    if (result.stored == result.due || trial == 5) return result;
    std::filesystem::remove(options.target);
  }
}

std::map<std::string, std::uint64_t> Verified::wrong() const {
  std::map<std::string, std::uint64_t> counts;
  for (const auto& [kind, count] : json["superchunks"].items()) {
    if (kind != "present" && kind != "expected" && count != 0) counts[kind] = count;
  }
  return counts;
}

Verified verify(const TempDir& directory, const std::string& target, std::uint64_t offset,
                const std::optional<Sought>& sought) {
  const std::atomic<int> never{0};
  VerifyOptions options;
  options.target = target;
  options.offset = offset;
  options.sought = sought;
  options.json_path = directory.path("verify.json");
  const ExitCode code = run_verify(options, never);
  return {static_cast<int>(code), read_json(options.json_path)};
}

nlohmann::json verify_directory(const TempDir& scratch, const std::string& target, int exit_code) {
  const Verified result = verify(scratch, target);
  EXPECT_EQ(result.exit_code, exit_code) << result.json.dump(1);
  return result.json;
}

std::function<void(pid_t)> signal_after(int delay_ms, int signal_number) {
  return [=](pid_t child) {
    usleep(static_cast<useconds_t>(delay_ms) * 1000);
    kill(child, signal_number);
  };
}

void wait_for_lines(const std::string& file, std::size_t count) {
  wait_until([&] {
    std::ifstream in(file);
    return std::count(std::istreambuf_iterator<char>(in), {}, '\n') >= static_cast<std::ptrdiff_t>(count);
  });
}

void wait_for_stored(const std::string& file) {
  static const std::regex stored("stored_bytes=[1-9]");
  wait_until([&] {
    std::ifstream in(file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    return std::regex_search(text, stored);
  });
}

ProcessResult run_daqwriter(const std::vector<std::string>& arguments,
                            const std::function<void(pid_t)>& meanwhile) {
  std::string error_file = (fs::current_path() / "stderr-XXXXXX").string();
  const int error_fd = mkstemp(error_file.data());
  std::vector<char*> argv = {const_cast<char*>(DAQWRITER_BINARY)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(error_fd, STDERR_FILENO);
    execv(DAQWRITER_BINARY, argv.data());
    _exit(127);
  }
  meanwhile(child);
  int status = 0;
  waitpid(child, &status, 0);
  close(error_fd);
  std::ifstream in(error_file);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  fs::remove(error_file);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

nlohmann::json read_json(const std::string& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

std::vector<std::byte> random_bytes(std::size_t bytes) {
  std::mt19937_64 random(1);
  std::vector<std::byte> data(bytes);
  for (std::byte& each : data) each = static_cast<std::byte>(random());
  return data;
}

std::vector<std::byte> read_bytes(const std::string& path, std::uint64_t offset, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  const int fd = open(path.c_str(), O_RDONLY);
  const ssize_t got = pread(fd, data.data(), bytes, static_cast<off_t>(offset));
  close(fd);
  if (got != static_cast<ssize_t>(bytes)) throw std::runtime_error("short read of " + path);
  return data;
}

void write_bytes(const std::string& path, std::uint64_t offset, const std::vector<std::byte>& bytes) {
  const int fd = open(path.c_str(), O_WRONLY);
  const ssize_t put = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  // The verifier reads directly: what we wrote through the page cache has to be on the disk.
  const bool synced = fsync(fd) == 0;
  close(fd);
  if (put != static_cast<ssize_t>(bytes.size()) || !synced)
    throw std::runtime_error("short write of " + path);
}

void write_text(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << text;
}

}  // namespace daqwriter::testing
