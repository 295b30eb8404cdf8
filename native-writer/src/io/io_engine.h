// Promise: the smallest interface to asynchronous block I/O, so that a fake can stand in for the kernel. One
// thread uses an engine. A buffer belongs to the engine from submit() until its completion has been reaped.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace daqwriter {

enum class IoDirection { read, write };

struct IoRequest {
  int fd = -1;
  IoDirection direction = IoDirection::write;
  std::span<const iovec> pieces;  // contiguous on the target; the iovecs need to live until submit() returns
  std::uint64_t offset = 0;
  std::uint64_t tag = 0;  // handed back with the completion
};

constexpr std::size_t bytes_of(std::span<const iovec> pieces) {
  std::size_t sum = 0;
  for (const iovec& piece : pieces) sum += piece.iov_len;
  return sum;
}

struct IoCompletion {
  std::uint64_t tag = 0;
  std::int64_t result = 0;  // bytes transferred, or -errno
};

class IoEngine {
 public:
  virtual ~IoEngine() = default;
  virtual std::string_view name() const = 0;
  // What a reader of the results should know about how it works here, e.g. why buffers are not registered.
  virtual std::string note() const { return ""; }
  // Memory from which requests will be made most of the time; an engine may register it with the kernel.
  virtual void register_memory(std::span<const iovec>) {}
  // Hands over as many of the first requests as there is room for, at least one. Returns their number, or
  // -errno of the first; -EAGAIN means that there is no room now and the same request may be submitted again.
  virtual int submit(std::span<const IoRequest> requests) = 0;
  // Fills `out` with at most out.size() completions; waits until `min_count` are there or the time has
  // passed. Returns their number, or -errno.
  virtual int reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) = 0;
};

}  // namespace daqwriter
