#include "base/status.h"

#include <array>
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
  static constexpr std::array kNames = {"complete", "interrupted", "failed"};
  return kNames[static_cast<std::size_t>(status)];
}

ExitCode exit_code_of(RunStatus status) {
  if (status == RunStatus::complete) return ExitCode::complete;
  return status == RunStatus::interrupted ? ExitCode::interrupted : ExitCode::failed;
}

}  // namespace daqwriter
