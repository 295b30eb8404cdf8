#include "store_options.h"

#include <algorithm>
#include <iostream>

#include "base/units.h"
#include "baselines.h"
#include "lmdb_engine.h"
#include "redis_engine.h"
#include "report/reporting.h"

namespace hotstore {
namespace {

using daqwriter::Refusal;

const std::vector<std::string> kEngines{"lmdb", "redis", "redis-cluster"};
constexpr int kMostReplicas = 8;

Durability durability_of(const StoreOptions& options) {
  return options.durability == "system" ? Durability::system : Durability::process;
}

// Values of level 2 are erased only while nobody else can put a key to one: both levels are ours alone.
void sweep(HotStore& store) {
  if (const std::size_t swept = store.sweep())
    std::cerr << "hotstore: " << swept
              << " values of level 2 without a key, left by a killed "
                 "process, were removed\n";
}

// A store keeps to the level 2 that it was given first.
void bind(Engine& engine, const LevelFolder& first, const LevelFolder& second) {
  const Bytes kept = engine.remember("level 2", second.own());
  if (kept != second.own())
    throw Refusal(second.name() + ": is not the level 2 that " + first.name() + " has (its identity is " +
                  kept + "): give that one");
}

HotStore open_embedded(const StoreOptions& options, const KeySchema& schema, Access access) {
  if (options.directory.empty()) throw Refusal("--dir: --engine lmdb needs the store's directory");
  const Durability durability = durability_of(options);
  auto first_folder = std::make_unique<LevelFolder>(options.directory, access);
  std::unique_ptr<LevelFolder> second_folder;
  if (!options.level2_directory.empty())
    second_folder = std::make_unique<LevelFolder>(options.level2_directory, access, first_folder.get());
  LevelFolder& folder = *first_folder;
  LevelFolder* const folder2 = second_folder.get();
  const bool alone = folder.alone() && folder2 && folder2->alone();
  auto engine = lmdb_engine(std::make_unique<LmdbEnv>(std::move(first_folder), options.capacity, durability),
                            schema.primary_bytes());
  std::unique_ptr<ValueStore> second;
  if (folder2) {
    bind(*engine, folder, *folder2);
    second = lmdb_value_store(
        std::make_unique<LmdbEnv>(std::move(second_folder), options.level2_capacity, durability));
  }
  HotStore store(schema, std::move(engine), std::move(second));
  if (access == Access::read) return store;
  if (alone) sweep(store);
  folder.share();
  if (folder2) folder2->share();
  return store;
}

class StoreSubject : public Subject {
 public:
  explicit StoreSubject(HotStore store) : store_(std::move(store)) {}
  std::unique_ptr<Session> session() override { return std::make_unique<DirectSession<HotStore>>(store_); }
  HotStore* store() override { return &store_; }
  std::optional<std::uint64_t> commits() const override { return store_.engine().commits(); }
  std::string gone() const override { return store_.engine().gone(); }
  std::string promise() const override { return store_.engine().promise(); }

