// Promise: `hotstore semantics` checks DAQDB's semantics, one by one, on whatever engine a store is opened
// with: a row that fails says what it saw. Pass matrix in the form of
// inventory/schemas/hotstore-semantics.schema.json.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "apart.h"
#include "base/status.h"
#include "commands.h"
#include "hot_store.h"
#include "report/report_json.h"
#include "store_options.h"

namespace hotstore {
namespace {

using daqwriter::ExitCode;
using daqwriter::Refusal;

constexpr double kLongest_s = 86'400;

struct SemanticsOptions {
  StoreOptions store;
  unsigned consumers = 4;
  unsigned events = 200;
  double lease_s = 1;
  std::uint64_t seed = 1;
  daqwriter::OutputPath json_path;

  bool second_level() const { return !store.level2_directory.empty() || !store.level2_endpoints.empty(); }
};

struct Row {
  std::string id;
  std::string text;
  bool passed = false;
  bool applies = true;  // false: the store was opened without a second level
  std::string detail;
};

class Wrong : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

void expect(bool right, const std::string& otherwise) {
  if (!right) throw Wrong(otherwise);
}

void expect(Answer answer, Answer wanted, const char* what) {
  expect(answer == wanted, std::string(what) + " answered '" + answer_name(answer) + "' instead of '" +
                               answer_name(wanted) + "'");
}

class Checks {
 public:
  explicit Checks(const SemanticsOptions& options)
      : schema_(KeySchema::parse(options.store.key, options.store.primary)),
        options_(options),
        random_(options.seed) {
    if (schema_.sub_keys().size() != 3 || schema_.primary() != 0)
      throw Refusal("--key: the check needs three sub-keys, the primary one first: event, detector, run");
    store_ = open(schema_);
    if (!store_->range(schema_.everything()).empty())
      throw Refusal(store_->engine().description() + " is not empty: the check needs a store of its own");
  }

  std::vector<Row> run() {
    row("put-refuses-existing", "Put refuses a key that is there", &Checks::put_refuses);
    row("values-unchanged", "Get returns opaque values of 1 B to 100 kB unchanged",
        &Checks::values_come_back);
    row("update-value", "Update replaces a value, and only one that is there", &Checks::update_changes_value);
    row("update-level", "Update moves a key between the levels", &Checks::level_moves, true);
    row("remove", "Remove removes, once", &Checks::remove_removes);
    row("range", "Ranges with bounds for each sub-key equal brute force", &Checks::range_is_brute_force);
    row("getany-exclusive", "GetAny hands each event to exactly one of N consumers",
        &Checks::getany_is_exclusive);
    row("locked", "A locked event is changed with its token only", &Checks::locked_is_refused);
    row("lease-returns", "An event whose lease ran out comes back", &Checks::lease_returns);
    row("late-fenced", "A consumer whose lease ran out can change nothing", &Checks::late_is_fenced);
    row("locked-attribute", "LOCKED can be set and cleared by Update", &Checks::attribute_by_hand);
    row("getany-level", "GetAny takes from the level that is asked for", &Checks::getany_by_level, true);
    row("reopening", "Data, locks and tokens are there after reopening", &Checks::survives_reopening);
    row("schema", "Another key schema is refused at opening", &Checks::other_schema_is_refused);
    return rows_;
  }

 private:
  HotStore& store() { return *store_; }
  // Opens the same store again and again, with the schema that is given.
  std::unique_ptr<HotStore> open(const KeySchema& wanted) const {
    StoreOptions store = options_.store;
    store.key = wanted.text().substr(0, wanted.text().find(' '));
    return std::make_unique<HotStore>(open_store(store));
  }
  void row(const std::string& id, const std::string& text, void (Checks::*check)(),
           bool needs_second_level = false) {
    Row made{id, text, false, !needs_second_level || options_.second_level(), ""};
    if (made.applies) {
      try {
        (this->*check)();
        made.passed = true;
      } catch (const Wrong& wrong) {
        made.detail = wrong.what();
      }
      clear();
    }
    rows_.push_back(made);
  }

  void reopen() {
    store_.reset();  // an embedded store is open once in a process
    store_ = open(schema_);
  }

  Bytes value(std::size_t size) {
    Bytes bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }

