// Promise: what the read-backs of records and of streams runs have in common: limits, the way through the
// blocks with a judge of what they hold, the account of it, and the form of the result.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.h"
#include "base/worker_thread.h"
#include "io/block_reader.h"
#include "report/line_protocol.h"
#include "verify/findings.h"
#include "verify/verify_command.h"

namespace daqwriter {

// The memory of a verification that may outlive it: a call of the kernel that does not return still uses it.
struct VerifyRun {
  VerifyRun(const VerifyOptions& asked, const std::atomic<int>& stop_signal)
      : options(asked), stop(stop_signal) {}
  const VerifyOptions options;
  const StopClock stop;
  const CallLimits limits{options.stall_limit_s, &stop};
  CallWatch watch;

  // Does `work` in a thread of its own, and throws what it throws; Unanswered when a call of an engine holds
  // it. Then this must be kept until the process ends.
  void watched(std::function<void()> work);
  BlockReader::Config reads_of(int fd, const std::string& target);
  static std::shared_ptr<ReadRoom> read_room();
};

struct Outcome {
  bool interrupted = false;
  std::string error;
  int target_errno = 0;  // what the target answered, if that is the error
  Findings findings;
  std::uint64_t bytes_read = 0;
  std::int64_t duration_ns = 0;

  // Something besides superchunks and events is wrong.
  void add(FaultKind kind, std::uint64_t offset, const std::string& detail, const std::string& file = "");
  // The sought record is not there: all that the writer said it stored is missing, as `why` says.
  void add_lost(const Sought& sought, std::uint64_t offset, const std::string& why,
                const std::string& file = "");
  void fail(const VerifyRun& run, const std::string& why, int errno_of_target = 0);
  const char* status() const;
  ExitCode exit_code() const;
};

// Counts what was read, and speaks of it at every interval. When the read-back will end is estimated by its
// pace.
class Progress {
 public:
  // It begins now; `all`: bytes to read.
  Progress(const VerifyOptions& options, LineProtocol& lines, std::uint64_t all, Outcome& outcome);
  void read(std::uint64_t bytes);
  void speak();

 private:
  LineProtocol& lines_;
  std::uint64_t all_;
  Outcome& outcome_;
  std::int64_t start_ns_ = monotonic_ns();
  std::int64_t interval_ns_;
  std::int64_t next_ns_;
};

// Until the judge (a Verifier, a BlockWalk, a StreamVerifier) has seen enough, the end, or a signal.
template <typename Judge>
void read_through(BlockReader& reader, const StopClock& stop, Progress& progress, Judge& judge) {
  while (!judge.at_end()) {
    const auto data = reader.next();
    if (data.empty() || stop.asked()) return;
    progress.read(data.size());
    judge.feed(data);
  }
}

// The names that a fault's members have in the result.
struct FaultNames {
  const char* origin;
  const char* number;
  bool file;
};
// `own`: the members between those that begin and those that end every result.
nlohmann::ordered_json result_json(const Outcome& outcome, const nlohmann::ordered_json& own,
                                   const FaultNames& names);
nlohmann::ordered_json counts_json(const VerifyCounts& counts);

// `subject`: of what so many were present once and intact, where, and in which state.
std::string summary(const Outcome& outcome, const std::string& subject);

}  // namespace daqwriter
