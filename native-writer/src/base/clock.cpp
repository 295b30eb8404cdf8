#include "base/clock.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>

#include "base/status.h"

namespace daqwriter {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;

std::int64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

CpuUse read_usage(int who) {
  rusage usage{};
  if (getrusage(who, &usage) != 0) throw Failure("getrusage: " + errno_text(errno));
  const auto to_s = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return {to_s(usage.ru_utime), to_s(usage.ru_stime), usage.ru_nvcsw, usage.ru_nivcsw, 0};
}

}  // namespace

std::int64_t monotonic_ns() {
  return read_clock(CLOCK_MONOTONIC);
}

std::int64_t utc_ns() {
  return read_clock(CLOCK_REALTIME);
}

void sleep_until_monotonic_ns(std::int64_t deadline_ns) {
  const timespec deadline{deadline_ns / kNsPerSecond, deadline_ns % kNsPerSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) == EINTR) {
  }
}

std::string iso8601_utc(std::int64_t utc_nanoseconds) {
  const std::time_t whole = utc_nanoseconds / kNsPerSecond;
  std::tm calendar{};
  gmtime_r(&whole, &calendar);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &calendar);
  std::array<char, 48> with_ms{};
  const int milliseconds = static_cast<int>(utc_nanoseconds / 1'000'000 % 1000);
  std::snprintf(with_ms.data(), with_ms.size(), "%s.%03dZ", text.data(), milliseconds);
  return with_ms.data();
}

CpuUse CpuUse::operator-(const CpuUse& earlier) const {
  return {user_s - earlier.user_s, system_s - earlier.system_s,
          voluntary_context_switches - earlier.voluntary_context_switches,
          involuntary_context_switches - earlier.involuntary_context_switches, max_rss_bytes};
}

CpuUse CpuUse::operator+(const CpuUse& other) const {
  return {user_s + other.user_s, system_s + other.system_s,
          voluntary_context_switches + other.voluntary_context_switches,
          involuntary_context_switches + other.involuntary_context_switches,
          std::max(max_rss_bytes, other.max_rss_bytes)};
}

namespace {

// The most memory of this process. getrusage() would not do: its figure survives exec(), so that a large
// parent shows through.
std::int64_t peak_rss_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name;) {
    std::int64_t kib = 0;
    if (name == "VmHWM:" && status >> kib) return kib * 1024;
  }
  throw Failure("/proc/self/status has no VmHWM line");
}

}  // namespace

CpuUse process_cpu_use() {
  CpuUse use = read_usage(RUSAGE_SELF);
  use.max_rss_bytes = peak_rss_bytes();
  return use;
}

CpuUse thread_cpu_use() {
  return read_usage(RUSAGE_THREAD);
}

std::int64_t thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace daqwriter
