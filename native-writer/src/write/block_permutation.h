// Promise: block numbers 0 ... count - 1 in an order that looks random and visits each once. Pure.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "format/payload.h"

namespace daqwriter {

class BlockPermutation {
 public:
  BlockPermutation(std::uint64_t count, std::uint64_t seed) : count_(count), seed_(seed) {
    half_bits_ = static_cast<int>(std::bit_width(std::max<std::uint64_t>(count, 2) - 1) + 1) / 2;
  }

  // A four-round Feistel network over 2^(2 x half_bits) numbers, walked on until the result is below count.
  std::uint64_t operator()(std::uint64_t index) const {  // index < count
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    do {
      std::uint64_t left = index >> half_bits_;
      std::uint64_t right = index & mask;
      for (std::uint64_t round = 1; round <= 4; ++round) {
        const std::uint64_t next = left ^ (scramble(right + (seed_ << 3) + round) & mask);
        left = right;
        right = next;
      }
      index = left << half_bits_ | right;
    } while (index >= count_);
    return index;
  }

 private:
  std::uint64_t count_;
  std::uint64_t seed_;
  int half_bits_;
};

}  // namespace daqwriter
