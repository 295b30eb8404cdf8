// Promise: the result of a record as JSON, in the form of inventory/schemas/daqwriter-minidaq.schema.json,
// and as a sentence or two for people.
#include <algorithm>
#include <numeric>

#include "base/units.h"
#include "record/minidaq.h"
#include "report/report_json.h"

namespace daqwriter {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRequestLatencyDefinition =
    "per superchunk: intended arrival until the completions of all blocks holding a part of it were reaped; "
    "the final "
    "flush is not part of it";
constexpr const char* kWriteLatencyDefinition =
    "per block: io_submit until the completion of its last part was reaped";
constexpr const char* kLatencyOverTimeDefinition =
    "stored superchunks by intended arrival (rows of interval_s from the start) and by latency_us (columns, "
    "each "
    "from its from_us to the next one's)";
constexpr const char* kBufferMethod =
    "service curve: max over t of arrived(t) - durable(t), arrivals by intended time and including lost "
    "superchunks, "
    "taken immediately before every completion (exact). With losses it is an upper bound of what a lossless "
    "record of "
    "this length would have needed, and exact if the writer was never idle after the first loss";

constexpr const char* kJointMethod =
    "one buffer before all writers: max over t of the sum of arrived(t) - the sum of durable(t), put "
    "together afterwards from every completion of each; needed_bytes is the sum of what each needs for "
    "itself. "
    "An upper bound where arrivals between two completions are not known (triggered, or ended before its "
    "time: "
    "they count from the earlier one on), or where completions were too many to be remembered";

constexpr const char* kExtrapolationMethod =
    "the measured service replayed against another load; upper_bound: the device did at every moment no more "
    "than it was seen to do; estimate: it worked without pause at the pace that it showed while it had work "
    "(busy_fraction of the time); both go on at the mean rate behind the end of the measurement. Nothing "
    "here "
    "was measured at those rates: a drive that fills a cache or heats up does worse";

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

std::uint64_t sum(const std::vector<std::uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

Json placement_json(const Placement& placement) {
  return {{"writer_cpu", or_null(placement.writer_cpu)},
          {"source_cpu", or_null(placement.source_cpu)},
          {"numa_node", or_null(placement.numa_node)},
          {"note", placement.note}};
}

Json minidaq_parameters_json(const MiniDaqOptions& o, const MiniDaqPlan& plan, const MiniDaqResult& r) {
  const TargetPlan& target = plan.target();
  const double asked = asked_bytes_per_s(o, plan);
  return {{"target", o.null_sink ? "null" : targets_text(o.targets())},
          {"target_kind", kinds_name(plan.targets())},
          {"filesystem", or_null(target.filesystem)},
          {"mode", o.triggered() ? "triggered" : "continuous"},
          {"paced", !o.unpaced},
          {"data_path", plan.zero_copy() ? "zero-copy" : "copy"},
          {"data_path_asked", !o.zero_copy   ? "auto"
                              : *o.zero_copy ? "zero-copy"
                                             : "copy"},
          {"data_path_reason", plan.data_path_reason},
          {"applications", o.applications},
          {"targets", o.target_count()},
          {"links", o.links},
          {"writers", o.writers},
          {"record_format", o.framed() ? "framed" : "gapless"},
          {"superchunk_bytes", o.superchunk_bytes},
          {"superchunk_rate_hz", o.superchunk_rate_hz},
          {"scale", o.scale},
          {"offered_bytes_per_s", o.unpaced ? Json(nullptr) : Json(asked)},
          {"duration_s", o.duration_s},
          {"ring_bytes_per_link", o.ring_bytes},
          {"ring_slots_per_link", plan.slots_per_link},
          {"block_bytes", o.block_bytes},
          {"alignment_bytes", target.alignment},
          {"io_depth", o.io_depth},
          {"checksum", checksum_name(o.checksum)},
          {"preallocate", o.preallocate && target.kind == TargetKind::scratch_file},
          {"seed", o.seed},
          {"record_id", record_id_text(r.applications.front().record_id)},
          {"memory_locked", r.memory_locked},
          {"memory_features", features_json(r.memory_features)},
          {"placement", placement_json(plan.applications.front().placement)}};
}

Json trigger_json(const MiniDaqOptions& o, const MiniDaqPlan& plan, const MiniDaqResult& r) {
  if (!o.triggered()) return nullptr;
  const std::uint64_t bytes = plan.request_bytes(o);
  return {{"asked_request_bytes", o.request_bytes},
          {"request_bytes", bytes},
          {"superchunks_per_link", plan.window},
          {"rate_hz", o.unpaced ? Json(nullptr) : Json(o.trigger_rate_hz)},
          {"decisions", r.decisions},
          {"vetoed", r.vetoed},
          {"unbuffered_superchunks", r.unbuffered},
          {"achieved_rate_hz", ratio(static_cast<double>(r.decisions), seconds(r.record_ns)) /
                                   static_cast<double>(o.all_applications())}};
}

// The writers of one application; a framed record has several.
Json writers_json(const ApplicationPlan& plan, const ApplicationResult& one) {
  Json all = Json::array();
  for (std::size_t i = 0; i < one.writers.size(); ++i) {
    const WriterResult& writer = one.writers[i];
    all.push_back({{"first_link", writer.links.first},
                   {"links", writer.links.count},
                   {"stored", writer.stored},
                   {"blocks", writer.blocks},
                   {"drained_s", seconds(writer.drained_ns)},
                   {"cpu_s", writer.cpu.user_s + writer.cpu.system_s},
                   {"cpu", or_null(plan.writers[i].writer_cpu)},
                   {"placement_note", plan.writers[i].note}});
  }
  return all;
}

Json applications_json(const MiniDaqPlan& plan, const MiniDaqResult& r) {
  Json all = Json::array();
  for (std::size_t i = 0; i < r.applications.size(); ++i) {
    const ApplicationResult& one = r.applications[i];
    all.push_back(end_json(one));
    all.back().update({{"target", plan.applications[i].target.path},
                       {"offset_bytes", plan.applications[i].base},
                       {"record_id", record_id_text(one.record_id)},
                       {"offered", one.offered},
                       {"stored", one.stored},
                       {"lost", sum(one.lost_per_link)},
                       {"busy_count", one.busy.count()},
                       {"drained_s", seconds(one.drained_ns)},
                       {"writer_cpu_s", one.writer_cpu.user_s + one.writer_cpu.system_s},
                       {"placement", placement_json(plan.applications[i].placement)},
                       {"writers", writers_json(plan.applications[i], one)}});
  }
  return all;
}

// The buffers that other loads would have needed: the real and the nominal rate, 100 s and 120 s. Each of
// several writers has its share of the load and its own buffer.
Json extrapolated_json(const MiniDaqOptions& o, const MiniDaqResult& r) {
  constexpr double kNominalBytesPerS = 10e9;
  const auto applications = static_cast<double>(o.all_applications());
  const double real = applications * o.links * o.superchunk_rate_hz * o.superchunk_bytes;
  Json all = Json::array();
  for (const double rate : {real, kNominalBytesPerS}) {
    for (const double length_s : {100.0, 120.0}) {
      ServiceRecord::Needed needed;
      for (const ApplicationResult& one : r.applications) {
        for (const WriterResult& writer : one.writers) {
          const double share = static_cast<double>(writer.links.count) / o.links;
          const ServiceRecord::Needed its =
              writer.service_record.needed(share * (rate / applications), length_s);
          needed.estimate += its.estimate;
          needed.upper_bound += its.upper_bound;
        }
      }
      all.push_back({{"bytes_per_s", rate},
                     {"duration_s", length_s},
                     {"estimate_bytes", needed.estimate},
                     {"upper_bound_bytes", needed.upper_bound}});
    }
  }
  return all;
}

Json joint_buffer_json(const MiniDaqOptions& o, const JointBuffer& buffer) {
  if (o.unpaced) return nullptr;
  return {{"needed_bytes", buffer.needed_bytes},
          {"needed_at_s", seconds(buffer.needed_at_ns)},
          {"kind", buffer.exact ? "exact" : "upper bound"}};
}

Json transient_buffer_json(const MiniDaqOptions& o, const MiniDaqResult& r) {
  double busy = 0;
  double rate = 0;
  for (const ApplicationResult& one : r.applications) {
    for (const WriterResult& writer : one.writers) {
      busy += writer.service_record.busy_fraction() / static_cast<double>(o.all_applications() * o.writers);
      rate += writer.service_record.busy_bytes_per_s();
    }
  }
  return {{"needed_bytes", o.unpaced ? Json(nullptr) : Json(r.service_curve.needed_bytes())},
          {"method", kBufferMethod},
          {"joint", joint_buffer_json(o, r.joint_buffer)},
          {"joint_method", kJointMethod},
          {"busy_fraction", busy},
          {"busy_bytes_per_s", rate},
          {"extrapolated", extrapolated_json(o, r)},
          {"extrapolation_method", kExtrapolationMethod}};
}

Json minidaq_targets_json(const MiniDaqOptions& o, const MiniDaqPlan& plan, const MiniDaqResult& r) {
  const std::vector<TargetPlan> targets = plan.targets();
  Json all = Json::array();
  for (std::size_t i = 0; i < r.targets.size(); ++i) {
    const TargetResult& one = r.targets[i];
    const TargetPlan& target = targets[i];
    all.push_back(end_json(one));
    all.back().update(
        {{"target", o.null_sink ? "null" : o.targets()[i]},
         {"kind", target_kind_name(target.kind)},
         {"filesystem", or_null(target.filesystem)},
         {"node", or_null(target.numa_node)},
         {"applications", o.applications},
         {"superchunks",
          {{"offered", one.offered}, {"stored", one.stored}, {"lost", sum(one.lost_per_link)}}},
         {"stored_bytes", one.payload_bytes},
         {"unanswered_bytes", one.unanswered_bytes},
         {"total_s", seconds(one.total_ns)},
         {"stored_bytes_per_s", ratio(static_cast<double>(one.payload_bytes), seconds(one.total_ns))},
         {"achieved_fraction", one.achieved_fraction()},
         {"busy", {{"count", one.busy.count()}, {"total_s", seconds(one.busy.total_ns())}}},
         {"transient_buffer", joint_buffer_json(o, one.joint_buffer)},
         {"latency_us", latency_json(one.latency_ns, kRequestLatencyDefinition)},
         {"write_latency_us", latency_json(one.write_latency_ns, kWriteLatencyDefinition)}});
  }
  return all;
}

Json busy_json(const BusyTracker& busy) {
  Json episodes = Json::array();
  for (const BusyEpisode& episode : busy.episodes()) {
    episodes.push_back(
        {{"start_s", seconds(episode.start_ns)}, {"duration_s", seconds(episode.duration_ns)}});
  }
  return {{"count", busy.count()}, {"total_s", seconds(busy.total_ns())}, {"episodes", episodes}};
}

// Only columns that count anything, so that a record of any length needs a few thousand numbers at most.
Json latency_over_time_json(const TimedHistogram& latencies) {
  const std::size_t rows = latencies.rows();
  std::size_t first = TimedHistogram::kColumns;
  std::size_t end = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < TimedHistogram::kColumns; ++column) {
      if (latencies.count(row, column) == 0) continue;
      first = std::min(first, column);
      end = std::max(end, column + 1);
    }
  }
  Json edges = Json::array();
  Json counts = Json::array();
  for (std::size_t column = first; column < end; ++column)
    edges.push_back(static_cast<double>(TimedHistogram::lower_edge(column)) / 1e3);
  for (std::size_t row = 0; row < rows; ++row) {
    Json one = Json::array();
    for (std::size_t column = first; column < end; ++column) one.push_back(latencies.count(row, column));
    counts.push_back(one);
  }
  return {{"definition", kLatencyOverTimeDefinition},
          {"interval_s", seconds(latencies.row_duration())},
          {"from_us", edges},
          {"counts", counts}};
}

