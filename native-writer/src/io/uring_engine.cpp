#include "io/uring_engine.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

namespace daqwriter {
namespace {

constexpr std::size_t kMostPerBuffer = std::size_t{1} << 30;  // the kernel's limit for one registered buffer
constexpr std::int64_t kRefusedNs = 1'000'000;  // until a kernel that is short of memory is asked again
constexpr unsigned kDeferred = IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;

std::string remedy(int error) {
  std::string disabled = "0";
  std::ifstream("/proc/sys/kernel/io_uring_disabled") >> disabled;
  if (disabled != "0")
    return "kernel.io_uring_disabled is " + disabled + "; set it to 0 or use --engine libaio";
  if (error == EPERM || error == EACCES)
    return "forbidden here (seccomp filter of a container?); allow the io_uring system calls or use --engine "
           "libaio";
  if (error == ENOMEM) return "raise RLIMIT_MEMLOCK (ulimit -l) or lower --io-depth";
  return "this kernel does not offer it; use --engine libaio";
}

Failure setup_failure(unsigned depth, int error) {
  return Failure("io_uring_setup for " + std::to_string(depth) + " requests: " + errno_text(error) + "; " +
                 remedy(error));
}

__kernel_timespec timespec_of(std::int64_t ns) {
  return {ns / 1'000'000'000, ns % 1'000'000'000};
}

// The call may be made again: nothing was lost.
bool passes(int error) {
  return error == ETIME || error == EINTR || error == EAGAIN || error == EBUSY;
}

// Polling pays on a whole NVMe namespace with polling queues; everywhere else it only takes a core.
std::string not_polled_by_sysfs(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISBLK(status.st_mode)) return "not a raw NVMe drive";
  std::error_code error;
  const std::filesystem::path device = std::filesystem::canonical(
      "/sys/dev/block/" + std::to_string(major(status.st_rdev)) + ":" + std::to_string(minor(status.st_rdev)),
      error);
  if (error || !device.filename().string().starts_with("nvme")) return "not a raw NVMe drive";
  std::string granted = "0";
  std::ifstream(device / "queue/io_poll") >> granted;
  return granted == "1" ? "" : "the drive has no polling queues (nvme.poll_queues)";
}

}  // namespace

UringEngine::UringEngine(unsigned depth, UringCalls calls) : calls_(std::move(calls)), depth_(depth) {
  if (!calls_.not_polled) calls_.not_polled = not_polled_by_sysfs;
  leave(fixed_file, "no file was named");
  leave(fixed_buffers, "no memory was named");
  leave(polling, "no file was named");
  open_ring();
}

// The ring is enabled by the thread that submits: the kernel takes the enabling one for the single issuer.
void UringEngine::open_ring() {
  struct Attempt {
    unsigned flags;
    bool single;
    bool deferred;
  };
  constexpr std::array<Attempt, 3> kAttempts = {
      Attempt{IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER | kDeferred, true, true},
      Attempt{IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER, true, false}, Attempt{0, false, false}};
  int error = 0;
  for (const Attempt& attempt : kAttempts) {
    const std::string reason = "the kernel refused it: " + errno_text(error);
    attempt.single ? use(single_issuer) : leave(single_issuer, reason);
    if (attempt.deferred)
      use(deferred_task_work);
    else if (uses(deferred_task_work))
      leave(deferred_task_work, reason);
    error = open_ring(attempt.flags | (uses(polling) ? unsigned{IORING_SETUP_IOPOLL} : 0u));
    if (error != EINVAL) break;  // flags that it does not know
  }
  if (error != 0) throw setup_failure(depth_, error);
  // Waiting with a timeout would otherwise take a request of the ring (Linux 5.11).
  if ((ring_.features & IORING_FEAT_EXT_ARG) == 0) {
    close_ring();
    throw Failure("io_uring of this kernel is too old (5.11 is needed); use --engine libaio");
  }
}

int UringEngine::open_ring(unsigned flags) {
  io_uring_params params{};
  params.flags = flags;
  const int error = -calls_.setup(depth_, &ring_, &params);
  open_ = error == 0;
  enabled_ = (flags & IORING_SETUP_R_DISABLED) == 0;
  return error;
}

void UringEngine::close_ring() {
  if (open_) io_uring_queue_exit(&ring_);
  open_ = false;
}

UringEngine::~UringEngine() {
  while (accepted_ > waiting()) {
    io_uring_cqe* completion = nullptr;
    const int error = -io_uring_wait_cqe(&ring_, &completion);
    if (error == EINTR) continue;
    if (error != 0) break;
    io_uring_cqe_seen(&ring_, completion);
    --accepted_;
  }
  close_ring();
}

std::vector<Feature> UringEngine::features() const {
  constexpr std::array<const char*, kKinds> kNames = {
      "single issuer", "deferred task work", "registered file", "registered buffers", "polled completions"};
  std::vector<Feature> all;
  for (std::size_t i = 0; i < kKinds; ++i) all.push_back({kNames[i], !unused_[i], unused_[i].value_or("")});
  return all;
}

