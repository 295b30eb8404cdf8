// Promise: the plan and the result of synthetic writes and reads for machines
// (inventory/schemas/daqwriter-write.schema.json and daqwriter-read.schema.json) and for people.
#include <algorithm>

#include "base/memory.h"
#include "base/units.h"
#include "format/record_format.h"
#include "report/report_json.h"
#include "write/synthetic.h"

namespace daqwriter {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kBlockLatencyDefinition = "per block: submission until its last part was reaped";

void check_write_ranges(const WriteOptions& o) {
  require(o.bytes > 0 || o.duration_s > 0, "give --bytes or --duration, or both");
  require(o.null_sink || !o.target.empty(), "--target: name a new file or a block device");
}

// Returns the bytes that the threads share: the span asked for; else the bytes to write, else the whole
// device or, on a file system, half of the free space, at most 16 GiB.
std::uint64_t span_wanted(const WriteOptions& o, TargetKind kind, std::uint64_t room, std::uint64_t round) {
  if (o.span_bytes > 0) return o.span_bytes;
  if (o.bytes > 0) return round_up(o.bytes, round);
  if (kind == TargetKind::raw_device) return room;
  return std::min<std::uint64_t>(room / 2, 16ull << 30);
}

double gb_per_s(double bytes_per_s) {
  return bytes_per_s / 1e9;
}

double target_rate(const WriteTargetResult& r, std::int64_t time_ns) {
  return time_ns > 0 ? static_cast<double>(r.bytes) / seconds(time_ns) : 0;
}

std::string condition(const WriteOptions& o) {
  if (o.null_sink) return "none";
  if (o.reads) return "written before";
  return o.overwrite ? "overwrite" : "fresh";
}

Json threads_json(const WritePlan& plan, const WriteResult& r) {
  Json threads = Json::array();
  for (std::size_t i = 0; i < r.threads.size(); ++i) {
    const WriteThreadResult& t = r.threads[i];
    const std::size_t of_each = r.threads.size() / plan.targets.size();
    threads.push_back(cpu_json(t.cpu));
    threads.back().update({{"cpus", plan.targets[i / of_each].placement.cpus[i % of_each]},
                           {"bytes", t.bytes},
                           {"end_s", seconds(t.end_ns)}});
  }
  return threads;
}

// One target's figures; bytes_per_s as for all of them.
Json write_targets_json(const WriteOptions& o, const WritePlan& plan, const WriteResult& r) {
  Json all = Json::array();
  for (std::size_t i = 0; i < r.targets.size(); ++i) {
    const WriteTargetResult& one = r.targets[i];
    const WriteTargetPlan& mine = plan.targets[i];
    const TargetPlan& target = mine.target;
    all.push_back(end_json(one));
    all.back().update({{"target", o.null_sink ? "null" : o.targets()[i]},
                       {"kind", target_kind_name(target.kind)},
                       {"filesystem", or_null(target.filesystem)},
                       {"node", or_null(target.numa_node)},
                       {"placement_note", mine.placement.note},
                       {"threads", o.threads},
                       {"span_bytes", mine.span_bytes(o.block_bytes)},
                       {"ended_by", one.ended_by},
                       {"written_bytes", one.bytes},
                       {"unanswered_bytes", one.unanswered_bytes},
                       {"write_s", seconds(one.write_ns)},
                       {"flush_s", seconds(one.flush_ns)},
                       {"bytes_per_s", target_rate(one, one.write_ns)},
                       {"bytes_per_s_with_flush", target_rate(one, one.write_ns + one.flush_ns)},
                       {"iops", target_rate(one, one.write_ns) / static_cast<double>(o.block_bytes)},
                       {"latency_us", latency_json(one.latency_ns, kBlockLatencyDefinition)}});
  }
  return all;
}

// `room`: what there is for it of the free space.
void plan_span(const WriteOptions& o, WriteTargetPlan& plan, std::uint64_t room) {
  require(o.block_bytes % plan.target.alignment == 0,
          "--block-size " + format_size(o.block_bytes) + ": must be a multiple of " +
              std::to_string(plan.target.alignment) + " B, the alignment of direct I/O here");
  const std::uint64_t round = o.block_bytes * o.threads;
  plan.part_blocks = span_wanted(o, plan.target.kind, room, round) / round;
  require(plan.part_blocks > 0, "--span or --bytes: give at least one block for each thread, " +
                                    std::to_string(o.threads) + " x " + format_size(o.block_bytes));
  const std::uint64_t span = plan.part_blocks * round;
  require(span <= room, "--span " + format_size(span) + ": " + plan.target.path + " has room for " +
                            format_gb(room) + "; use a smaller --span or --bytes");
  plan.blocks_per_thread = o.bytes > 0 ? round_up(o.bytes, round) / round : UINT64_MAX;
  // A block that was written is not fresh any more: such a load ends with the span.
  const bool once = !o.overwrite && !o.reads && !o.null_sink;
  require(!once || o.bytes == 0 || plan.blocks_per_thread <= plan.part_blocks,
          "--bytes " + format_size(o.bytes) + ": more than the span of " + format_size(span) +
              " can take with every block fresh; use --condition overwrite or a larger --span");
  if (once) plan.blocks_per_thread = std::min(plan.blocks_per_thread, plan.part_blocks);
}

// CPUs that were asked for go to the threads of all targets in turn.
void place_write(const WriteOptions& o, WritePlan& plan) {
  const auto threads = static_cast<std::uint32_t>(o.threads * plan.targets.size());
  const ThreadPlacement asked = place_threads(allowed_cpus(), {}, o.cpus, threads);
  for (std::size_t i = 0; i < plan.targets.size(); ++i) {
    WriteTargetPlan& mine = plan.targets[i];
    mine.placement = place_threads(allowed_cpus(), cpus_of_node(mine.target.numa_node), {}, o.threads);
    if (o.cpus.empty()) continue;
    const auto first = asked.cpus.begin() + static_cast<std::ptrdiff_t>(i * o.threads);
    mine.placement = {{first, first + o.threads}, asked.note};
  }
}

void require_buffers(const WriteOptions& o, std::uint64_t bytes) {
  const std::string remedy = "--threads, --io-depth or --block-size";
  if (o.target_count() == 1)
    return require_memory(bytes, "block buffers (threads x depth x block size)", remedy.c_str());
  const std::string purpose = "block buffers (" + std::to_string(o.target_count()) + " targets x " +
                              std::to_string(o.threads) + " threads x depth " + std::to_string(o.io_depth) +
                              " x " + format_size(o.block_bytes) + ")";
  require_memory(bytes, purpose.c_str(), (remedy + ", or fewer targets").c_str());
}

}  // namespace

