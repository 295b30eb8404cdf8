#include "redis_engine.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <random>

#include "base/status.h"
#include "lmdb_keys.h"
#include "redis_scripts.h"
#include "sharding.h"

namespace hotstore {
namespace {

using daqwriter::Failure;
using daqwriter::Refusal;

constexpr const char* kShardingName = "sharding";

Answer answer_of(std::int64_t number) {
  constexpr std::array kAnswers{Answer::ok,     Answer::exists,     Answer::not_found,
                                Answer::locked, Answer::lease_lost, Answer::changed};
  return kAnswers.at(static_cast<std::size_t>(number));
}

Answer answer_of(const Reply& reply) {
  if (reply.list.empty()) throw Failure("a script of the store answered nothing");
  return answer_of(std::stoll(reply.list.front()));
}

std::string meta_key() {
  return Sharding::tag(0) + "meta";
}

// The keys of one bucket, and of one event in it.
struct Keys {
  Keys(unsigned bucket, View primary) : slot(Sharding::slot(bucket)) {
    const std::string tag = Sharding::tag(bucket);
    names = {tag + "e:", tag + "m:", tag + "all", tag + "f1", tag + "f2", tag + "due", tag + "t"};
    names[0].append(primary);
    names[1].append(primary);
  }
  Words words() const {
    Words words{"7"};
    words.insert(words.end(), names.begin(), names.end());
    return words;
  }
  unsigned slot;
  std::array<std::string, 7> names;
};

class RedisEngine : public Engine {
 public:
  // Throws Refusal when the store was filled with another sharding.
  RedisEngine(std::shared_ptr<RedisLink> link, Sharding sharding, std::size_t primary_bytes)
      : link_(std::move(link)),
        sharding_(std::move(sharding)),
        primary_bytes_(primary_bytes),
        put_(load(scripts::kPut)),
        update_(load(scripts::kUpdate)),
        remove_(load(scripts::kRemove)),
        complete_(load(scripts::kComplete)),
        get_any_(load(scripts::kGetAny)),
        renew_(load(scripts::kRenew)),
        lock_(load(scripts::kLock)),
        unlock_(load(scripts::kUnlock)),
        bucket_(std::random_device{}() % Sharding::kBuckets) {  // consumers start at different ones
    const Bytes kept = remember(kShardingName, sharding_.text());
    if (kept != sharding_.text())
      throw Refusal(description() + " was filled with --location '" + kept + "', not '" + sharding_.text() +
                    "': events would not be found");
  }

  Answer put(EngineKey key, View head, View value) override {
    const Bytes record = Bytes(head) + Bytes(value);
    Reply reply = run(put_, key.primary, {key.rest, record, "0"});
    if (reply.full) return Answer::full;
    // The store may hold our own first attempt: then we write it again, so that
    // the replicas confirm it.
    if (answer_of(reply.number) == Answer::exists && reply.again)
      reply = run(put_, key.primary, {key.rest, record, "1"});
    return settled(reply, answer_of(reply.number));
  }

  Answer get(EngineKey key, char& level, Bytes& rest) override {
    const Keys keys(bucket_of(key.primary), key.primary);
    Reply reply = link_->command(keys.slot, {"HGET", keys.names[0], key.rest}, false);
    if (reply.nothing) return Answer::not_found;
    level = reply.text.front();
    rest.assign(reply.text, 1);
    return Answer::ok;
  }

  Answer update(EngineKey key, View head, View value, Token token, const Bytes* expected,
                Bytes& before) override {
    const Bytes record = Bytes(head) + Bytes(value);
    const std::string number = std::to_string(token);
    const Reply reply =
        run(update_, key.primary,
            {key.rest, record, number, expected ? "1" : "0", expected ? View(*expected) : View("")});
    if (reply.full) return Answer::full;
    if (answer_of(reply) == Answer::ok) before = reply.list.at(1);
    return settled(reply, answer_of(reply));
  }

