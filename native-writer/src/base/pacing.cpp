#include "base/pacing.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace daqwriter {

ArrivalSchedule::ArrivalSchedule(std::uint32_t links, double rate_hz, double duration_s)
    : links_(links), period_ns_(1e9 / rate_hz), duration_ns_(std::llround(duration_s * 1e9)) {}

std::int64_t ArrivalSchedule::intended_ns(std::uint32_t link, std::uint64_t index) const {
  const double phase = period_ns_ * static_cast<double>(link) / static_cast<double>(links_);
  constexpr double kNever = 9e18;  // what a signed 64-bit number of nanoseconds can hold
  return static_cast<std::int64_t>(std::min(phase + static_cast<double>(index) * period_ns_, kNever));
}

std::uint64_t ArrivalSchedule::due_by(std::uint32_t link, std::int64_t t_ns) const {
  const std::int64_t t = std::min(t_ns, duration_ns_ - 1);
  if (t < intended_ns(link, 0)) return 0;
  // The division is a guess within one of the answer; intended_ns() alone decides.
  const double guess = static_cast<double>(t - intended_ns(link, 0)) / period_ns_;
  auto count = static_cast<std::uint64_t>(guess) + 1;
  while (count > 0 && intended_ns(link, count - 1) > t) --count;
  while (intended_ns(link, count) <= t) ++count;
  return count;
}

std::uint64_t ArrivalSchedule::due_by(std::int64_t t_ns) const {
  std::uint64_t sum = 0;
  for (std::uint32_t link = 0; link < links_; ++link) sum += due_by(link, t_ns);
  return sum;
}

void ServiceRecord::sample(std::int64_t t_ns, std::int64_t busy_ns, std::uint64_t durable_bytes) {
  if (!samples_.empty() && t_ns < samples_.back().t_ns + spacing_ns_) return;
  if (samples_.size() == kMostSamples) {
    for (std::size_t i = 0; i < kMostSamples / 2; ++i) samples_[i] = samples_[2 * i];
    samples_.resize(kMostSamples / 2);
    spacing_ns_ *= 2;
  }
  samples_.push_back({t_ns, busy_ns, durable_bytes});
}

void ServiceRecord::end(std::int64_t t_ns, std::int64_t busy_ns, std::uint64_t durable_bytes) {
  end_ = {t_ns, busy_ns, durable_bytes};
}

ServiceRecord::Needed ServiceRecord::needed(double bytes_per_s, double duration_s) const {
  const auto over = [&](std::int64_t Sample::*clock) {
    double most = 0;
    const auto look = [&](double t_s, double durable) {
      most = std::max(most, bytes_per_s * std::min(t_s, duration_s) - durable);
    };
    for (const Sample& sample : samples_)
      look(static_cast<double>(sample.*clock) * 1e-9, static_cast<double>(sample.durable_bytes));
    const double end_s = static_cast<double>(end_.*clock) * 1e-9;
    const auto durable = static_cast<double>(end_.durable_bytes);
    look(end_s, durable);
    if (duration_s > end_s && end_s > 0) look(duration_s, durable * duration_s / end_s);
    return static_cast<std::uint64_t>(most + bytes_per_s * static_cast<double>(spacing_ns_) * 1e-9);
  };
  return {over(&Sample::busy_ns), over(&Sample::t_ns)};
}

double ServiceRecord::busy_fraction() const {
  return end_.t_ns > 0 ? static_cast<double>(end_.busy_ns) / static_cast<double>(end_.t_ns) : 0;
}

double ServiceRecord::busy_bytes_per_s() const {
  const double busy_s = static_cast<double>(end_.busy_ns) * 1e-9;
  return busy_s > 0 ? static_cast<double>(end_.durable_bytes) / busy_s : 0;
}

ServiceHistory::ServiceHistory(std::size_t most_steps) : most_steps_(std::max<std::size_t>(most_steps, 2)) {
  steps_.reserve(most_steps_);  // the data path does not allocate; untouched memory costs nothing
}

void ServiceHistory::completed(std::int64_t t_ns, std::uint64_t arrived_bytes, std::uint64_t durable_bytes) {
  end_ = {t_ns, arrived_bytes, durable_bytes};
  if (++unnoted_ < spacing_) return;
  unnoted_ = 0;
  if (steps_.size() == most_steps_) forget_every_second();
  steps_.push_back(end_);
}

void ServiceHistory::end(std::int64_t t_ns, std::uint64_t arrived_bytes) {
  end_.t_ns = t_ns;
  end_.arrived_bytes = arrived_bytes;
}

void ServiceHistory::forget_every_second() {
  for (std::size_t i = 0; i < steps_.size() / 2; ++i) steps_[i] = steps_[2 * i + 1];
  steps_.resize(steps_.size() / 2);
  spacing_ *= 2;
}

// The sum peaks immediately before a completion or at an end, so one look at each of them is exact. Where
// steps are missing, a writer counts as durable what it was at its last step, and as arrived what it will be
// at its next one: both err to the safe side, and then no moment is overlooked either, since until the next
// step of whatever writer the bound does not fall.
JointServiceCurve::JointServiceCurve(const std::vector<const ServiceHistory*>& histories,
                                     const std::function<std::uint64_t(std::int64_t)>& arrived)
    : exact_(arrived || histories.size() < 2) {
  struct Reader {
    const ServiceHistory* history;
    std::size_t next = 0;
    const ServiceHistory::Step& step() const {
      return next < history->steps_.size() ? history->steps_[next] : history->end_;
    }
    bool over() const { return next > history->steps_.size(); }
    std::uint64_t durable() const {
      if (over()) return history->end_.durable_bytes;
      return next == 0 ? 0 : history->steps_[next - 1].durable_bytes;
    }
  };
  std::vector<Reader> readers;
  std::uint64_t arrived_by_next = 0;  // of all, by the next step of each
  std::uint64_t durable = 0;
  const auto later = [&](std::size_t one, std::size_t other) {
    return readers[one].step().t_ns > readers[other].step().t_ns;
  };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> queue(later);
  for (const ServiceHistory* history : histories) {
    readers.push_back({history});
    arrived_by_next += readers.back().step().arrived_bytes;
    exact_ = exact_ && history->spacing_ == 1;
    queue.push(readers.size() - 1);
  }
  while (!queue.empty()) {
    const std::size_t first = queue.top();
    queue.pop();
    Reader& reader = readers[first];
    const std::int64_t t_ns = reader.step().t_ns;
    const std::uint64_t by_then = arrived ? arrived(t_ns) : arrived_by_next;
    if (by_then > durable && by_then - durable > needed_bytes_) {
      needed_bytes_ = by_then - durable;
      needed_at_ns_ = t_ns;
    }
    const std::uint64_t arrived_before = reader.step().arrived_bytes;
    const std::uint64_t durable_before = reader.durable();
    ++reader.next;
    durable += reader.durable() - durable_before;
    if (reader.over()) continue;  // what it did not make durable stays counted
    arrived_by_next += reader.step().arrived_bytes - arrived_before;
    queue.push(first);
  }
}

}  // namespace daqwriter