Json minidaq_cpu_json(const MiniDaqResult& r) {
  const auto used = [](const CpuUse& cpu) {
    return Json{{"user_s", cpu.user_s}, {"system_s", cpu.system_s}};
  };
  const double writer_s = r.writer_cpu.user_s + r.writer_cpu.system_s;
  const double stored_gb = static_cast<double>(r.payload_bytes) / 1e9;
  Json all = cpu_json(r.cpu);
  all.update({{"seconds_per_gb", ratio(r.cpu.user_s + r.cpu.system_s, stored_gb)},
              {"writer", used(r.writer_cpu)},
              {"source", used(r.source_cpu)},
              {"writer_seconds_per_gb", ratio(writer_s, stored_gb)},
              {"copy_s", seconds(r.copy_ns)},
              {"copy_share", ratio(seconds(r.copy_ns), r.cpu.user_s + r.cpu.system_s)},
              {"copied_bytes", r.copied_bytes},
              {"max_rss_bytes", r.cpu.max_rss_bytes}});
  return all;
}

}  // namespace

Json minidaq_json(const MiniDaqOptions& o, const MiniDaqPlan& plan, const MiniDaqResult& r) {
  const std::uint64_t lost = sum(r.lost_per_link);
  const std::int64_t drained_ns = std::max(r.drained_ns, r.record_ns);
  const double offered_bytes = static_cast<double>(r.offered * o.superchunk_bytes);
  Json all = document_json("daqwriter", "minidaq", DAQWRITER_VERSION);
  all.update(end_json(r));
  all.update({{"engine", r.engine},
              {"engine_note", or_null(r.engine_note)},
              {"engine_features", features_json(r.engine_features)},
              {"started_utc", iso8601_utc(r.started_utc_ns)},
              {"parameters", minidaq_parameters_json(o, plan, r)},
              {"superchunks",
               {{"intended", plan.intended_superchunks},
                {"emitted", r.emitted},
                {"offered", r.offered},
                {"stored", r.stored},
                {"lost", lost},
                {"abandoned", r.offered - r.stored - lost},
                {"lost_per_link", r.lost_per_link}}},
              {"bytes",
               {{"payload", r.payload_bytes},
                {"written", r.written_bytes},
                {"padding", r.padding_bytes},
                {"frames", r.frame_bytes},
                {"unanswered", r.unanswered_bytes}}},
              {"discarded", o.null_sink},
              {"time",
               {{"prepare_s", seconds(r.prepare_ns)},
                {"record_s", seconds(r.record_ns)},
                {"drain_s", seconds(drained_ns - r.record_ns)},
                {"flush_s", seconds(r.total_ns - drained_ns)},
                {"total_s", seconds(r.total_ns)}}},
              {"offered_bytes_per_s", ratio(offered_bytes, seconds(r.record_ns))},
              {"stored_bytes_per_s", ratio(static_cast<double>(r.payload_bytes), seconds(r.total_ns))},
              {"source",
               {{"achieved_fraction", r.achieved_fraction()},
                {"worst_lateness_us", static_cast<double>(r.worst_lateness_ns) / 1e3},
                {"late_superchunks", r.late_superchunks},
                {"late_threshold_us", static_cast<double>(ReadoutEmulator::kLateNs) / 1e3},
                {"too_late_superchunks", r.emitted - r.in_time},
                {"in_time_us", static_cast<double>(kInTimeNs) / 1e3}}},
              {"trigger", trigger_json(o, plan, r)},
              {"applications", applications_json(plan, r)},
              {"targets", minidaq_targets_json(o, plan, r)},
              {"busy", busy_json(r.busy)},
              {"backlog",
               {{"high_water_bytes", r.held.needed_bytes()},
                {"high_water_s", seconds(r.held.needed_at_ns())},
                {"capacity_bytes", plan.buffer_bytes}}},
              {"transient_buffer", transient_buffer_json(o, r)},
              {"latency_us", latency_json(r.latency_ns, kRequestLatencyDefinition)},
              {"latency_over_time", latency_over_time_json(r.latency_over_time)},
              {"write_latency_us", latency_json(r.write_latency_ns, kWriteLatencyDefinition)},
              {"cpu", minidaq_cpu_json(r)},
              {"series",
               {{"interval_s", o.interval_s},
                {"t_s", r.series.t_s},
                {"offered_bytes", r.series.offered_bytes},
                {"stored_bytes", r.series.stored_bytes},
                {"backlog_bytes", r.series.backlog_bytes}}}});
  return all;
}

