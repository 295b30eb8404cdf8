// Promise: `hotstore verify` compares a store with its clients' logs of
// acknowledgements: nothing acknowledged is lost, nothing removed comes back,
// every value is unchanged. Form of the result:
// inventory/schemas/hotstore-verify.schema.json.
#include <cstdio>
#include <memory>
#include <optional>

#include "ack_log.h"
#include "apart.h"
#include "commands.h"
#include "load.h"
#include "report/report_json.h"
#include "store_options.h"

namespace hotstore {
namespace {

using daqwriter::ExitCode;

struct VerifyOptions {
  StoreOptions store;
  LoadOptions load;
  daqwriter::OutputPath json_path;
};

struct Findings {
  std::uint64_t acknowledged = 0;  // events whose put was
  std::uint64_t removed = 0;       // and whose removal was
  std::uint64_t present = 0;
  std::uint64_t missing = 0;
  std::uint64_t corrupt = 0;
  std::uint64_t came_back = 0;       // removed, and there
  std::uint64_t removed_twice = 0;   // acknowledged to two consumers
  std::uint64_t undecided = 0;       // removal begun and not answered: present or
                                     // absent, both are right
  std::uint64_t unacknowledged = 0;  // there, although no put was acknowledged
  std::uint64_t torn_records = 0;    // ends of logs, of processes that died while they wrote
  bool unsynced_crash = false;       // the machine went down while the store was not synchronised
  std::vector<std::string> damage;   // of the store itself
  bool intact() const { return missing + corrupt + came_back + removed_twice == 0 && damage.empty(); }
};

constexpr double kOpening_s = 45;  // with the wait for others that use it
constexpr double kStep_s = 20;     // between two signs of progress
constexpr double kComparison_s = 3'600;

bool is_whole_event(const std::vector<Item>& event, const ValuePool& pool, unsigned fragments) {
  if (event.size() != fragments) return false;
  for (const Item& item : event) {
    if (item.value != pool.of(item.key[0], item.key[1])) return false;
  }
  return true;
}

void compare(HotStore& store, const VerifyOptions& options, Findings& found) {
  const ValuePool pool(options.load.value_bytes);
  const Acks read = read_acks(options.load.ack_log);
  const auto& acks = read.events;
  found.torn_records = read.torn;
  std::map<std::uint64_t, std::vector<Item>> events;
  for (Item& item : store.range(store.schema().everything())) events[item.key[0]].push_back(std::move(item));
  for (const auto& [primary, state] : acks) {
    const auto event = events.find(primary);
    const bool there = event != events.end();
    if (state.removed > 1) ++found.removed_twice;
    if (state.removed > 0) {
      ++found.removed;
      if (there) ++found.came_back;
    } else if (state.begun > 0) {
      ++found.undecided;
    } else if (state.puts > 0) {
      if (!there) ++found.missing;
      if (there && is_whole_event(event->second, pool, options.load.fragments)) ++found.present;
      if (there && !is_whole_event(event->second, pool, options.load.fragments)) ++found.corrupt;
    }
    if (state.puts > 0) ++found.acknowledged;
  }
  for (const auto& [primary, event] : events) {
    const auto state = acks.find(primary);
    if (state == acks.end() || state->second.puts == 0) ++found.unacknowledged;
  }
}

ExitCode report(const VerifyOptions& options, const std::string& promised, const Findings& found) {
  nlohmann::ordered_json document = daqwriter::document_json("hotstore", "verify", HOTSTORE_VERSION);
  document.update({{"status", found.intact() ? "intact" : "damaged"},
                   {"promise", promised},
                   {"acknowledged", found.acknowledged},
                   {"removed", found.removed},
                   {"present", found.present},
                   {"missing", found.missing},
                   {"corrupt", found.corrupt},
                   {"came_back", found.came_back},
                   {"removed_twice", found.removed_twice},
                   {"undecided", found.undecided},
                   {"unacknowledged", found.unacknowledged},
                   {"torn_log_records", found.torn_records},
                   {"unsynced_crash", found.unsynced_crash},
                   {"damage", found.damage}});
  daqwriter::write_json(options.json_path, document);
  for (const std::string& each : found.damage) std::fprintf(stderr, "hotstore: %s\n", each.c_str());
  if (found.unsynced_crash)
    std::fprintf(
        stderr,
        "hotstore: the machine went down while this store was not synchronised: what is not named here "
        "was compared; put new events into a new store\n");
  std::fprintf(stderr,
               "%llu acknowledged, %llu removed, %llu present, %llu missing, "
               "%llu corrupt, %llu came back\n",
               static_cast<unsigned long long>(found.acknowledged),
               static_cast<unsigned long long>(found.removed), static_cast<unsigned long long>(found.present),
               static_cast<unsigned long long>(found.missing), static_cast<unsigned long long>(found.corrupt),
               static_cast<unsigned long long>(found.came_back));
  return found.intact() ? ExitCode::complete : ExitCode::damaged;
}

// Counts a value that cannot be read as damage, and a refusal not.
ExitCode verify_store(const VerifyOptions& options, Watch& watch) {
  Findings found;
  std::optional<HotStore> store;
  try {
    watch.allow(kOpening_s);
    store.emplace(open_store(options.store, Access::read));
    found.unsynced_crash = store->lost_by_crash();
    found.damage = store->check([&] { watch.allow(kStep_s); });
    watch.allow(kComparison_s);
    if (found.damage.empty()) compare(*store, options, found);
  } catch (const daqwriter::Refusal&) {
    throw;
  } catch (const std::exception& failure) {
    found.damage.emplace_back(failure.what());
  }
  return report(options, store ? store->engine().promise() : promise_of(options.store), found);
}

ExitCode report_death(const VerifyOptions& options, const Death& death) {
  Findings found;
  found.damage.push_back("the process that read the store " + options.store.directory +
                         " is gone: " + death.cause);
  const ExitCode code = report(options, promise_of(options.store), found);
  return death.interrupted ? ExitCode::interrupted : code;
}

ExitCode run_verify(const VerifyOptions& options, const std::atomic<int>& stop_signal) {
  const std::string& log = options.load.ack_log;
  check_results(options.json_path, {options.store.directory, options.store.level2_directory, log},
                options.store.stall_limit_s, stop_signal);
  check_load(options.load, KeySchema::parse(options.store.key, options.store.primary));
  check_store(options.store);
  read_acks(log);
  const auto work = [&](Watch& watch) { return verify_store(options, watch); };
  return run_apart(stop_signal, work, [&](const Death& death) { return report_death(options, death); });
}

}  // namespace

daqwriter::ParsedCommand add_verify(CLI::App& parent) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* app = parent.add_subcommand("verify", "Compare a store with the logs of what was acknowledged");
  add_store(*app, options->store);
  daqwriter::add_number(*app, kValueSize, options->load.value_bytes, "Bytes of each value, as for bench");
  daqwriter::add_number(*app, kFragments, options->load.fragments, "Fragments of each event, as for bench");
  app->add_option("--ack-log", options->load.ack_log, "Directory of the logs")->required();
  app->add_option("--json", options->json_path, "Result file; - is standard output");
  return {app, [options](const std::atomic<int>& stop_signal) { return run_verify(*options, stop_signal); }};
}

}  // namespace hotstore
