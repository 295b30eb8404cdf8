// Promise: reads a record, or the directory of a streams run, back with direct I/O and reports what was
// found. Writes nothing to the target.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/stop_clock.h"
#include "format/record_format.h"
#include "report/reporting.h"

namespace daqwriter {

// What the writer said: with it a target without the record is one that lost it.
struct Sought {
  RecordId id{};                             // of the record, or of the streams run
  std::optional<std::uint64_t> superchunks;  // stored; events in closed files
};

struct VerifyOptions : Reporting {
  std::string target;
  std::uint64_t offset = 0;  // where the record begins
  std::optional<Sought> sought = {};
  double stall_limit_s = kDefaultStallLimitS;
};

ExitCode run_verify(const VerifyOptions& options, const std::atomic<int>& stop_signal);

struct VerifyRun;
// The directory of a streams run (verify_streams.cpp).
ExitCode verify_streams(const std::shared_ptr<VerifyRun>& run);

}  // namespace daqwriter