std::string minidaq_plan_text(const MiniDaqOptions& o, const MiniDaqPlan& plan) {
  const std::string load = o.unpaced
                               ? "as fast as it is taken"
                               : format_number(plan.rate_hz) + " Hz x " + std::to_string(o.superchunk_bytes) +
                                     " B = " + format_gb(asked_bytes_per_s(o, plan)) + "/s";
  std::string places;
  std::string notes;
  for (const TargetPlan& target : plan.targets()) {
    places += (places.empty() ? "" : ", ") + target.path + " (" + target_kind_name(target.kind) + ", " +
              format_gb(target.free_bytes) + " free)";
  }
  for (const ApplicationPlan& each : plan.applications) {
    const std::string& note = each.placement.note;
    if (notes.find(note) == std::string::npos) notes += "; " + note;
  }
  const std::size_t all = o.all_applications();
  return "would record " + (all > 1 ? std::to_string(all) + " applications x " : "") +
         std::to_string(o.links) + " links x " + load + " for " + format_number(o.duration_s) + " s" +
         (o.framed() ? ", " + std::to_string(o.writers) + " writers each" : "") + ": " +
         std::to_string(all * plan.record_bytes) + " B on " + places + ", with " +
         format_gb(plan.buffer_bytes) + " of buffers; data path " +
         (plan.zero_copy() ? "zero-copy" : "copy") + " (" + plan.data_path_reason + ")" + notes + "\n";
}

