// Promise: the requests for which an engine owes an answer. An answer that belongs to none of them is told
// apart from a right one, also when it comes late and its slot is in use again; and it is known how long the
// engine has been silent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/stop_clock.h"
#include "io/io_engine.h"

namespace daqwriter {

class InFlight {
 public:
  explicit InFlight(std::size_t slots) : slots_(slots) {}

  // The slot's next request has it: no two requests have the same.
  std::uint64_t tag(std::size_t slot) const { return slots_[slot].turn << kSlotBits | slot; }
  static std::size_t slot_of(std::uint64_t tag) { return tag & ((std::uint64_t{1} << kSlotBits) - 1); }
  // The engine has taken the slot's next request.
  void taken(std::size_t slot, std::size_t bytes, std::int64_t now_ns);
  // The engine never gave it to the kernel, and is not called any more: nothing is owed.
  void withdraw(std::uint64_t tag);
  // The slot whose request is answered; none if no such request is in flight, or if it was shorter.
  std::optional<std::size_t> settle(const IoCompletion& completion, std::int64_t now_ns);

  unsigned count() const { return count_; }
  std::uint64_t bytes() const { return bytes_; }
  bool holds(std::size_t slot) const { return slots_[slot].taken; }
  bool silent_for(std::int64_t limit_ns, std::int64_t now_ns) {
    return count_ > 0 && silence_.exceeds(limit_ns, now_ns);
  }

 private:
  bool owed(std::uint64_t tag) const;
  void free_slot(std::size_t slot);

  static constexpr unsigned kSlotBits = 16;
  struct Slot {
    std::uint64_t turn = 0;
    std::size_t bytes = 0;
    bool taken = false;
  };

  std::vector<Slot> slots_;
  unsigned count_ = 0;
  std::uint64_t bytes_ = 0;
  Silence silence_;
};

// What is said of requests ("writes", "reads") that were given up; `offset` is the lowest of theirs.
std::string unanswered_text(const std::string& target, const char* requests, const InFlight& owed,
                            std::uint64_t offset, bool interrupted, std::int64_t limit_ns);
// What is said of an answer that belongs to no request.
std::string false_answer_text(const std::string& target, const IoCompletion& completion);

}  // namespace daqwriter
