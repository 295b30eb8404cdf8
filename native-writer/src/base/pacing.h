// Promise: pure arithmetic of the open loop. When superchunk i of a link is due, how many are due by a time,
// and what transient buffer an arrival curve and a service curve need. Times are nanoseconds after the
// record's start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace daqwriter {

// A source that hands over later than this after the intended time did not offer the load that was asked for,
// even if it catches up. Well above what a busy machine's scheduler does, and many times what the default
// rings hold at the nominal rate.
constexpr std::int64_t kInTimeNs = 500'000'000;

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
  // Another curve's buffer beside this one's.
  void add(const ServiceCurve& other) {
    durable_bytes_ += other.durable_bytes_;
    if (other.needed_bytes_ > needed_bytes_) needed_at_ns_ = other.needed_at_ns_;
    needed_bytes_ += other.needed_bytes_;
  }
  std::uint64_t needed_bytes() const { return needed_bytes_; }
  std::int64_t needed_at_ns() const { return needed_at_ns_; }

 private:
  std::uint64_t durable_bytes_ = 0;
  std::uint64_t needed_bytes_ = 0;
  std::int64_t needed_at_ns_ = 0;
};

// The bytes that the device made durable, over time and over the time in which it had work, to be replayed
// against a load other than the measured one.
class ServiceRecord {
 public:
  static constexpr std::size_t kMostSamples = 200'000;

  // Immediately before a completion; kept once per spacing(), which doubles when there are too many.
  void sample(std::int64_t t_ns, std::int64_t busy_ns, std::uint64_t durable_bytes);
  void end(std::int64_t t_ns, std::int64_t busy_ns, std::uint64_t durable_bytes);

  // Transient buffer that a load of this rate and length would need, bytes. `upper_bound`: if the device did
  // at every moment no more than it was seen to do. `estimate`: if it worked without pause at the pace that
  // it showed while it had work. Both go on at the mean rate where the measurement ends, and err by at most
  // spacing() of the load, which is added.
  struct Needed {
    std::uint64_t estimate = 0;
    std::uint64_t upper_bound = 0;
  };
  Needed needed(double bytes_per_s, double duration_s) const;

  std::int64_t spacing_ns() const { return spacing_ns_; }
  double busy_fraction() const;
  double busy_bytes_per_s() const;  // durable over the time with work

 private:
  struct Sample {
    std::int64_t t_ns = 0;
    std::int64_t busy_ns = 0;
    std::uint64_t durable_bytes = 0;
  };

  std::vector<Sample> samples_;
  Sample end_;
  std::int64_t spacing_ns_ = 1'000'000;
};

// The bytes that one writer made durable, completion by completion, so that the service curves of several
// can be put together afterwards: no writer looks at another one while they run.
class ServiceHistory {
 public:
  // Keeps up to `most_steps` (at least 2) completions; beyond them every second one is forgotten.
  explicit ServiceHistory(std::size_t most_steps);

  // After a completion. Arrived: immediately before it.
  void completed(std::int64_t t_ns, std::uint64_t arrived_bytes, std::uint64_t durable_bytes);
  // When no completion follows any more.
  void end(std::int64_t t_ns, std::uint64_t arrived_bytes);

 private:
  friend class JointServiceCurve;
  struct Step {
    std::int64_t t_ns = 0;
    std::uint64_t arrived_bytes = 0;
    std::uint64_t durable_bytes = 0;
  };

  void forget_every_second();

  std::size_t most_steps_;
  std::size_t spacing_ = 1;  // completions of a step
  std::size_t unnoted_ = 0;  // completions since the last step
  std::vector<Step> steps_;
  Step end_;
};

// max over t of the sum of all arrived(t) - the sum of all durable(t): what one transient buffer before all
// of them would need, never more than the sum of their own.
class JointServiceCurve {
 public:
  // `arrived`: of all of them together by a moment, where that is known exactly. Else what arrived between
  // two completions of a writer counts from the earlier one on.
  JointServiceCurve(const std::vector<const ServiceHistory*>& histories,
                    const std::function<std::uint64_t(std::int64_t t_ns)>& arrived);

  std::uint64_t needed_bytes() const { return needed_bytes_; }
  std::int64_t needed_at_ns() const { return needed_at_ns_; }
  // False: an upper bound, for lack of the exact arrivals, or because completions were forgotten.
  bool exact() const { return exact_; }

 private:
  std::uint64_t needed_bytes_ = 0;
  std::int64_t needed_at_ns_ = 0;
  bool exact_ = true;
};

}  // namespace daqwriter
