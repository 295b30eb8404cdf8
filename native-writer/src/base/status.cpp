#include "base/status.h"

#include <cstring>

namespace daqwriter {

void require(bool good, const std::string& message) {
  if (!good) throw Refusal(message);
}

std::string errno_text(int error_number) {
  const char* name = strerrorname_np(error_number);
  const char* description = strerrordesc_np(error_number);
  return std::string(description ? description : "unknown error") + " (" + (name ? name : "?") + ")";
}

std::string errno_name(int error_number) {
  const char* name = strerrorname_np(error_number);
  return name ? name : std::to_string(error_number);
}

std::string run_status_name(RunStatus status) {
  switch (status) {
    case RunStatus::complete:
      return "complete";
    case RunStatus::interrupted:
      return "interrupted";
    case RunStatus::failed:
      break;
  }
  return "failed";
}

ExitCode exit_code_of(RunStatus status) {
  if (status == RunStatus::complete) return ExitCode::complete;
  return status == RunStatus::interrupted ? ExitCode::interrupted : ExitCode::failed;
}

}  // namespace daqwriter
