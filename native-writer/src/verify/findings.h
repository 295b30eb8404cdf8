// Promise: what a read-back finds is told and counted in one way, whether it is of superchunks or of events.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace daqwriter {

enum class FaultKind { missing, duplicated, out_of_order, corrupt, torn, stale, incomplete };
inline std::string fault_kind_name(FaultKind kind) {
  static constexpr std::array names = {"missing", "duplicated", "out_of_order", "corrupt",
                                       "torn",    "stale",      "incomplete"};
  return names[static_cast<std::size_t>(kind)];
}

struct Fault {
  FaultKind kind = FaultKind::corrupt;
  std::uint64_t offset_bytes = 0;       // in the target, or in the file
  std::optional<std::uint32_t> origin;  // link of a superchunk, stream of an event
  std::optional<std::uint64_t> number;  // its sequence, or serial
  std::string detail;
  std::string file{};  // of a run's directory; empty: the target is one
};

// Counts superchunks or events: expected = present + missing + corrupt + torn + stale.
struct VerifyCounts {
  std::uint64_t expected = 0;
  std::uint64_t present = 0;
  std::uint64_t missing = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t out_of_order = 0;
  std::uint64_t corrupt = 0;
  std::uint64_t torn = 0;
  std::uint64_t stale = 0;
  std::uint64_t faults() const { return missing + duplicated + out_of_order + corrupt + torn + stale; }
  void count(FaultKind kind, std::uint64_t concerned) {
    constexpr std::array kCounters = {&VerifyCounts::missing,      &VerifyCounts::duplicated,
                                      &VerifyCounts::out_of_order, &VerifyCounts::corrupt,
                                      &VerifyCounts::torn,         &VerifyCounts::stale};
    const auto index = static_cast<std::size_t>(kind);
    // The kind `incomplete` is about the record, not about a superchunk.
    if (index < kCounters.size()) this->*kCounters[index] += concerned;
  }
  void sum_up() { expected = present + missing + corrupt + torn + stale; }
};

struct Findings {
  static constexpr std::size_t kMaxFaults = 100;  // kept in detail; all are counted

  VerifyCounts counts;
  std::uint64_t total = 0;    // faults, those of no superchunk or event included
  std::vector<Fault> faults;  // the first ones

  // `concerned`: so many superchunks or events have it.
  void add(const Fault& fault, std::uint64_t concerned = 1) {
    counts.count(fault.kind, concerned);
    ++total;
    if (faults.size() < kMaxFaults) faults.push_back(fault);
  }
};

}  // namespace daqwriter
