#include "stop_clock.h"

#include "clock.h"

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

}  // namespace daqwriter
