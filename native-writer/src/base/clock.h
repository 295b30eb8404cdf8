// Promise: one monotonic clock for every duration, one UTC clock for every timestamp, both in nanoseconds.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace daqwriter {

std::int64_t monotonic_ns();
std::int64_t utc_ns();
// Absolute, so that the time spent between two ticks does not add up to drift.
void sleep_until_monotonic_ns(std::int64_t deadline_ns);
// "2026-01-31T12:00:00.123Z"
std::string iso8601_utc(std::int64_t utc_nanoseconds);
constexpr double seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

inline std::int64_t to_ns(double seconds_value) {
  return std::llround(seconds_value * 1e9);
}

// The CPU time that a thread or the process used between two readings (getrusage).
struct CpuUse {
  double user_s = 0;
  double system_s = 0;
  std::int64_t voluntary_context_switches = 0;
  std::int64_t involuntary_context_switches = 0;
  std::int64_t max_rss_bytes = 0;  // a high-water mark of the process, not a difference; 0 for a thread

  CpuUse operator-(const CpuUse& earlier) const;
  CpuUse operator+(const CpuUse& other) const;
};
CpuUse process_cpu_use();
CpuUse thread_cpu_use();
std::int64_t thread_cpu_ns();  // of the calling thread; a call of the system

}  // namespace daqwriter
