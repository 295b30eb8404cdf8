// Promise: the transient buffer of one Data Link Handler: fixed slots of one superchunk, one producer thread,
// one consumer thread, no locks. The producer owns the slots [head, tail + slots), the consumer [tail, head).
// Head and tail count superchunks and never wrap (64 bits), so head - tail is the occupancy; slot of n = n %
// slots. In a continuous record the consumer moves the tail; with triggered requests the producer does, which
// overwrites all but what a request holds.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace daqwriter {

// Links that follow on each other.
struct LinkRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t end() const { return first + count; }
};

class LinkRing {
 public:
  // `memory` holds slots * slot_bytes bytes and outlives the ring.
  LinkRing(std::byte* memory, std::uint64_t slots, std::size_t slot_bytes)
      : memory_(memory), slots_(slots), slot_bytes_(slot_bytes) {}

  std::uint64_t slots() const { return slots_; }
  std::size_t slot_bytes() const { return slot_bytes_; }
  std::byte* slot(std::uint64_t ordinal) const { return memory_ + ordinal % slots_ * slot_bytes_; }
  // The slot behind it: a walk over the ring needs no division.
  std::byte* next(std::byte* slot) const {
    std::byte* const behind = slot + slot_bytes_;
    return behind == memory_ + slots_ * slot_bytes_ ? memory_ : behind;
  }

  // -- producer ---------------------------------------------------------------------------------------------

  // Whether superchunk `ordinal` (>= head) has a free slot.
  bool has_room(std::uint64_t ordinal) {
    if (ordinal - seen_tail_ < slots_) return true;
    // Acquire pairs with release() below: the consumer's reads of the freed slots happen before we overwrite
    // them.
    seen_tail_ = tail_.load(std::memory_order_acquire);
    return ordinal - seen_tail_ < slots_;
  }

  // Hands every superchunk below `head` to the consumer.
  void publish(std::uint64_t head) {
    // Release: what was stamped into the slots is visible to whoever acquires this head.
    head_.store(head, std::memory_order_release);
  }

  // With triggered requests, instead of the consumer's release(): everything from `position` on is kept. May
  // go back as far as nothing was overwritten. The caller must have acquired all earlier changes to the
  // slots.
  void keep_from(std::uint64_t position) {
    seen_tail_ = position;
    tail_.store(position, std::memory_order_relaxed);
  }

  // Relaxed: only the producer itself writes head_.
  std::uint64_t head() const { return head_.load(std::memory_order_relaxed); }

  // -- consumer ---------------------------------------------------------------------------------------------

  std::uint64_t taken() const { return taken_; }

  // Superchunks that wait to be taken; looks for new ones when fewer than `wanted` are known.
  std::uint64_t available(std::uint64_t wanted = 1) {
    // Acquire pairs with publish(): the slots below the head read here hold what the producer stamped.
    if (seen_head_ - taken_ < wanted) seen_head_ = head_.load(std::memory_order_acquire);
    return seen_head_ - taken_;
  }

  // Moves on by `count`; the slots stay the consumer's until release().
  void take(std::uint64_t count) { taken_ += count; }

  // Gives the oldest `count` slots that were taken back to the producer.
  void release(std::uint64_t count) {
    // Release: our reads of those slots are done before the producer can see them as free. Relaxed load: only
    // the consumer itself writes tail_.
    tail_.store(tail_.load(std::memory_order_relaxed) + count, std::memory_order_release);
  }

  // -- anyone -----------------------------------------------------------------------------------------------

  // Share of the slots in use. Relaxed loads: a momentary reading that guards no data; the two indices may be
  // read at different moments, so the result is clamped.
  double occupancy() const {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    const std::uint64_t used = head >= tail ? std::min(head - tail, slots_) : 0;
    return static_cast<double>(used) / static_cast<double>(slots_);
  }

 private:
  static constexpr std::size_t kCacheLine = 64;

  std::byte* const memory_;
  const std::uint64_t slots_;
  const std::size_t slot_bytes_;
  // Each index shares its line only with the cached copy of the other index that the same thread keeps: a
  // thread fetches the other's line only when its own cached view says "full" or "empty".
  alignas(kCacheLine) std::atomic<std::uint64_t> head_{0};
  std::uint64_t seen_tail_ = 0;  // producer only
  alignas(kCacheLine) std::atomic<std::uint64_t> tail_{0};
  std::uint64_t seen_head_ = 0;  // consumer only
  std::uint64_t taken_ = 0;      // consumer only
};

}  // namespace daqwriter