WritePlan plan_write(const WriteOptions& o, const StopClock* stop) {
  const CallLimits limits{o.stall_limit_s, stop};
  check_write_ranges(o);
  check_reporting(o, o.targets(), limits);
  check_target_tags(o, o.targets());
  TargetSet set(o.consent, limits);
  std::vector<TargetPlan> targets;
  for (const std::string& name : o.targets()) {
    TargetPlan none;
    none.path = "null sink";
    none.free_bytes = UINT64_MAX;
    targets.push_back(o.null_sink ? none : set.plan(name));
  }
  WritePlan plan;
  for (const TargetPlan& target : targets) {
    plan.targets.push_back({target, {}, 0, 0});
    plan_span(o, plan.targets.back(), target.free_bytes / sharing_space(target, targets));
  }
  plan.buffer_bytes = o.target_count() * o.threads * o.io_depth * o.block_bytes;
  require_buffers(o, plan.buffer_bytes);
  place_write(o, plan);
  return plan;
}

namespace {

// The document of writes in the words of reads, which have no flush.
Json of_reads(const Json& document) {
  if (document.is_array() && (document.empty() || !document.front().is_object())) return document;
  Json made = document.is_array() ? Json::array() : Json::object();
  for (const auto& [name, value] : document.items()) {
    if (name == "flush_s" || name == "bytes_per_s_with_flush") continue;
    const std::string renamed = name == "written_bytes" ? "read_bytes" : name == "write_s" ? "read_s" : name;
    Json inner = value.is_structured() ? of_reads(value) : value;
    if (made.is_array()) {
      made.push_back(std::move(inner));
    } else {
      made[renamed] = std::move(inner);
    }
  }
  return made;
}

Json result_json(const WriteOptions& o, const WritePlan& plan, const WriteResult& r) {
  const double gb = static_cast<double>(r.bytes) / 1e9;
  const WriteTargetPlan& first = plan.targets.front();
  std::vector<TargetPlan> kinds;
  for (const WriteTargetPlan& each : plan.targets) kinds.push_back(each.target);
  const auto per_gb = [&](double value) { return gb > 0 ? value / gb : 0; };
  Json cpu = cpu_json(r.cpu);
  cpu.update({{"seconds_per_gb", per_gb(r.cpu.user_s + r.cpu.system_s)},
              {"user_seconds_per_gb", per_gb(r.cpu.user_s)},
              {"system_seconds_per_gb", per_gb(r.cpu.system_s)},
              {"max_rss_bytes", r.cpu.max_rss_bytes}});
  Json all = document_json("daqwriter", o.command(), DAQWRITER_VERSION);
  all.update(end_json(r));
  all.update(
      {{"engine", engine_name(o.used_engine())},
       {"engine_note", or_null(r.engine_note)},
       {"engine_features", features_json(r.engine_features)},
       {"started_utc", iso8601_utc(r.started_utc_ns)},
       {"parameters",
        {{"target", o.null_sink ? "null" : targets_text(o.targets())},
         {"targets", o.target_count()},
         {"target_kind", kinds_name(kinds)},
         {"filesystem", or_null(first.target.filesystem)},
         {"pattern", o.random ? "random" : "sequential"},
         {"condition", condition(o)},
         {"preallocate", o.preallocate && first.target.kind == TargetKind::scratch_file},
         {"data", o.zeros ? "zeros" : "incompressible"},
         {"block_bytes", o.block_bytes},
         {"threads", o.threads},
         {"io_depth", o.io_depth},
         {"bytes", o.bytes > 0 ? Json(o.bytes) : Json(nullptr)},
         {"duration_s", o.duration_s > 0 ? Json(o.duration_s) : Json(nullptr)},
         {"span_bytes", plan.span_bytes(o.block_bytes)},
         {"buffer_bytes", plan.buffer_bytes},
         {"seed", o.seed},
         {"numa_node", or_null(first.target.numa_node)},
         {"placement_note", first.placement.note}}},
       {"ended_by", r.ended_by},
       {"written_bytes", r.bytes},
       {"unanswered_bytes", r.unanswered_bytes},
       {"discarded", o.null_sink},
       {"passes", static_cast<double>(r.bytes) / static_cast<double>(plan.span_bytes(o.block_bytes))},
       {"time",
        {{"prepare_s", seconds(r.prepare_ns)},
         {"write_s", seconds(r.write_ns)},
         {"flush_s", seconds(r.flush_ns)}}},
       {"bytes_per_s", target_rate(r, r.write_ns)},
       {"bytes_per_s_with_flush", target_rate(r, r.write_ns + r.flush_ns)},
       {"iops", target_rate(r, r.write_ns) / static_cast<double>(o.block_bytes)},
       {"latency_us", latency_json(r.latency_ns, kBlockLatencyDefinition)},
       {"cpu", cpu},
       {"threads", threads_json(plan, r)},
       {"targets", write_targets_json(o, plan, r)},
       {"series", {{"interval_s", o.interval_s}, {"t_s", r.series_t_s}, {"written_bytes", r.series_bytes}}}});
  return all;
}

}  // namespace

