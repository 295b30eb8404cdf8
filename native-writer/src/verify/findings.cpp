#include "verify/findings.h"

#include <array>

namespace daqwriter {

std::string fault_kind_name(FaultKind kind) {
  static constexpr std::array<const char*, 7> names = {"missing", "duplicated", "out_of_order", "corrupt",
                                                       "torn",    "stale",      "incomplete"};
  return names[static_cast<std::size_t>(kind)];
}

void VerifyCounts::count(FaultKind kind, std::uint64_t concerned) {
  static constexpr std::array<std::uint64_t VerifyCounts::*, 6> kCounters = {
      &VerifyCounts::missing, &VerifyCounts::duplicated, &VerifyCounts::out_of_order,
      &VerifyCounts::corrupt, &VerifyCounts::torn,       &VerifyCounts::stale};
  const auto index = static_cast<std::size_t>(kind);
  // The kind `incomplete` is about the record, not about a superchunk.
  if (index < kCounters.size()) this->*kCounters[index] += concerned;
}

void Findings::add(const Fault& fault, std::uint64_t concerned) {
  counts.count(fault.kind, concerned);
  ++total;
  if (faults.size() < kMaxFaults) faults.push_back(fault);
}

}  // namespace daqwriter
