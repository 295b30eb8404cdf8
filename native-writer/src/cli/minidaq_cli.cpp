// Promise: the options of `daqwriter minidaq`, their units and defaults.
#include <iostream>
#include <memory>

#include "base/worker_thread.h"
#include "cli/cli.h"
#include "record/minidaq.h"
#include "record/minidaq_search.h"
#include "report/report_json.h"

namespace daqwriter {
namespace {

// Options as text where our own parsers give the better message.
struct MiniDaqAsked {
  MiniDaqOptions options;
  std::string record_id;
  bool triggered = false;
  std::uint64_t request_size = 16ull << 20;
  bool dry_run = false;
  bool search = false;
  double search_resolution = 0.02;
};

void add_minidaq_options(CLI::App& app, MiniDaqAsked& t) {
  MiniDaqOptions& o = t.options;
  add_targets(app, o, "New file or block device to record on");
  add_sink(app, o, "target, or null: no I/O, to calibrate the program itself");
  add_number(app, {"--duration", 1e-3, 86'400, "seconds"}, o.duration_s, "Length of the record, seconds")
      ->required();
  add_choice<bool>(app, "--mode", t.triggered, {{"continuous", false}, {"triggered", true}},
                   "continuous: all that the links emit; triggered: what trigger decisions ask for");
  add_number(
      app, {"--request-size", 1, bounds::kTiB}, t.request_size,
      "Triggered: wanted of all links of an application per decision; rounded up to whole superchunks");
  add_number(app, {"--trigger-rate", 1e-6, 1e6, "Hz"}, o.trigger_rate_hz,
             "Triggered: decisions per second of each application, Hz");
  app.add_flag("--unpaced", o.unpaced, "As fast as the writer takes it, instead of at the links' rate");
  add_number(
      app, bounds::kBytes, o.most_bytes,
      "Unpaced: end after this much, all applications; a file ends at half of the free space without it");
  add_choice<std::optional<bool>>(
      app, "--data-path", o.zero_copy, {{"auto", std::nullopt}, {"copy", false}, {"zero-copy", true}},
      "copy: into aligned blocks; zero-copy: aligned chunks straight from the rings; auto: zero-copy "
      "where 64 superchunks are aligned, no more than a block, and requests are whole chunks of them");
  add_number(app, {"--applications", 1, 64}, o.applications,
             "MiniDAQ applications at once for each target, each with its links, buffers, writer and record");
  add_number(app, {"--links", 1, kMaxLinks}, o.links, "Number of links of each application");
  add_number(app, {"--writers", 1, kMaxLinks, "writers of an application"}, o.writers,
             "Writers of each application, each with links, blocks and a thread of its own; 2 or more make a "
             "framed record (FORMAT.md). Continuous only");
  add_number(
      app,
      {"--superchunk-bytes", kMinSuperchunkBytes, kMaxSuperchunkBytes, "bytes (a 64 B header and payload)"},
      o.superchunk_bytes, "Size of a superchunk, 64 B header included, bytes");
  add_number(app, {"--superchunk-rate", 1e-3, 1e8, "Hz"}, o.superchunk_rate_hz,
             "Superchunks per second and link, Hz");
  add_number(app, {"--scale", 1e-6, 100, "as a factor"}, o.scale, "Factor on the rate");
  add_number(app, {"--ring-size", 1, bounds::kTiB}, o.ring_bytes, "Transient buffer of each link");
  add_number(app, bounds::kBlockSize, o.block_bytes, "Bytes per write; a multiple of 4KiB");
  add_number(app, bounds::kStreamDepth, o.io_depth, "Most writes in flight");
  add_engine(app, o.engine);
  add_choice<ChecksumKind>(
      app, "--checksum", o.checksum,
      {{"crc32", ChecksumKind::crc32}, {"adler32", ChecksumKind::adler32}, {"off", ChecksumKind::off}},
      "Per superchunk");
  add_preallocate(app, o, "full: fallocate the file before the record; none: let it grow");
  add_number(app, {"--max-buffer", 1, bounds::kMostBytes}, o.max_buffer_bytes,
             "Refuse when rings and block buffers exceed this size");
  add_seed(app, o.seed, "Seed of the payload");
  add_stall_limit(app, o.stall_limit_s);
  app.add_option("--record-id", t.record_id, "32 hexadecimal digits; random when not given");
  add_cpus(app, "--writer-cpu", o.writer_cpus,
           "CPU of the writer thread; for several writers or applications in turn, e.g. 2,4; default: near "
           "the drive");
  add_cpus(app, "--source-cpu", o.source_cpus,
           "CPU of the source thread; default: near the drive, another one");
  add_consent(app, o.consent);
  app.add_flag(
      "--search", t.search,
      "Find the highest rate without inhibit or loss, up to the one asked for; each trial is a record "
      "of --duration, which is removed");
  add_number(app, {"--search-resolution", 0.001, 0.5, "as a fraction"}, t.search_resolution,
             "Where the search ends, a fraction of the rate");
  app.add_flag("--dry-run", t.dry_run, "Check everything, write nothing, print the plan");
  add_reporting(app, o);
}

void resolve(MiniDaqAsked& t) {
  MiniDaqOptions& o = t.options;
  if (!t.record_id.empty()) o.record_id = parse_record_id(t.record_id);
  require_no_target(o);
  o.request_bytes = t.triggered ? t.request_size : 0;
}

MiniDaqResult record_or_fail(const MiniDaqOptions& o, const MiniDaqPlan& plan,
                             const std::atomic<int>& stop_signal) {
  return or_failed([&] { return run_minidaq(o, plan, engine_factory(o.used_engine()), stop_signal); },
                   [&](const std::string& error) { return failed_minidaq(o, error); }, stop_signal);
}

// Every trial is a record of its own; nothing of it stays on a file system.
ExitCode search(const MiniDaqAsked& t, const std::atomic<int>& stop_signal) {
  const MiniDaqOptions& asked = t.options;
  if (asked.unpaced) throw Refusal("--search looks for a rate: leave --unpaced away");
  const StopClock stop(stop_signal);
  MiniDaqPlan full = plan_minidaq(asked, &stop);
  for (const TargetPlan& target : full.targets()) print_caution(target);
  for (ApplicationPlan& each : full.applications)
    each.target.claim.reset();  // every trial claims the device itself
  std::vector<SearchTrial> trials;
  MiniDaqOptions unpaced = asked;
  unpaced.unpaced = true;
  unpaced.trigger_rate_hz = 0;
  unpaced.keep = false;
  unpaced.line_protocol_path = {};
  const auto record = [&](MiniDaqOptions options) {
    options.consent.own_data = true;  // the plan above found the drive empty, or may destroy what is there
    return record_or_fail(options, plan_minidaq(options, &stop), stop_signal);
  };
  // The first guess: nine tenths of what the writer takes when it is never kept waiting.
  MiniDaqResult last = record(unpaced);
  double limit_bytes_per_s = 0;
  RateSearch found;
  if (last.status == RunStatus::complete) {
    limit_bytes_per_s = static_cast<double>(last.payload_bytes) / seconds(last.total_ns);
    found = search_rate(0.9 * limit_bytes_per_s / asked_bytes_per_s(asked, full), t.search_resolution,
                        [&](double factor) -> std::optional<bool> {
                          MiniDaqOptions options = asked;
                          options.keep = false;
                          (options.triggered() ? options.trigger_rate_hz : options.scale) *= factor;
                          last = record(options);
                          if (last.status != RunStatus::complete) return std::nullopt;
                          trials.push_back(make_trial(factor, asked_bytes_per_s(asked, full) * factor, last));
                          std::cerr << search_trial_text(trials.back());
                          return trials.back().stood;
                        });
  } else {
    std::cerr << "the unpaced record, which tells where to look first, did not complete:\n"
              << minidaq_summary(unpaced, last);
  }
  write_json(asked.json_path, search_json(asked, full, limit_bytes_per_s, trials, found, last));
  if (limit_bytes_per_s > 0) std::cerr << search_summary(asked_bytes_per_s(asked, full), found);
  if (!last.error.empty()) std::cerr << "error: " << last.error << "\n";
  return leave(exit_code_of(last.status));
}

ExitCode run_minidaq_command(MiniDaqAsked& t, const std::atomic<int>& stop_signal) {
  resolve(t);
  const MiniDaqOptions& o = t.options;
  if (t.search && !t.dry_run) return search(t, stop_signal);
  const StopClock stop(stop_signal);
  const MiniDaqPlan plan = plan_minidaq(o, &stop);
  for (const TargetPlan& target : plan.targets()) print_caution(target);
  if (t.dry_run) {
    std::cerr << minidaq_plan_text(o, plan);
    return ExitCode::complete;
  }
  const MiniDaqResult result = record_or_fail(o, plan, stop_signal);
  write_json(o.json_path, minidaq_json(o, plan, result));
  std::cerr << minidaq_summary(o, result);
  return leave(exit_code_of(result.status));
}

}  // namespace

ParsedCommand add_minidaq(CLI::App& parent) {
  const auto asked = std::make_shared<MiniDaqAsked>();
  CLI::App* app = parent.add_subcommand(
      "minidaq", "The MiniDAQ: all that paced links emit, as in a supernova burst, or triggered requests");
  add_minidaq_options(*app, *asked);
  return {app,
          [asked](const std::atomic<int>& stop_signal) { return run_minidaq_command(*asked, stop_signal); }};
}

}  // namespace daqwriter
