#include "pacing.h"

#include <algorithm>
#include <cmath>

namespace daqwriter {

ArrivalSchedule::ArrivalSchedule(std::uint32_t links, double rate_hz, double duration_s)
    : links_(links), period_ns_(1e9 / rate_hz), duration_ns_(std::llround(duration_s * 1e9)) {}

std::int64_t ArrivalSchedule::intended_ns(std::uint32_t link, std::uint64_t index) const {
  const double phase = period_ns_ * static_cast<double>(link) / static_cast<double>(links_);
  return static_cast<std::int64_t>(phase + static_cast<double>(index) * period_ns_);
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

}  // namespace daqwriter
