// Promise: the options of `daqwriter minidaq`, their units and defaults.
#include <iostream>
#include <memory>

#include "cli.h"
#include "minidaq.h"
#include "report_json.h"

namespace daqwriter {
namespace {

// Options as text where our own parsers give the better message.
struct Asked {
  MiniDaqOptions options;
  std::uint64_t max_buffer = 0;
  std::string checksum = "crc32";
  std::string record_id;
  std::string sink = "target";
  std::string mode = "continuous";
  std::string data_path = "copy";
  std::uint64_t request_size = 16ull << 20;
  std::string preallocate = "full";
  bool dry_run = false;
};

void add_options(CLI::App& app, Asked& t) {
  MiniDaqOptions& o = t.options;
  app.add_option("--target", o.target, "New file or block device to record on");
  add_choice(app, "--sink", t.sink, {"target", "null"},
             "target, or null: no I/O, to calibrate the program itself");
  app.add_option("--duration", o.duration_s, "Length of the record, seconds")->required();
  add_choice(app, "--mode", t.mode, {"continuous", "triggered"},
             "continuous: all that the links emit; triggered: what trigger decisions ask for");
  add_size(app, "--request-size", t.request_size,
           "Triggered: wanted of all links of an application per decision; rounded up to whole superchunks");
  app.add_option("--trigger-rate", o.trigger_rate_hz,
                 "Triggered: decisions per second of each application, Hz");
  app.add_flag("--unpaced", o.unpaced, "As fast as the writer takes it, instead of at the links' rate");
  add_size(app, "--bytes", o.most_bytes, "Unpaced: end after this much, all applications");
  add_choice(app, "--data-path", t.data_path, {"copy", "zero-copy"},
             "copy: into aligned blocks; zero-copy: aligned chunks straight from the rings");
  app.add_option("--applications", o.applications,
                 "MiniDAQ applications at once, each with its links, buffers, writer and record")
      ->capture_default_str();
  app.add_option("--links", o.links, "Number of links of each application")->capture_default_str();
  app.add_option("--superchunk-bytes", o.superchunk_bytes,
                 "Size of a superchunk, 64 B header included, bytes")
      ->capture_default_str();
  app.add_option("--superchunk-rate", o.superchunk_rate_hz, "Superchunks per second and link, Hz")
      ->capture_default_str();
  app.add_option("--scale", o.scale, "Factor on the rate")->capture_default_str();
  add_size(app, "--ring-size", o.ring_bytes, "Transient buffer of each link");
  add_size(app, "--block-size", o.block_bytes, "Bytes per write; a multiple of 4KiB");
  app.add_option("--io-depth", o.io_depth, "Most writes in flight")->capture_default_str();
  add_choice(app, "--engine", o.engine, engine_names(), "Asynchronous I/O interface");
  add_choice(app, "--checksum", t.checksum, {"crc32", "adler32", "off"}, "Per superchunk");
  add_choice(app, "--preallocate", t.preallocate, {"full", "none"},
             "full: fallocate the file before the record; none: let it grow");
  add_size(app, "--max-buffer", t.max_buffer, "Refuse when rings and block buffers exceed this size");
  app.add_option("--seed", o.seed, "Seed of the payload")->capture_default_str();
  app.add_option("--record-id", t.record_id, "32 hexadecimal digits; random when not given");
  app.add_option(
         "--writer-cpu", o.writer_cpus,
         "CPU of the writer thread; of several applications in turn, e.g. 2,4; default: near the drive")
      ->delimiter(',');
  app.add_option("--source-cpu", o.source_cpus,
                 "CPU of the source thread; default: near the drive, another one")
      ->delimiter(',');
  add_consent(app, o.consent);
  app.add_flag("--dry-run", t.dry_run, "Check everything, write nothing, print the plan");
  add_reporting(app, o);
}

void resolve(Asked& t) {
  MiniDaqOptions& o = t.options;
  if (t.max_buffer > 0) o.max_buffer_bytes = t.max_buffer;
  o.checksum = parse_checksum_kind(t.checksum);
  if (!t.record_id.empty()) o.record_id = parse_record_id(t.record_id);
  o.null_sink = t.sink == "null";
  if (o.null_sink && !o.target.empty()) throw Refusal("--sink null writes nowhere: leave --target away");
  o.preallocate = t.preallocate == "full";
  o.request_bytes = t.mode == "triggered" ? t.request_size : 0;
  o.zero_copy = t.data_path == "zero-copy";
}

ExitCode run(Asked& t, const std::atomic<int>& stop_signal) {
  resolve(t);
  const MiniDaqOptions& o = t.options;
  const MiniDaqPlan plan = plan_minidaq(o);
  if (t.dry_run) {
    std::cerr << minidaq_plan_text(o, plan);
    return ExitCode::complete;
  }
  const MiniDaqResult result =
      run_minidaq(o, plan, engine_factory(o.null_sink ? "null" : o.engine), stop_signal);
  write_json(o.json_path, minidaq_json(o, plan, result));
  std::cerr << minidaq_summary(o, result);
  return exit_code_of(result.status);
}

}  // namespace

ParsedCommand add_minidaq(CLI::App& parent) {
  const auto asked = std::make_shared<Asked>();
  CLI::App* app =
      parent.add_subcommand("minidaq", "Record paced links continuously, as in a supernova burst");
  add_options(*app, *asked);
  return {app, [asked](const std::atomic<int>& stop_signal) { return run(*asked, stop_signal); }};
}

}  // namespace daqwriter
