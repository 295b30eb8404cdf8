#include "io/in_flight.h"

#include "base/clock.h"
#include "base/units.h"

namespace daqwriter {

void InFlight::taken(std::size_t index, std::size_t bytes, std::int64_t now_ns) {
  Slot& slot = slots_[index];
  slot.taken = true;
  slot.bytes = bytes;
  bytes_ += bytes;
  if (count_++ == 0) silence_.end(now_ns);
}

std::optional<std::size_t> InFlight::settle(const IoCompletion& completion, std::int64_t now_ns) {
  const std::size_t index = slot_of(completion.tag);
  if (!owed(completion.tag)) return std::nullopt;
  if (completion.result > static_cast<std::int64_t>(slots_[index].bytes)) return std::nullopt;
  free_slot(index);
  silence_.end(now_ns);
  return index;
}

void InFlight::withdraw(std::uint64_t tag) {
  if (owed(tag)) free_slot(slot_of(tag));
}

bool InFlight::owed(std::uint64_t request) const {
  const std::size_t index = slot_of(request);
  return index < slots_.size() && slots_[index].taken && tag(index) == request;
}

void InFlight::free_slot(std::size_t index) {
  Slot& slot = slots_[index];
  slot.taken = false;
  ++slot.turn;
  bytes_ -= slot.bytes;
  --count_;
}

std::string unanswered_text(const std::string& target, const char* requests, const InFlight& owed,
                            std::uint64_t offset, bool interrupted, std::int64_t limit_ns) {
  const std::string what = target + ": " + std::to_string(owed.count()) + " " + requests + " of " +
                           std::to_string(owed.bytes()) + " B together, the first at offset " +
                           std::to_string(offset) + ", ";
  if (interrupted) return what + "were not answered in the time that an interruption leaves";
  return what + "have had no answer for " + format_number(seconds(limit_ns)) +
         " s; look at the drive and the kernel's log, or raise --stall-limit";
}

std::string false_answer_text(const std::string& target, const IoCompletion& completion) {
  return target + ": the system answered " + std::to_string(completion.result) +
         " to a request that is not in flight or is shorter (tag " + std::to_string(completion.tag) +
         "); what is stored cannot be told: verify it, and do not use this kernel or drive";
}

}  // namespace daqwriter
