#include "base/stop_clock.h"

#include <algorithm>

#include "base/clock.h"
#include "base/units.h"

namespace daqwriter {

// Relaxed: neither the signal nor the time carries other data.
bool StopClock::expired(std::int64_t after_ns) const {
  const int signal = signal_.load(std::memory_order_relaxed);
  if (signal == 0) return false;
  const std::int64_t now = monotonic_ns();
  std::int64_t noticed = 0;
  if (noticed_ns_.compare_exchange_strong(noticed, now, std::memory_order_relaxed)) noticed = now;
  return (signal & kSecondSignal) != 0 || now - noticed >= after_ns;
}

std::string without_answer(bool interrupted, std::int64_t stall_ns) {
  if (interrupted) return "in the time that an interruption leaves";
  return "for " + format_number(seconds(stall_ns)) +
         " s; look at the drive and the kernel's log (a frozen file system?), or raise --stall-limit";
}

void Silence::restart(std::int64_t now_ns) {
  quiet_ns_ = 0;
  looked_ns_ = now_ns;
}

bool Silence::exceeds(std::int64_t limit_ns, std::int64_t now_ns) {
  quiet_ns_ += std::clamp<std::int64_t>(now_ns - looked_ns_, 0, kMostBetweenLooksNs);
  looked_ns_ = now_ns;
  return quiet_ns_ > limit_ns;
}

}  // namespace daqwriter
