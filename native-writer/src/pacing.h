// Promise: pure arithmetic of the open loop. When superchunk i of a link is due, how many are due by a time,
// and what transient buffer an arrival curve and a service curve need. Times are nanoseconds after the
// record's start.
#pragma once

#include <cstdint>

namespace daqwriter {

// Links emit at the same rate, staggered by a fraction of the period so that they do not arrive in one
// volley.
class ArrivalSchedule {
 public:
  // rate_hz: superchunks per second and link.
  ArrivalSchedule(std::uint32_t links, double rate_hz, double duration_s);

  std::uint32_t links() const { return links_; }
  double rate_hz() const { return 1e9 / period_ns_; }
  std::int64_t duration_ns() const { return duration_ns_; }
  std::int64_t intended_ns(std::uint32_t link, std::uint64_t index) const;
  // How many superchunks of the link have an intended arrival <= t_ns and inside the duration.
  std::uint64_t due_by(std::uint32_t link, std::int64_t t_ns) const;
  std::uint64_t due_by(std::int64_t t_ns) const;  // all links
  std::uint64_t total() const { return due_by(duration_ns_); }

 private:
  std::uint32_t links_;
  double period_ns_;
  std::int64_t duration_ns_;
};

// max over t of arrived(t) - durable(t). Arrivals only grow and durable bytes only change at completions, so
// the difference peaks immediately before a completion: looking only there (and at the end) is exact, not
// sampled.
class ServiceCurve {
 public:
  void completed(std::int64_t t_ns, std::uint64_t arrived_bytes, std::uint64_t completed_bytes) {
    observe(t_ns, arrived_bytes);
    durable_bytes_ += completed_bytes;
  }
  // Also to be called with the last arrival's time, after which only completions follow.
  void observe(std::int64_t t_ns, std::uint64_t arrived_bytes) {
    const std::uint64_t backlog = arrived_bytes > durable_bytes_ ? arrived_bytes - durable_bytes_ : 0;
    if (backlog <= needed_bytes_) return;
    needed_bytes_ = backlog;
    needed_at_ns_ = t_ns;
  }
  std::uint64_t needed_bytes() const { return needed_bytes_; }
  std::int64_t needed_at_ns() const { return needed_at_ns_; }

 private:
  std::uint64_t durable_bytes_ = 0;
  std::uint64_t needed_bytes_ = 0;
  std::int64_t needed_at_ns_ = 0;
};

}  // namespace daqwriter
