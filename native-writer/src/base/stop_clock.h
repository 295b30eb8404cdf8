// Promise: one clock for the end of an interrupted command. From the first signal on, whatever waits for the
// target has until a fixed moment, and all of these lie within the five seconds that are promised to the
// operator. A second signal ends all waiting at once. It is known how long a target has been silent.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace daqwriter {

// Beside the number of the first signal: there was a second one.
constexpr int kSecondSignal = 1 << 16;

class StopClock {
 public:
  // After the first signal:
  static constexpr std::int64_t kDrainNs = 2'000'000'000;   // until then buffers are emptied to the target
  static constexpr std::int64_t kAnswerNs = 3'500'000'000;  // ... answers to writes are waited for
  static constexpr std::int64_t kCloseNs = 4'500'000'000;   // ... files are flushed and closed

  explicit StopClock(const std::atomic<int>& signal) : signal_(signal) {}
  bool asked() const { return signal_.load(std::memory_order_relaxed) != 0; }
  // By any thread; the first look that sees the signal starts the clock.
  bool expired(std::int64_t after_ns) const;

 private:
  const std::atomic<int>& signal_;
  mutable std::atomic<std::int64_t> noticed_ns_{0};
};

// How long a target that owes answers may be silent, unless the operator says otherwise.
constexpr double kDefaultStallLimitS = 60;
// "in the time that an interruption leaves", or "for 60 s" with the remedy: so long nobody answered.
std::string without_answer(bool interrupted, std::int64_t stall_ns);

// A silence. A stop of the whole process (SIGSTOP, a suspended machine) is not the target's: the time between
// two looks counts up to kMostBetweenLooksNs only.
class Silence {
 public:
  static constexpr std::int64_t kMostBetweenLooksNs = 100'000'000;

  void restart(std::int64_t now_ns);
  bool exceeds(std::int64_t limit_ns, std::int64_t now_ns);

 private:
  std::int64_t quiet_ns_ = 0;
  std::int64_t looked_ns_ = 0;
};

}  // namespace daqwriter
