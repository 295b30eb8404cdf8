#include "lmdb_engine.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/status.h"
#include "lmdb_keys.h"

namespace hotstore {
namespace {

Bytes data_key(const EngineKey& key) {
  return kind_key(kDataKind, key.primary, key.rest);
}

// The part of a removed record that a caller may have: all of it but a value.
Bytes outline(View record) {
  return Bytes(record.substr(0, record.starts_with('1') ? 1 : View::npos));
}

Bytes outline(const Cursor& cursor) {
  return cursor.level() == '1' ? Bytes("1") : Bytes(cursor.value());
}

constexpr std::uint64_t kRecordsPerStep = 256;

// Checks by a scan that every key comes after the one before and is found by itself, with the same record,
// and that there are as many as the tree counts.
void check_table(LmdbEnv& env, MDB_txn* txn, const std::function<void()>& progress) {
  std::uint64_t records = 0;
  Cursor cursor(txn, env.table());
  for (bool there = cursor.first(); there; there = cursor.next()) {
    if (++records % kRecordsPerStep == 0) progress();
    const View record = cursor.value();
    View found;
    if (!find_record(txn, env.table(), cursor.key(), found))
      throw Damage("key " + hexadecimal(cursor.key()) + " is there and is not found");
    if (found != record) throw Damage("key " + hexadecimal(cursor.key()) + " is found with another record");
  }
  const std::uint64_t counted = env.entries(txn);
  if (records != counted)
    throw Damage(std::to_string(records) + " records are there, the tree counts " + std::to_string(counted));
}

// Checks that every page is once in the tree or in the list of free ones, from which the next writer takes.
void check_pages(LmdbEnv& env, MDB_txn* txn) {
  constexpr std::uint64_t kMetaPages = 2;
  const std::uint64_t pages = env.pages();
  std::uint64_t accounted = kMetaPages + env.used_pages(txn);
  std::vector<bool> seen(pages);
  Cursor cursor(txn, kFreeTable, Cursor::Order::of_the_table);
  for (bool there = cursor.first(); there; there = cursor.next()) {
    const View list = cursor.stored();
    for (std::size_t at = sizeof(std::size_t); at + sizeof(std::size_t) <= list.size();
         at += sizeof(std::size_t)) {
      std::size_t page = 0;
      std::memcpy(&page, list.data() + at, sizeof page);
      if (page < kMetaPages || page >= pages || seen[page])
        throw Damage("the list of free pages has page " + std::to_string(page) + ", which cannot be free");
      seen[page] = true;
      ++accounted;
    }
  }
  if (accounted != pages)
    throw Damage(std::to_string(accounted) + " pages are used or free, of " + std::to_string(pages));
}

// Returns the damage that `check` throws, as a list.
template <typename Check>
std::vector<std::string> damages(LmdbEnv& env, const Check& check) {
  try {
    env.read([&](MDB_txn* txn) {
      check(txn);
      return 0;
    });
  } catch (const Damage& damage) {
    return {damage.what()};
  }
  return {};
}

constexpr const char* kTokenName = "last token";
constexpr auto kPauseOfAFullStore = std::chrono::milliseconds(10);
constexpr int kTriesOfAFullStore = 1000;  // 10 s

std::size_t search_index(std::optional<char> level) {
  return level ? static_cast<std::size_t>(*level - '0') : 0;
}

struct Lock {
  Token token = kNoToken;
  std::int64_t deadline_ms = 0;
  Bytes owner;
};

// The start of the next search for an unlocked event, and the time when the last one found none.
struct Search {
  Bytes from;
  std::size_t fruitless_commit = 0;
  std::int64_t until_ms = 0;
};

class LmdbEngine : public Engine {
 public:
  LmdbEngine(std::unique_ptr<LmdbEnv> env, std::size_t primary_bytes, ClockMs now)
      : env_(std::move(env)), primary_bytes_(primary_bytes), now_(std::move(now)) {}

  Answer put(EngineKey key, View head, View value) override {
    const Bytes at = data_key(key);
    return change([&](MDB_txn* txn) {
      const int code = put_record(txn, env_->table(), at, head, value, MDB_NOOVERWRITE);
      if (code == MDB_KEYEXIST) return Answer::exists;
      check_lmdb(code, "mdb_put");
      env_->leave_room(txn);
      return Answer::ok;
    });
  }

