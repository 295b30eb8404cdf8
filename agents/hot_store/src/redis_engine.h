// Promise: the store's engine on a Redis server or a Redis Cluster. Every
// operation is one script on the node that has the event; times are that node's
// clock.
//
// --replicas and the servers' own settings decide what an acknowledged operation
// survives: Redis answers before its replicas have a write. With
// `replicas` n, an operation counts when n further nodes have confirmed it
// (WAIT), and is `unconfirmed` otherwise. One node may then be lost: the node
// that takes over has all acknowledged operations.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "engine.h"
#include "redis_link.h"
#include "sharding.h"

namespace hotstore {

class RedisEngine : public Engine {
 public:
  // Throws Refusal when the store was filled with another sharding.
  RedisEngine(std::shared_ptr<RedisLink> link, Sharding sharding, std::size_t primary_bytes);

  Answer put(EngineKey key, View head, View value) override;
  Answer get(EngineKey key, char& level, Bytes& rest) override;
  Answer update(EngineKey key, View head, View value, Token token, const Bytes* expected,
                Bytes& before) override;
  Answer remove(EngineKey key, Token token, Bytes* before) override;
  std::optional<Grant> get_any(const Claimant& claimant) override;
  Answer renew(View primary, Token token, std::int64_t lease_ms) override;
  Answer lock(View primary, const std::string& owner, Grant& grant) override;
  Answer unlock(View primary, Token token) override;
  Answer complete(View primary, Token token, Records& before) override;
  Records range(const KeySchema& schema, const Box& box) override;
  Bytes remember(const std::string& name, const Bytes& value) override;
  std::string description() const override { return link_->description(); }
  std::string promise() const override;

 private:
  struct Script {
    std::string source;
    std::string digest;
  };
  struct Keys;  // of one bucket, and of one event in it

  Script load(const char* body) const;
  unsigned bucket_of(View primary) const;
  // Runs the script on the event's node, with the primary key and `arguments`.
  Reply run(const Script& script, View primary, const Words& arguments);
  bool confirmed(const Reply& reply) const;
  Answer settled(const Reply& reply, Answer answer) const;
  std::optional<Grant> get_any_of(unsigned bucket, const Claimant& claimant);

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
  Answer put(View name, View value) override;
  Answer get(View name, Bytes& value) override;
  void erase(View name) override;
  std::size_t sweep(const std::function<bool(View name)>& wanted) override;

 private:
  std::string key_of(View name) const;

  std::shared_ptr<RedisLink> link_;
  Sharding sharding_;
  std::size_t primary_bytes_;
};

}  // namespace hotstore
