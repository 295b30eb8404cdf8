#include "io/call_watch.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "io/requests.h"

namespace daqwriter {
namespace {

// A call that an interruption finds is given as long: most of them are about to return.
constexpr std::int64_t kAboutToReturnNs = 200'000'000;
constexpr std::uint64_t kTakenOver = UINT64_MAX - 1;

}  // namespace

void CallWatch::leave(std::uint64_t turn) {
  if (turn_.compare_exchange_strong(turn, turn + 1, std::memory_order_relaxed)) return;
  while (true) pause();  // until the process ends
}

const Requests* CallWatch::held(const StopClock& stop, std::int64_t stall_ns) {
  const std::int64_t now = monotonic_ns();
  std::uint64_t turn = turn_.load(std::memory_order_relaxed);
  if (turn % 2 == 0 || turn != std::exchange(seen_, turn)) {
    inside_.restart(now);
    return nullptr;
  }
  const bool interrupted = stop.expired(StopClock::kAnswerNs);
  if (!inside_.exceeds(interrupted ? std::min(kAboutToReturnNs, stall_ns) : stall_ns, now)) return nullptr;
  // It returns now, or never: one of the two threads changes the turn.
  if (!turn_.compare_exchange_strong(turn, kTakenOver, std::memory_order_acquire)) return nullptr;
  requests_->take_over(interrupted);
  return requests_;
}

}  // namespace daqwriter
