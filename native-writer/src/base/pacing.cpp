#include "base/pacing.h"

#include <algorithm>
#include <cmath>

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

}  // namespace daqwriter
