// Promise: reads a record back with direct I/O and reports what the Verifier found. Writes nothing to the
// target.
#pragma once

#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "report/reporting.h"
#include "verify/verifier.h"

namespace daqwriter {

struct VerifyOptions : Reporting {
  std::string target;
  std::uint64_t offset = 0;  // where the record begins
};

ExitCode run_verify(const VerifyOptions& options, const std::atomic<int>& stop_signal);
// The directory of a streams run (verify_streams.cpp).
ExitCode verify_streams(const VerifyOptions& options, const std::atomic<int>& stop_signal);

// Each kind of finding, of superchunks or of events.
nlohmann::ordered_json counts_json(const VerifyCounts& counts);

}  // namespace daqwriter