  Bytes got(const Key& key) {
    Bytes bytes;
    expect(store().get(key, bytes), Answer::ok, "Get");
    return bytes;
  }

  // Also removes events that a failed check left locked: leases run out, and
  // nobody knows the other locks.
  void clear() {
    std::set<std::uint64_t> events;
    for (const Item& item : store().range(schema_.everything())) events.insert(item.key[0]);
    for (int attempt = 0; !events.empty() && attempt < 100; ++attempt) {
      while (const auto claim = store().get_any("clearing", 60)) {
        store().complete(*claim);
        events.erase(claim->primary);
      }
      if (!events.empty()) std::this_thread::sleep_for(std::chrono::duration<double>(options_.lease_s / 4));
    }
  }

  void put_refuses() {
    expect(store().put({1, 1, 1}, "first"), Answer::ok, "Put");
    expect(store().put({1, 1, 1}, "second"), Answer::exists, "Put of the same key");
    expect(got({1, 1, 1}) == "first", "the refused Put changed the value");
  }

  void values_come_back() {
    std::uint64_t event = 0;
    for (const std::size_t size : {1u, 1'000u, 4'096u, 10'000u, 100'000u}) {
      const Bytes kept = value(size);
      expect(store().put({++event, 65'535, 0}, kept), Answer::ok, "Put");
      expect(got({event, 65'535, 0}) == kept, "a value of " + std::to_string(size) + " B came back changed");
    }
    Bytes bytes;
    expect(store().get({event, 1, 0}, bytes), Answer::not_found, "Get of a key that is not there");
  }

  void update_changes_value() {
    expect(store().update({1, 1, 1}, {.value = "x", .level = {}}), Answer::not_found, "Update of no key");
    expect(store().put({1, 1, 1}, "before"), Answer::ok, "Put");
    expect(store().update({1, 1, 1}, {.value = "after", .level = {}}), Answer::ok, "Update");
    expect(got({1, 1, 1}) == "after", "Update left the value");
  }

  void level_moves() {
    const Bytes kept = value(5'000);
    expect(store().put({1, 1, 1}, kept), Answer::ok, "Put at level 1");
    for (const Level level : {Level::large, Level::fast, Level::large}) {
      expect(store().update({1, 1, 1}, {.value = {}, .level = level}), Answer::ok, "Update of the level");
      Bytes bytes;
      Level found{};
      expect(store().get({1, 1, 1}, bytes, &found), Answer::ok, "Get");
      expect(found == level && bytes == kept, "the value was changed by moving it, or did not move");
    }
    expect(store().put({1, 2, 1}, kept, Level::large), Answer::ok, "Put at level 2");
    expect(got({1, 2, 1}) == kept, "a value of level 2 came back changed");
  }

  void remove_removes() {
    expect(store().put({1, 1, 1}, "a"), Answer::ok, "Put");
    expect(store().remove({1, 1, 1}), Answer::ok, "Remove");
    expect(store().remove({1, 1, 1}), Answer::not_found, "Remove of a key that is gone");
    expect(store().put({1, 1, 1}, "again"), Answer::ok, "Put after Remove");
  }

  void range_is_brute_force() {
    constexpr std::size_t kKeys = 300;
    constexpr int kBoxes = 60;
    std::map<Bytes, Bytes> model;
    const auto any_key = [&] { return Key{random_() % 12, random_() % 8, random_() % 6}; };
    while (model.size() < kKeys) {
      const Key key = any_key();
      const Bytes kept = value(random_() % 50);
      const Answer answer = store().put(key, kept);
      const bool is_new = model.emplace(schema_.encode(key), kept).second;
      expect(answer, is_new ? Answer::ok : Answer::exists, "Put");
    }
    for (int i = 0; i < kBoxes; ++i) {
      Box box{any_key(), any_key()};
      for (std::size_t part = 0; part < 3 && i > 4; ++part) {
        if (box.lower[part] > box.upper[part]) std::swap(box.lower[part], box.upper[part]);
      }
      std::vector<std::pair<Bytes, Bytes>> wanted, found;
      for (const auto& each : model) {
        if (schema_.contains(box, schema_.decode(each.first))) wanted.push_back(each);
      }
      for (Item& item : store().range(box))
        found.emplace_back(schema_.encode(item.key), std::move(item.value));
      expect(found == wanted, "a range gave " + std::to_string(found.size()) +
                                  " keys, looking at all of them " + std::to_string(wanted.size()));
    }
  }

  void getany_is_exclusive() {
    for (std::uint64_t event = 0; event < options_.events; ++event) {
      for (const std::uint64_t detector : {1, 2})
        expect(store().put({event, detector, 1}, "a"), Answer::ok, "Put");
    }
    std::mutex gate;
    std::multiset<std::uint64_t> claimed;
    std::string wrong;
    std::vector<std::jthread> consumers;
    for (unsigned i = 0; i < options_.consumers; ++i) {
      consumers.emplace_back([&, i] {
        try {
          while (const auto claim = store().get_any("consumer-" + std::to_string(i), 60)) {
            expect(store().event(claim->primary).size() == 2, "a claimed event was not whole");
            expect(store().complete(*claim), Answer::ok, "Completion");
            std::lock_guard hold(gate);
            claimed.insert(claim->primary);
          }
        } catch (const std::exception& error) {
          std::lock_guard hold(gate);
          wrong = error.what();
        }
      });
    }
    consumers.clear();
    expect(wrong.empty(), wrong);
    const std::set<std::uint64_t> once(claimed.begin(), claimed.end());
    expect(claimed.size() == options_.events && once.size() == options_.events,
           std::to_string(claimed.size()) + " claims of " + std::to_string(once.size()) + " events, of " +
               std::to_string(options_.events));
  }

  void locked_is_refused() {
    expect(store().put({1, 1, 1}, "a"), Answer::ok, "Put");
    const auto claim = store().get_any("holder", 60);
    expect(claim.has_value() && claim->primary == 1, "GetAny did not give the only event");
    expect(!store().get_any("other", 60), "GetAny gave a locked event");
    expect(store().remove({1, 1, 1}), Answer::locked, "Remove without the token");
    expect(store().update({1, 1, 1}, {.value = "b", .level = {}}), Answer::locked,
           "Update without the token");
    expect(store().update({1, 1, 1}, {.value = "b", .level = {}}, claim->token), Answer::ok,
           "Update with the token");
    expect(store().remove({1, 1, 1}, claim->token), Answer::ok, "Remove with the token");
  }

  void lease_returns() {
    expect(store().put({1, 1, 1}, "a"), Answer::ok, "Put");
    expect(store().get_any("vanished", options_.lease_s).has_value(), "GetAny gave nothing");
    expect(!store().get_any("other", 60), "GetAny gave it again before the lease ran out");
    std::this_thread::sleep_for(std::chrono::duration<double>(options_.lease_s * 1.2));
    const auto claim = store().get_any("other", 60);
    expect(claim.has_value() && claim->returned, "the event did not come back");
    expect(store().complete(*claim), Answer::ok, "Completion");
  }

  void late_is_fenced() {
    expect(store().put({1, 1, 1}, "a"), Answer::ok, "Put");
    const auto late = store().get_any("late", options_.lease_s);
    expect(late.has_value(), "GetAny gave nothing");
    std::this_thread::sleep_for(std::chrono::duration<double>(options_.lease_s * 1.2));
    expect(store().complete(*late), Answer::lease_lost, "Completion after the lease");
    const auto other = store().get_any("other", 60);
    expect(other.has_value() && other->token > late->token, "the next token is not larger");
    expect(store().remove({1, 1, 1}, late->token), Answer::lease_lost, "Remove with the old token");
    expect(store().renew(*late, 60), Answer::lease_lost, "Renewal with the old token");
    expect(store().complete(*other), Answer::ok, "Completion by its holder");
    expect(store().complete(*other), Answer::lease_lost, "Completion a second time");
  }

  void attribute_by_hand() {
    expect(store().put({7, 1, 1}, "a"), Answer::ok, "Put");
    Claim held;
    expect(store().lock(7, "operator", held), Answer::ok, "Setting LOCKED");
    expect(!store().get_any("consumer", 60), "GetAny gave an event that was locked by hand");
    expect(store().unlock(held), Answer::ok, "Clearing LOCKED");
    const auto claim = store().get_any("consumer", 60);
    expect(claim.has_value(), "GetAny gave nothing after the lock was cleared");
    expect(store().complete(*claim), Answer::ok, "Completion");
  }

  void getany_by_level() {
    expect(store().put({1, 1, 1}, "a"), Answer::ok, "Put at level 1");
    expect(store().put({2, 1, 1}, "b", Level::large), Answer::ok, "Put at level 2");
    const auto large = store().get_any("builder", 60, Level::large);
    expect(large.has_value() && large->primary == 2,
           "GetAny at level 2 did not give the event that is there");
    expect(!store().get_any("builder", 60, Level::large), "GetAny at level 2 gave an event of level 1");
    const auto fast = store().get_any("filter", 60, Level::fast);
    expect(fast.has_value() && fast->primary == 1, "GetAny at level 1 did not give the event that is there");
    expect(store().complete(*large), Answer::ok, "Completion");
    expect(store().complete(*fast), Answer::ok, "Completion");
  }

  void survives_reopening() {
    const Bytes kept = value(10'000);
    expect(store().put({1, 1, 1}, kept), Answer::ok, "Put");
    expect(store().put({2, 1, 1}, "b"), Answer::ok, "Put");
    const auto before = store().get_any("before", 60);
    expect(before.has_value(), "GetAny gave nothing");
    reopen();
    expect(got({1, 1, 1}) == kept, "a value came back changed");
    const auto after = store().get_any("after", 60);
    expect(after.has_value() && after->primary != before->primary, "a lock did not survive");
    expect(store().complete(*before), Answer::ok, "Completion with a token from before");
    expect(store().complete(*after), Answer::ok, "Completion");
  }

  void other_schema_is_refused() {
    const KeySchema other = KeySchema::parse("event:64,detector:8", "event");
    store_.reset();
    bool refused = false;
    try {
      open(other);
    } catch (const Refusal&) {
      refused = true;
    }
    store_ = open(schema_);
    expect(refused, "a store was opened with another key than its own");
  }

  const KeySchema schema_;
  const SemanticsOptions& options_;
  std::mt19937_64 random_;
  std::unique_ptr<HotStore> store_;
  std::vector<Row> rows_;
};

// `error`: why the checks did not finish; null when they did.
nlohmann::ordered_json document(const SemanticsOptions& options, const char* status,
                                nlohmann::ordered_json error, nlohmann::ordered_json rows) {
  nlohmann::ordered_json all = daqwriter::document_json("hotstore", "semantics", HOTSTORE_VERSION);
  all.update({{"engine", options.store.engine},
              {"status", status},
              {"error", std::move(error)},
              {"rows", std::move(rows)}});
  return all;
}

ExitCode report_semantics_failure(const SemanticsOptions& options, const std::string& error) {
  std::fprintf(stderr, "hotstore: %s\n", error.c_str());
  daqwriter::write_json(options.json_path,
                        document(options, "failed", error, nlohmann::ordered_json::array()));
  return ExitCode::failed;
}

ExitCode check(const SemanticsOptions& options, Watch& watch) {
  watch.allow(kLongest_s);
  const std::vector<Row> rows = Checks(options).run();
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

ExitCode run_semantics(const SemanticsOptions& options, const std::atomic<int>& stop_signal) {
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
  auto options = std::make_shared<SemanticsOptions>();
  CLI::App* app =
      parent.add_subcommand("semantics", "Check the semantics on an empty store and print the pass matrix");
  add_store(*app, options->store);
  using daqwriter::add_number;
  add_number(*app, {"--consumers", 1, 1024, ""}, options->consumers, "Consumers at once");
  add_number(*app, {"--events", 1, 1'000'000, ""}, options->events, "Events that they share");
  add_number(*app, {"--lease", 0.1, kMostSeconds, "seconds"}, options->lease_s,
             "Lease that is left to run out, seconds");
  daqwriter::add_seed(*app, options->seed, "Seed of the random keys and values");
  app->add_option("--json", options->json_path, "Result file; - is standard output");
  return {app,
          [options](const std::atomic<int>& stop_signal) { return run_semantics(*options, stop_signal); }};
}

}  // namespace hotstore