  Answer get(EngineKey key, char& level, Bytes& rest) override {
    const Bytes at = data_key(key);
    return env_->read([&](MDB_txn* txn) {
      View record;
      if (!find(txn, at, record)) return Answer::not_found;
      if (record.empty()) throw Damage("the record at key " + hexadecimal(at) + " is empty");
      level = record.front();
      rest.assign(record.substr(1));
      return Answer::ok;
    });
  }

  Answer update(EngineKey key, View head, View value, Token token, const Bytes* expected,
                Bytes& before) override {
    const Bytes at = data_key(key);
    return change([&](MDB_txn* txn) {
      View record;
      if (!find(txn, at, record)) return Answer::not_found;
      std::optional<Lock> lock;
      const Answer allowed = fence(txn, key.primary, token, lock);
      if (allowed != Answer::ok) return allowed;
      if (expected && record != *expected) return Answer::changed;
      before = outline(record);
      store(txn, at, head, value);
      return Answer::ok;
    });
  }

  Answer remove(EngineKey key, Token token, Bytes* before) override {
    const Bytes at = data_key(key);
    return change_fenced(key.primary, token, [&](MDB_txn* txn, const std::optional<Lock>& lock) {
      if (before) {
        View record;
        if (!find(txn, at, record)) return Answer::not_found;
        *before = outline(record);
      }
      if (!erase_record(txn, env_->table(), at)) return Answer::not_found;
      if (lock && !has_fragment(txn, key.primary, std::nullopt)) drop_lock(txn, key.primary, *lock);
      return Answer::ok;
    });
  }

  Answer complete(View primary, Token token, Records& before) override {
    const Bytes prefix = kind_key(kDataKind, primary);
    return change([&](MDB_txn* txn) {
      before.clear();
      std::optional<Lock> lock;
      const Answer allowed = fence(txn, primary, token, lock);
      if (allowed != Answer::ok) return allowed;
      Cursor cursor(txn, env_->table());
      while (cursor.seek(prefix) && cursor.key().starts_with(prefix)) {
        before.emplace_back(cursor.key().substr(1), outline(cursor));
        cursor.erase();
      }
      if (lock) drop_lock(txn, primary, *lock);
      return before.empty() ? Answer::not_found : Answer::ok;
    });
  }

  Records range(const KeySchema& schema, const Box& box) override {
    return env_->read([&](MDB_txn* txn) {
      Records found;
      std::optional<Key> wanted = schema.next_in(box, box.lower);
      Cursor cursor(txn, env_->table());
      while (wanted) {
        const Bytes from = schema.encode(*wanted);
        bool there = cursor.seek(kind_key(kDataKind, from));
        // Inside the box it goes from key to key; outside of it a seek leaps over
        // unwanted keys.
        while (there && cursor.key().front() == kDataKind) {
          const View encoded = cursor.key().substr(1);
          if (encoded.size() != schema.encoded_bytes())
            throw Damage("key " + hexadecimal(encoded) + " is not as long as a key of this store");
          wanted = schema.next_in(box, schema.decode(encoded));
          if (!wanted || schema.encode(*wanted) != encoded) break;
          found.emplace_back(encoded, cursor.value());
          there = cursor.next();
          wanted.reset();
        }
        if (!there || cursor.key().front() != kDataKind) break;
      }
      return found;
    });
  }

  Bytes remember(const std::string& name, const Bytes& value) override {
    const Bytes at = kind_key(kMetaKind, name);
    const auto kept = [&](MDB_txn* txn) {
      View there;
      return find(txn, at, there) ? std::optional(Bytes(there)) : std::nullopt;
    };
    if (env_->folder().access() == Access::read) return env_->read(kept).value_or(value);
    std::optional<Bytes> found;
    env_->write([&](MDB_txn* txn) {
      found = kept(txn);
      if (!found) store(txn, at, {}, value);
    });
    return found.value_or(value);
  }

  std::vector<std::string> check(const std::function<void()>& progress) override {
    return damages(*env_, [&](MDB_txn* txn) {
      check_table(*env_, txn, progress);
      check_locks(txn);
      check_pages(*env_, txn);
    });
  }

  std::string description() const override { return "the LMDB store in " + env_->folder().path().string(); }

