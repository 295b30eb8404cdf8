// Promise: a thread that is held inside a call of an engine (the kernel has not let it go) is found by
// another one, which takes over its requests: whoever waits for them is told, and the thread, should it come
// back, does nothing any more. It costs the thread two atomic operations a call, and no look at the clock.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/stop_clock.h"

namespace daqwriter {

class Requests;

// A thread, which has one engine, has one.
class CallWatch {
 public:
  // By that thread: returns what `call` returns. Does not return when the requests were taken over meanwhile.
  template <typename Call>
  auto around(Requests& requests, const Call& call) {
    requests_ = &requests;
    const std::uint64_t turn = turn_.load(std::memory_order_relaxed) + 1;
    // Release: whoever takes over sees all that the thread did before the call.
    turn_.store(turn, std::memory_order_release);
    const auto result = call();
    leave(turn);
    return result;
  }

  // By one other thread, time and again. Returns the requests of a call that has held the thread for
  // `stall_ns`, or holds it when an interruption's time for answers is over, once they are ended; null while
  // there is none. All that the thread had is then the caller's, and must be kept until the process ends.
  const Requests* held(const StopClock& stop, std::int64_t stall_ns);

 private:
  void leave(std::uint64_t turn);

  std::atomic<std::uint64_t> turn_{0};  // odd: inside a call
  Requests* requests_ = nullptr;        // of the last call
  std::uint64_t seen_ = 0;
  Silence inside_;
};

}  // namespace daqwriter
