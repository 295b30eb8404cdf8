// Promise: one thread's requests to one target, from the asking until all of each is done or given up. A
// request that is refused or cut short is repeated, for a bounded time; any other error, an engine that stays
// silent and an answer to a request that nobody made end them, with offset and errno. An answer that belongs
// to no request is told apart from a right one, also when it comes late and its slot is in use again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/stop_clock.h"
#include "format/record_format.h"
#include "io/call_watch.h"
#include "io/io_engine.h"

namespace daqwriter {

struct IoError {
  int error_number = 0;
  std::uint64_t offset = 0;
  std::string text;      // names target, offset, errno
  int target_errno = 0;  // what the target answered to a request; 0: the error is not its answer
};

class Requests {
 public:
  struct Rules {
    int fd = -1;
    std::string target;  // for error texts
    IoDirection direction = IoDirection::write;
    std::size_t alignment = kBlockAlignment;             // direct I/O goes on at a multiple of it only
    unsigned depth = 1;                                  // most requests in flight
    std::int64_t retry_ns = 5'000'000'000;               // how long a full kernel queue is borne
    std::int64_t stall_ns = to_ns(kDefaultStallLimitS);  // how long the target may be silent
    const StopClock* stop = nullptr;                     // null: nobody interrupts
    CallWatch* watch = nullptr;                          // of the thread; null: nobody looks
  };
  Requests(Rules rules, std::size_t slots, IoEngine& engine);

  // `pieces` are contiguous on the target from `offset` on, and are changed and kept until it is done; with
  // `enough` bytes it is. Nothing is given to the engine yet.
  void ask(std::size_t slot, std::span<iovec> pieces, std::uint64_t offset, std::size_t enough);
  // Offers what waits to the engine, in order. `reap_follows`: the engine may leave the call to reap().
  void submit(bool reap_follows = false);
  // Whatever the engine has not taken is not asked for any more.
  void drop_waiting() { waiting_.clear(); }
  // Takes the answers that are there, after waiting for so many; `done(slot)` is told of each that is whole.
  template <typename Done>
  void reap(unsigned min_count, std::int64_t timeout_ns, const Done& done) {
    for (const IoCompletion& answer : answers(min_count, timeout_ns)) {
      if (const std::optional<std::size_t> slot = settle(answer)) done(*slot);
    }
    go_on();
  }
  // By another thread, when the one that makes them is held in a call and never does anything again: ends
  // them, and counts as given to the target what it was offered.
  void take_over(bool interrupted);
  // Ends them, unless they have ended: the first error is the cause.
  void end(IoError error) {
    if (!failed()) error_ = std::move(error);
  }

  bool failed() const { return error_.error_number != 0; }
  const IoError& error() const { return error_; }
  bool interrupted() const { return interrupted_; }  // it ended because of that
  bool silent() const { return silent_; }            // ... or because the target owed answers
  // The engine is not called any more: what is in flight then cannot be waited for.
  bool given_up() const { return given_up_; }
  bool idle() const { return count_ == 0 && waiting_.empty(); }
  bool waits() const { return !waiting_.empty(); }  // something has not been taken by the engine
  unsigned in_flight() const { return count_; }
  std::uint64_t in_flight_bytes() const { return bytes_; }
  std::int64_t now_ns() const { return now_ns_; }  // when the last answers were taken
  std::int64_t taken_ns(std::size_t slot) const { return slots_[slot].taken_ns; }  // by the engine, at first

  static constexpr std::size_t slot_of(std::uint64_t tag) {
    return tag & ((std::uint64_t{1} << kSlotBits) - 1);
  }

 private:
  static constexpr unsigned kSlotBits = 16;
  struct Slot {
    std::uint64_t turn = 0;  // of its request: no two have the same tag
    std::span<iovec> pieces;
    std::uint64_t offset = 0;
    std::size_t left = 0;   // until it is done
    std::size_t bytes = 0;  // asked for
    bool taken = false;
    unsigned stalls = 0;  // answers without any progress
    std::int64_t taken_ns = 0;
  };

  void fill(IoRequest& request, std::size_t index) const;
  template <typename Call>
  int watched(const Call& call);
  void take(const IoRequest& request, std::int64_t now_ns);
  std::span<const IoCompletion> answers(unsigned min_count, std::int64_t timeout_ns);
  std::optional<std::size_t> settle(const IoCompletion& answer);
  bool advance(Slot& slot, const IoCompletion& answer);
  void go_on();
  bool owed(std::uint64_t tag) const;
  void free_slot(Slot& slot);
  void bear_refusal(std::uint64_t tag);
  void disown_unsubmitted();
  void look_at_the_clock();
  const char* verb() const { return rules_.direction == IoDirection::read ? "read" : "write"; }
  void fail(int error_number, const Slot& slot, const std::string& what, int target_errno = 0);

  Rules rules_;
  IoEngine& engine_;
  std::vector<Slot> slots_;
  std::vector<IoRequest> waiting_;      // not yet taken by the engine
  std::span<const IoRequest> offered_;  // of them, while it is asked to take them
  std::vector<IoCompletion> completions_;
  unsigned count_ = 0;
  std::uint64_t bytes_ = 0;
  Silence silence_;
  std::int64_t now_ns_;
  std::optional<std::uint64_t> refused_;  // the request that the kernel does not take at present
  std::int64_t refused_since_ns_ = 0;
  bool given_up_ = false;
  bool interrupted_ = false;
  bool silent_ = false;
  IoError error_;
};

}  // namespace daqwriter
