// Promise: the kernel's io_uring through liburing, with what this kernel grants of: a single submitting
// thread with deferred task work, a registered file, registered buffers, polled completions. Each is tried by
// itself; what is refused is done without, and the reason is told. Capacity is fixed at construction. The
// destructor waits for what is in flight, because the kernel owns those buffers, if the thread that submitted
// calls it; the kernel does not let another thread wait, which must have seen every completion before, or
// keep memory and file for as long as the process lives.
#pragma once

#include <liburing.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/io_engine.h"

namespace daqwriter {

// The calls that a test replaces to be a kernel that refuses, or takes a part. They return as liburing's do.
struct UringCalls {
  std::function<int(unsigned entries, io_uring*, io_uring_params*)> setup = io_uring_queue_init_params;
  std::function<int(io_uring*)> submit = io_uring_submit;
  std::function<int(io_uring*, io_uring_cqe**, unsigned least, __kernel_timespec*, sigset_t*)>
      submit_and_wait = io_uring_submit_and_wait_timeout;
  // Why completions of this file are not polled; empty: they may be.
  std::function<std::string(int fd)> not_polled;
};

class UringEngine : public IoEngine {
 public:
  // Throws Failure, with the remedy when io_uring is disabled.
  explicit UringEngine(unsigned depth, UringCalls calls = {});
  ~UringEngine() override;
  UringEngine(const UringEngine&) = delete;
  UringEngine& operator=(const UringEngine&) = delete;

  std::string_view name() const override { return "io_uring"; }
  std::string note() const override { return note_; }
  std::vector<Feature> features() const override;
  // Once, before the first request. Single pieces within the regions then need no page to be pinned at their
  // submission.
  void register_memory(std::span<const iovec> regions) override;
  // Once, before the first request.
  void register_file(int fd) override;
  int submit(std::span<const IoRequest> requests) override;
  int accept(std::span<const IoRequest> requests) override;
  std::vector<std::uint64_t> unsubmitted() const override;
  int reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) override;

 private:
  enum Kind { single_issuer, deferred_task_work, fixed_file, fixed_buffers, polling, kKinds };

  void open_ring();
  int open_ring(unsigned flags);
  void close_ring();
  void enable();
  void apply_file();
  void apply_memory();
  bool probe_polling(int fd);
  void use(Kind kind) { unused_[kind].reset(); }
  void leave(Kind kind, const std::string& reason) { unused_[kind] = reason; }
  bool uses(Kind kind) const { return !unused_[kind]; }
  std::optional<int> registered_index(const iovec& piece) const;
  void prepare(const IoRequest& request);
  int wait(unsigned least, std::int64_t timeout_ns);
  int poll(unsigned least, std::int64_t timeout_ns);
  unsigned waiting() const { return open_ ? io_uring_sq_ready(&ring_) : 0; }  // for the kernel to take them

  UringCalls calls_;
  io_uring ring_{};
  unsigned depth_;
  bool open_ = false;
  bool enabled_ = false;
  unsigned accepted_ = 0;                                  // and not reaped
  std::array<std::optional<std::string>, kKinds> unused_;  // the reason
  int file_ = -1;
  std::vector<iovec> regions_;     // at most as large as the kernel takes one
  std::vector<iovec> registered_;  // by the kernel's index
  std::string note_ = "buffers not registered";
};

}  // namespace daqwriter
