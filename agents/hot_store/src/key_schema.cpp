#include "key_schema.h"

#include <algorithm>
#include <sstream>

#include "base/status.h"
#include "base/units.h"

namespace hotstore {
namespace {

using daqwriter::Refusal;

constexpr unsigned kMostBits = 64;

void append(Bytes& bytes, std::uint64_t value, const SubKey& sub_key) {
  if (value > sub_key.highest())
    throw Refusal("sub-key " + sub_key.name + ": " + std::to_string(value) + " does not fit its " +
                  std::to_string(sub_key.bits) + " bits");
  for (unsigned left = sub_key.bytes(); left > 0; --left)
    bytes.push_back(static_cast<char>(value >> (8 * (left - 1))));
}

std::uint64_t take(View& bytes, const SubKey& sub_key) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < sub_key.bytes(); ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  bytes.remove_prefix(sub_key.bytes());
  return value;
}

SubKey parse_sub_key(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const bool well_named = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_';
  });
  const std::string number = colon == std::string::npos ? "" : text.substr(colon + 1);
  const unsigned bits = daqwriter::parse_number<unsigned>(number).value_or(0);
  if (!well_named || bits == 0 || bits > kMostBits)
    throw Refusal("--key '" + text +
                  "': write NAME:BITS with letters, digits and _ and 1 to 64 "
                  "bits, as in event:64");
  return {name, bits};
}

}  // namespace

Key::Key(std::initializer_list<std::uint64_t> given) {
  if (given.size() > kMostSubKeys)
    throw Refusal("a key has at most " + std::to_string(kMostSubKeys) + " sub-keys");
  std::copy(given.begin(), given.end(), values.begin());
}

KeySchema KeySchema::parse(const std::string& text, const std::string& primary) {
  KeySchema schema;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    SubKey made = parse_sub_key(part);
    for (const SubKey& other : schema.sub_keys_) {
      if (other.name == made.name) throw Refusal("--key: sub-key " + made.name + " is there twice");
    }
    schema.sub_keys_.push_back(std::move(made));
  }
  if (schema.sub_keys_.empty() || schema.sub_keys_.size() > kMostSubKeys)
    throw Refusal("--key '" + text + "': name 1 to " + std::to_string(kMostSubKeys) + " sub-keys");
  for (std::size_t i = 0; i < schema.sub_keys_.size(); ++i) {
    if (schema.sub_keys_[i].name == primary) schema.order_.push_back(i);
    schema.encoded_bytes_ += schema.sub_keys_[i].bytes();
  }
  if (schema.order_.empty()) throw Refusal("--primary " + primary + ": --key names no such sub-key");
  for (std::size_t i = 0; i < schema.sub_keys_.size(); ++i) {
    if (i != schema.order_.front()) schema.order_.push_back(i);
  }
  return schema;
}

Bytes KeySchema::encode(const Key& key) const {
  Bytes bytes;
  bytes.reserve(encoded_bytes_);
  for (const std::size_t index : order_) append(bytes, key[index], sub_keys_[index]);
  return bytes;
}

Key KeySchema::decode(View encoded) const {
  if (encoded.size() != encoded_bytes_)
    throw daqwriter::Failure("the store holds a key of " + std::to_string(encoded.size()) +
                             " bytes instead of " + std::to_string(encoded_bytes_));
  Key key;
  for (const std::size_t index : order_) key[index] = take(encoded, sub_keys_[index]);
  return key;
}

Bytes KeySchema::encode_primary(std::uint64_t value) const {
  Bytes bytes;
  append(bytes, value, sub_keys_[primary()]);
  return bytes;
}

std::uint64_t KeySchema::decode_primary(View encoded) const {
  return take(encoded, sub_keys_[primary()]);
}

Box KeySchema::everything() const {
  Box box;
  for (std::size_t i = 0; i < sub_keys_.size(); ++i) box.upper[i] = sub_keys_[i].highest();
  return box;
}

bool KeySchema::contains(const Box& box, const Key& key) const {
  return std::all_of(order_.begin(), order_.end(), [&](std::size_t index) {
    return box.lower[index] <= key[index] && key[index] <= box.upper[index];
  });
}

std::optional<Key> KeySchema::next_in(const Box& box, Key key) const {
  for (const std::size_t index : order_) {
    if (box.lower[index] > box.upper[index]) return std::nullopt;
  }
  const auto lower_from = [&](std::size_t position) {
    for (; position < order_.size(); ++position) key[order_[position]] = box.lower[order_[position]];
  };
  for (std::size_t position = 0; position < order_.size(); ++position) {
    const std::size_t index = order_[position];
    if (key[index] < box.lower[index]) {
      lower_from(position);
      return key;
    }
    if (key[index] <= box.upper[index]) continue;
    // Past the box here: the last earlier sub-key that still can has to count
    // up.
    while (position > 0) {
      const std::size_t before = order_[--position];
      if (key[before] < box.upper[before]) {
        ++key[before];
        lower_from(position + 1);
        return key;
      }
    }
    return std::nullopt;
  }
  return key;
}

std::string KeySchema::text() const {
  std::string text;
  for (const SubKey& sub_key : sub_keys_)
    text += (text.empty() ? "" : ",") + sub_key.name + ":" + std::to_string(sub_key.bits);
  return text + " primary " + sub_keys_[primary()].name;
}

}  // namespace hotstore