  std::string promise() const override { return promise_of(env_->durability()); }

  std::optional<Grant> get_any(const Claimant& claimant) override {
    const std::size_t index = search_index(claimant.level);
    const std::int64_t now_ms = now_();
    Bytes from;
    {
      std::lock_guard hold(searches_gate_);
      const Search& search = searches_[index];
      // Nothing was committed since a search found nothing, and no lease ran out:
      // it would find nothing again.
      if (search.fruitless_commit == env_->last_commit() && now_ms <= search.until_ms) return std::nullopt;
      from = search.from;
    }
    std::optional<Grant> given;
    Search next;
    const auto search = [&](MDB_txn* txn) {
      given = run_out(txn, claimant, now_ms);
      next = {from, 0, 0};
      if (given) return Answer::ok;
      std::optional<Bytes> primary = unlocked_from(txn, from, claimant.level);
      if (!primary && !from.empty()) primary = unlocked_from(txn, {}, claimant.level);
      if (primary) {
        given = grant(txn, *primary, std::nullopt, claimant.owner, now_ms + claimant.lease_ms);
        next.from = after_all_of(*primary);
      } else {
        next = {{}, env_->last_commit(), next_deadline(txn)};
      }
      return Answer::ok;
    };
    // Full for a moment is no end: who has an event already makes room when it is done with it.
    Answer answer = change(search);
    for (int tries = 1; answer == Answer::full && tries < kTriesOfAFullStore; ++tries) {
      std::this_thread::sleep_for(kPauseOfAFullStore);
      answer = change(search);
    }
    if (answer != Answer::ok)
      throw daqwriter::Failure(description() +
                               " has had no room to keep a lock for 10 s: give it more --capacity");
    if (given && given->returned) env_->forget_dead_readers();
    std::lock_guard hold(searches_gate_);
    searches_[index] = next;
    return given;
  }

  Answer renew(View primary, Token token, std::int64_t lease_ms) override {
    return change_fenced(primary, token, [&](MDB_txn* txn, const std::optional<Lock>& lock) {
      if (!lock) return Answer::not_found;
      set_lock(txn, primary, lock, {token, now_() + lease_ms, lock->owner});
      return Answer::ok;
    });
  }

  Answer lock(View primary, const std::string& owner, Grant& given) override {
    return change_fenced(primary, kNoToken, [&](MDB_txn* txn, const std::optional<Lock>& lock) {
      if (!has_fragment(txn, primary, std::nullopt)) return Answer::not_found;
      given = grant(txn, primary, lock, owner, kNoDeadline);
      return Answer::ok;
    });
  }

  Answer unlock(View primary, Token token) override {
    return change_fenced(primary, token, [&](MDB_txn* txn, const std::optional<Lock>& lock) {
      if (!lock) return Answer::not_found;
      drop_lock(txn, primary, *lock);
      return Answer::ok;
    });
  }

  std::optional<std::uint64_t> commits() const override { return env_->commits(); }
  std::string gone() const override { return env_->gone(); }
  bool lost_by_crash() const override { return env_->folder().lost_by_crash(); }

 private:
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
  bool find(MDB_txn* txn, View key, View& record) const {
    return find_record(txn, env_->table(), key, record);
  }

  void store(MDB_txn* txn, View key, View head, View value) const {
    check_lmdb(put_record(txn, env_->table(), key, head, value), "mdb_put");
  }

  void erase(MDB_txn* txn, View key) const {
    if (!erase_record(txn, env_->table(), key)) check_lmdb(MDB_NOTFOUND, "mdb_del");
  }

  Lock lock_of(View record) const {
    if (record.size() < 2 * kNumberBytes) throw Damage("a lock is shorter than its token and its deadline");
    return Lock{number_of(record), static_cast<std::int64_t>(number_of(record.substr(kNumberBytes))),
                Bytes(record.substr(2 * kNumberBytes))};
  }

  std::optional<Lock> find_lock(MDB_txn* txn, View primary) const {
    View found;
    if (!find(txn, kind_key(kLockKind, primary), found)) return std::nullopt;
    return lock_of(found);
  }

