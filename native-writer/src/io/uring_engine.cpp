#include "io/uring_engine.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include "base/status.h"

namespace daqwriter {
namespace {

constexpr std::size_t kMostPerBuffer = std::size_t{1} << 30;  // the kernel's limit for one registered buffer

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

}  // namespace

UringEngine::UringEngine(unsigned depth) : depth_(depth) {
  const int error = -io_uring_queue_init(depth, &ring_, 0);
  if (error != 0)
    throw Failure("io_uring_setup for " + std::to_string(depth) + " requests: " + errno_text(error) + "; " +
                  remedy(error));
  // Waiting with a timeout would otherwise take a request of the ring (Linux 5.11).
  if ((ring_.features & IORING_FEAT_EXT_ARG) == 0) {
    io_uring_queue_exit(&ring_);
    throw Failure("io_uring of this kernel is too old (5.11 is needed); use --engine libaio");
  }
}

UringEngine::~UringEngine() {
  while (in_flight_ > 0) {
    io_uring_cqe* completion = nullptr;
    const int error = -io_uring_wait_cqe(&ring_, &completion);
    if (error == EINTR) continue;
    if (error != 0) break;
    io_uring_cqe_seen(&ring_, completion);
    --in_flight_;
  }
  io_uring_queue_exit(&ring_);
}

void UringEngine::register_memory(std::span<const iovec> regions) {
  std::vector<iovec> buffers;
  for (const iovec& region : regions) {
    for (std::size_t done = 0; done < region.iov_len; done += kMostPerBuffer)
      buffers.push_back(
          {static_cast<std::byte*>(region.iov_base) + done, std::min(region.iov_len - done, kMostPerBuffer)});
  }
  const int error = -io_uring_register_buffers(&ring_, buffers.data(), static_cast<unsigned>(buffers.size()));
  if (error == 0) {
    registered_ = std::move(buffers);
    note_ = "registered buffers: " + std::to_string(registered_.size());
  } else {
    note_ = "buffers not registered: " + errno_text(error) +
            (error == ENOMEM ? "; raise RLIMIT_MEMLOCK (ulimit -l)" : "");
  }
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
  const iovec& first = request.pieces.front();
  const auto index = request.pieces.size() == 1 ? registered_index(first) : std::nullopt;
  if (index) {
    const auto bytes = static_cast<unsigned>(first.iov_len);
    if (write) {
      io_uring_prep_write_fixed(entry, request.fd, first.iov_base, bytes, request.offset, *index);
    } else {
      io_uring_prep_read_fixed(entry, request.fd, first.iov_base, bytes, request.offset, *index);
    }
  } else {
    const auto count = static_cast<unsigned>(request.pieces.size());
    (write ? io_uring_prep_writev : io_uring_prep_readv)(entry, request.fd, &first, count, request.offset);
  }
  io_uring_sqe_set_data64(entry, request.tag);
}

int UringEngine::submit(std::span<const IoRequest> requests) {
  const auto count = static_cast<unsigned>(std::min<std::size_t>(requests.size(), depth_ - in_flight_));
  if (count == 0) return -EAGAIN;
  for (const IoRequest& request : requests.first(count)) prepare(request);
  const int taken = io_uring_submit(&ring_);
  const unsigned good = taken > 0 ? static_cast<unsigned>(taken) : 0;
  if (good < count) {
    // The caller offers the rest again: it must not stay in the queue as well. The kernel looks at the tail
    // only within io_uring_enter, so it may be drawn back here.
    ring_.sq.sqe_tail -= count - good;
    ring_.sq.sqe_head = ring_.sq.sqe_tail;
    *ring_.sq.ktail = ring_.sq.sqe_tail;
  }
  in_flight_ += good;
  if (taken == -EBUSY || taken == 0) return -EAGAIN;
  return taken;
}

int UringEngine::reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) {
  const auto least = static_cast<unsigned>(std::min<std::size_t>(min_count, out.size()));
  if (io_uring_cq_ready(&ring_) < least) {
    __kernel_timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
    io_uring_cqe* first = nullptr;
    const int error = -io_uring_wait_cqes(&ring_, &first, least, &timeout, nullptr);
    if (error != 0 && error != ETIME && error != EINTR && error != EAGAIN) return -error;
  }
  std::array<io_uring_cqe*, 64> ready{};
  const auto most = static_cast<unsigned>(std::min(out.size(), ready.size()));
  const unsigned count = io_uring_peek_batch_cqe(&ring_, ready.data(), most);
  for (unsigned i = 0; i < count; ++i)
    out[i] = {io_uring_cqe_get_data64(ready[i]), static_cast<std::int64_t>(ready[i]->res)};
  io_uring_cq_advance(&ring_, count);
  in_flight_ -= count;
  return static_cast<int>(count);
}

}  // namespace daqwriter