  Answer remove(EngineKey key, Token token, Bytes* before) override {
    const Reply reply = run(remove_, key.primary, {key.rest, std::to_string(token)});
    if (answer_of(reply) == Answer::ok && before) *before = reply.list.at(1);
    return settled(reply, answer_of(reply));
  }

  Answer complete(View primary, Token token, Records& before) override {
    const Reply reply = run(complete_, primary, {std::to_string(token)});
    before.clear();
    for (std::size_t i = 1; i + 1 < reply.list.size(); i += 2)
      before.emplace_back(Bytes(primary) + reply.list[i], reply.list[i + 1]);
    return settled(reply, answer_of(reply));
  }

  std::optional<Grant> get_any(const Claimant& claimant) override {
    const unsigned first = bucket_.load(std::memory_order_relaxed);
    for (unsigned i = 0; i < Sharding::kBuckets; ++i) {
      const unsigned bucket = (first + i) % Sharding::kBuckets;
      if (auto grant = get_any_of(bucket, claimant)) {
        bucket_.store(bucket, std::memory_order_relaxed);
        return grant;
      }
    }
    return std::nullopt;
  }

  Answer renew(View primary, Token token, std::int64_t lease_ms) override {
    const Reply reply = run(renew_, primary, {std::to_string(token), std::to_string(lease_ms)});
    return settled(reply, answer_of(reply));
  }

  Answer lock(View primary, const std::string& owner, Grant& grant) override {
    const Reply reply = run(lock_, primary, {owner});
    if (answer_of(reply) == Answer::ok) grant = {Bytes(primary), std::stoull(reply.list.at(1)), false};
    return settled(reply, answer_of(reply));
  }

  Answer unlock(View primary, Token token) override {
    const Reply reply = run(unlock_, primary, {std::to_string(token)});
    return settled(reply, answer_of(reply));
  }

