// Promise: how the embedded store's one table is laid out, in one place, and a
// cursor that closes itself.
#pragma once

#include <lmdb.h>

#include <cstdint>
#include <limits>

#include "lmdb_env.h"

namespace hotstore {

constexpr char kDataKind = 'd';
constexpr char kLockKind = 'l';
constexpr char kMetaKind = 'm';
constexpr char kDueKind = 'x';
constexpr std::int64_t kNoDeadline = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kNumberBytes = 8;

inline Bytes kind_key(char kind, View first, View second = {}) {
  Bytes key;
  key.reserve(1 + first.size() + second.size());
  key.push_back(kind);
  key.append(first).append(second);
  return key;
}

// Most significant byte first, so that it sorts.
inline Bytes number_bytes(std::uint64_t number) {
  Bytes bytes(kNumberBytes, '\0');
  for (std::size_t i = 0; i < kNumberBytes; ++i)
    bytes[i] = static_cast<char>(number >> (8 * (kNumberBytes - 1 - i)));
  return bytes;
}

inline std::uint64_t number_of(View bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < kNumberBytes && i < bytes.size(); ++i)
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

inline Bytes due_key(std::int64_t deadline_ms, View primary) {
  return kind_key(kDueKind, number_bytes(static_cast<std::uint64_t>(deadline_ms)), primary);
}

// The smallest key that is greater than every key that starts with `prefix`;
// empty: there is none.
inline Bytes after_all_of(Bytes prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff) prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

class Cursor {
 public:
  Cursor(MDB_txn* txn, MDB_dbi table) {
    check_lmdb(mdb_cursor_open(txn, table, &cursor_), "mdb_cursor_open");
  }
  ~Cursor() { mdb_cursor_close(cursor_); }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  // To the first key that is not before `from`.
  bool seek(View from) {
    key_ = as_val(from);
    return at(mdb_cursor_get(cursor_, &key_, &value_, MDB_SET_RANGE));
  }
  bool first() { return at(mdb_cursor_get(cursor_, &key_, &value_, MDB_FIRST)); }
  bool next() { return at(mdb_cursor_get(cursor_, &key_, &value_, MDB_NEXT)); }
  void erase() { check_lmdb(mdb_cursor_del(cursor_, 0), "mdb_cursor_del"); }
  View key() const { return as_view(key_); }
  View value() const { return as_view(value_); }

 private:
  static bool at(int code) {
    if (code == MDB_NOTFOUND) return false;
    check_lmdb(code, "mdb_cursor_get");
    return true;
  }

  MDB_cursor* cursor_ = nullptr;
  MDB_val key_{};
  MDB_val value_{};
};

}  // namespace hotstore
