// Promise: a thread that is held inside a call of an engine (the kernel has not let it go) is found by
// another one, which then ends the waiting for it with the place. It costs the engine two stores a call, and
// no look at the clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/stop_clock.h"
#include "io/engines.h"

namespace daqwriter {

// The state that a watched engine shows.
struct CallMark {
  std::atomic<std::uint64_t> turns{0};  // odd: inside a call
  std::atomic<int> fd{-1};              // of the last request
};

class CallWatch {
 public:
  // Engines as `make` makes them, watched from now on. The watch may go before them.
  EngineFactory watched(EngineFactory make);
  std::unique_ptr<IoEngine> watched(std::unique_ptr<IoEngine> engine);

  // Does `work`, which uses the engines, in a thread of its own, and throws what it throws. Unanswered when a
  // call has held it for `stall_ns`, or when an interruption's time for answers is over and a call holds it
  // still. Then it still runs, and keep_until_exit() must be given what it uses, this watch included.
  void run(const StopClock& stop, std::int64_t stall_ns, std::function<void()> work);

 private:
  struct Watched {
    std::shared_ptr<CallMark> mark;
    std::uint64_t seen = 0;
    Silence inside;
  };
  std::string held(const StopClock& stop, std::int64_t stall_ns);

  std::mutex mutex_;
  std::vector<Watched> all_;
};

}  // namespace daqwriter
