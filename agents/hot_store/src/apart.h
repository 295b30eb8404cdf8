// Promise: work on a mapped file is done in a process of its own. A page that is damaged, or gone with the
// end of a file that was cut, makes the database end its process or spin; here that becomes a finding with
// a name, and the command ends with a message and its result.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"

namespace hotstore {

// Both processes see it.
struct Watch {
  std::atomic<int> stop_signal{0};
  std::atomic<std::int64_t> due_ns{0};  // when the work is given up; 0: never

  // The work is given up unless it ends within this time from now on.
  void allow(double seconds);
};

struct Death {
  std::string cause;
  bool interrupted = false;  // it did not end when it was asked to
};

using Work = std::function<daqwriter::ExitCode(Watch& watch)>;
using Burial = std::function<daqwriter::ExitCode(const Death& death)>;

// Returns the result of `work`, or `burial` where it had none. Ends within five seconds of the stop signal,
// and at once when there was a second one.
daqwriter::ExitCode run_apart(const std::atomic<int>& stop_signal, const Work& work, const Burial& burial);

}  // namespace hotstore
