// Promise: every way a command can end has one name and one exit code, and an error text names its object
// and its remedy. Set-up errors are exceptions; the data path reports through return values and never throws.
#pragma once

#include <algorithm>
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

// Adds how a part ended to how the whole did: the worst counts, and its error comes first, as the cause of
// those that were only interrupted. The errno is that of the first error.
template <typename Result>
void add_end(Result& sum, const Result& one) {
  const bool first = sum.error.empty() || (one.status > sum.status && !one.error.empty());
  if (first) sum.target_errno = one.target_errno;
  if (sum.error != one.error) {
    const std::string& before = first ? one.error : sum.error;
    const std::string& behind = first ? sum.error : one.error;
    sum.error = before + (before.empty() || behind.empty() ? "" : "; ") + behind;
  }
  sum.status = std::max(sum.status, one.status);
}
ExitCode exit_code_of(RunStatus status);

// An error in words. `target_errno`: what the target itself answered; 0: it is not the target's answer.
class CommandError : public std::runtime_error {
 public:
  explicit CommandError(const std::string& text, int target_errno = 0)
      : std::runtime_error(text), target_errno_(target_errno) {}
  int target_errno() const { return target_errno_; }

 private:
  int target_errno_;
};

// Returns the errno of the target where `failure` is its answer; otherwise 0.
inline int target_errno_of(const std::exception& failure) {
  const auto* told = dynamic_cast<const CommandError*>(&failure);
  return told != nullptr ? told->target_errno() : 0;
}

// The command was not started and nothing was written.
class Refusal : public CommandError {
  using CommandError::CommandError;
};

// Throws Refusal unless `good`.
void require(bool good, const std::string& message);

// The system failed us after work had started.
class Failure : public CommandError {
  using CommandError::CommandError;
};

// A signal ended it before there was a result.
class Interrupted : public Failure {
  using Failure::Failure;
};

// "No space left on device (ENOSPC)" style text for an errno value; its name alone.
std::string errno_text(int error_number);
std::string errno_name(int error_number);

}  // namespace daqwriter
