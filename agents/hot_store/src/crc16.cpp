#include "crc16.h"

#include <array>

namespace hotstore {
namespace {

constexpr std::array<std::uint16_t, 256> make_table() {
  constexpr std::uint16_t kPolynomial = 0x1021;
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 0x8000 ? crc << 1 ^ kPolynomial : crc << 1;
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}

constexpr auto kTable = make_table();

}  // namespace

std::uint16_t crc16(View bytes) {
  unsigned crc = 0;
  for (const char byte : bytes)
    crc = (crc << 8 ^ kTable[(crc >> 8 ^ static_cast<unsigned char>(byte)) & 0xff]) & 0xffff;
  return static_cast<std::uint16_t>(crc);
}

unsigned slot_of(View key) {
  const std::size_t open = key.find('{');
  if (open != View::npos) {
    const std::size_t close = key.find('}', open + 1);
    if (close != View::npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
  }
  return crc16(key) % kSlots;
}

}  // namespace hotstore