  Records range(const KeySchema& schema, const Box& box) override {
    const std::uint64_t first = box.lower[schema.primary()], last = box.upper[schema.primary()];
    if (first > last) return {};
    const std::string from = "[" + schema.encode_primary(first), to = "[" + schema.encode_primary(last);
    Records found;
    for (unsigned bucket = 0; bucket < Sharding::kBuckets; ++bucket) {
      if (first == last && bucket != sharding_.bucket_of(first)) continue;
      const Keys keys(bucket, {});
      std::vector<Bytes> events{from.substr(1)};
      if (first != last)
        events = link_->command(keys.slot, {"ZRANGEBYLEX", keys.names[2], from, to}, false).list;
      for (const Bytes& primary : events) {
        const Reply fragments = link_->command(keys.slot, {"HGETALL", keys.names[0] + primary}, false);
        for (std::size_t i = 0; i + 1 < fragments.list.size(); i += 2) {
          Bytes encoded = primary + fragments.list[i];
          if (schema.contains(box, schema.decode(encoded)))
            found.emplace_back(std::move(encoded), fragments.list[i + 1]);
        }
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  Bytes remember(const std::string& name, const Bytes& value) override {
    const unsigned slot = slot_of(meta_key());
    link_->command(slot, {"HSETNX", meta_key(), name, value}, false);
    return link_->command(slot, {"HGET", meta_key(), name}, false).text;
  }

  std::string promise() const override {
    const int replicas = link_->options().replicas;
    if (replicas == 0)
      return "acknowledged operations survive what the Redis server's own "
             "settings promise, on one node: " +
             link_->durability();
    return "acknowledged operations are in the memory of " + std::to_string(replicas + 1) +
           " nodes: they survive the loss of " + std::to_string(replicas);
  }
  std::string description() const override { return link_->description(); }

 private:
  struct Script {
    std::string source;
    std::string digest;
  };

  Script load(const char* body) const {
    const std::string source = std::string(scripts::kCommon) + body;
    return {source, link_->load(source)};
  }

  unsigned bucket_of(View primary) const { return sharding_.bucket_of(number_of(primary)); }

  // Runs the script on the event's node, with the primary key and `arguments`.
  Reply run(const Script& script, View primary, const Words& arguments) {
    const Keys keys(bucket_of(primary), primary);
    Words words = keys.words();
    words.push_back(primary);
    words.insert(words.end(), arguments.begin(), arguments.end());
    return link_->script(keys.slot, script.source, script.digest, words, true);
  }

  bool confirmed(const Reply& reply) const { return reply.replicas >= link_->options().replicas; }

  // The answer, made less certain where too few nodes have confirmed it, or
  // where it may be the echo of a first attempt whose reply was lost.
  Answer settled(const Reply& reply, Answer answer) const {
    if (answer == Answer::ok) return confirmed(reply) ? Answer::ok : Answer::unconfirmed;
    const bool echo = answer == Answer::not_found || answer == Answer::lease_lost;
    return echo && reply.again ? Answer::unconfirmed : answer;
  }

  std::optional<Grant> get_any_of(unsigned bucket, const Claimant& claimant) {
    const Keys keys(bucket, {});
    const std::string lease = std::to_string(claimant.lease_ms);
    const std::string level = claimant.level ? std::string(1, *claimant.level) : "";
    Words words = keys.words();
    for (const std::string_view word :
         {std::string_view(), std::string_view(claimant.owner), std::string_view(lease),
          std::string_view(level), std::string_view(keys.names[1])})
      words.push_back(word);
    const Reply reply = link_->script(keys.slot, get_any_.source, get_any_.digest, words, true);
    // A lock that only one node knows does not count: it is left to run out.
    if (reply.list.empty() || !confirmed(reply)) return std::nullopt;
    return Grant{reply.list.at(0), std::stoull(reply.list.at(1)), reply.list.at(2) == "1"};
  }

  std::shared_ptr<RedisLink> link_;
  Sharding sharding_;
  std::size_t primary_bytes_;
  Script put_, update_, remove_, complete_, get_any_, renew_, lock_, unlock_;
  std::atomic<unsigned> bucket_;  // where the last event came from
};

class RedisValueStore : public ValueStore {
 public:
  RedisValueStore(std::shared_ptr<RedisLink> link, Sharding sharding, std::size_t primary_bytes)
      : link_(std::move(link)), sharding_(std::move(sharding)), primary_bytes_(primary_bytes) {}
  Answer put(View name, View value) override {
    const std::string key = key_of(name);
    const Reply reply = link_->command(slot_of(key), {"SET", key, value}, true);
    if (reply.full) return Answer::full;
    return reply.replicas >= link_->options().replicas ? Answer::ok : Answer::unconfirmed;
  }

  Answer get(View name, Bytes& value) override {
    const std::string key = key_of(name);
    Reply reply = link_->command(slot_of(key), {"GET", key}, false);
    if (reply.nothing) return Answer::not_found;
    value = std::move(reply.text);
    return Answer::ok;
  }

  void erase(View name) override {
    const std::string key = key_of(name);
    link_->command(slot_of(key), {"DEL", key}, false);
  }

  std::size_t sweep(const std::function<bool(View name)>&) override {
    throw Refusal("level 2 in Redis is not swept: others may be writing to it at any time");
  }

 private:
  std::string key_of(View name) const {
    const unsigned bucket = sharding_.bucket_of(number_of(name.substr(0, primary_bytes_)));
    return Sharding::tag(bucket) + "v:" + Bytes(name);
  }

  std::shared_ptr<RedisLink> link_;
  Sharding sharding_;
  std::size_t primary_bytes_;
};

}  // namespace

std::unique_ptr<Engine> redis_engine(std::shared_ptr<RedisLink> link, const Location& location,
                                     std::size_t primary_bytes) {
  Sharding sharding(location, link->shards());
  return std::make_unique<RedisEngine>(std::move(link), std::move(sharding), primary_bytes);
}

std::unique_ptr<ValueStore> redis_value_store(std::shared_ptr<RedisLink> link, const Location& location,
                                              std::size_t primary_bytes) {
  Sharding sharding(location, link->shards());
  return std::make_unique<RedisValueStore>(std::move(link), std::move(sharding), primary_bytes);
}

}  // namespace hotstore
