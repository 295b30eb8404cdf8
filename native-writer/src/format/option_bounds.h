// Promise: one place for the bounds of every numeric option. A value is read as a whole or refused, with the
// option's name, the value and what may be given; so is one that a caller set beyond them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "format/record_format.h"

namespace daqwriter {

template <typename Value>
struct Bounds {
  const char* option;
  Value least;
  Value most;
  const char* unit;  // what the number counts
};

namespace bounds {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 60;  // sums and roundings of sizes still fit 64 bits
constexpr std::uint64_t kTiB = std::uint64_t{1} << 40;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr double kWeekS = 604'800;

// Several commands have these.
constexpr Bounds<std::uint64_t> kBytes{"--bytes", 1, kMostBytes, ""};
constexpr Bounds<std::uint64_t> kBlockSize{"--block-size", 4096, kGiB, ""};
constexpr Bounds<double> kInterval{"--interval", 0.01, 3600, "seconds"};
constexpr Bounds<double> kStallLimit{"--stall-limit", 0.1, 86'400, "seconds"};
constexpr Bounds<std::uint64_t> kSeed{"--seed", 0, UINT64_MAX, ""};
constexpr Bounds<std::uint32_t> kTargets{"--target", 1, 64, "targets"};
constexpr Bounds<std::uint32_t> kStreamDepth{"--io-depth", 1, 256, "writes in flight"};

// minidaq
constexpr Bounds<double> kRecordDuration{"--duration", 1e-3, 86'400, "seconds"};
constexpr Bounds<std::uint32_t> kApplications{"--applications", 1, 64, ""};
constexpr Bounds<std::uint32_t> kLinks{"--links", 1, kMaxLinks, ""};
constexpr Bounds<std::uint32_t> kWriters{"--writers", 1, kMaxLinks, "writers of an application"};
constexpr Bounds<std::uint32_t> kSuperchunkBytes{"--superchunk-bytes", kMinSuperchunkBytes,
                                                 kMaxSuperchunkBytes, "bytes (a 64 B header and payload)"};
constexpr Bounds<double> kSuperchunkRate{"--superchunk-rate", 1e-3, 1e8, "Hz"};
constexpr Bounds<double> kScale{"--scale", 1e-6, 100, "as a factor"};
constexpr Bounds<double> kTriggerRate{"--trigger-rate", 1e-6, 1e6, "Hz"};
constexpr Bounds<std::uint64_t> kRequestSize{"--request-size", 1, kTiB, ""};
constexpr Bounds<std::uint64_t> kRingSize{"--ring-size", 1, kTiB, ""};
constexpr Bounds<std::uint64_t> kMaxBuffer{"--max-buffer", 1, kMostBytes, ""};
constexpr Bounds<double> kSearchResolution{"--search-resolution", 0.001, 0.5, "as a fraction"};

// write
constexpr Bounds<double> kLoadDuration{"--duration", 1e-3, kWeekS, "seconds"};
constexpr Bounds<std::uint32_t> kThreads{"--threads", 1, 64, ""};
constexpr Bounds<std::uint32_t> kLoadDepth{"--io-depth", 1, 1024, "writes in flight"};
constexpr Bounds<std::uint64_t> kSpan{"--span", 1, kMostBytes, ""};

// streams
constexpr Bounds<std::uint64_t> kRate{"--rate", 1, kTiB, ""};
constexpr Bounds<double> kShare{"--shares", 1e-9, 1, "for each stream, with the sum 1"};
constexpr Bounds<double> kEventSpread{"--event-spread", 0, 1, ""};
constexpr Bounds<std::uint64_t> kEventSize{"--event-size", 1, kGiB, ""};
constexpr Bounds<std::uint64_t> kFileSize{"--file-size", 1, kMostBytes, ""};
constexpr Bounds<std::uint64_t> kQueueSize{"--queue-size", 1, kTiB, ""};
constexpr Bounds<std::uint32_t> kChecksumThreads{"--checksum-threads", 1, 256, ""};
constexpr Bounds<std::uint64_t> kSmallestParallel{"--smallest-parallel", 0, kTiB, ""};

// checksum
constexpr Bounds<std::uint64_t> kSizes{"--sizes", 1, kTiB, ""};
constexpr Bounds<std::uint32_t> kBenchThreads{"--threads", 1, 1024, "with the calling thread"};
constexpr Bounds<std::uint32_t> kRepetitions{"--repetitions", 1, 1'000'000, ""};
constexpr Bounds<double> kMeasurement{"--time", 1e-6, 10, "seconds"};
constexpr Bounds<std::uint64_t> kWorkingSet{"--working-set", 1 << 20, kTiB, ""};
constexpr Bounds<std::uint64_t> kSplits{"--splits", 0, 1 << 20, ""};

// verify
constexpr Bounds<std::uint64_t> kOffset{"--offset", 0, kMostBytes, ""};

// Every list of CPUs.
constexpr int kMostCpu = 1 << 20;

}  // namespace bounds

// For double, std::uint32_t and std::uint64_t, which is a size. Throws Refusal unless least <= value <= most.
template <typename Value>
void require_within(const Bounds<Value>& bounds, std::type_identity_t<Value> value);
// The whole text as a number within the bounds; throws Refusal.
template <typename Value>
Value parse_within(const Bounds<Value>& bounds, std::string_view text);

}  // namespace daqwriter
