// Promise: the kernel's io_uring through liburing. Capacity is fixed at construction; the destructor waits
// for what is in flight, because the kernel owns those buffers.
#pragma once

#include <liburing.h>

#include <optional>
#include <string>
#include <vector>

#include "io/io_engine.h"

namespace daqwriter {

class UringEngine : public IoEngine {
 public:
  explicit UringEngine(unsigned depth);  // throws Failure, with the remedy when io_uring is disabled
  ~UringEngine() override;
  UringEngine(const UringEngine&) = delete;
  UringEngine& operator=(const UringEngine&) = delete;

  std::string_view name() const override { return "io_uring"; }
  std::string note() const override { return note_; }
  // Once. Single pieces within the regions then need no page to be pinned at their submission.
  void register_memory(std::span<const iovec> regions) override;
  int submit(std::span<const IoRequest> requests) override;
  int reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) override;

 private:
  std::optional<int> registered_index(const iovec& piece) const;
  void prepare(const IoRequest& request);

  io_uring ring_{};
  unsigned depth_;
  unsigned in_flight_ = 0;
  std::vector<iovec> registered_;  // by the kernel's index
  std::string note_ = "buffers not registered";
};

}  // namespace daqwriter
