// Promise: the smallest interface to asynchronous block I/O, so that a fake can stand in for the kernel. One
// thread makes all requests and reaps them; another one may construct the engine, tell it of memory and file
// before, and destroy it afterwards. A buffer belongs to the engine from the request's acceptance until its
// completion has been reaped.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/feature.h"

namespace daqwriter {

enum class IoDirection { read, write };

struct IoRequest {
  int fd = -1;
  IoDirection direction = IoDirection::write;
  std::span<const iovec> pieces;  // contiguous on the target; the iovecs live until the completion is reaped
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
  // Tells the reader of the results how the engine works here, e.g. why buffers are not registered.
  virtual std::string note() const { return ""; }
  virtual std::vector<Feature> features() const { return {}; }
  // Memory from which requests will be made most of the time; an engine may register it with the kernel.
  virtual void register_memory(std::span<const iovec>) {}
  // The open file of most requests: no other one may have its number as long as requests are made.
  virtual void register_file(int) {}
  // Accepts as many of the first requests as there is room for, at least one, and hands them to the kernel.
  // Returns their number, or -errno of the first, which is then not accepted; -EAGAIN means that there is no
  // room now and the same request may be submitted again. An accepted request must not be submitted again,
  // also when the kernel did not take it yet: see unsubmitted().
  virtual int submit(std::span<const IoRequest> requests) = 0;
  // As submit(), for a caller that calls reap() next: the engine may leave it to that call to hand them over.
  virtual int accept(std::span<const IoRequest> requests) { return submit(requests); }
  // Tags of the accepted requests that the kernel has not been given, in their order. Every call of submit()
  // and reap() offers them again. When no call follows, nothing is ever done for them.
  virtual std::vector<std::uint64_t> unsubmitted() const { return {}; }
  // Fills `out` with at most out.size() completions; waits until `min_count` are there, the time has passed
  // or a signal came. Returns their number, or -errno.
  virtual int reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) = 0;
};

}  // namespace daqwriter
