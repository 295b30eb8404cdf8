// Promise: the options of `daqwriter streams`, their units and defaults.
#include <iostream>
#include <memory>

#include "base/worker_thread.h"
#include "cli/cli.h"
#include "report/report_json.h"
#include "streams/streams.h"

namespace daqwriter {
namespace {

constexpr Bounds<double> kShare{"--shares", 1e-9, 1, "for each stream, with the sum 1"};

struct StreamsAsked {
  StreamsOptions options;
  std::uint64_t event_bytes = RunParameters{}.event_bytes;
  std::string run_id;
};

void add_streams_options(CLI::App& app, StreamsAsked& t) {
  StreamsOptions& o = t.options;
  app.add_option("--target", o.target, "New or empty directory for the files and their manifest");
  add_sink(app, o, "target, or null: no I/O, the program's own cost");
  add_number(app, bounds::kBytes, o.bytes, "How much to write at most, all streams");
  add_number(
      app, bounds::kLoadDuration, o.duration_s,
      "How long to emit events at most, seconds; without --bytes it also ends at half of the free space");
  add_number(app, {"--rate", 1, bounds::kTiB}, o.rate_bytes_per_s,
             "Pace of the source, bytes per second of all streams; default: as fast as possible");
  app.add_option("--shares", o.run.shares, "Share of the events of each stream; sum 1")
      ->delimiter(',')
      ->check([](const std::string& text) { return parse_within(kShare, text) > 0 ? "" : text; })
      ->capture_default_str();
  add_number(app, {"--event-size", 1, bounds::kGiB}, t.event_bytes,
             "Mean size of an event, 64 B header included");
  add_number(app, {"--event-spread", 0, 1}, o.run.event_spread,
             "0 ... 1: sizes are uniform between mean x (1 - spread) and mean x (1 + spread)");
  add_number(app, {"--file-size", 1, bounds::kMostBytes}, o.file_bytes,
             "Largest size of a file; a stream's next event begins a new one");
  app.add_option("--prefix", o.prefix, "Files are named <prefix>.<stream>.<number>.events")
      ->capture_default_str();
  add_number(app, {"--queue-size", 1, bounds::kTiB}, o.queue_bytes, "Queue in front of each stream");
  add_number(app, bounds::kBlockSize, o.block_bytes, "Bytes per write; a multiple of 4KiB");
  add_number(app, bounds::kStreamDepth, o.io_depth, "Most writes in flight of each stream");
  add_engine(app, o.engine);
  add_preallocate(app, o, "Fallocate each file before");
  std::vector<std::pair<std::string, AdlerVariant>> variants;
  for (const std::string_view name : kAdlerVariantNames)
    variants.emplace_back(name, parse_adler_variant(name));
  add_choice(app, "--checksum-variant", o.checksum, variants,
             "How the adler32 of each file is computed; zlib: the original, single-threaded");
  add_number(app, {"--checksum-threads", 1, kMostAdlerThreads}, o.checksum_threads,
             "Threads per stream for thread-per-chunk and the pools, its own included; default: CPUs");
  add_number(app, bounds::kSmallestParallel, o.smallest_parallel_bytes,
             "Smaller events are checksummed by one thread; default: as measured for the variant");
  add_cpus(app, "--cpus", o.cpus,
           "CPUs that the process may use, checksum threads included, e.g. 0,2,4; default: all");
  add_seed(app, o.run.seed, "Seed of streams, sizes and payloads");
  add_stall_limit(app, o.stall_limit_s);
  app.add_option("--run-id", t.run_id, "32 hexadecimal digits; random when not given");
  app.add_flag("--allow-memory-target", o.consent.memory_target,
               "Tests only: accept tmpfs, ramfs, overlay, zram");
  add_reporting(app, o);
}

ExitCode run_streams_command(StreamsAsked& t, const std::atomic<int>& stop_signal) {
  StreamsOptions& o = t.options;
  require_no_target(o);
  o.run.event_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(t.event_bytes, UINT32_MAX));
  o.random_run_id = t.run_id.empty();
  try {
    if (!o.random_run_id) o.run.run_id = parse_record_id(t.run_id);
  } catch (const Refusal&) {
    throw Refusal("--run-id '" + t.run_id + "': give 32 lower-case hexadecimal digits");
  }
  const StopClock stop(stop_signal);
  const StreamsPlan plan = plan_streams(o, &stop);
  const StreamsResult result =
      or_failed([&] { return run_streams(o, plan, engine_factory(o.used_engine()), stop_signal); },
                [&](const std::string& error) { return failed_streams(o, error); }, stop_signal);
  write_json(o.json_path, streams_json(o, plan, result));
  std::cerr << streams_summary(o, result);
  return leave(exit_code_of(result.status));
}

}  // namespace

ParsedCommand add_streams(CLI::App& parent) {
  const auto asked = std::make_shared<StreamsAsked>();
  CLI::App* app = parent.add_subcommand(
      "streams", "Write events to the file sequences of their streams, with checksums, as a storage server");
  add_streams_options(*app, *asked);
  return {app,
          [asked](const std::atomic<int>& stop_signal) { return run_streams_command(*asked, stop_signal); }};
}

}  // namespace daqwriter
