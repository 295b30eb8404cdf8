// Promise: how long one call takes, from enough calls that reading the clock does not show.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace daqwriter {

// Calls `call` for at least `time_s`; false from it ends the measurement. Nanoseconds per call, or 0 if it
// was ended.
template <typename Call>
double ns_per_call(double time_s, const Call& call) {
  constexpr std::int64_t kLeastBatches = 16;
  const auto time_ns = static_cast<std::int64_t>(time_s * 1e9);
  const std::int64_t start = monotonic_ns();
  std::uint64_t calls = 0;
  std::int64_t elapsed = 0;
  for (std::uint64_t batch = 1; elapsed < time_ns || calls == 0;) {
    for (std::uint64_t i = 0; i < batch; ++i) {
      if (!call()) return 0;
    }
    calls += batch;
    elapsed = monotonic_ns() - start;
    if (elapsed < time_ns / kLeastBatches) batch *= 2;
  }
  return static_cast<double>(elapsed) / static_cast<double>(calls);
}

}  // namespace daqwriter
