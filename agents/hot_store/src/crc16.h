// Promise: the hash slot that Redis Cluster gives a key: CRC16 (XMODEM) of what
// stands between the first braces, or of the whole key, modulo 16384.
#pragma once

#include <cstdint>

#include "answer.h"

namespace hotstore {

constexpr unsigned kSlots = 16384;

std::uint16_t crc16(View bytes);
unsigned slot_of(View key);

}  // namespace hotstore
