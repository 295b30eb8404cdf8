// Promise: the MiniDAQ of the paper, one or several applications at once, from checks to trailers: a
// continuous supernova-burst record, or triggered requests. Refuses (throws Refusal) before anything is
// written; from the first byte on, every outcome comes back as a result whose numbers add up: offered =
// stored + lost + abandoned.
#pragma once

#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/placement.h"
#include "base/status.h"
#include "checksum/checksum.h"
#include "format/record_format.h"
#include "io/durability.h"
#include "io/engines.h"
#include "io/requests.h"
#include "report/reporting.h"
#include "source/link_ring.h"
#include "source/readout_emulator.h"
#include "target/target_set.h"

namespace daqwriter {

struct MiniDaqOptions : Reporting, LoadTargets {
  double duration_s = 0;
  std::uint32_t applications = 1;  // of each target
  std::uint32_t links = 10;        // of each application
  std::uint32_t writers = 1;       // of each application; several make a framed record
  std::uint32_t superchunk_bytes = 5568;
  double superchunk_rate_hz = 166'000;
  double scale = 1.0;
  bool unpaced = false;
  std::uint64_t most_bytes = 0;     // unpaced: end after so much; 0: see plan_minidaq
  std::uint64_t request_bytes = 0;  // triggered: wanted of each application and trigger; 0: continuous
  double trigger_rate_hz = 0;
  std::optional<bool> zero_copy;  // none: where it changes nothing that was asked for, see plan_minidaq
  std::uint64_t ring_bytes = 64ull << 20;
  std::uint64_t block_bytes = 8ull << 20;
  unsigned io_depth = 4;
  Engine engine = Engine::libaio;  // not of a null sink
  ChecksumKind checksum = ChecksumKind::crc32;
  bool keep = true;  // false: a file is removed at the end
  std::uint64_t seed = 1;
  std::optional<RecordId> record_id;
  std::uint64_t max_buffer_bytes = 0;  // 0: no limit but the memory
  std::vector<int> writer_cpus;        // of the applications in turn
  std::vector<int> source_cpus;

  Engine used_engine() const { return null_sink ? Engine::null : engine; }
  bool triggered() const { return request_bytes > 0; }
  bool framed() const { return writers > 1; }
  std::size_t all_applications() const { return target_count() * applications; }
};

struct ApplicationPlan {
  TargetPlan target;
  std::size_t target_number = 0;   // which of the targets that were named
  std::uint64_t base = 0;          // where its record begins in the target
  Placement placement;             // of the source and the first writer
  std::vector<Placement> writers;  // of each writer
};

// Everything decided before anything is written. Sizes and counts are of one application.
struct MiniDaqPlan {
  std::vector<ApplicationPlan> applications;  // those of the first target first
  double rate_hz = 0;                         // per link, after scale
  std::uint64_t slots_per_link = 0;
  std::uint64_t chunk = 0;       // zero-copy: superchunks of an aligned chunk; 0: copy
  std::string data_path_reason;  // why it is the one or the other
  std::uint64_t window = 0;      // triggered: superchunks of a request and link
  std::uint64_t intended_superchunks = 0;
  std::uint64_t record_bytes = 0;
  std::uint64_t superchunks_per_block = 0;  // framed, as the next one
  std::uint64_t most_blocks = 0;            // that the record can have
  std::uint64_t buffer_bytes = 0;           // rings and block buffers, all applications
  bool zero_copy() const { return chunk > 0; }
  const TargetPlan& target() const { return applications.front().target; }
  std::vector<TargetPlan> targets() const;  // of the first application of each
  std::uint64_t request_bytes(const MiniDaqOptions& o) const { return window * o.links * o.superchunk_bytes; }
};

struct WriterResult {
  LinkRange links;
  std::uint64_t stored = 0;  // superchunks
  std::uint64_t blocks = 0;  // that it made
  std::int64_t drained_ns = 0;
  CpuUse cpu;
  ServiceRecord service_record;
};

struct ApplicationResult {
  RunStatus status = RunStatus::complete;
  std::string error;
  int target_errno = 0;  // what the target answered to the request that failed first; 0: nothing of the kind
  RecordId record_id{};
  std::uint64_t emitted = 0;
  std::uint64_t in_time = 0;  // emitted not later than kInTimeNs after the intended arrival
  std::uint64_t due = 0;      // intended by the moment at which the source stopped
  std::uint64_t offered = 0;
  std::uint64_t stored = 0;
  std::vector<std::uint64_t> lost_per_link;
  std::uint64_t decisions = 0;
  std::uint64_t vetoed = 0;
  std::uint64_t unbuffered = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t padding_bytes = 0;
  std::uint64_t frame_bytes = 0;
  std::uint64_t unanswered_bytes = 0;  // given to the target, which may have stored them or not
  std::uint64_t copied_bytes = 0;
  std::int64_t record_ns = 0;
  std::int64_t drained_ns = 0;  // last completion, after the start
  std::int64_t worst_lateness_ns = 0;
  std::uint64_t late_superchunks = 0;
  BusyTracker busy;
  ServiceCurve held;
  ServiceCurve service_curve;
  std::vector<WriterResult> writers;  // of a sum: see each application's
  Histogram latency_ns;
  TimedHistogram latency_over_time;
  Histogram write_latency_ns;
  CpuUse writer_cpu;
  CpuUse source_cpu;
  std::int64_t copy_ns = 0;
  bool memory_locked = false;
  std::vector<Feature> memory_features;  // of the rings; as all of them of the first application

  void add(const ApplicationResult& one);
  // The share of the due bytes that was offered in time. Below 1 the source failed, whatever the drive did.
  double achieved_fraction() const;
};

// One transient buffer before several writers, instead of one before each.
struct JointBuffer {
  std::uint64_t needed_bytes = 0;
  std::int64_t needed_at_ns = 0;
  bool exact = true;  // false: an upper bound
};

// The sum over the applications of one target.
struct TargetResult : ApplicationResult {
  JointBuffer joint_buffer;
  std::int64_t total_ns = 0;  // until the last of its records was closed
};

// The sum over all applications, and each of them.
struct MiniDaqResult : ApplicationResult {
  std::vector<ApplicationResult> applications;
  std::vector<TargetResult> targets;
  JointBuffer joint_buffer;
  std::string engine;
  std::string engine_note;  // of the first application, as all of the engine
  std::vector<Feature> engine_features;
  std::int64_t started_utc_ns = 0;
  std::int64_t prepare_ns = 0;
  std::int64_t total_ns = 0;
  CpuUse cpu;
  std::uint64_t failed_line_records = 0;
  Series series;
};

// `error` ended it before anything was recorded.
MiniDaqResult failed_minidaq(const MiniDaqOptions& options, const std::string& error);
MiniDaqPlan plan_minidaq(const MiniDaqOptions& options, const StopClock* stop = nullptr);
// `stop_signal`: non-zero asks for an orderly end.
MiniDaqResult run_minidaq(const MiniDaqOptions& options, const MiniDaqPlan& plan,
                          const EngineFactory& make_engine, const std::atomic<int>& stop_signal);

nlohmann::ordered_json minidaq_json(const MiniDaqOptions& options, const MiniDaqPlan& plan,
                                    const MiniDaqResult& result);
std::string minidaq_plan_text(const MiniDaqOptions& options, const MiniDaqPlan& plan);
std::string minidaq_summary(const MiniDaqOptions& options, const MiniDaqResult& result);
double asked_bytes_per_s(const MiniDaqOptions& options, const MiniDaqPlan& plan);  // all applications

}  // namespace daqwriter
