// Promise: the smallest interface to asynchronous block I/O, so that a fake can stand in for the kernel. One
// thread uses an engine. A buffer belongs to the engine from submit() until its completion has been reaped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace daqwriter {

enum class IoDirection { read, write };

struct IoRequest {
  int fd = -1;
  IoDirection direction = IoDirection::write;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::uint64_t offset = 0;
  std::uint64_t tag = 0;  // handed back with the completion
};

struct IoCompletion {
  std::uint64_t tag = 0;
  std::int64_t result = 0;  // bytes transferred, or -errno
};

class IoEngine {
 public:
  virtual ~IoEngine() = default;
  virtual std::string_view name() const = 0;
  // 0, or -errno; -EAGAIN means that the kernel has no room now and the same request may be submitted again.
  virtual int submit(const IoRequest& request) = 0;
  // Fills `out` with at most out.size() completions; waits until `min_count` are there or the time has
  // passed. Returns their number, or -errno.
  virtual int reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) = 0;
};

}  // namespace daqwriter
