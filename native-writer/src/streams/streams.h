// Promise: the storage application of a detector whose events come in streams: one source, for each stream a
// bounded queue, a thread and a sequence of files with their checksum. Nothing accepted is lost.
#pragma once

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/placement.h"
#include "base/status.h"
#include "checksum/parallel_adler.h"
#include "io/engines.h"
#include "report/reporting.h"
#include "streams/stream_writer.h"
#include "target/target_set.h"

namespace daqwriter {

struct StreamsOptions : Reporting, LoadTargets {  // one target, a directory
  std::string prefix = "run";
  RunParameters run;          // slots_per_stream follows from queue_bytes
  bool random_run_id = true;  // run.run_id is not given
  std::uint64_t file_bytes = 2'000'000'000;
  std::uint64_t queue_bytes = 64ull << 20;  // of each stream
  std::uint64_t block_bytes = 4ull << 20;
  unsigned io_depth = 4;               // of each stream
  std::uint64_t bytes = 0;             // 0: no limit but the duration
  double duration_s = 0;               // 0: no limit but the bytes
  std::uint64_t rate_bytes_per_s = 0;  // 0: as fast as possible
  AdlerVariant checksum = AdlerVariant::fused;
  unsigned checksum_threads = 0;              // 0: one per CPU
  std::uint64_t smallest_parallel_bytes = 0;  // 0: as measured for the variant
  std::vector<int> cpus;                      // of the whole process; empty: all that it may use
  Engine engine = Engine::libaio;             // not of a null sink

  Engine used_engine() const { return null_sink ? Engine::null : engine; }
};

struct StreamsPlan {
  TargetPlan target;  // path: the directory
  bool create_directory = false;
  EventSource::Limits limits;
  bool limited_by_space = false;   // no other limit on the bytes
  std::size_t slot_bytes = 0;      // of an event in its queue
  std::uint64_t buffer_bytes = 0;  // queues and blocks of all streams
  ThreadPlacement placement;       // of the streams, then of the source
};

struct StreamsResult {
  RunStatus status = RunStatus::complete;
  std::string error;
  int target_errno = 0;  // what the target answered, where that is the error; 0: it is not
  std::string ended_by;  // bytes, duration, space, signal or error
  std::int64_t started_utc_ns = 0;
  std::int64_t prepare_ns = 0;
  std::int64_t write_ns = 0;  // start to the last block on the target
  std::int64_t flush_ns = 0;  // from then to the last line of the manifest
  std::int64_t emission_ns = 0;
  std::vector<EventSource::Account> offered;  // of each stream
  std::vector<std::uint64_t> offered_bytes;
  std::uint64_t due_bytes = 0;
  std::uint64_t too_late_bytes = 0;  // see EventSource
  std::vector<StreamWriter::Account> written;
  Histogram latency_ns;
  CpuUse source_cpu;
  CpuUse cpu;
  bool memory_locked = false;
  std::vector<Feature> engine_features;  // of the first stream, as all of the engine
  Series series;
  std::uint64_t failed_line_records = 0;
};

// Fills in what follows from the rest; confines this thread, and so all that it starts, to the CPUs asked
// for. Throws Refusal.
StreamsPlan plan_streams(StreamsOptions& options, const StopClock* stop = nullptr);
// `error` ended it before anything was written.
StreamsResult failed_streams(const StreamsOptions& options, const std::string& error);
StreamsResult run_streams(const StreamsOptions& options, const StreamsPlan& plan,
                          const EngineFactory& make_engine, const std::atomic<int>& stop_signal);
nlohmann::ordered_json streams_json(const StreamsOptions& options, const StreamsPlan& plan,
                                    const StreamsResult& result);
std::string streams_summary(const StreamsOptions& options, const StreamsResult& result);

}  // namespace daqwriter
