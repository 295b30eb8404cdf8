// Promise: reads a record back with direct I/O and reports what the Verifier found. Writes nothing to the
// target.
#pragma once

#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "base/stop_clock.h"
#include "io/block_reader.h"
#include "report/reporting.h"
#include "verify/verifier.h"

namespace daqwriter {

struct VerifyOptions : Reporting {
  std::string target;
  std::uint64_t offset = 0;  // where the record begins
  double stall_limit_s = kDefaultStallLimitS;
};

ExitCode run_verify(const VerifyOptions& options, const std::atomic<int>& stop_signal);
// The directory of a streams run (verify_streams.cpp).
ExitCode verify_streams(const VerifyOptions& options, const StopClock& stop);

// Throws Unanswered what is not answered in time: `stop` may interrupt it.
BlockReader::Config reads_of(const VerifyOptions& options, const StopClock& stop, int fd,
                             const std::string& target);
std::shared_ptr<ReadRoom> read_room();

// Each kind of finding, of superchunks or of events.
nlohmann::ordered_json counts_json(const VerifyCounts& counts);

}  // namespace daqwriter
