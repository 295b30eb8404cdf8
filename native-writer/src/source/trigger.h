// Promise: the Trigger Decision Emulator and the Request Generator. A decision asks every link for the same
// number of superchunks: those up to the decision's own time that no earlier decision took. While a request
// is outstanding its windows are kept from being overwritten; what is asked for is therefore never lost. When
// requests hold too much of the rings ("Dataflow is BUSY") decisions are vetoed and counted: the extraction
// rate goes down, the record stays whole.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/pacing.h"
#include "format/record_format.h"
#include "source/link_ring.h"

namespace daqwriter {

// One trigger decision as the links see it.
struct DataRequest {
  std::int64_t intended_ns = 0;      // of the decision, after the record's start
  std::vector<std::uint64_t> first;  // position of each link's first superchunk
};

// From the emulator's thread to the writer's and back, without locks.
class RequestQueue {
 public:
  static constexpr std::size_t kCapacity = 1024;
  explicit RequestQueue(std::size_t links) : slots_(kCapacity) {
    for (DataRequest& slot : slots_) slot.first.resize(links);
  }

  // -- emulator ---------------------------------------------------------------------------------------------

  // Acquire pairs with finish(): the writer's reads of the windows happened before they are overwritten.
  void collect() { finished_ = done_.load(std::memory_order_acquire); }
  std::uint64_t outstanding() const { return made_ - finished_; }
  bool full() const { return outstanding() == kCapacity; }
  const DataRequest& oldest() const { return slots_[finished_ % kCapacity]; }
  DataRequest& next() { return slots_[made_ % kCapacity]; }
  void publish() {
    // Release: the request and the superchunks that it names are visible to who sees it.
    published_.store(++made_, std::memory_order_release);
  }

  // -- writer -----------------------------------------------------------------------------------------------

  // The next request, or nothing. Acquire pairs with publish().
  const DataRequest* take() {
    if (taken_ == published_.load(std::memory_order_acquire)) return nullptr;
    return &slots_[taken_++ % kCapacity];
  }
  // The oldest request's windows are not needed any more. Relaxed load: only the writer writes done_.
  void finish() { done_.store(done_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

 private:
  std::vector<DataRequest> slots_;
  std::uint64_t made_ = 0;      // emulator only
  std::uint64_t finished_ = 0;  // emulator only
  alignas(64) std::atomic<std::uint64_t> published_{0};
  alignas(64) std::atomic<std::uint64_t> done_{0};
  std::uint64_t taken_ = 0;  // writer only
};

struct TriggerConfig {
  std::uint64_t window = 0;  // superchunks that a request takes from each link; 0: a continuous record
  std::uint64_t unit = 1;    // a window begins at a multiple of it (zero-copy: an aligned chunk)
  double rate_hz = 0;        // 0: as fast as requests are served, window after window
};

// Runs in the emulator's thread, which also fills the rings.
class TriggerEmulator {
 public:
  TriggerEmulator(const TriggerConfig& config, const ArrivalSchedule& schedule,
                  std::vector<std::unique_ptr<LinkRing>>& rings)
      : config_(config),
        schedule_(schedule),
        rings_(rings),
        queue_(rings.size()),
        not_before_(rings.size(), 0) {}

  // Lets what has been served be overwritten.
  void release_served() {
    queue_.collect();
    hold_windows();
  }

  // Lets go of what has been served, then makes the decisions that are due by t_ns. `busy`: veto them.
  void tick(std::int64_t t_ns, bool busy) {
    queue_.collect();
    if (config_.rate_hz > 0) {
      const double period_ns = 1e9 / config_.rate_hz;
      for (;; ++next_) {
        const auto intended = static_cast<std::int64_t>(static_cast<double>(next_) * period_ns);
        if (intended > t_ns) break;
        if (busy || queue_.full()) {
          ++vetoed_;
        } else if (!decide(intended)) {
          break;  // its data is still arriving
        }
      }
    } else {
      while (!queue_.full() && decide(t_ns)) {
      }
    }
    hold_windows();
  }

  // A superchunk that the link emitted found no room: no window may reach over it.
  void missed(std::uint32_t link, std::uint64_t position) { not_before_[link] = position + 1; }
  // Whether a further window would leave the rings at most three quarters full.
  bool wants_more() const {
    for (const auto& ring : rings_) {
      const auto held = static_cast<std::uint64_t>(ring->occupancy() * static_cast<double>(ring->slots()));
      if (held + config_.window > ring->slots() * 3 / 4) return false;
    }
    return !queue_.full();
  }

  RequestQueue& queue() { return queue_; }
  std::uint64_t decisions() const { return decisions_; }
  std::uint64_t vetoed() const { return vetoed_; }
  // Requested superchunks of all links. Relaxed: a statistic.
  std::uint64_t requested() const { return requested_.load(std::memory_order_relaxed); }

 private:
  std::uint64_t window_start(std::uint32_t link, std::int64_t intended_ns) const {
    const std::uint64_t untaken = round_up(not_before_[link], config_.unit);
    if (config_.rate_hz == 0) return untaken;
    const LinkRing& ring = *rings_[link];
    const std::uint64_t end = schedule_.due_by(link, intended_ns);
    const std::uint64_t wanted =
        end > config_.window ? (end - config_.window) / config_.unit * config_.unit : 0;
    const std::uint64_t intact =
        ring.head() > ring.slots() ? round_up(ring.head() - ring.slots(), config_.unit) : 0;
    return std::max({wanted, untaken, intact});
  }

  // False while a link has not got all superchunks of the window.
  bool decide(std::int64_t intended_ns) {
    DataRequest& request = queue_.next();
    for (std::uint32_t link = 0; link < rings_.size(); ++link) {
      request.first[link] = window_start(link, intended_ns);
      if (request.first[link] + config_.window > rings_[link]->head()) return false;
    }
    for (std::size_t link = 0; link < rings_.size(); ++link)
      not_before_[link] = request.first[link] + config_.window;
    request.intended_ns = intended_ns;
    queue_.publish();
    ++decisions_;
    // Relaxed read-modify-write: this thread is the only writer.
    requested_.fetch_add(rings_.size() * config_.window, std::memory_order_relaxed);
    return true;
  }

  // Everything older than the oldest outstanding window may be overwritten.
  void hold_windows() {
    const bool any = queue_.outstanding() > 0;
    for (std::size_t link = 0; link < rings_.size(); ++link) {
      LinkRing& ring = *rings_[link];
      ring.keep_from(any ? queue_.oldest().first[link] : ring.head());
    }
  }

  TriggerConfig config_;
  const ArrivalSchedule& schedule_;
  std::vector<std::unique_ptr<LinkRing>>& rings_;
  RequestQueue queue_;
  std::vector<std::uint64_t> not_before_;  // first position that a window may take, for each link
  std::uint64_t next_ = 0;                 // number of the next decision that is due
  std::uint64_t decisions_ = 0;
  std::uint64_t vetoed_ = 0;
  std::atomic<std::uint64_t> requested_{0};
};

}  // namespace daqwriter
