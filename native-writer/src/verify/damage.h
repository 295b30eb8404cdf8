// Promise: says where a superchunk differs from what must be there, and how: torn (whole 512 B sectors hold
// other bytes while the rest is good, as when a block was written only in part or an older one shows through)
// or corrupt (bytes differ inside sectors, or nothing is good). Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace daqwriter {

struct Damage {
  bool torn = false;
  std::uint64_t first_offset = 0;  // of the first wrong byte in the target
  std::uint64_t end_offset = 0;    // behind the last wrong byte; equal to first_offset: no difference
  bool all_zero = true;            // the wrong range holds zeros only

  // "wrong bytes in [a, b), all zero"
  std::string text() const {
    return "wrong bytes in [" + std::to_string(first_offset) + ", " + std::to_string(end_offset) + ")" +
           (all_zero ? ", all zero" : "");
  }
};

// `offset`: where `actual` lies in the target.
inline Damage compare_superchunk(std::span<const std::byte> actual, std::span<const std::byte> expected,
                                 std::uint64_t offset) {
  constexpr std::size_t kSectorBytes = 512;
  // Other random content differs in 255 of 256 bytes, zeros in most bytes of a header; flipped bits in very
  // few.
  constexpr std::size_t kReplacedShare = 4;   // one byte in four
  constexpr std::size_t kTooFewToJudge = 16;  // bytes of a sector that belong to this superchunk
  Damage damage{false, offset, offset, true};
  bool any_clean = false;
  bool any_replaced = false;
  bool any_scarred = false;
  for (std::size_t begin = 0; begin < actual.size();) {
    const std::size_t to_edge = kSectorBytes - static_cast<std::size_t>((offset + begin) % kSectorBytes);
    const std::size_t end = std::min(actual.size(), begin + to_edge);
    std::size_t differing = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (actual[i] == expected[i]) continue;
      if (damage.end_offset == damage.first_offset) damage.first_offset = offset + i;
      damage.end_offset = offset + i + 1;
      damage.all_zero = damage.all_zero && actual[i] == std::byte{0};
      ++differing;
    }
    const bool replaced = differing * kReplacedShare >= end - begin;
    if (differing == 0) {
      any_clean = true;
    } else if (end - begin >= kTooFewToJudge) {
      (replaced ? any_replaced : any_scarred) = true;
    }
    begin = end;
  }
  damage.torn = any_replaced && any_clean && !any_scarred;
  return damage;
}

}  // namespace daqwriter
