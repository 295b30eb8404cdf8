// Promise: the options of `hotstore semantics`, and its pass matrix in the form
// of inventory/schemas/hotstore-semantics.schema.json.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "apart.h"
#include "commands.h"
#include "report/report_json.h"
#include "semantics.h"
#include "store_options.h"

namespace hotstore {
namespace {

using daqwriter::ExitCode;

constexpr double kLongest_s = 86'400;

struct Options {
  StoreOptions store;
  SemanticsOptions checks;
  daqwriter::OutputPath json_path;
};

// `error`: why the checks did not finish; null when they did.
nlohmann::ordered_json document(const Options& options, const char* status, nlohmann::ordered_json error,
                                nlohmann::ordered_json rows) {
  return {{"schema_version", 1},
          {"tool", "hotstore"},
          {"version", HOTSTORE_VERSION},
          {"command", "semantics"},
          {"engine", options.store.engine},
          {"status", status},
          {"error", std::move(error)},
          {"rows", std::move(rows)}};
}

ExitCode report_semantics_failure(const Options& options, const std::string& error) {
  std::fprintf(stderr, "hotstore: %s\n", error.c_str());
  daqwriter::write_json(options.json_path,
                        document(options, "failed", error, nlohmann::ordered_json::array()));
  return ExitCode::failed;
}

ExitCode check(Options options, Watch& watch) {
  watch.allow(kLongest_s);
  options.checks.second_level =
      !options.store.level2_directory.empty() || !options.store.level2_endpoints.empty();
  const KeySchema schema = KeySchema::parse(options.store.key, options.store.primary);
  const auto open = [&](const KeySchema& wanted) {
    StoreOptions store = options.store;
    store.key = wanted.text().substr(0, wanted.text().find(' '));
    return open_store(store);
  };
  const std::vector<Row> rows = check_semantics(open, schema, options.checks);
  nlohmann::ordered_json matrix = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    const char* outcome = !row.applies ? "not applicable" : row.passed ? "passed" : "failed";
    std::fprintf(stderr, "%-14s %s%s%s\n", outcome, row.text.c_str(), row.detail.empty() ? "" : ": ",
                 row.detail.c_str());
    matrix.push_back({{"id", row.id}, {"text", row.text}, {"outcome", outcome}, {"detail", row.detail}});
  }
  const bool all =
      std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.passed || !row.applies; });
  daqwriter::write_json(options.json_path,
                        document(options, all ? "passed" : "failed", nullptr, std::move(matrix)));
  return all ? ExitCode::complete : ExitCode::damaged;
}

ExitCode run_semantics(const Options& options, const std::atomic<int>& stop_signal) {
  check_results(options.json_path, {options.store.directory, options.store.level2_directory},
                options.store.stall_limit_s, stop_signal);
  check_store(options.store);
  const auto work = [&](Watch& watch) {
    try {
      return check(options, watch);
    } catch (const daqwriter::Refusal&) {
      throw;
    } catch (const std::exception& failure) {
      return report_semantics_failure(options, failure.what());
    }
  };
  return run_apart(stop_signal, work, [&](const Death& death) {
    const std::string error =
        "the process that used the store " + options.store.directory + " is gone: " + death.cause;
    const ExitCode code = report_semantics_failure(options, error);
    return death.interrupted ? ExitCode::interrupted : code;
  });
}

}  // namespace

daqwriter::ParsedCommand add_semantics(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* app =
      parent.add_subcommand("semantics", "Check the semantics on an empty store and print the pass matrix");
  add_store(*app, options->store);
  using daqwriter::add_number;
  add_number(*app, {"--consumers", 1, 1024, ""}, options->checks.consumers, "Consumers at once");
  add_number(*app, {"--events", 1, 1'000'000, ""}, options->checks.events, "Events that they share");
  add_number(*app, {"--lease", 0.1, kMostSeconds, "seconds"}, options->checks.lease_s,
             "Lease that is left to run out, seconds");
  daqwriter::add_seed(*app, options->checks.seed, "Seed of the random keys and values");
  app->add_option("--json", options->json_path, "Result file; - is standard output");
  return {app,
          [options](const std::atomic<int>& stop_signal) { return run_semantics(*options, stop_signal); }};
}

}  // namespace hotstore