std::string minidaq_summary(const MiniDaqOptions& o, const MiniDaqResult& r) {
  const double offered = static_cast<double>(r.offered * o.superchunk_bytes);
  std::string text =
      "record " + run_status_name(r.status) + ": offered " + format_gb(ratio(offered, seconds(r.record_ns))) +
      "/s (" +
      (o.unpaced ? "unpaced"
                 : format_number(100 * r.achieved_fraction(), 5) + " % of what was due, in time") +
      "), " + (o.null_sink ? "discarded " : "stored ") + format_gb(r.payload_bytes) + " in " +
      format_number(seconds(r.total_ns), 4) +
      " s, flush included = " + format_gb(ratio(static_cast<double>(r.payload_bytes), seconds(r.total_ns))) +
      "/s; lost " + std::to_string(sum(r.lost_per_link)) + " of " + std::to_string(r.offered) +
      " superchunks; BUSY " + std::to_string(r.busy.count()) + " times";
  if (o.triggered())
    text +=
        "; " + std::to_string(r.decisions) + " requests, " + std::to_string(r.vetoed) + " triggers vetoed";
  if (!o.unpaced) text += "; transient buffer needed " + format_gb(r.service_curve.needed_bytes());
  text +=
      "; latency p99 " + format_number(static_cast<double>(r.latency_ns.percentile(99)) / 1e6, 4) + " ms\n";
  for (std::size_t i = 0; i < r.targets.size() && r.targets.size() > 1; ++i) {
    const TargetResult& one = r.targets[i];
    text += "  " + o.targets()[i] + ": " + run_status_name(one.status) + ", stored " +
            format_gb(one.payload_bytes) + " = " +
            format_gb(ratio(static_cast<double>(one.payload_bytes), seconds(one.total_ns))) + "/s, lost " +
            std::to_string(sum(one.lost_per_link)) + ", BUSY " + std::to_string(one.busy.count()) +
            " times; latency p99 " +
            format_number(static_cast<double>(one.latency_ns.percentile(99)) / 1e6, 4) + " ms\n";
  }
  if (!r.error.empty()) text += "error: " + r.error + "\n";
  if (r.failed_line_records > 0)
    text +=
        "warning: " + std::to_string(r.failed_line_records) + " line-protocol records could not be written\n";
  return text;
}

}  // namespace daqwriter
