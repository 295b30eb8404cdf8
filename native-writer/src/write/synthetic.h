// Promise: synthetic writes, or reads of what it wrote before, as fast as the target takes them: every thread
// keeps `io_depth` requests in flight on its own part of the span. The result says in full what was
// measured, and in which condition the medium was.
#pragma once

#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/placement.h"
#include "base/status.h"
#include "io/engines.h"
#include "io/requests.h"
#include "report/reporting.h"
#include "target/target_set.h"

namespace daqwriter {

struct WriteOptions : Reporting, LoadTargets {  // of each target
  std::uint64_t block_bytes = 8ull << 20;
  std::uint32_t threads = 1;
  unsigned io_depth = 4;    // of each thread
  std::uint64_t bytes = 0;  // 0: no limit but the duration
  double duration_s = 0;    // 0: no limit but the bytes
  std::uint64_t span_bytes = 0;
  bool random = false;
  bool reads = false;      // the span is written once, and then read
  bool overwrite = false;  // the same, and then written again
  bool zeros = false;
  bool keep = false;
  std::vector<int> cpus;  // of the threads in turn; empty: the drive's NUMA node
  std::uint64_t seed = 1;
  Engine engine = Engine::libaio;  // not of a null sink

  Engine used_engine() const { return null_sink ? Engine::null : engine; }
  bool prefilled() const { return (reads || overwrite) && !null_sink; }
  const char* command() const { return reads ? "read" : "write"; }
};

// The plan for one target.
struct WriteTargetPlan {
  TargetPlan target;
  ThreadPlacement placement;
  std::uint64_t part_blocks = 0;        // blocks in each thread's part of the span
  std::uint64_t blocks_per_thread = 0;  // most that a thread writes; UINT64_MAX: until the duration ends
  std::uint64_t span_bytes(std::uint64_t block_bytes) const {
    return placement.cpus.size() * part_blocks * block_bytes;
  }
};

struct WritePlan {
  std::vector<WriteTargetPlan> targets;
  std::uint64_t buffer_bytes = 0;                             // of all
  std::uint64_t span_bytes(std::uint64_t block_bytes) const;  // of all
};

struct WriteThreadResult {
  std::uint64_t bytes = 0;
  std::int64_t end_ns = 0;  // last completion, after the start
  CpuUse cpu;
};

// The result of one target.
struct WriteTargetResult {
  RunStatus status = RunStatus::complete;
  std::string error;
  int target_errno = 0;     // what the target answered, where that is the error; 0: it is not
  std::string ended_by;     // bytes, duration, span, signal or error
  std::string engine_note;  // of the first thread, as all of the engine
  std::vector<Feature> engine_features;
  std::int64_t write_ns = 0;  // start to the last completion
  std::int64_t flush_ns = 0;
  std::uint64_t bytes = 0;
  std::uint64_t unanswered_bytes = 0;  // given to the target, which may have stored them or not
  std::vector<WriteThreadResult> threads;
  Histogram latency_ns;

  void add(const WriteTargetResult& one);
};

// The sum over all targets, and each of them.
struct WriteResult : WriteTargetResult {
  std::vector<WriteTargetResult> targets;
  std::int64_t started_utc_ns = 0;
  std::int64_t prepare_ns = 0;
  CpuUse cpu;
  std::vector<double> series_t_s;
  std::vector<std::uint64_t> series_bytes;
};

// Throws Refusal; Unanswered when a target does not say in time what it is.
WritePlan plan_write(const WriteOptions& options, const StopClock* stop = nullptr);
// `error` ended it before it could write anything.
WriteResult failed_write(const WriteOptions& options, const std::string& error);
WriteResult run_write(const WriteOptions& options, const WritePlan& plan, const EngineFactory& make_engine,
                      const std::atomic<int>& stop_signal);
nlohmann::ordered_json write_result_json(const WriteOptions& options, const WritePlan& plan,
                                         const WriteResult& result);
std::string write_summary(const WriteOptions& options, const WriteResult& result);

}  // namespace daqwriter
