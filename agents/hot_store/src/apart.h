// Promise: work on a mapped file is done in a process of its own. A page that is damaged, or gone with the
// end of a file that was cut, makes the database end the process that uses it, or spin; here that is a
// finding with a name, and the command ends with a message and its result.
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

  // The work takes no longer than so from now on, or it is given up.
  void allow(double seconds);
};

struct Death {
  std::string cause;
  bool interrupted = false;  // it did not end when it was asked to
};

using Work = std::function<daqwriter::ExitCode(Watch& watch)>;
using Burial = std::function<daqwriter::ExitCode(const Death& death)>;

// What `work` returned, or `burial` where it could not return. Ends within five seconds of the stop signal.
daqwriter::ExitCode run_apart(const std::atomic<int>& stop_signal, const Work& work, const Burial& burial);

// The exit status of what throws, with its message on standard error.
daqwriter::ExitCode reported(const std::function<daqwriter::ExitCode()>& work);

}  // namespace hotstore
