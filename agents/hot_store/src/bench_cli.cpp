// Promise: the options of `hotstore bench`, its words for people and its result
// in the form of inventory/schemas/hotstore-bench.schema.json.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>

#include "apart.h"
#include "backlog.h"
#include "base/units.h"
#include "baselines.h"
#include "commands.h"
#include "handover.h"
#include "load.h"
#include "report/report_json.h"
#include "store_options.h"

namespace hotstore {
namespace {

using daqwriter::ExitCode;
using Json = nlohmann::ordered_json;

constexpr double kHandoverSeconds = 0.1;

struct BenchOptions {
  StoreOptions store;
  LoadOptions load;
  bool backlog_given = false;
  std::string rocksdb_library = kRocksDbLibrary;
  daqwriter::OutputPath json_path;
};

void add_load(CLI::App& app, LoadOptions& o) {
  using daqwriter::add_count;
  using daqwriter::add_number;
  add_number(app, kValueSize, o.value_bytes, "Bytes of each value");
  add_number(app, {"--seconds", 0.001, kMostSeconds, "seconds"}, o.seconds, "Measured time");
  add_number(app, {"--warm-up", 0, kMostSeconds, "seconds"}, o.warm_up_s,
             "Time before it that is not measured, seconds");
  add_number(app, {"--interval", 0.05, kMostSeconds, "seconds"}, o.interval_s, "Length of a sample, seconds");
  add_number(app, {"--producers", 0, 1024, ""}, o.producers, "Threads that put");
  add_number(app, {"--consumers", 0, 1024, ""}, o.consumers, "Threads that get and remove");
  add_number(app, kFragments, o.fragments, "Fragments of each event");
  daqwriter::add_choice(app, "--consume", o.consume, {"direct", "getany"},
                        "How consumers find events: by key behind the producers, or by GetAny");
  add_number(app, {"--lease", 0.001, kMostSeconds, "seconds"}, o.lease_s,
             "getany: lease of a claimed event, seconds");
  add_number(app, {"--hold", 0, kMostSeconds, "seconds"}, o.hold_s,
             "Work of a consumer on each event, seconds");
  add_number(app, {"--backlog", 1, kMostCapacity, ""}, o.backlog_bytes,
             "Bytes put and not yet removed at which producers wait");
  add_number(app, {"--backlog-floor", 0, kMostCapacity, ""}, o.backlog_floor_bytes,
             "Bytes put and not yet removed below which consumers wait; reached before the warm-up, so that "
             "the working set has that size; 0: none");
  add_number(app, {"--pipeline", 1, 1024, ""}, o.pipeline,
             "raw-redis: requests under way at once on each connection");
  add_count(app, {"--events", 0, UINT64_MAX}, o.events,
            "Events of each producer; 0: as many as there is time for");
  add_number(app, {"--until-empty", 0, kMostSeconds, "seconds"}, o.until_empty_s,
             "getany: end when nothing was there for so long, seconds; 0: never");
  add_count(app, {"--first-event", 0, UINT64_MAX}, o.first_event, "First event of this process");
  add_count(app, {"--stride", 1, 1ull << 32}, o.stride,
            "Step between two events: processes that share a store interleave theirs");
  add_number(app, {"--level", 1, 2, ""}, o.level, "Level that is put to, 1 or 2");
  app.add_option("--ack-log", o.ack_log, "Directory that keeps what was acknowledged, for `hotstore verify`");
  app.add_option("--owner", o.owner, "Name of the consumers in locks, and of the logs")
      ->capture_default_str();
}

// An operation of a batch has the batch's latency.
std::string of_batch(const BenchOptions& options, const std::string& definition) {
  return options.load.pipeline == 1 ? definition : definition + ", of all of a batch";
}

Json side_json(const SideResult& side, double seconds, const std::string& definition) {
  const std::vector<double>& samples = side.per_s;
  const double n = static_cast<double>(samples.size());
  const double mean = samples.empty() ? 0 : std::accumulate(samples.begin(), samples.end(), 0.0) / n;
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  const Json none = nullptr;
  return {{"operations", side.operations},
          {"ops_per_s", seconds > 0 ? static_cast<double>(side.operations) / seconds : 0},
          {"samples_ops_per_s", samples},
          {"min_ops_per_s", samples.empty() ? none : Json(*std::min_element(samples.begin(), samples.end()))},
          {"stdev_ops_per_s", samples.size() < 2 ? none : Json(std::sqrt(squares / (n - 1)))},
          {"waited_s", side.waited_s},
          {"latency_us", daqwriter::latency_json(side.latency_ns, definition)}};
}

// The distance of the CPUs that share the store, as hand-overs of a cache line:
// a hypervisor or a scheduler may move them, and the rate with them.
struct Distance {
  std::optional<double> before_ns;
  std::optional<double> after_ns;
};

Json parameters_json(const BenchOptions& o) {
  return {{"engine", o.store.engine},
          {"transport", transport_of(o.store)},
          {"pipeline", o.load.pipeline},
          {"durability", is_embedded(o.store.engine) ? Json(o.store.durability) : Json(nullptr)},
          {"replicas", o.store.replicas},
          {"location", o.store.location},
          {"key", o.store.key},
          {"value_bytes", o.load.value_bytes},
          {"seconds", o.load.seconds},
          {"warm_up_s", o.load.warm_up_s},
          {"interval_s", o.load.interval_s},
          {"producers", o.load.producers},
          {"consumers", o.load.consumers},
          {"fragments", o.load.fragments},
          {"consume", o.load.consume},
          {"lease_s", o.load.lease_s},
          {"hold_s", o.load.hold_s},
          {"backlog_bytes", o.load.backlog_bytes},
          {"backlog_floor_bytes", o.load.backlog_floor_bytes},
          {"events", o.load.events},
          {"level", o.load.level}};
}

Json bench_json(const BenchOptions& options, const std::string& promise, const LoadResult& result,
                const Distance& distance) {
  const bool failed = !result.error.empty() || result.corrupt > 0;
  std::string error = result.error;
  if (error.empty() && result.corrupt > 0)
    error = std::to_string(result.corrupt) + " values are not what was put";
  const char* status = failed ? "failed" : result.interrupted ? "interrupted" : "complete";
  Json answers = Json::object();
  for (const auto& [name, number] : result.answers) answers[name] = number;
  const double pairs = static_cast<double>(std::max(result.put.operations, result.consume.operations));
  const double cpu_s = result.cpu.user_s + result.cpu.system_s;
  Json all = daqwriter::document_json("hotstore", "bench", HOTSTORE_VERSION);
  all.update(
      {{"status", status},
       {"error", failed ? Json(error) : Json(nullptr)},
       {"promise", promise},
       {"parameters", parameters_json(options)},
       {"started_utc", daqwriter::iso8601_utc(result.started_utc_ns)},
       {"measured_s", result.seconds},
       {"put", side_json(result.put, result.seconds,
                         of_batch(options, "from the call of Put to its acknowledgement"))},
       {"consume", side_json(result.consume, result.seconds,
                             options.load.consume == "direct"
                                 ? of_batch(options, "from the call of Get to the acknowledgement of Remove")
                                 : "from the call of GetAny to the acknowledgement of the "
                                   "event's removal")},
       {"handover_ns",
        {{"before", daqwriter::or_null(distance.before_ns)},
         {"after", daqwriter::or_null(distance.after_ns)}}},
       {"samples_backlog_bytes", result.backlog_bytes},
       {"samples_commits_per_s", result.commits_per_s},
       {"answers", answers},
       {"returned_events", result.returned_events},
       {"corrupt", result.corrupt},
       {"cpu",
        {{"user_s", result.cpu.user_s},
         {"system_s", result.cpu.system_s},
         {"us_per_operation", pairs > 0 ? Json(cpu_s * 1e6 / pairs) : Json(nullptr)}}}});
  return all;
}

void print_side(const char* name, const SideResult& side, double seconds) {
  if (side.operations == 0) return;
  std::fprintf(stderr, "%-14s %9.1f KOPS  p50 %8.1f us  p99 %8.1f us  max %8.1f us\n", name,
               static_cast<double>(side.operations) / seconds / 1e3,
               static_cast<double>(side.latency_ns.percentile(50)) / 1e3,
               static_cast<double>(side.latency_ns.percentile(99)) / 1e3,
               static_cast<double>(side.latency_ns.max()) / 1e3);
}

ExitCode finish(const BenchOptions& options, const std::string& promise, const LoadResult& result,
                const Distance& distance) {
  const Json document = bench_json(options, promise, result, distance);
  print_side("put", result.put, result.seconds);
  print_side("get and remove", result.consume, result.seconds);
  daqwriter::write_json(options.json_path, document);
  if (document["status"] == "failed") throw daqwriter::Failure(document["error"].get<std::string>());
  return result.interrupted ? ExitCode::interrupted : ExitCode::complete;
}

// Long enough for a slow drive and a busy machine, and no longer.
constexpr double kEnd_s = 20, kSlowest_bytes_per_s = 20e6;

// Opening may have to write all of the room, closing to synchronise it.
double whole_store_s(const StoreOptions& store) {
  const double bytes = static_cast<double>(store.capacity) +
                       (store.level2_directory.empty() ? 0 : static_cast<double>(store.level2_capacity));
  return kEnd_s + bytes / kSlowest_bytes_per_s;
}

ExitCode measure(const BenchOptions& options, Watch& watch) {
  watch.allow(whole_store_s(options.store) + options.store.patience_s);
  const std::unique_ptr<Subject> subject = open_subject(options.store, options.rocksdb_library);
  watch.allow(fill_s(options.load) + options.load.warm_up_s + options.load.seconds + options.load.interval_s +
              kEnd_s + options.store.patience_s);
  Distance distance;
  distance.before_ns = handover_ns(kHandoverSeconds);
  LoadResult result = run_load(*subject, options.load, watch.stop_signal);
  if (result.error.empty()) result.error = subject->gone();
  distance.after_ns = handover_ns(kHandoverSeconds);
  const ExitCode code = finish(options, subject->promise(), result, distance);
  watch.allow(whole_store_s(options.store));
  return code;
}

// A run without figures still has a result.
ExitCode report_failure(const BenchOptions& options, const std::string& error, bool interrupted) {
  LoadResult nothing;
  nothing.started_utc_ns = daqwriter::utc_ns();
  nothing.interrupted = interrupted;
  if (!interrupted) nothing.error = error;
  if (interrupted) std::fprintf(stderr, "hotstore: %s\n", error.c_str());
  return daqwriter::reported("hotstore",
                             [&] { return finish(options, promise_of(options.store), nothing, {}); });
}

// Refuses options that a baseline has no use for, and those that only one of them has.
void check_baseline_load(const BenchOptions& options) {
  const std::string engine = "--engine " + options.store.engine;
  if (options.load.pipeline != 1 && options.store.engine != kRawRedis)
    throw daqwriter::Refusal("--pipeline " + std::to_string(options.load.pipeline) + ": " + engine +
                             " takes one operation at a time: give 1, or --engine " + kRawRedis);
  if (!is_baseline(options.store.engine)) return;
  if (options.load.consume != "direct" || !options.load.ack_log.empty() || options.load.level != 1)
    throw daqwriter::Refusal(engine + ": is a baseline: leave out --consume getany, --ack-log and --level 2");
  if (options.store.engine == kRawRedis && options.load.fragments != 1)
    throw daqwriter::Refusal("--fragments " + std::to_string(options.load.fragments) + ": " + engine +
                             " puts events of one fragment: give 1");
}

ExitCode run_bench(const BenchOptions& options, const std::atomic<int>& stop_signal) {
  check_results(options.json_path,
                {options.store.directory, options.store.level2_directory, options.load.ack_log},
                options.store.stall_limit_s, stop_signal);
  check_load(options.load, KeySchema::parse(options.store.key, options.store.primary));
  check_store(options.store);
  check_baseline_load(options);
  check_backlog(options.store, options.load, options.backlog_given);
  if (options.load.level == 2 && options.store.level2_directory.empty() &&
      options.store.level2_endpoints.empty())
    throw daqwriter::Refusal("--level 2: this store has none: give --level2-dir or --level2-endpoint");
  const auto work = [&](Watch& watch) {
    try {
      return measure(options, watch);
    } catch (const Damage& damage) {
      return report_failure(options, damage.what(), false);
    }
  };
  return run_apart(stop_signal, work, [&](const Death& death) {
    const std::string error =
        "the process that used the store " + options.store.directory + " is gone: " + death.cause;
    return report_failure(options, error, death.interrupted);
  });
}

}  // namespace

daqwriter::ParsedCommand add_bench(CLI::App& parent) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* app = parent.add_subcommand("bench", "Threads that put beside threads that get and remove");
  add_store(*app, options->store, {kRawLmdb, kRocksDb, kRawRedis});
  add_load(*app, options->load);
  app->add_option("--json", options->json_path, "Result file; - is standard output");
  app->add_option("--rocksdb-library", options->rocksdb_library, "rocksdb: the library's file or name")
      ->capture_default_str();
  return {app, [options, app](const std::atomic<int>& stop_signal) {
            options->backlog_given = app->count("--backlog") > 0;
            return run_bench(*options, stop_signal);
          }};
}

}  // namespace hotstore
