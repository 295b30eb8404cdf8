#include "aio_engine.h"

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "status.h"

namespace daqwriter {

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

int AioEngine::submit(const IoRequest& request) {
  if (free_.empty()) return -EAGAIN;
  iocb* block = free_.back();
  const auto offset = static_cast<long long>(request.offset);
  if (request.direction == IoDirection::write) {
    io_prep_pwrite(block, request.fd, request.data, request.bytes, offset);
  } else {
    io_prep_pread(block, request.fd, request.data, request.bytes, offset);
  }
  block->data = reinterpret_cast<void*>(request.tag);
  const int result = io_submit(context_, 1, &block);
  if (result == 1) {
    free_.pop_back();
    return 0;
  }
  return result == 0 ? -EAGAIN : result;
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
