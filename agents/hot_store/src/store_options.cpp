#include "store_options.h"

#include <algorithm>
#include <iostream>

#include "cli.h"
#include "lmdb_engine.h"
#include "redis_engine.h"

namespace hotstore {
namespace {

using daqwriter::Refusal;

const std::vector<std::string> kEngines{"lmdb", "redis", "redis-cluster"};
constexpr int kMostReplicas = 8;

Durability durability_of(const StoreOptions& options) {
  return options.durability == "system" ? Durability::system : Durability::process;
}

HotStore open_embedded(const StoreOptions& options, const KeySchema& schema) {
  if (options.directory.empty()) throw Refusal("--dir: --engine lmdb needs the store's directory");
  if (options.directory == options.level2_directory)
    throw Refusal("--level2-dir " + options.level2_directory + ": is the first level's directory");
  auto first = std::make_unique<LmdbEnv>(options.directory, options.capacity, durability_of(options));
  const bool alone = first->alone();
  std::unique_ptr<ValueStore> second;
  if (!options.level2_directory.empty())
    second = std::make_unique<LmdbValueStore>(
        std::make_unique<LmdbEnv>(options.level2_directory, options.level2_capacity, durability_of(options)));
  const bool has_second = second != nullptr;
  HotStore store(schema, std::make_unique<LmdbEngine>(std::move(first), schema.primary_bytes()),
                 std::move(second));
  if (alone && has_second) {
    if (const std::size_t swept = store.sweep())
      std::cerr << "hotstore: " << swept
                << " values of level 2 without a key, left by a killed "
                   "process, were removed\n";
  }
  return store;
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
  if (!options.level2_endpoints.empty()) {
    auto second_link = link_to(options, options.level2_endpoints);
    Placement placement(location, second_link->shards());
    second = std::make_unique<RedisValueStore>(std::move(second_link), std::move(placement),
                                               schema.primary_bytes());
  }
  Placement placement(location, link->shards());
  auto engine = std::make_unique<RedisEngine>(std::move(link), std::move(placement), schema.primary_bytes());
  return HotStore(schema, std::move(engine), std::move(second));
}

}  // namespace

void add_store(CLI::App& app, StoreOptions& o) {
  daqwriter::add_choice(app, "--engine", o.engine, kEngines, "What keeps the data");
  app.add_option("--key", o.key, "Sub-keys as NAME:BITS, comma-separated")->capture_default_str();
  app.add_option("--primary", o.primary, "The sub-key that names an event")->capture_default_str();
  app.add_option("--dir", o.directory, "lmdb: directory of level 1 (made when its parent exists)");
  app.add_option("--level2-dir", o.level2_directory,
                 "lmdb: directory of level 2; without it there is no level 2");
  daqwriter::add_size(app, "--capacity", o.capacity, "lmdb: room of level 1, reserved at opening");
  daqwriter::add_size(app, "--level2-capacity", o.level2_capacity,
                      "lmdb: room of level 2, reserved at opening");
  daqwriter::add_choice(app, "--durability", o.durability, {"process", "system"},
                        "lmdb: what an acknowledged operation survives: kill "
                        "-9, or the machine's crash too");
  app.add_option("--endpoint", o.endpoints, "redis: HOST:PORT; of a cluster one or more nodes")
      ->delimiter(',');
  app.add_option("--level2-endpoint", o.level2_endpoints, "redis: the server or cluster of level 2")
      ->delimiter(',');
  app.add_option("--replicas", o.replicas,
                 "redis: further nodes that must have an operation before it counts")
      ->capture_default_str();
  app.add_option("--wait", o.wait_s, "redis: how long to wait for them, seconds")->capture_default_str();
  app.add_option("--patience", o.patience_s, "redis: how long to wait for a node that takes over, seconds")
      ->capture_default_str();
  app.add_option("--location", o.location,
                 "redis: which node has an event: hash (detached), modulo, or "
                 "FIRST-LAST=NODE,... (base)")
      ->capture_default_str();
}

HotStore open_store(const StoreOptions& options) {
  const KeySchema schema = KeySchema::parse(options.key, options.primary);
  const bool embedded = options.engine == "lmdb";
  if (embedded && (!options.endpoints.empty() || !options.level2_endpoints.empty() || options.replicas != 0))
    throw Refusal(
        "--endpoint, --level2-endpoint and --replicas: belong to "
        "--engine redis or redis-cluster");
  if (!embedded && (!options.directory.empty() || !options.level2_directory.empty()))
    throw Refusal("--dir and --level2-dir: belong to --engine lmdb");
  if (options.replicas < 0 || options.replicas > kMostReplicas)
    throw Refusal("--replicas " + std::to_string(options.replicas) + ": give 0 to " +
                  std::to_string(kMostReplicas));
  return embedded ? open_embedded(options, schema) : open_redis(options, schema);
}

}  // namespace hotstore
