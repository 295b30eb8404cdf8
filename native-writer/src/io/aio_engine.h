// Promise: the kernel's AIO through libaio. Capacity is fixed at construction; the destructor waits for what
// is in flight, because the kernel owns those buffers.
#pragma once

#include <libaio.h>

#include <string>
#include <vector>

#include "io/io_engine.h"

namespace daqwriter {

class AioEngine : public IoEngine {
 public:
  explicit AioEngine(
      unsigned depth);  // throws Failure, with aio-nr and aio-max-nr when the system limit is hit
  ~AioEngine() override;
  AioEngine(const AioEngine&) = delete;
  AioEngine& operator=(const AioEngine&) = delete;

  std::string_view name() const override { return "libaio"; }
  int submit(std::span<const IoRequest> requests) override;
  int reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) override;

 private:
  io_context_t context_ = nullptr;
  std::vector<iocb> blocks_;
  std::vector<iocb*> free_;
  std::vector<io_event> events_;
};

// "aio-nr 12 of aio-max-nr 65536": what an EAGAIN needs beside it.
std::string aio_limits_text();

}  // namespace daqwriter
