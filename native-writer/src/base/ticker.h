// Promise: calls back at every multiple of an interval until the work is finished, and not later than that;
// and looks after the work in between.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "base/clock.h"

namespace daqwriter {

class Ticker {
 public:
  // By any thread, once; what it did before is visible to whoever returns from run().
  void finish() {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    wake_.notify_all();
  }

  // Blocks until finish(); `tick` and, every 50 ms, `look` run in this thread.
  void run(std::int64_t start_ns, double interval_s, const std::function<void()>& tick,
           const std::function<void()>& look) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kBetweenLooks{50};
    const std::chrono::nanoseconds interval(to_ns(interval_s));
    auto next = Clock::time_point(std::chrono::nanoseconds(start_ns)) + interval;
    std::unique_lock lock(mutex_);
    while (
        !wake_.wait_until(lock, std::min(next, Clock::now() + kBetweenLooks), [this] { return finished_; })) {
      lock.unlock();
      look();
      if (Clock::now() >= next) {
        tick();
        next += interval;
      }
      lock.lock();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool finished_ = false;
};

}  // namespace daqwriter
