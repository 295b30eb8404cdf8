// Promise: what the typed store asks of a key-value engine. Keys are bytes: an
// event's primary key and the rest of one fragment's key; a record is a short
// head, which the store writes and the engine keeps, and the value. The first
// byte of the head is the fragment's level ('1' or '2').
//
// Where an operation hands out the record from before, it hands out only the
// first byte of one of level 1: nobody needs the value.
//
// Every operation is atomic, and an engine may be used by several threads. A
// lock belongs to an event; only the lock's token may change a locked event,
// and only while its lease runs. Deadlines are in milliseconds of the
// engine's own clock.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "key_schema.h"

namespace hotstore {

struct EngineKey {
  View primary;
  View rest;
};

struct Grant {
  Bytes primary;
  Token token = kNoToken;
  bool returned = false;  // an earlier consumer's lease on this event ran out
};

struct Claimant {
  std::string owner;
  std::int64_t lease_ms = 0;
  std::optional<char> level;  // only events with a fragment at this level
};

// Fragments in order of their encoded keys.
using Records = std::vector<std::pair<Bytes, Bytes>>;

class Engine {
 public:
  virtual ~Engine() = default;

  virtual Answer put(EngineKey key, View head, View value) = 0;
  // The record's first byte, and what is behind it.
  virtual Answer get(EngineKey key, char& level, Bytes& rest) = 0;
  // Replaces the record; `before` gets the old one. With `expected` it replaces
  // only a record that is the same as that.
  virtual Answer update(EngineKey key, View head, View value, Token token, const Bytes* expected,
                        Bytes& before) = 0;
  // `before` may be nullptr. With an event's last fragment its lock goes too.
  virtual Answer remove(EngineKey key, Token token, Bytes* before) = 0;

  // An event that is not locked, or whose lease ran out.
  virtual std::optional<Grant> get_any(const Claimant& claimant) = 0;
  virtual Answer renew(View primary, Token token, std::int64_t lease_ms) = 0;
  // The lock without a lease: it stays until it is taken off.
  virtual Answer lock(View primary, const std::string& owner, Grant& grant) = 0;
  virtual Answer unlock(View primary, Token token) = 0;
  // Removes all fragments of the event and its lock; `before` gets their keys
  // and records.
  virtual Answer complete(View primary, Token token, Records& before) = 0;

  virtual Records range(const KeySchema& schema, const Box& box) = 0;
  // Keeps `value` under `name` unless there is one; returns the one that is
  // kept now.
  virtual Bytes remember(const std::string& name, const Bytes& value) = 0;

  // Transactions that this process has committed so far, where the engine counts them: threads may share one.
  virtual std::optional<std::uint64_t> commits() const { return std::nullopt; }

  // Lists what is damaged, where the engine can tell by itself. `progress` is called now and then.
  virtual std::vector<std::string> check(const std::function<void()>& /*progress*/) { return {}; }

  // True: the machine went down while the store was not synchronised.
  virtual bool lost_by_crash() const { return false; }

  virtual std::string description() const = 0;
  // Why what was acknowledged is not to be found any more, as when somebody removed the store's files; empty:
  // it is.
  virtual std::string gone() const { return {}; }
  virtual std::string promise() const = 0;  // what survives what, in one sentence
};

// The store of level 2's values, each under a name of its own that is never
// used again.
class ValueStore {
 public:
  virtual ~ValueStore() = default;
  virtual Answer put(View name, View value) = 0;
  virtual Answer get(View name, Bytes& value) = 0;
  virtual void erase(View name) = 0;
  // Erases the values that `wanted` does not want: a process that was killed
  // between two steps left them. Only where nobody else uses the store; returns
  // how many.
  virtual std::size_t sweep(const std::function<bool(View name)>& wanted) = 0;
  virtual bool lost_by_crash() const { return false; }
  virtual std::vector<std::string> check(const std::function<void()>& /*progress*/) { return {}; }
};

}  // namespace hotstore
