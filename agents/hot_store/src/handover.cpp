#include "handover.h"

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/clock.h"

namespace hotstore {
namespace {

// Lets the other thread of a core run while this one waits by reading.
void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

struct alignas(64) Ball {
  std::atomic<std::uint64_t> passes{0};
};

constexpr int kSpins = 4096;  // far more than a hand-over between two CPUs takes

// Passes the ball on whenever it is this side's turn. Where both sides have to
// share a CPU, they let each other run.
void play(Ball& ball, std::uint64_t side, const std::atomic<bool>& over) {
  for (int spins = 0; !over.load(std::memory_order_relaxed);) {
    const std::uint64_t passes = ball.passes.load(std::memory_order_acquire);
    if (passes % 2 == side) {
      ball.passes.store(passes + 1, std::memory_order_release);
      spins = 0;
    } else if (++spins < kSpins) {
      cpu_relax();
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace

std::optional<double> handover_ns(double seconds) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) == 0 && CPU_COUNT(&usable) < 2) return std::nullopt;
  Ball ball;
  alignas(64) std::atomic<bool> over{false};
  std::uint64_t passes = 0;
  std::int64_t took_ns = 0;
  {
    std::jthread first([&] { play(ball, 0, over); });
    std::jthread second([&] { play(ball, 1, over); });
    const std::int64_t settled = daqwriter::monotonic_ns() + daqwriter::to_ns(seconds / 10);
    daqwriter::sleep_until_monotonic_ns(settled);  // until the scheduler has given each a CPU of its own
    const std::int64_t started = daqwriter::monotonic_ns();
    passes = ball.passes.load(std::memory_order_relaxed);
    daqwriter::sleep_until_monotonic_ns(settled + daqwriter::to_ns(seconds));
    passes = ball.passes.load(std::memory_order_relaxed) - passes;
    took_ns = daqwriter::monotonic_ns() - started;
    over = true;
  }
  if (passes == 0) return std::nullopt;
  return static_cast<double>(took_ns) / static_cast<double>(passes);
}

}  // namespace hotstore
