#include "lmdb_engine.h"

#include <cstring>

#include "clock.h"
#include "lmdb_keys.h"
#include "status.h"

namespace hotstore {
namespace {

Bytes data_key(const EngineKey& key) {
  return kind_key(kDataKind, key.primary, key.rest);
}

void fill(const MDB_val& room, View head, View value) {
  if (!head.empty()) std::memcpy(room.mv_data, head.data(), head.size());
  if (!value.empty()) std::memcpy(static_cast<char*>(room.mv_data) + head.size(), value.data(), value.size());
}

// What a caller may have of a record that goes: all of it but a value.
Bytes outline(View record) {
  return Bytes(record.substr(0, record.starts_with('1') ? 1 : View::npos));
}

}  // namespace

std::int64_t system_clock_ms() {
  constexpr std::int64_t kNsPerMs = 1'000'000;
  return daqwriter::utc_ns() / kNsPerMs;
}

LmdbEngine::LmdbEngine(std::unique_ptr<LmdbEnv> env, std::size_t primary_bytes, ClockMs now)
    : env_(std::move(env)), primary_bytes_(primary_bytes), now_(std::move(now)) {}

bool LmdbEngine::find(MDB_txn* txn, View key, MDB_val& value) const {
  MDB_val wanted = as_val(key);
  const int code = mdb_get(txn, env_->table(), &wanted, &value);
  if (code == MDB_NOTFOUND) return false;
  check_lmdb(code, "mdb_get");
  return true;
}

void LmdbEngine::store(MDB_txn* txn, View key, View head, View value) const {
  MDB_val at = as_val(key), room{head.size() + value.size(), nullptr};
  check_lmdb(mdb_put(txn, env_->table(), &at, &room, MDB_RESERVE), "mdb_put");
  fill(room, head, value);
}

void LmdbEngine::erase(MDB_txn* txn, View key) const {
  MDB_val at = as_val(key);
  check_lmdb(mdb_del(txn, env_->table(), &at, nullptr), "mdb_del");
}

Answer LmdbEngine::put(EngineKey key, View head, View value) {
  const Bytes at = data_key(key);
  return change([&](MDB_txn* txn) {
    MDB_val where = as_val(at), room{head.size() + value.size(), nullptr};
    const int code = mdb_put(txn, env_->table(), &where, &room, MDB_NOOVERWRITE | MDB_RESERVE);
    if (code == MDB_KEYEXIST) return Answer::exists;
    check_lmdb(code, "mdb_put");
    fill(room, head, value);
    env_->leave_room(txn);
    return Answer::ok;
  });
}

Answer LmdbEngine::get(EngineKey key, char& level, Bytes& rest) {
  const Bytes at = data_key(key);
  return env_->read([&](MDB_txn* txn) {
    MDB_val record;
    if (!find(txn, at, record)) return Answer::not_found;
    const View all = as_view(record);
    level = all.front();
    rest.assign(all.substr(1));
    return Answer::ok;
  });
}

Answer LmdbEngine::update(EngineKey key, View head, View value, Token token, const Bytes* expected,
                          Bytes& before) {
  const Bytes at = data_key(key);
  return change([&](MDB_txn* txn) {
    MDB_val record;
    if (!find(txn, at, record)) return Answer::not_found;
    std::optional<Lock> lock;
    const Answer allowed = fence(txn, key.primary, token, lock);
    if (allowed != Answer::ok) return allowed;
    if (expected && as_view(record) != *expected) return Answer::changed;
    before = outline(as_view(record));
    store(txn, at, head, value);
    return Answer::ok;
  });
}

Answer LmdbEngine::remove(EngineKey key, Token token, Bytes* before) {
  const Bytes at = data_key(key);
  return change([&](MDB_txn* txn) {
    std::optional<Lock> lock;
    const Answer allowed = fence(txn, key.primary, token, lock);
    if (allowed != Answer::ok) return allowed;
    if (before) {
      MDB_val record;
      if (!find(txn, at, record)) return Answer::not_found;
      *before = outline(as_view(record));
    }
    MDB_val where = as_val(at);
    const int code = mdb_del(txn, env_->table(), &where, nullptr);
    if (code == MDB_NOTFOUND) return Answer::not_found;
    check_lmdb(code, "mdb_del");
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
      before.emplace_back(cursor.key().substr(1), outline(cursor.value()));
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
      // Inside the box from key to key; outside of it a seek leaps over what is
      // not wanted.
      while (there && cursor.key().front() == kDataKind) {
        const View encoded = cursor.key().substr(1);
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
  Bytes kept;
  env_->write([&](MDB_txn* txn) {
    MDB_val there;
    if (find(txn, at, there)) {
      kept = Bytes(as_view(there));
    } else {
      store(txn, at, {}, value);
      kept = value;
    }
  });
  return kept;
}

std::string LmdbEngine::description() const {
  return "the LMDB store in " + env_->directory().string();
}

std::string LmdbEngine::promise() const {
  return env_->durability() == Durability::process
             ? "acknowledged operations survive the death of any process (kill "
               "-9); not a crash of the machine"
             : "acknowledged operations survive the death of any process and a "
               "crash of the machine";
}

Answer LmdbValueStore::put(View name, View value) {
  const Bytes key(name);
  try {
    env_->write([&](MDB_txn* txn) {
      MDB_val at = as_val(key), content = as_val(value);
      check_lmdb(mdb_put(txn, env_->table(), &at, &content, 0), "mdb_put");
      env_->leave_room(txn);
    });
  } catch (const StoreFull&) {
    return Answer::full;
  }
  return Answer::ok;
}

Answer LmdbValueStore::get(View name, Bytes& value) {
  return env_->read([&](MDB_txn* txn) {
    MDB_val at = as_val(name), content;
    const int code = mdb_get(txn, env_->table(), &at, &content);
    if (code == MDB_NOTFOUND) return Answer::not_found;
    check_lmdb(code, "mdb_get");
    value.assign(as_view(content));
    return Answer::ok;
  });
}

void LmdbValueStore::erase(View name) {
  env_->write([&](MDB_txn* txn) {
    MDB_val at = as_val(name);
    const int code = mdb_del(txn, env_->table(), &at, nullptr);
    if (code != MDB_NOTFOUND) check_lmdb(code, "mdb_del");
  });
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

}  // namespace hotstore
