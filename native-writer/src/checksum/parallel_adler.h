// Promise: drop-in replacements of zlib's adler32(), bit-identical to it for every input: the ways of using
// more cores for one serial stream that the ATLAS storage group compared, the original beside them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace daqwriter {

enum class AdlerVariant {
  off,               // no checksum at all: what the rest of an application could do
  zlib,              // zlib in the calling thread: the original
  thread_per_chunk,  // (i) a thread is created for each chunk and joined
  pool_cv,           // (ii) standing threads, condition variables both ways
  pool_busy,         // (iii) standing threads woken by condition variable, the master busy-waits
  fused              // vectorised, in the calling thread, in one go with the copy
};
inline constexpr std::array<std::string_view, 6> kAdlerVariantNames = {
    "off", "zlib", "thread-per-chunk", "pool-cv", "pool-busy", "fused"};

AdlerVariant parse_adler_variant(std::string_view name);  // throws Refusal
std::string adler_variant_name(AdlerVariant variant);
bool uses_threads(AdlerVariant variant);

inline constexpr unsigned kMostAdlerThreads = 256;  // of an engine

// Used by one thread at a time: the master of the engine's own threads. Calls never throw.
class AdlerEngine {
 public:
  virtual ~AdlerEngine() = default;
  std::uint32_t update(std::uint32_t running, std::span<const std::byte> data) {
    return run(running, nullptr, data);
  }
  // Copies as stream_copy() does; call publish_streamed() before handing the destination to anybody else.
  std::uint32_t update_and_copy(std::uint32_t running, std::byte* destination,
                                std::span<const std::byte> source) {
    return run(running, destination, source);
  }

 private:
  virtual std::uint32_t run(std::uint32_t running, std::byte* destination,
                            std::span<const std::byte> source) = 0;
};

// Below it two threads were slower than one (README): waking the other costs more than its half saves.
std::size_t default_smallest_parallel_bytes(AdlerVariant variant);

// `threads` counts the master; with 1 it computes alone, as it does below `smallest_parallel_bytes` (not
// given: the default above). Slaves are pinned to `slave_cpus` in turn, which should not name the master's;
// empty: they inherit the caller's CPUs, which is wrong for a caller that is pinned. Throws Refusal for 0
// threads, Failure when the system grants no more threads or not these CPUs.
std::unique_ptr<AdlerEngine> make_adler_engine(
    AdlerVariant variant, unsigned threads, std::optional<std::size_t> smallest_parallel_bytes = std::nullopt,
    const std::vector<int>& slave_cpus = {});

}  // namespace daqwriter
