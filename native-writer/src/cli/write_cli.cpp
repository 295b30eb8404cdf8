// Promise: the options of `daqwriter write` and `daqwriter read`, their units and defaults.
#include <iostream>
#include <memory>

#include "base/worker_thread.h"
#include "cli/cli.h"
#include "report/report_json.h"
#include "write/synthetic.h"

namespace daqwriter {
namespace {

void add_write_options(CLI::App& app, WriteOptions& o) {
  add_targets(
      app, o,
      o.reads ? "New file or block device to write once and read" : "New file or block device to write to");
  add_sink(app, o, "target, or null: no I/O, the program's own cost");
  add_number(app, bounds::kBlockSize, o.block_bytes,
             std::string("Bytes per ") + o.command() + "; a multiple of 4KiB");
  add_number(app, {"--threads", 1, 64}, o.threads, "Threads of each target, 1 to 64");
  add_number(app, {"--io-depth", 1, 1024, "writes in flight"}, o.io_depth,
             "Most requests in flight of each thread");
  add_number(app, bounds::kBytes, o.bytes,
             std::string("How much to ") + o.command() +
                 " of each target, all its threads; rounded up to whole blocks");
  add_number(app, bounds::kLoadDuration, o.duration_s,
             std::string("How long to ") + o.command() + " at most, seconds");
  add_number(app, {"--span", 1, bounds::kMostBytes}, o.span_bytes,
             "The part of each target that is used, shared out among the threads; default: --bytes, or the "
             "device, or half of the free space and at most 16GiB");
  add_choice<bool>(app, "--pattern", o.random, {{"sequential", false}, {"random", true}},
                   "Order within a thread's part");
  if (!o.reads)
    add_choice<bool>(
        app, "--condition", o.overwrite, {{"fresh", false}, {"overwrite", true}},
        "fresh: every block once, of a new file or a discarded device; overwrite: the span is written "
        "once before");
  // Blocks that are read need their stamps: zeros look like a place that was never written.
  if (!o.reads)
    add_choice<bool>(app, "--data", o.zeros, {{"incompressible", false}, {"zeros", true}},
                     "Content of the blocks");
  if (!o.reads) add_preallocate(app, o, "Fallocate a file before");
  add_engine(app, o.engine);
  add_cpus(app, "--cpus", o.cpus,
           "CPUs of the threads in turn, e.g. 2,3; default: any of the drive's NUMA node");
  add_seed(app, o.seed, "Seed of data and order");
  add_stall_limit(app, o.stall_limit_s);
  app.add_flag("--keep", o.keep, "Keep the file; it is removed otherwise");
  add_consent(app, o.consent);
  add_reporting(app, o);
}

ExitCode run_write_command(const WriteOptions& o, const std::atomic<int>& stop_signal) {
  require_no_target(o);
  const StopClock stop(stop_signal);
  const WritePlan plan = plan_write(o, &stop);
  for (const WriteTargetPlan& each : plan.targets) print_caution(each.target);
  const WriteResult result =
      or_failed([&] { return run_write(o, plan, engine_factory(o.used_engine()), stop_signal); },
                [&](const std::string& error) { return failed_write(o, error); }, stop_signal);
  write_json(o.json_path, write_result_json(o, plan, result));
  std::cerr << write_summary(o, result);
  return leave(exit_code_of(result.status));
}

ParsedCommand add_load(CLI::App& parent, bool reads, const std::string& help) {
  const auto asked = std::make_shared<WriteOptions>();
  asked->reads = reads;
  CLI::App* app = parent.add_subcommand(asked->command(), help);
  add_write_options(*app, *asked);
  return {app,
          [asked](const std::atomic<int>& stop_signal) { return run_write_command(*asked, stop_signal); }};
}

}  // namespace

ParsedCommand add_write(CLI::App& parent) {
  return add_load(parent, false, "Synthetic writes as fast as the target takes them");
}

ParsedCommand add_read(CLI::App& parent) {
  return add_load(parent, true,
                  "Synthetic reads as fast as the target gives them, of a new file or a device that it "
                  "writes before, checked");
}

}  // namespace daqwriter
