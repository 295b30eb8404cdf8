// Promise: the store's engine on LMDB: an embedded B+ tree in a mapped file,
// which several processes may use at the same time; every operation is one
// transaction.
//
// One table; the first byte says what a key stands for:
//   d primary rest -> record          l primary -> token, deadline, owner
//   m name -> metadata                x deadline primary -> nothing: the leases
//   in the order in which they run out
// Behind each record stands a checksum of the key and the record.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>

#include "engine.h"
#include "lmdb_env.h"

namespace hotstore {

using ClockMs = std::function<std::int64_t()>;  // since the epoch: leases outlive a restart
std::int64_t system_clock_ms();
std::string promise_of(Durability durability);

class LmdbEngine : public Engine {
 public:
  LmdbEngine(std::unique_ptr<LmdbEnv> env, std::size_t primary_bytes, ClockMs now = system_clock_ms);

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
  std::optional<std::uint64_t> commits() const override { return env_->commits(); }
  std::string description() const override;
  std::string gone() const override { return env_->gone(); }
  std::string promise() const override;
  std::vector<std::string> check(const std::function<void()>& progress) override;
  bool lost_by_crash() const override { return env_->folder().lost_by_crash(); }

  LmdbEnv& env() { return *env_; }

 private:
  struct Lock {
    Token token = kNoToken;
    std::int64_t deadline_ms = 0;
    Bytes owner;
  };
  Lock lock_of(View record) const;
  void check_locks(MDB_txn* txn) const;
  // The start of the next search for an unlocked event, and the time when the
  // last one found none.
  struct Search {
    Bytes from;
    std::size_t fruitless_commit = 0;
    std::int64_t until_ms = 0;
  };

  // Returns the answer of `body(txn)`; without room, Answer::full.
  template <typename Body>
  Answer change(const Body& body) {
    Answer answer = Answer::ok;
    try {
      env_->write([&](MDB_txn* txn) { answer = body(txn); });
    } catch (const StoreFull&) {
      return Answer::full;
    }
    return answer;
  }
  // The same for a change of the event, with its lock, that the holder of `token` may make.
  template <typename Body>
  Answer change_fenced(View primary, Token token, const Body& body) {
    return change([&](MDB_txn* txn) {
      std::optional<Lock> lock;
      const Answer allowed = fence(txn, primary, token, lock);
      return allowed == Answer::ok ? body(txn, lock) : allowed;
    });
  }
  bool find(MDB_txn* txn, View key, View& record) const;
  void store(MDB_txn* txn, View key, View head, View value) const;
  void erase(MDB_txn* txn, View key) const;
  std::optional<Lock> find_lock(MDB_txn* txn, View primary) const;
  void set_lock(MDB_txn* txn, View primary, const std::optional<Lock>& before, const Lock& lock) const;
  void drop_lock(MDB_txn* txn, View primary, const Lock& lock) const;
  Answer fence(MDB_txn* txn, View primary, Token token, std::optional<Lock>& lock) const;
  bool has_fragment(MDB_txn* txn, View primary, std::optional<char> level) const;
  Token next_token(MDB_txn* txn) const;
  Grant grant(MDB_txn* txn, View primary, const std::optional<Lock>& before, const std::string& owner,
              std::int64_t deadline_ms) const;
  std::optional<Grant> run_out(MDB_txn* txn, const Claimant& claimant, std::int64_t now_ms) const;
  std::int64_t next_deadline(MDB_txn* txn) const;
  std::optional<Bytes> unlocked_from(MDB_txn* txn, View from, std::optional<char> level) const;

  std::unique_ptr<LmdbEnv> env_;
  std::size_t primary_bytes_;
  ClockMs now_;
  std::mutex searches_gate_;
  std::array<Search, 3> searches_;  // for any level, level 1, level 2; guarded by searches_gate_
};

class LmdbValueStore : public ValueStore {
 public:
  explicit LmdbValueStore(std::unique_ptr<LmdbEnv> env) : env_(std::move(env)) {}
  Answer put(View name, View value) override;
  Answer get(View name, Bytes& value) override;
  void erase(View name) override;
  std::size_t sweep(const std::function<bool(View name)>& wanted) override;
  std::vector<std::string> check(const std::function<void()>& progress) override;
  bool lost_by_crash() const override { return env_->folder().lost_by_crash(); }

 private:
  std::unique_ptr<LmdbEnv> env_;
};

}  // namespace hotstore
