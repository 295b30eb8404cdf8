#include "format/payload.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace daqwriter {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

}  // namespace

std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t payload_key(std::uint64_t seed, const RecordId& record_id, std::uint64_t run_key) {
  std::array<std::uint64_t, 2> halves{};
  std::memcpy(halves.data(), record_id.data(), record_id.size());
  const std::uint64_t key = scramble(scramble(scramble(seed + kGolden) + halves[0]) + halves[1]);
  return run_key == 0 ? key : scramble(key + run_key);
}

void fill_payload(std::span<std::byte> payload, std::uint64_t key, std::uint32_t link, std::uint64_t slot) {
  std::uint64_t counter = scramble(scramble(key + link + 1) + slot + 1);
  for (std::size_t i = 0; i < payload.size(); i += sizeof(std::uint64_t)) {
    counter += kGolden;
    const std::uint64_t word = scramble(counter);
    std::memcpy(payload.data() + i, &word, std::min(sizeof word, payload.size() - i));
  }
}

}  // namespace daqwriter
