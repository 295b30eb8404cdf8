// Promise: one continuous supernova-burst record: source, rings, data writer, target, from checks to trailer.
// Refuses (throws Refusal) before anything is written; from the first byte on, every outcome comes back as a
// result whose numbers add up: offered = stored + lost + abandoned.
#pragma once

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checksum.h"
#include "clock.h"
#include "durability.h"
#include "engines.h"
#include "link_source.h"
#include "placement.h"
#include "record_format.h"
#include "reporting.h"
#include "status.h"
#include "target.h"

namespace daqwriter {

struct MiniDaqOptions : Reporting {
  std::string target;
  bool null_sink = false;
  double duration_s = 0;
  std::uint32_t links = 10;
  std::uint32_t superchunk_bytes = 5568;
  double superchunk_rate_hz = 166'000;
  double scale = 1.0;
  std::uint64_t ring_bytes = 64ull << 20;
  std::uint64_t block_bytes = 8ull << 20;
  unsigned io_depth = 4;
  ChecksumKind checksum = ChecksumKind::crc32;
  bool preallocate = true;
  std::uint64_t seed = 1;
  std::optional<RecordId> record_id;
  std::optional<std::uint64_t> max_buffer_bytes;
  std::optional<int> writer_cpu;
  std::optional<int> source_cpu;
  Consent consent;
};

// Everything decided before anything is written.
struct MiniDaqPlan {
  TargetPlan target;
  Placement placement;
  double rate_hz = 0;  // per link, after scale
  std::uint64_t slots_per_link = 0;
  std::uint64_t intended_superchunks = 0;
  std::uint64_t record_bytes = 0;
  std::uint64_t buffer_bytes = 0;  // rings and block buffers
};

struct Series {
  std::vector<double> t_s;  // end of each interval
  std::vector<std::uint64_t> offered_bytes;
  std::vector<std::uint64_t> stored_bytes;
  std::vector<std::uint64_t> backlog_bytes;  // at the end of the interval
};

struct MiniDaqResult {
  RunStatus status = RunStatus::complete;
  std::string error;
  std::string engine;
  RecordId record_id{};
  std::int64_t started_utc_ns = 0;
  std::uint64_t offered = 0;
  std::uint64_t due = 0;  // intended by the moment at which the source stopped
  std::uint64_t stored = 0;
  std::vector<std::uint64_t> lost_per_link;
  std::uint64_t payload_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t padding_bytes = 0;
  std::int64_t prepare_ns = 0;
  std::int64_t record_ns = 0;
  std::int64_t drain_ns = 0;
  std::int64_t flush_ns = 0;
  std::int64_t total_ns = 0;
  std::int64_t worst_lateness_ns = 0;
  std::uint64_t late_superchunks = 0;
  BusyTracker busy;
  ServiceCurve held;
  ServiceCurve service_curve;
  Histogram latency_ns;
  Histogram write_latency_ns;
  CpuUse cpu;
  CpuUse writer_cpu;
  CpuUse source_cpu;
  std::int64_t copy_ns = 0;
  bool memory_locked = false;
  std::uint64_t failed_line_records = 0;
  Series series;
};

MiniDaqPlan plan_minidaq(const MiniDaqOptions& options);
// `stop_signal`: non-zero asks for an orderly end.
MiniDaqResult run_minidaq(const MiniDaqOptions& options, const MiniDaqPlan& plan,
                          const EngineFactory& make_engine, const std::atomic<int>& stop_signal);

nlohmann::ordered_json minidaq_json(const MiniDaqOptions& options, const MiniDaqPlan& plan,
                                    const MiniDaqResult& result);
std::string minidaq_plan_text(const MiniDaqOptions& options, const MiniDaqPlan& plan);
std::string minidaq_summary(const MiniDaqOptions& options, const MiniDaqResult& result);

}  // namespace daqwriter
