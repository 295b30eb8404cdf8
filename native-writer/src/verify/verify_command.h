// Promise: reads a record back with direct I/O and reports what the Verifier found. Writes nothing to the
// target.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "base/stop_clock.h"
#include "io/block_reader.h"
#include "io/call_watch.h"
#include "report/reporting.h"
#include "verify/verifier.h"

namespace daqwriter {

struct VerifyOptions : Reporting {
  std::string target;
  std::uint64_t offset = 0;  // where the record begins
  double stall_limit_s = kDefaultStallLimitS;
};

// The memory of a verification that may outlive it: a call of the kernel that does not return still uses it.
struct VerifyRun {
  VerifyRun(const VerifyOptions& asked, const std::atomic<int>& stop_signal)
      : options(asked), stop(stop_signal) {}
  const VerifyOptions options;
  const StopClock stop;
  CallWatch watch;

  // Both throw Unanswered when what may wait for a drive does not return in time.
  void within(const std::string& what, std::function<void()> call) const;
  template <typename Answer>
  Answer answer(const std::string& what, std::function<Answer()> call) const {
    const auto room = std::make_shared<Answer>();
    within(what, [room, call = std::move(call)] { *room = call(); });
    return std::move(*room);
  }
  void watched(std::function<void()> work) { watch.run(stop, to_ns(options.stall_limit_s), std::move(work)); }
};

ExitCode run_verify(const VerifyOptions& options, const std::atomic<int>& stop_signal);
// The directory of a streams run (verify_streams.cpp).
ExitCode verify_streams(const std::shared_ptr<VerifyRun>& run);

// Throws Unanswered what is not answered in time: `stop` may interrupt it.
BlockReader::Config reads_of(const VerifyOptions& options, const StopClock& stop, int fd,
                             const std::string& target);
std::shared_ptr<ReadRoom> read_room(CallWatch& watch);

// Each kind of finding, of superchunks or of events.
nlohmann::ordered_json counts_json(const VerifyCounts& counts);

}  // namespace daqwriter