 private:
  HotStore store_;
};

// Refuses options of our layer, which a baseline does not have.
void check_baseline(const StoreOptions& options) {
  const std::string engine = "--engine " + options.engine;
  if (!options.level2_directory.empty() || !options.level2_endpoints.empty())
    throw Refusal(engine +
                  ": is a baseline and has no level 2: leave out --level2-dir and --level2-endpoint");
  if (is_embedded(options.engine) && options.directory.empty())
    throw Refusal("--dir: " + engine + " needs the store's directory");
  if (options.engine == kRawRedis && (options.endpoints.size() != 1 || options.replicas != 0))
    throw Refusal("--endpoint: " + engine + " needs one server, HOST:PORT or unix:PATH, and no --replicas");
}

std::shared_ptr<RedisLink> link_to(const StoreOptions& options, const std::vector<std::string>& endpoints) {
  RedisOptions redis;
  redis.cluster = options.engine == "redis-cluster";
  redis.replicas = options.replicas;
  redis.wait_s = options.wait_s;
  redis.patience_s = options.patience_s;
  for (const std::string& text : endpoints) redis.endpoints.push_back(Endpoint::parse(text));
  return std::make_shared<RedisLink>(std::move(redis));
}

HotStore open_redis(const StoreOptions& options, const KeySchema& schema) {
  const Location location = Location::parse(options.location);
  auto link = link_to(options, options.endpoints);
  std::unique_ptr<ValueStore> second;
  if (!options.level2_endpoints.empty())
    second = redis_value_store(link_to(options, options.level2_endpoints), location, schema.primary_bytes());
  return HotStore(schema, redis_engine(std::move(link), location, schema.primary_bytes()), std::move(second));
}

}  // namespace

bool is_embedded(const std::string& engine) {
  return engine == "lmdb" || engine == kRawLmdb || engine == kRocksDb;
}

bool is_baseline(const std::string& engine) {
  return std::find(kEngines.begin(), kEngines.end(), engine) == kEngines.end();
}

std::string transport_of(const StoreOptions& options) {
  if (is_embedded(options.engine)) return "in-process";
  // Goes by the name alone: a result is written also when the socket is gone.
  const bool named = !options.endpoints.empty() && options.endpoints.front().starts_with(kUnixPrefix);
  return named ? "unix" : "tcp";
}

void check_results(const daqwriter::OutputPath& json_path, const std::vector<std::string>& used,
                   double stall_limit_s, const std::atomic<int>& stop_signal) {
  daqwriter::Reporting results;
  results.json_path = json_path;
  const daqwriter::StopClock stop(stop_signal);
  daqwriter::check_reporting(results, used, {stall_limit_s, &stop});
}

void add_store(CLI::App& app, StoreOptions& o, const std::vector<std::string>& further) {
  std::vector<std::string> engines = kEngines;
  engines.insert(engines.end(), further.begin(), further.end());
  daqwriter::add_choice(app, "--engine", o.engine, engines, "What keeps the data");
  daqwriter::add_stall_limit(app, o.stall_limit_s);
  app.add_option("--key", o.key, "Sub-keys as NAME:BITS, comma-separated")->capture_default_str();
  app.add_option("--primary", o.primary, "The sub-key that names an event")->capture_default_str();
  app.add_option("--dir", o.directory, "lmdb: directory of level 1 (made when its parent exists)");
  app.add_option("--level2-dir", o.level2_directory,
                 "lmdb: directory of level 2; without it there is no level 2");
  daqwriter::add_number(app, {"--capacity", kLeastCapacity, kMostCapacity, ""}, o.capacity,
                        "lmdb: room of level 1, reserved at opening");
  daqwriter::add_number(app, {"--level2-capacity", kLeastCapacity, kMostCapacity, ""}, o.level2_capacity,
                        "lmdb: room of level 2, reserved at opening");
  daqwriter::add_choice(app, "--durability", o.durability, {"process", "system"},
                        "lmdb: what an acknowledged operation survives: kill "
                        "-9 only (a crash of the machine may then lose or damage the whole store, which is "
                        "not opened for changes again), or the machine's crash too");
  app.add_option("--endpoint", o.endpoints,
                 "redis: HOST:PORT or unix:PATH; one or more HOST:PORT of a cluster")
      ->delimiter(',');
  app.add_option("--level2-endpoint", o.level2_endpoints, "redis: the server or cluster of level 2")
      ->delimiter(',');
  app.add_option("--replicas", o.replicas,
                 "redis: further nodes that must have an operation before it counts")
      ->capture_default_str();
  daqwriter::add_number(app, {"--wait", 0, kMostSeconds, "seconds"}, o.wait_s,
                        "redis: how long to wait for them, seconds");
  daqwriter::add_number(app, {"--patience", 0, kMostSeconds, "seconds"}, o.patience_s,
                        "redis: how long to wait for a node that takes over, seconds");
  app.add_option("--location", o.location,
                 "redis: which node has an event: hash (detached), modulo, or "
                 "FIRST-LAST=NODE,... (base)")
      ->capture_default_str();
}

void require_number(const char* name, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value >= least && value <= most) return;
  throw Refusal(std::string(name) + " " + std::to_string(value) + ": give " + std::to_string(least) + " to " +
                std::to_string(most));
}

std::string promise_of(const StoreOptions& options) {
  if (!is_embedded(options.engine)) return "not known: the process that used the store is gone";
  return promise_of(durability_of(options));
}

void check_store(const StoreOptions& options) {
  const bool embedded = is_embedded(options.engine);
  if (is_baseline(options.engine)) check_baseline(options);
  if (embedded && (!options.endpoints.empty() || !options.level2_endpoints.empty() || options.replicas != 0))
    throw Refusal(
        "--endpoint, --level2-endpoint and --replicas: belong to "
        "--engine redis or redis-cluster");
  if (!embedded && (!options.directory.empty() || !options.level2_directory.empty()))
    throw Refusal("--dir and --level2-dir: belong to --engine lmdb (bench: raw-lmdb and rocksdb too)");
  if (options.engine == "redis-cluster" && transport_of(options) == "unix")
    throw Refusal("--endpoint '" + options.endpoints.front() +
                  "': the nodes of a cluster name each other by HOST:PORT: give that of one");
  if (options.replicas < 0 || options.replicas > kMostReplicas)
    throw Refusal("--replicas " + std::to_string(options.replicas) + ": give 0 to " +
                  std::to_string(kMostReplicas));
}

std::unique_ptr<Subject> open_subject(const StoreOptions& options, const std::string& rocksdb_library) {
  if (!is_baseline(options.engine)) return std::make_unique<StoreSubject>(open_store(options));
  const KeySchema schema = KeySchema::parse(options.key, options.primary);
  check_store(options);
  if (options.engine == kRawRedis) return open_raw_redis(Endpoint::parse(options.endpoints.front()), schema);
  if (options.engine == kRocksDb)
    return open_rocksdb(rocksdb_library, options.directory, durability_of(options), schema);
  auto env = std::make_unique<LmdbEnv>(std::make_unique<LevelFolder>(options.directory), options.capacity,
                                       durability_of(options));
  return open_raw_lmdb(std::move(env), schema);
}

HotStore open_store(const StoreOptions& options, Access access) {
  const KeySchema schema = KeySchema::parse(options.key, options.primary);
  check_store(options);
  return options.engine == "lmdb" ? open_embedded(options, schema, access) : open_redis(options, schema);
}

}  // namespace hotstore
