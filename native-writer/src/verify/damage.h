// Promise: says where a superchunk differs from what must be there, and how: torn (whole 512 B sectors hold
// other bytes while the rest is good, as when a block was written only in part or an older one shows through)
// or corrupt (bytes differ inside sectors, or nothing is good). Pure.
#pragma once

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
  std::string text() const;        // "wrong bytes in [a, b), all zero"
};

// `offset`: where `actual` lies in the target.
Damage compare_superchunk(std::span<const std::byte> actual, std::span<const std::byte> expected,
                          std::uint64_t offset);

}  // namespace daqwriter
