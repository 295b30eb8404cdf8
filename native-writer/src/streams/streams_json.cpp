// Promise: the result of the storage application for machines
// (inventory/schemas/daqwriter-streams.schema.json) and for people.
#include <algorithm>
#include <numeric>

#include "base/units.h"
#include "report/report_json.h"
#include "streams/streams.h"

namespace daqwriter {
namespace {

using Json = nlohmann::ordered_json;

double ratio_or_zero(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

// Over all streams.
template <typename Account, typename Value>
Value sum(const std::vector<Account>& accounts, Value Account::*of) {
  return std::accumulate(accounts.begin(), accounts.end(), Value{},
                         [of](Value before, const Account& each) { return before + each.*of; });
}

std::uint64_t written_bytes(const StreamsResult& r) {
  return sum(r.written, &StreamWriter::Account::bytes);
}

double streams_rate(const StreamsResult& r, std::int64_t time_ns) {
  return ratio_or_zero(static_cast<double>(written_bytes(r)), seconds(time_ns));
}

double cpu_s(const CpuUse& cpu) {
  return cpu.user_s + cpu.system_s;
}

double achieved(const StreamsResult& r) {
  const auto offered = std::accumulate(r.offered_bytes.begin(), r.offered_bytes.end(), std::uint64_t{0});
  return r.due_bytes > 0 ? static_cast<double>(offered - r.too_late_bytes) / static_cast<double>(r.due_bytes)
                         : 1;
}

double held_s(const StreamsResult& r) {
  return seconds(sum(r.offered, &EventSource::Account::held_ns));
}

Json streams_parameters_json(const StreamsOptions& o, const StreamsPlan& plan, const StreamsResult& r) {
  const bool threads = uses_threads(o.checksum);
  return {{"target", o.null_sink ? "null" : o.target},
          {"target_kind", o.null_sink ? "null" : "directory"},
          {"filesystem", or_null(plan.target.filesystem)},
          {"prefix", o.prefix},
          {"shares", o.run.shares},
          {"event_bytes", o.run.event_bytes},
          {"event_spread", o.run.event_spread},
          {"bytes", o.bytes > 0 ? Json(o.bytes) : Json(nullptr)},
          {"duration_s", o.duration_s > 0 ? Json(o.duration_s) : Json(nullptr)},
          {"rate_bytes_per_s", o.rate_bytes_per_s > 0 ? Json(o.rate_bytes_per_s) : Json(nullptr)},
          {"file_bytes", o.file_bytes},
          {"queue_bytes_per_stream", o.queue_bytes},
          {"queue_slots_per_stream", o.run.slots_per_stream},
          {"block_bytes", o.block_bytes},
          {"io_depth", o.io_depth},
          {"buffer_bytes", plan.buffer_bytes},
          {"memory_locked", r.memory_locked},
          {"preallocate", o.preallocate && !o.null_sink},
          {"checksum_variant", adler_variant_name(o.checksum)},
          {"checksum_threads", threads ? o.checksum_threads : 1},
          {"smallest_parallel_bytes", threads ? Json(o.smallest_parallel_bytes) : Json(nullptr)},
          {"cpus", o.cpus.empty() ? Json(nullptr) : Json(o.cpus)},
          {"seed", o.run.seed},
          {"run_id", record_id_text(o.run.run_id)},
          {"numa_node", or_null(plan.target.numa_node)},
          {"placement_note", plan.placement.note}};
}

Json streams_array(const StreamsOptions& o, const StreamsResult& r) {
  const auto all = static_cast<double>(written_bytes(r));
  Json streams = Json::array();
  for (std::size_t i = 0; i < r.written.size(); ++i) {
    const EventSource::Account& offered = r.offered[i];
    const StreamWriter::Account& written = r.written[i];
    streams.push_back(cpu_json(written.cpu));
    streams.back().update({{"share", o.run.shares[i]},
                           {"achieved_share", ratio_or_zero(static_cast<double>(written.bytes), all)},
                           {"offered_events", offered.events},
                           {"offered_bytes", r.offered_bytes[i]},
                           {"written_events", written.events},
                           {"written_bytes", written.bytes},
                           {"abandoned_events", offered.events - written.events},
                           {"closed_files", written.closed_files},
                           {"closed_events", written.closed_events},
                           {"fallback_events", written.fallback_events},
                           {"held_events", offered.held_events},
                           {"held_s", seconds(offered.held_ns)},
                           {"queue_high_water", offered.fullest_queue},
                           {"backlog_high_water_bytes", written.backlog_high_water_bytes},
                           {"checksum_and_copy_s", seconds(written.copy_ns)},
                           {"file_closing_s", seconds(written.close_ns)}});
  }
  return streams;
}

Json totals(const StreamsResult& r) {
  using Written = StreamWriter::Account;
  return {
      {"offered_events", sum(r.offered, &EventSource::Account::events)},
      {"offered_bytes", std::accumulate(r.offered_bytes.begin(), r.offered_bytes.end(), std::uint64_t{0})},
      {"written_events", sum(r.written, &Written::events)},
      {"written_bytes", written_bytes(r)},
      {"closed_files", sum(r.written, &Written::closed_files)},
      {"closed_events", sum(r.written, &Written::closed_events)},
      {"fallback_events", sum(r.written, &Written::fallback_events)}};
}

Json streams_cpu_json(const StreamsResult& r) {
  const double copy_s = seconds(sum(r.written, &StreamWriter::Account::copy_ns));
  Json all = cpu_json(r.cpu);
  all.update({{"seconds_per_gb", ratio_or_zero(cpu_s(r.cpu), static_cast<double>(written_bytes(r)) / 1e9)},
              {"source_s", cpu_s(r.source_cpu)},
              {"checksum_and_copy_s", copy_s},
              {"checksum_and_copy_share", ratio_or_zero(copy_s, cpu_s(r.cpu))},
              {"max_rss_bytes", r.cpu.max_rss_bytes}});
  return all;
}

}  // namespace

Json streams_json(const StreamsOptions& o, const StreamsPlan& plan, const StreamsResult& r) {
  const char* from = o.rate_bytes_per_s > 0 ? "intended arrival" : "handed to its stream's queue";
  Json all = document_json("daqwriter", "streams", DAQWRITER_VERSION);
  all.update(end_json(r));
  all.update({{"engine", engine_name(o.used_engine())},
              {"engine_features", features_json(r.engine_features)},
              {"started_utc", iso8601_utc(r.started_utc_ns)},
              {"parameters", streams_parameters_json(o, plan, r)},
              {"ended_by", r.ended_by},
              {"unanswered_bytes", sum(r.written, &StreamWriter::Account::unanswered_bytes)},
              {"discarded", o.null_sink},
              {"totals", totals(r)},
              {"time",
               {{"prepare_s", seconds(r.prepare_ns)},
                {"emission_s", seconds(r.emission_ns)},
                {"write_s", seconds(r.write_ns)},
                {"flush_s", seconds(r.flush_ns)}}},
              {"bytes_per_s", streams_rate(r, r.write_ns)},
              {"bytes_per_s_with_flush", streams_rate(r, r.write_ns + r.flush_ns)},
              {"source",
               {{"due_bytes", r.due_bytes},
                {"achieved_fraction", o.rate_bytes_per_s > 0 ? Json(achieved(r)) : Json(nullptr)},
                {"too_late_bytes", r.too_late_bytes},
                {"held_s", held_s(r)},
                {"held_share", ratio_or_zero(held_s(r), seconds(r.emission_ns))}}},
              {"latency_us",
               latency_json(r.latency_ns,
                            std::string("per event: ") + from +
                                " until the completions of all blocks holding a part of it were reaped")},
              {"cpu", streams_cpu_json(r)},
              {"streams", streams_array(o, r)},
              {"series",
               {{"interval_s", o.interval_s},
                {"t_s", r.series.t_s},
                {"offered_bytes", r.series.offered_bytes},
                {"written_bytes", r.series.stored_bytes},
                {"backlog_bytes", r.series.backlog_bytes}}},
              {"failed_line_records", r.failed_line_records}});
  return all;
}

std::string streams_summary(const StreamsOptions& o, const StreamsResult& r) {
  const auto number = [](double value) { return format_number(value, 4); };
  const auto us = [&](double percent) {
    return number(static_cast<double>(r.latency_ns.percentile(percent)) / 1e3);
  };
  std::string text = "streams " + run_status_name(r.status) + " (" + r.ended_by +
                     "): " + format_gb(written_bytes(r)) + (o.null_sink ? " discarded in " : " in ") +
                     number(seconds(r.write_ns)) + " s = " + number(streams_rate(r, r.write_ns) / 1e9) +
                     " GB/s (" + number(streams_rate(r, r.write_ns + r.flush_ns) / 1e9) +
                     " GB/s with the final flush), checksum " + adler_variant_name(o.checksum) +
                     "; source held back " + number(held_s(r)) + " s";
  if (o.rate_bytes_per_s > 0) text += ", achieved " + number(achieved(r)) + " of its pace";
  text += "; latency p50 " + us(50) + " us, p99 " + us(99) + " us; " +
          number(ratio_or_zero(cpu_s(r.cpu), static_cast<double>(written_bytes(r)) / 1e9)) + " CPU s/GB\n";
  if (!r.error.empty()) text += "error: " + r.error + "\n";
  return text;
}

}  // namespace daqwriter
