#include "io/aio_engine.h"

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "base/status.h"

namespace daqwriter {
namespace {

void prepare(const IoRequest& request, iocb& block) {
  const bool write = request.direction == IoDirection::write;
  const auto offset = static_cast<long long>(request.offset);
  if (request.pieces.size() == 1) {
    const iovec& piece = request.pieces.front();
    (write ? io_prep_pwrite : io_prep_pread)(&block, request.fd, piece.iov_base, piece.iov_len, offset);
  } else {
    const auto count = static_cast<int>(request.pieces.size());
    (write ? io_prep_pwritev : io_prep_preadv)(&block, request.fd, request.pieces.data(), count, offset);
  }
  block.data = reinterpret_cast<void*>(request.tag);
}

}  // namespace

AioEngine::AioEngine(unsigned depth) : blocks_(depth), events_(depth) {
  for (iocb& block : blocks_) free_.push_back(&block);
  const int error = io_setup(static_cast<int>(depth), &context_);
  if (error != 0)
    throw Failure("io_setup for " + std::to_string(depth) + " requests: " + errno_text(-error) + "; " +
                  aio_limits_text() + "; raise fs.aio-max-nr or lower --io-depth");
}

AioEngine::~AioEngine() {
  io_destroy(context_);  // blocks until every request in flight has completed
}

int AioEngine::submit(std::span<const IoRequest> requests) {
  const std::size_t count = std::min(requests.size(), free_.size());
  if (count == 0) return -EAGAIN;
  iocb** const batch = free_.data() + (free_.size() - count);
  for (std::size_t i = 0; i < count; ++i) prepare(requests[i], *batch[i]);
  const int taken = io_submit(context_, static_cast<long>(count), batch);
  if (taken <= 0) return taken == 0 ? -EAGAIN : taken;
  // The first ones were taken: close the gap that they leave in the list of free blocks.
  free_.erase(free_.end() - static_cast<std::ptrdiff_t>(count),
              free_.end() - static_cast<std::ptrdiff_t>(count) + taken);
  return taken;
}

int AioEngine::reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) {
  timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  const std::size_t most = std::min(out.size(), events_.size());
  const int count = io_getevents(context_, static_cast<long>(std::min<std::size_t>(min_count, most)),
                                 static_cast<long>(most), events_.data(), &timeout);
  if (count == -EINTR) return 0;
  for (int i = 0; i < count; ++i) {
    const io_event& event = events_[static_cast<std::size_t>(i)];
    // libaio declares res unsigned; the kernel's value is signed.
    out[static_cast<std::size_t>(i)] = {reinterpret_cast<std::uint64_t>(event.data),
                                        static_cast<std::int64_t>(event.res)};
    free_.push_back(event.obj);
  }
  return count;
}

std::string aio_limits_text() {
  std::string used = "?";
  std::string limit = "?";
  std::ifstream("/proc/sys/fs/aio-nr") >> used;
  std::ifstream("/proc/sys/fs/aio-max-nr") >> limit;
  return "aio-nr " + used + " of aio-max-nr " + limit;
}

}  // namespace daqwriter