  // Every lock with a deadline stands among the leases, and nothing else does.
  void check_locks(MDB_txn* txn) const {
    std::uint64_t leases = 0;
    Cursor cursor(txn, env_->table());
    const Bytes locks = kind_key(kLockKind, {}), dues = kind_key(kDueKind, {});
    for (bool there = cursor.seek(locks); there && cursor.key().starts_with(locks); there = cursor.next()) {
      const Lock lock = lock_of(cursor.value());
      if (lock.deadline_ms == kNoDeadline) continue;
      View found;
      if (!find(txn, due_key(lock.deadline_ms, cursor.key().substr(1)), found))
        throw Damage("lock " + hexadecimal(cursor.key()) + " has no lease");
      ++leases;
    }
    for (bool there = cursor.seek(dues); there && cursor.key().starts_with(dues); there = cursor.next()) {
      if (leases-- == 0) throw Damage("lease " + hexadecimal(cursor.key()) + " has no lock");
    }
  }

  void set_lock(MDB_txn* txn, View primary, const std::optional<Lock>& before, const Lock& lock) const {
    if (before && before->deadline_ms != kNoDeadline) erase(txn, due_key(before->deadline_ms, primary));
    const Bytes numbers =
        number_bytes(lock.token) + number_bytes(static_cast<std::uint64_t>(lock.deadline_ms));
    store(txn, kind_key(kLockKind, primary), numbers, lock.owner);
    if (lock.deadline_ms != kNoDeadline) store(txn, due_key(lock.deadline_ms, primary), {}, {});
  }

  void drop_lock(MDB_txn* txn, View primary, const Lock& lock) const {
    if (lock.deadline_ms != kNoDeadline) erase(txn, due_key(lock.deadline_ms, primary));
    erase(txn, kind_key(kLockKind, primary));
  }

  // May the holder of `token` change the event? `lock` gets its lock.
  Answer fence(MDB_txn* txn, View primary, Token token, std::optional<Lock>& lock) const {
    lock = find_lock(txn, primary);
    const bool holds = lock && lock->deadline_ms >= now_();
    if (token == kNoToken) return holds ? Answer::locked : Answer::ok;
    return holds && lock->token == token ? Answer::ok : Answer::lease_lost;
  }

  bool has_fragment(MDB_txn* txn, View primary, std::optional<char> level) const {
    const Bytes prefix = kind_key(kDataKind, primary);
    Cursor cursor(txn, env_->table());
    for (bool there = cursor.seek(prefix); there && cursor.key().starts_with(prefix); there = cursor.next()) {
      if (!level || cursor.level() == *level) return true;
    }
    return false;
  }

  Token next_token(MDB_txn* txn) const {
    const Bytes at = kind_key(kMetaKind, kTokenName);
    View found;
    const Token last = find(txn, at, found) ? number_of(found) : kNoToken;
    store(txn, at, number_bytes(last + 1), {});
    return last + 1;
  }

  Grant grant(MDB_txn* txn, View primary, const std::optional<Lock>& before, const std::string& owner,
              std::int64_t deadline_ms) const {
    const Lock lock{next_token(txn), deadline_ms, owner};
    set_lock(txn, primary, before, lock);
    return {Bytes(primary), lock.token, before.has_value()};
  }

  // The event whose lease ran out first. One that has no fragments any more is
  // forgotten.
  std::optional<Grant> run_out(MDB_txn* txn, const Claimant& claimant, std::int64_t now_ms) const {
    Bytes from = kind_key(kDueKind, {});
    for (;;) {
      Bytes due;
      {
        Cursor cursor(txn, env_->table());
        if (!cursor.seek(from) || cursor.key().front() != kDueKind) return std::nullopt;
        due = Bytes(cursor.key());
      }
      if (due.size() != 1 + kNumberBytes + primary_bytes_)
        throw Damage("lease " + hexadecimal(due) + " is not as long as a lease of this store");
      const auto deadline_ms = static_cast<std::int64_t>(number_of(View(due).substr(1)));
      if (deadline_ms >= now_ms) return std::nullopt;
      const Bytes primary = due.substr(1 + kNumberBytes);
      const std::optional<Lock> lock = find_lock(txn, primary);
      if (!lock || lock->deadline_ms != deadline_ms)
        throw Damage("lease " + hexadecimal(due) + " has no lock");
      if (has_fragment(txn, primary, claimant.level))
        return grant(txn, primary, lock, claimant.owner, now_ms + claimant.lease_ms);
      if (lock && !has_fragment(txn, primary, std::nullopt)) drop_lock(txn, primary, *lock);
      from = due + '\0';
    }
  }

