// Promise: block numbers 0 ... count - 1 in an order that looks random and visits each once. Pure.
#pragma once

#include <cstdint>

namespace daqwriter {

class BlockPermutation {
 public:
  BlockPermutation(std::uint64_t count, std::uint64_t seed);
  std::uint64_t operator()(std::uint64_t index) const;  // index < count

 private:
  std::uint64_t count_;
  std::uint64_t seed_;
  int half_bits_;
};

}  // namespace daqwriter
