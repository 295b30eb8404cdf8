#include "lmdb_engine.h"

#include <cstring>

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

}  // namespace

std::int64_t system_clock_ms() {
  constexpr std::int64_t kNsPerMs = 1'000'000;
  return daqwriter::utc_ns() / kNsPerMs;
}

LmdbEngine::LmdbEngine(std::unique_ptr<LmdbEnv> env, std::size_t primary_bytes, ClockMs now)
    : env_(std::move(env)), primary_bytes_(primary_bytes), now_(std::move(now)) {}

bool LmdbEngine::find(MDB_txn* txn, View key, View& record) const {
  return find_record(txn, env_->table(), key, record);
}

void LmdbEngine::store(MDB_txn* txn, View key, View head, View value) const {
  check_lmdb(put_record(txn, env_->table(), key, head, value), "mdb_put");
}

void LmdbEngine::erase(MDB_txn* txn, View key) const {
  if (!erase_record(txn, env_->table(), key)) check_lmdb(MDB_NOTFOUND, "mdb_del");
}

Answer LmdbEngine::put(EngineKey key, View head, View value) {
  const Bytes at = data_key(key);
  return change([&](MDB_txn* txn) {
    const int code = put_record(txn, env_->table(), at, head, value, MDB_NOOVERWRITE);
    if (code == MDB_KEYEXIST) return Answer::exists;
    check_lmdb(code, "mdb_put");
    env_->leave_room(txn);
    return Answer::ok;
  });
}

Answer LmdbEngine::get(EngineKey key, char& level, Bytes& rest) {
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

Answer LmdbEngine::update(EngineKey key, View head, View value, Token token, const Bytes* expected,
                          Bytes& before) {
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

Answer LmdbEngine::remove(EngineKey key, Token token, Bytes* before) {
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

Answer LmdbEngine::complete(View primary, Token token, Records& before) {
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

Records LmdbEngine::range(const KeySchema& schema, const Box& box) {
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

Bytes LmdbEngine::remember(const std::string& name, const Bytes& value) {
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

std::vector<std::string> LmdbEngine::check(const std::function<void()>& progress) {
  return damages(*env_, [&](MDB_txn* txn) {
    check_table(*env_, txn, progress);
    check_locks(txn);
    check_pages(*env_, txn);
  });
}

std::string LmdbEngine::description() const {
  return "the LMDB store in " + env_->folder().path().string();
}

std::string LmdbEngine::promise() const {
  return promise_of(env_->durability());
}

std::string promise_of(Durability durability) {
  return durability == Durability::process
             ? "acknowledged operations survive the death of any process (kill -9); not a crash of the "
               "machine, "
               "which may lose all of the store: it is then marked, and not opened for changes again"
             : "acknowledged operations survive the death of any process and a crash of the machine";
}

Answer LmdbValueStore::put(View name, View value) {
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

Answer LmdbValueStore::get(View name, Bytes& value) {
  return env_->read([&](MDB_txn* txn) {
    View content;
    if (!find_record(txn, env_->table(), name, content)) return Answer::not_found;
    value.assign(content);
    return Answer::ok;
  });
}

void LmdbValueStore::erase(View name) {
  env_->write([&](MDB_txn* txn) { erase_record(txn, env_->table(), name); });
}

std::size_t LmdbValueStore::sweep(const std::function<bool(View name)>& wanted) {
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

std::vector<std::string> LmdbValueStore::check(const std::function<void()>& progress) {
  return damages(*env_, [&](MDB_txn* txn) {
    check_table(*env_, txn, progress);
    check_pages(*env_, txn);
  });
}

}  // namespace hotstore