Json write_result_json(const WriteOptions& o, const WritePlan& plan, const WriteResult& r) {
  Json document = result_json(o, plan, r);
  if (!o.reads) return document;
  document = of_reads(document);
  document["prefilled_bytes"] = o.prefilled() ? plan.span_bytes(o.block_bytes) : 0;
  return document;
}

std::string write_summary(const WriteOptions& o, const WriteResult& r) {
  std::string text =
      std::string(o.command()) + " " + run_status_name(r.status) + " (" + r.ended_by +
      "): " + format_gb(r.bytes) + (o.null_sink ? " discarded in " : " in ") +
      format_number(seconds(r.write_ns), 4) +
      " s = " + format_number(gb_per_s(target_rate(r, r.write_ns)), 4) + " GB/s" +
      (o.reads ? std::string()
               : " (" + format_number(gb_per_s(target_rate(r, r.write_ns + r.flush_ns)), 4) +
                     " GB/s with the final flush)") +
      ", blocks of " + format_size(o.block_bytes) + ", " + std::to_string(o.threads) + " threads x depth " +
      std::to_string(o.io_depth) + "; latency p50 " +
      format_number(static_cast<double>(r.latency_ns.percentile(50)) / 1e3, 4) + " us, p99 " +
      format_number(static_cast<double>(r.latency_ns.percentile(99)) / 1e3, 4) + " us; " +
      format_number((r.cpu.user_s + r.cpu.system_s) * 1e9 / std::max(1.0, static_cast<double>(r.bytes)), 3) +
      " CPU s/GB\n";
  for (std::size_t i = 0; i < r.targets.size() && r.targets.size() > 1; ++i) {
    const WriteTargetResult& one = r.targets[i];
    text += "  " + o.targets()[i] + ": " + run_status_name(one.status) + " (" + one.ended_by +
            "): " + format_gb(one.bytes) + " = " +
            format_number(gb_per_s(target_rate(one, one.write_ns)), 4) + " GB/s; latency p99 " +
            format_number(static_cast<double>(one.latency_ns.percentile(99)) / 1e3, 4) + " us\n";
  }
  if (!r.error.empty()) text += "error: " + r.error + "\n";
  return text;
}

}  // namespace daqwriter
