// Promise: a key of named sub-keys as bytes whose order is that of the
// sub-keys, the primary key first: all keys of an event stand together. Every
// sub-key takes whole bytes, most significant first.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "answer.h"

namespace hotstore {

constexpr std::size_t kMostSubKeys = 8;

// The values of the sub-keys in the order of the schema's text; those beyond
// its number are 0.
struct Key {
  std::array<std::uint64_t, kMostSubKeys> values{};

  Key() = default;
  Key(std::initializer_list<std::uint64_t> given);
  std::uint64_t& operator[](std::size_t index) { return values[index]; }
  std::uint64_t operator[](std::size_t index) const { return values[index]; }
  bool operator==(const Key&) const = default;
};

// Lower and upper bound of each sub-key, both included.
struct Box {
  Key lower;
  Key upper;
};

struct SubKey {
  std::string name;
  unsigned bits = 0;

  unsigned bytes() const { return (bits + 7) / 8; }
  std::uint64_t highest() const { return bits == 64 ? ~0ull : (1ull << bits) - 1; }
};

class KeySchema {
 public:
  // "event:64,detector:16,run:16" and the name of the primary key. Throws
  // Refusal, which names the fault.
  static KeySchema parse(const std::string& text, const std::string& primary);

  // Throws Refusal for a value that has more bits than its sub-key.
  Bytes encode(const Key& key) const;
  Key decode(View encoded) const;
  Bytes encode_primary(std::uint64_t value) const;
  std::uint64_t decode_primary(View encoded) const;
  std::size_t primary_bytes() const { return sub_keys_[order_.front()].bytes(); }
  std::size_t encoded_bytes() const { return encoded_bytes_; }

  const std::vector<SubKey>& sub_keys() const { return sub_keys_; }
  std::size_t primary() const { return order_.front(); }
  Box everything() const;
  bool contains(const Box& box, const Key& key) const;
  // The first key in encoded order that is in the box and not before `key`;
  // none: the box ends before it.
  std::optional<Key> next_in(const Box& box, Key key) const;

  std::string text() const;  // what parse() accepts, and the primary key's name:
                             // the store's metadata

 private:
  std::vector<SubKey> sub_keys_;
  std::vector<std::size_t> order_;  // of encoding: the primary key, then the
                                    // others under their given names
  std::size_t encoded_bytes_ = 0;
};

}  // namespace hotstore
