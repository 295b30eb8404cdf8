// Promise: the Readout Emulator of all links of an application. Paced, it emits by intended arrival (open
// loop) and never waits for the writer; a superchunk that finds its ring full is lost and counted. Unpaced,
// it fills whatever room the writer has made, and loses nothing. The payload already lies in the ring (the
// card's DMA costs the CPU nothing), so emitting a superchunk is stamping its header. Superchunks that
// the source itself could not offer in time are counted apart, so that a slow source is never mistaken for a
// slow drive.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/pacing.h"
#include "format/record_format.h"
#include "source/busy.h"
#include "source/link_ring.h"
#include "source/trigger.h"

namespace daqwriter {

class ReadoutEmulator {
 public:
  static constexpr std::int64_t kTickNs = 250'000;
  // An unpaced source need only be back before the writer has emptied the rings.
  static constexpr std::int64_t kUnpacedTickNs = 1'000'000;
  static constexpr std::int64_t kLateNs = 2'000'000;      // later than this counts as late
  static constexpr std::int64_t kOverrunNs = 10'000'000;  // how long after the end it may still catch up

  struct Config {
    bool unpaced = false;
    std::uint64_t most_superchunks = UINT64_MAX;  // all links; an unpaced source stops there
    TriggerConfig trigger;
  };

  static constexpr std::uint64_t kTurn = 64;  // superchunks of a link that a source hands over at once
  // The number of superchunks that an unpaced source emits on a link at once.
  static constexpr std::uint64_t per_turn(std::uint64_t window) { return window > 0 ? window : kTurn; }

  // The rings' slots must already hold payload and the constant part of the headers (prepare_rings).
  ReadoutEmulator(std::vector<std::unique_ptr<LinkRing>>& rings, const ArrivalSchedule& schedule,
                  const Config& config, const std::atomic<int>& stop_signal, const std::atomic<bool>& abort);

  // Requests for the writer; null: a continuous record, everything is wanted.
  RequestQueue* requests() { return trigger_ ? &trigger_->queue() : nullptr; }

  // Runs to the end of the schedule, a stop signal or an abort; then watches BUSY until `writer_done`.
  void run(std::int64_t start_ns, const std::atomic<bool>& writer_done);

  // Its thread has ended before run() could.
  void give_up() { finished_.store(true, std::memory_order_release); }

  // Readable at any time by any thread. Relaxed: statistics that order nothing.
  // Superchunks emitted; what the writer is to store of them; what found its ring full.
  std::uint64_t emitted() const { return emitted_.load(std::memory_order_relaxed); }
  std::uint64_t accepted() const {
    return trigger_ ? trigger_->requested() : accepted_.load(std::memory_order_relaxed);
  }
  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }
  std::uint64_t offered() const { return accepted() + lost(); }
  std::uint64_t busy_count() const { return busy_count_.load(std::memory_order_relaxed); }
  // Acquire pairs with the release in run(): who sees true also sees every head published before it.
  bool finished() const { return finished_.load(std::memory_order_acquire); }

  // To be read after the thread has been joined.
  const std::vector<std::uint64_t>& lost_per_link() const { return lost_per_link_; }
  std::int64_t worst_lateness_ns() const { return worst_lateness_ns_; }
  std::uint64_t late_superchunks() const { return late_; }
  std::uint64_t too_late() const { return too_late_; }       // emitted later than kInTimeNs
  std::int64_t emission_ns() const { return emission_ns_; }  // start to the last emission or stop
  const BusyTracker& busy() const { return busy_; }
  std::uint64_t decisions() const { return trigger_ ? trigger_->decisions() : 0; }
  // With requests: superchunks that found no room because requests held the ring.
  std::uint64_t unbuffered() const { return unbuffered_; }
  std::uint64_t vetoed() const { return trigger_ ? trigger_->vetoed() : 0; }
  const CpuUse& cpu() const { return cpu_; }

 private:
  bool stopped() const;
  bool over(std::int64_t t_ns) const;
  bool may_emit(std::uint64_t ordinal) const;
  void emit_due();
  void emit_paced(std::uint32_t link, std::int64_t t_ns);
  void fill_room();
  void emit_unpaced(std::uint32_t link, std::uint64_t count, std::int64_t t_ns);
  bool overrun() const;
  void watch_busy(std::int64_t t_ns);

  std::vector<std::unique_ptr<LinkRing>>& rings_;
  const ArrivalSchedule& schedule_;
  Config config_;
  std::optional<TriggerEmulator> trigger_;
  const std::atomic<int>& stop_signal_;
  const std::atomic<bool>& abort_;
  std::vector<std::uint64_t> next_sequence_;
  std::vector<std::uint64_t> next_ordinal_;
  std::vector<std::uint64_t> lost_per_link_;
  std::atomic<std::uint64_t> emitted_{0};
  std::atomic<std::uint64_t> accepted_{0};  // emitted and not lost
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint64_t> busy_count_{0};
  std::atomic<bool> finished_{false};
  BusyTracker busy_;
  std::int64_t start_ns_ = 0;
  std::int64_t worst_lateness_ns_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t too_late_ = 0;
  std::int64_t emission_ns_ = 0;
  std::uint64_t unbuffered_ = 0;
  CpuUse cpu_;
};

// Writes payload and the constant header fields into every slot.
void prepare_rings(const std::vector<std::unique_ptr<LinkRing>>& rings, std::uint64_t payload_key,
                   const RecordId& record_id, ChecksumKind checksum);

}  // namespace daqwriter