  std::int64_t next_deadline(MDB_txn* txn) const {
    Cursor cursor(txn, env_->table());
    if (!cursor.seek(kind_key(kDueKind, {})) || cursor.key().front() != kDueKind) return kNoDeadline;
    return static_cast<std::int64_t>(number_of(cursor.key().substr(1)));
  }

  // The first event at or after `from` that has no lock and a fragment at the
  // level.
  std::optional<Bytes> unlocked_from(MDB_txn* txn, View from, std::optional<char> level) const {
    Bytes at = kind_key(kDataKind, from);
    Cursor cursor(txn, env_->table());
    while (!at.empty() && cursor.seek(at) && cursor.key().front() == kDataKind) {
      const Bytes primary(cursor.key().substr(1, primary_bytes_));
      if (primary.size() != primary_bytes_)
        throw Damage("key " + hexadecimal(cursor.key()) + " is shorter than a key of this store");
      if (!find_lock(txn, primary) && (!level || has_fragment(txn, primary, level))) return primary;
      at = after_all_of(kind_key(kDataKind, primary));
    }
    return std::nullopt;
  }

  std::unique_ptr<LmdbEnv> env_;
  std::size_t primary_bytes_;
  ClockMs now_;
  std::mutex searches_gate_;
  std::array<Search, 3> searches_;  // for any level, level 1, level 2; guarded by searches_gate_
};

class LmdbValueStore : public ValueStore {
 public:
  explicit LmdbValueStore(std::unique_ptr<LmdbEnv> env) : env_(std::move(env)) {}
  Answer put(View name, View value) override {
    const Bytes key(name);
    try {
      env_->write([&](MDB_txn* txn) {
        check_lmdb(put_record(txn, env_->table(), key, {}, value), "mdb_put");
        env_->leave_room(txn);
      });
    } catch (const StoreFull&) {
      return Answer::full;
    }
    return Answer::ok;
  }

  Answer get(View name, Bytes& value) override {
    return env_->read([&](MDB_txn* txn) {
      View content;
      if (!find_record(txn, env_->table(), name, content)) return Answer::not_found;
      value.assign(content);
      return Answer::ok;
    });
  }

  void erase(View name) override {
    env_->write([&](MDB_txn* txn) { erase_record(txn, env_->table(), name); });
  }

  std::size_t sweep(const std::function<bool(View name)>& wanted) override {
    std::vector<Bytes> unwanted;
    env_->read([&](MDB_txn* txn) {
      Cursor cursor(txn, env_->table());
      for (bool there = cursor.first(); there; there = cursor.next()) {
        if (!wanted(cursor.key())) unwanted.emplace_back(cursor.key());
      }
      return 0;
    });
    for (const Bytes& name : unwanted) erase(name);
    return unwanted.size();
  }

  std::vector<std::string> check(const std::function<void()>& progress) override {
    return damages(*env_, [&](MDB_txn* txn) {
      check_table(*env_, txn, progress);
      check_pages(*env_, txn);
    });
  }

  bool lost_by_crash() const override { return env_->folder().lost_by_crash(); }

 private:
  std::unique_ptr<LmdbEnv> env_;
};

}  // namespace

std::unique_ptr<Engine> lmdb_engine(std::unique_ptr<LmdbEnv> env, std::size_t primary_bytes, ClockMs now) {
  return std::make_unique<LmdbEngine>(std::move(env), primary_bytes, std::move(now));
}

std::unique_ptr<ValueStore> lmdb_value_store(std::unique_ptr<LmdbEnv> env) {
  return std::make_unique<LmdbValueStore>(std::move(env));
}

std::int64_t system_clock_ms() {
  constexpr std::int64_t kNsPerMs = 1'000'000;
  return daqwriter::utc_ns() / kNsPerMs;
}

std::string promise_of(Durability durability) {
  return durability == Durability::process
             ? "acknowledged operations survive the death of any process (kill -9); not a crash of the "
               "machine, "
               "which may lose all of the store: it is then marked, and not opened for changes again"
             : "acknowledged operations survive the death of any process and a crash of the machine";
}

}  // namespace hotstore
