// Promise: every way a command can end has one name and one exit code, and an error text names its object
// and its remedy. Set-up errors are exceptions; the data path reports through return values and never throws.
#pragma once

#include <stdexcept>
#include <string>

namespace daqwriter {

enum class ExitCode : int {
  complete = 0,      // the command did what was asked (losses, if any, are counted in the JSON)
  failed = 1,        // an I/O or system error ended the command
  refused = 2,       // bad usage, or a target that must not or cannot be used; nothing was written
  damaged = 3,       // verify: the record is not intact
  interrupted = 130  // SIGINT, SIGTERM or SIGHUP; the JSON says what is stored
};

// How a load ended, once it had started.
enum class RunStatus { complete, interrupted, failed };
std::string run_status_name(RunStatus status);
ExitCode exit_code_of(RunStatus status);

// The command was not started and nothing was written.
class Refusal : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The system failed us after work had started.
class Failure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// "No space left on device (ENOSPC)" style text for an errno value.
std::string errno_text(int error_number);

}  // namespace daqwriter
