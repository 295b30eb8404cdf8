// Promise: how the embedded store's one table is laid out, in one place: its
// keys, and its records, each with a checksum of its key and its content behind
// it; and a cursor that closes itself and goes forward only.
#pragma once

#include <libdeflate.h>
#include <lmdb.h>

#include <array>
#include <cstdint>
#include <cstring>
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

inline std::string hexadecimal(View bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

// A record belongs to its key: one that stands at another key is damage too.
constexpr std::size_t kSumBytes = sizeof(std::uint32_t);

inline std::uint32_t record_sum(View key, View head, View value) {
  std::uint32_t sum = libdeflate_crc32(0, key.data(), key.size());
  if (!head.empty()) sum = libdeflate_crc32(sum, head.data(), head.size());
  if (!value.empty()) sum = libdeflate_crc32(sum, value.data(), value.size());
  return sum;
}

inline int put_record(MDB_txn* txn, MDB_dbi table, View key, View head, View value, unsigned flags = 0) {
  MDB_val at = as_val(key), room{head.size() + value.size() + kSumBytes, nullptr};
  const int code = mdb_put(txn, table, &at, &room, flags | MDB_RESERVE);
  if (code != 0) return code;
  char* to = static_cast<char*>(room.mv_data);
  const std::uint32_t sum = record_sum(key, head, value);
  if (!head.empty()) std::memcpy(to, head.data(), head.size());
  if (!value.empty()) std::memcpy(to + head.size(), value.data(), value.size());
  std::memcpy(to + head.size() + value.size(), &sum, kSumBytes);
  return 0;
}

// Takes the record, unchanged, out of the table's content at `key`. Throws Damage.
inline View record_of(View key, View stored) {
  const std::size_t bytes = stored.size() < kSumBytes ? 0 : stored.size() - kSumBytes;
  const View record = stored.substr(0, bytes);
  std::uint32_t sum = 0;
  if (stored.size() >= kSumBytes) std::memcpy(&sum, stored.data() + bytes, kSumBytes);
  if (stored.size() < kSumBytes || sum != record_sum(key, record, {}))
    throw Damage("the record at key " + hexadecimal(key) + " does not have its checksum");
  return record;
}

// Whether there is a record at `key`.
inline bool find_record(MDB_txn* txn, MDB_dbi table, View key, View& record) {
  MDB_val wanted = as_val(key), found;
  const int code = mdb_get(txn, table, &wanted, &found);
  if (code == MDB_NOTFOUND) return false;
  check_lmdb(code, "mdb_get");
  record = record_of(key, as_view(found));
  return true;
}

// Whether there was one.
inline bool erase_record(MDB_txn* txn, MDB_dbi table, View key) {
  MDB_val at = as_val(key);
  const int code = mdb_del(txn, table, &at, nullptr);
  if (code != MDB_NOTFOUND) check_lmdb(code, "mdb_del");
  return code != MDB_NOTFOUND;
}

class Cursor {
 public:
  enum class Order { of_bytes, of_the_table };

  Cursor(MDB_txn* txn, MDB_dbi table, Order order = Order::of_bytes) : order_(order) {
    check_lmdb(mdb_cursor_open(txn, table, &cursor_), "mdb_cursor_open");
  }
  ~Cursor() { mdb_cursor_close(cursor_); }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  // To the first key that is not before `from`.
  bool seek(View from) {
    key_ = as_val(from);
    if (!at(mdb_cursor_get(cursor_, &key_, &value_, MDB_SET_RANGE))) return false;
    if (key() < from) throw_order();
    return true;
  }
  bool first() { return at(mdb_cursor_get(cursor_, &key_, &value_, MDB_FIRST)); }
  bool next() {
    const View before = key();
    if (!at(mdb_cursor_get(cursor_, &key_, &value_, MDB_NEXT))) return false;
    if (order_ == Order::of_bytes && key() <= before) throw_order();
    return true;
  }
  void erase() { check_lmdb(mdb_cursor_del(cursor_, 0), "mdb_cursor_del"); }
  View key() const { return as_view(key_); }
  View stored() const { return as_view(value_); }
  View value() const { return record_of(key(), as_view(value_)); }
  // Does not look at the rest of the record.
  char level() const {
    if (value_.mv_size == 0) throw Damage("the record at key " + hexadecimal(key()) + " is empty");
    return as_view(value_).front();
  }

 private:
  bool at(int code) const {
    if (code == MDB_NOTFOUND) return false;
    check_lmdb(code, "mdb_cursor_get");
    if (key_.mv_size == 0) throw Damage("a key is empty");
    return true;
  }
  // Going on from a key that is out of order would never end.
  [[noreturn]] void throw_order() const { throw Damage("key " + hexadecimal(key()) + " is out of order"); }

  Order order_;
  MDB_cursor* cursor_ = nullptr;
  MDB_val key_{};
  MDB_val value_{};
};

}  // namespace hotstore