void UringEngine::register_memory(std::span<const iovec> regions) {
  for (const iovec& region : regions) {
    for (std::size_t done = 0; done < region.iov_len; done += kMostPerBuffer)
      regions_.push_back(
          {static_cast<std::byte*>(region.iov_base) + done, std::min(region.iov_len - done, kMostPerBuffer)});
  }
  apply_memory();
}

void UringEngine::apply_memory() {
  if (regions_.empty()) return;
  registered_.clear();
  const int error =
      -io_uring_register_buffers(&ring_, regions_.data(), static_cast<unsigned>(regions_.size()));
  if (error == 0) {
    registered_ = regions_;
    note_ = "registered buffers: " + std::to_string(registered_.size());
    use(fixed_buffers);
  } else {
    const std::string reason =
        errno_text(error) + (error == ENOMEM ? "; raise RLIMIT_MEMLOCK (ulimit -l)" : "");
    note_ = "buffers not registered: " + reason;
    leave(fixed_buffers, reason);
  }
}

// Polling is a property of the whole ring: one with it takes the place of this one, in which nothing was
// submitted yet.
void UringEngine::register_file(int fd) {
  file_ = fd;
  const std::string reason = calls_.not_polled(fd);
  if (!reason.empty()) {
    leave(polling, reason);
  } else if (probe_polling(fd)) {
    use(polling);
    close_ring();
    open_ring();
    apply_memory();
  }
  apply_file();
}

void UringEngine::apply_file() {
  if (file_ < 0) return;
  const int error = -io_uring_register_files(&ring_, &file_, 1);
  error == 0 ? use(fixed_file) : leave(fixed_file, errno_text(error));
}

// Reads the beginning of the drive through a ring of its own: only a completion proves that polling works.
bool UringEngine::probe_polling(int fd) {
  constexpr std::int64_t kPatienceNs = 200'000'000;
  constexpr unsigned kBytes = 1u << 16;  // a multiple of every sector
  io_uring probe{};
  io_uring_params params{};
  params.flags = IORING_SETUP_IOPOLL;
  int error = -calls_.setup(1, &probe, &params);
  if (error != 0) {
    leave(polling, "the kernel refused it: " + errno_text(error));
    return false;
  }
  // Unmapped at the end also when the read is still going on: the kernel keeps its pages.
  const Memory memory(kBytes, std::nullopt);
  io_uring_prep_read(io_uring_get_sqe(&probe), fd, memory.data(), kBytes, 0);
  io_uring_cqe* completion = nullptr;
  error = std::min(0, io_uring_submit(&probe));
  for (const std::int64_t until = monotonic_ns() + kPatienceNs; error == 0 && monotonic_ns() < until;) {
    if (io_uring_get_events(&probe) < 0 || io_uring_cq_ready(&probe) > 0) break;
  }
  const bool answered =
      error == 0 && io_uring_cq_ready(&probe) > 0 && io_uring_peek_cqe(&probe, &completion) == 0;
  if (answered) error = completion->res < 0 ? completion->res : 0;
  const bool good = answered && completion->res == static_cast<int>(kBytes);
  if (!good)
    leave(polling,
          error != 0 ? "a polled read failed: " + errno_text(-error) : "a polled read did not complete");
  io_uring_queue_exit(&probe);
  return good;
}

// By the thread that submits. A kernel or a filter that does not let it: a ring that needs no enabling.
void UringEngine::enable() {
  if (enabled_) return;
  // By number: Debian's liburing 2.3 does not export io_uring_enable_rings.
  const int refused =
      -io_uring_register(static_cast<unsigned>(ring_.ring_fd), IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
  if (refused != 0) {
    const std::string reason = "the ring was not enabled: " + errno_text(refused);
    for (const Kind each : {single_issuer, deferred_task_work}) leave(each, reason);
    close_ring();
    const int error = open_ring(uses(polling) ? unsigned{IORING_SETUP_IOPOLL} : 0u);
    if (error != 0) throw setup_failure(depth_, error);
    apply_memory();
    apply_file();
  }
  enabled_ = true;
}

std::optional<int> UringEngine::registered_index(const iovec& piece) const {
  const auto* begin = static_cast<const std::byte*>(piece.iov_base);
  const auto holds = [&](const iovec& buffer) {
    const auto* first = static_cast<const std::byte*>(buffer.iov_base);
    return begin >= first && begin + piece.iov_len <= first + buffer.iov_len;
  };
  const auto found = std::find_if(registered_.begin(), registered_.end(), holds);
  if (found == registered_.end()) return std::nullopt;
  return static_cast<int>(found - registered_.begin());
}

void UringEngine::prepare(const IoRequest& request) {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);  // there is one: the ring has room for depth_ requests
  const bool write = request.direction == IoDirection::write;
  const bool fixed = uses(fixed_file) && request.fd == file_;
  const int fd = fixed ? 0 : request.fd;  // the kernel's index
  const iovec& first = request.pieces.front();
  const auto bytes = static_cast<unsigned>(first.iov_len);
  const auto index = request.pieces.size() == 1 ? registered_index(first) : std::nullopt;
  if (index) {
    (write ? io_uring_prep_write_fixed(entry, fd, first.iov_base, bytes, request.offset, *index)
           : io_uring_prep_read_fixed(entry, fd, first.iov_base, bytes, request.offset, *index));
  } else if (request.pieces.size() == 1) {
    (write ? io_uring_prep_write(entry, fd, first.iov_base, bytes, request.offset)
           : io_uring_prep_read(entry, fd, first.iov_base, bytes, request.offset));
  } else {
    const auto count = static_cast<unsigned>(request.pieces.size());
    (write ? io_uring_prep_writev : io_uring_prep_readv)(entry, fd, &first, count, request.offset);
  }
  if (fixed) io_uring_sqe_set_flags(entry, IOSQE_FIXED_FILE);
  io_uring_sqe_set_data64(entry, request.tag);
}

