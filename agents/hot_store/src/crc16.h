// Promise: the hash slot that Redis Cluster gives a key: CRC16 (XMODEM) of what
// stands between the first braces, or of the whole key, modulo 16384.
#pragma once

#include <array>
#include <cstdint>

#include "answer.h"

namespace hotstore {

constexpr unsigned kSlots = 16384;

constexpr std::array<std::uint16_t, 256> make_crc16_table() {
  constexpr std::uint16_t kPolynomial = 0x1021;
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 0x8000 ? crc << 1 ^ kPolynomial : crc << 1;
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}

inline std::uint16_t crc16(View bytes) {
  static constexpr auto kTable = make_crc16_table();
  unsigned crc = 0;
  for (const char byte : bytes)
    crc = (crc << 8 ^ kTable[(crc >> 8 ^ static_cast<unsigned char>(byte)) & 0xff]) & 0xffff;
  return static_cast<std::uint16_t>(crc);
}

inline unsigned slot_of(View key) {
  const std::size_t open = key.find('{');
  if (open != View::npos) {
    const std::size_t close = key.find('}', open + 1);
    if (close != View::npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
  }
  return crc16(key) % kSlots;
}

}  // namespace hotstore
