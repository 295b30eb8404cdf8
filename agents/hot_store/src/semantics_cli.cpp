// Promise: the options of `hotstore semantics`, and its pass matrix in the form
// of inventory/schemas/hotstore-semantics.schema.json.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "commands.h"
#include "report_json.h"
#include "semantics.h"
#include "store_options.h"

namespace hotstore {
namespace {

using daqwriter::ExitCode;

struct Options {
  StoreOptions store;
  SemanticsOptions checks;
  std::string json_path;
};

ExitCode run_semantics(Options options) {
  daqwriter::require_writable_output("--json", options.json_path);
  if (options.checks.consumers == 0 || options.checks.events == 0 || !(options.checks.lease_s >= 0.1))
    throw daqwriter::Refusal("--consumers, --events: give 1 or more; --lease: 0.1 s or more");
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
  daqwriter::write_json(options.json_path, {{"schema_version", 1},
                                            {"tool", "hotstore"},
                                            {"version", HOTSTORE_VERSION},
                                            {"command", "semantics"},
                                            {"engine", options.store.engine},
                                            {"status", all ? "passed" : "failed"},
                                            {"rows", matrix}});
  return all ? ExitCode::complete : ExitCode::damaged;
}

}  // namespace

daqwriter::ParsedCommand add_semantics(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* app =
      parent.add_subcommand("semantics", "Check the semantics on an empty store and print the pass matrix");
  add_store(*app, options->store);
  app->add_option("--consumers", options->checks.consumers, "Consumers at once")->capture_default_str();
  app->add_option("--events", options->checks.events, "Events that they share")->capture_default_str();
  app->add_option("--lease", options->checks.lease_s, "Lease that is left to run out, seconds")
      ->capture_default_str();
  app->add_option("--seed", options->checks.seed, "Of the random keys and values")->capture_default_str();
  app->add_option("--json", options->json_path, "Result file; - is standard output");
  return {app, [options](const std::atomic<int>&) { return run_semantics(*options); }};
}

}  // namespace hotstore