int UringEngine::accept(std::span<const IoRequest> requests) {
  enable();
  const auto count = static_cast<unsigned>(std::min<std::size_t>(requests.size(), depth_ - accepted_));
  if (count == 0) return -EAGAIN;
  for (const IoRequest& request : requests.first(count)) prepare(request);
  accepted_ += count;
  return static_cast<int>(count);
}

// Requests that the kernel does not take stay in the ring. The next reap() tells an error of the ring.
int UringEngine::submit(std::span<const IoRequest> requests) {
  const int count = accept(requests);
  if (waiting() > 0) calls_.submit(&ring_);
  return count;
}

std::vector<std::uint64_t> UringEngine::unsubmitted() const {
  std::vector<std::uint64_t> tags;
  const unsigned count = waiting();
  for (unsigned i = 0; i < count; ++i)
    tags.push_back(ring_.sq.sqes[(ring_.sq.sqe_tail - count + i) & ring_.sq.ring_mask].user_data);
  return tags;
}

int UringEngine::reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) {
  enable();
  const auto least = static_cast<unsigned>(std::min<std::size_t>(min_count, out.size()));
  const int error = uses(polling) ? poll(least, timeout_ns) : wait(least, timeout_ns);
  std::array<io_uring_cqe*, 64> ready{};
  const auto most = static_cast<unsigned>(std::min(out.size(), ready.size()));
  const unsigned count = io_uring_peek_batch_cqe(&ring_, ready.data(), most);
  if (count == 0 && error != 0) return -error;  // what completed is handed over before it is told
  for (unsigned i = 0; i < count; ++i) {
    // Nobody cancels here: the kernel gives a request up so, undone, when signals keep it from starting a
    // worker. Callers ask again.
    const std::int64_t result = ready[i]->res == -ECANCELED ? -EINTR : ready[i]->res;
    out[i] = {io_uring_cqe_get_data64(ready[i]), result};
  }
  io_uring_cq_advance(&ring_, count);
  accepted_ -= std::min(accepted_, count);
  return static_cast<int>(count);
}

// Hands over and waits in one call. Returns 0, or an errno that no further call will heal.
int UringEngine::wait(unsigned least, std::int64_t timeout_ns) {
  if (io_uring_cq_ready(&ring_) >= least) {
    const int result = waiting() > 0 ? calls_.submit(&ring_) : 0;
    return result >= 0 || passes(-result) ? 0 : -result;
  }
  __kernel_timespec timeout = timespec_of(timeout_ns);
  io_uring_cqe* first = nullptr;
  int error = -std::min(0, calls_.submit_and_wait(&ring_, &first, least, &timeout, nullptr));
  const bool refused = waiting() > 0 && (error == EAGAIN || error == EBUSY);
  if (refused && io_uring_cq_ready(&ring_) < least) {
    // Short of memory: what is in flight gives some back when it completes.
    timeout = timespec_of(std::min(timeout_ns, kRefusedNs));
    error = -std::min(0, io_uring_wait_cqes(&ring_, &first, least, &timeout, nullptr));
  }
  return passes(error) ? 0 : error;
}

// The kernel's own waiting would have no end if the drive never answered, so the clock is looked at here.
int UringEngine::poll(unsigned least, std::int64_t timeout_ns) {
  const std::int64_t until = monotonic_ns() + timeout_ns;
  for (;;) {
    const int result = waiting() > 0 ? calls_.submit(&ring_) : io_uring_get_events(&ring_);
    if (result < 0 && !passes(-result)) return -result;
    if (io_uring_cq_ready(&ring_) >= least || monotonic_ns() >= until) return 0;
  }
}

}  // namespace daqwriter
