// Promise: DAQDB's operations over any engine, typed: structured keys, opaque
// values, a level for each key, and events that go to one consumer at a time.
//
// Levels: the engine holds every key and, at level 1, the value itself; a value
// of level 2 is in the level-2 store under a name that the key's record gives.
// A value is written there before its record, and erased after it: a process
// killed in between leaves a value that nobody asks for, never a key without
// its value.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine.h"

namespace hotstore {

enum class Level : char { fast = '1', large = '2' };

struct Claim {
  std::uint64_t primary = 0;
  Token token = kNoToken;
  bool returned = false;
};

struct Change {
  std::optional<View> value;
  std::optional<Level> level;
};

struct Item {
  Key key;
  Bytes value;
  Level level = Level::fast;
};

class HotStore {
 public:
  // Refuses an engine that holds keys of another schema. `second` may be
  // nullptr: there is no level 2 then.
  HotStore(KeySchema schema, std::unique_ptr<Engine> engine, std::unique_ptr<ValueStore> second);

  Answer put(const Key& key, View value, Level level = Level::fast);
  Answer get(const Key& key, Bytes& value, Level* level = nullptr);
  Answer update(const Key& key, const Change& change, Token token = kNoToken);
  Answer remove(const Key& key, Token token = kNoToken);

  // The fragments in the box, in order of their encoded keys.
  std::vector<Item> range(const Box& box);
  std::vector<Item> event(std::uint64_t primary);

  std::optional<Claim> get_any(const std::string& owner, double lease_s,
                               std::optional<Level> level = std::nullopt);
  Answer renew(const Claim& claim, double lease_s);
  Answer complete(const Claim& claim);
  // The attribute LOCKED by hand: without a lease.
  Answer lock(std::uint64_t primary, const std::string& owner, Claim& claim);
  Answer unlock(const Claim& claim);

  // Lists what is damaged on either level, where the engine can tell by itself.
  std::vector<std::string> check(const std::function<void()>& progress);

  bool lost_by_crash() const { return engine_->lost_by_crash() || (second_ && second_->lost_by_crash()); }

  // Values of level 2 that a killed process left without a key. Only where
  // nobody else uses the store.
  std::size_t sweep();

  const KeySchema& schema() const { return schema_; }
  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }

 private:
  // A fragment: its level and, behind it, the value (level 1) or the value's
  // name and `value` (level 2).
  Answer read(const Bytes& encoded, char& level, Bytes& rest, Bytes& value);
  Answer replace(const Bytes& encoded, char level, View value, Token token, const Bytes* expected);
  Bytes new_name(View encoded) const;
  ValueStore& second();
  void erase_value_of(View encoded, View record);
  std::optional<Item> item_of(const Bytes& encoded, const Bytes& record);

  KeySchema schema_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<ValueStore> second_;
};

}  // namespace hotstore
