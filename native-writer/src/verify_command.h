// Promise: reads a record back with direct I/O and reports what the Verifier found. Writes nothing to the
// target.
#pragma once

#include <atomic>
#include <string>

#include "line_protocol.h"
#include "status.h"

namespace daqwriter {

struct VerifyOptions {
  std::string target;
  double interval_s = 0.1;
  std::string json_path;
  std::string line_protocol_path;
  Tags tags;
};

ExitCode run_verify(const VerifyOptions& options, const std::atomic<int>& stop_signal);

}  // namespace daqwriter
