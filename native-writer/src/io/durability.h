// Promise: knows for every byte and every superchunk when it became durable, here: when the completion of the
// last block that holds a part of it had been reaped. Used by the writer thread; durable_bytes() by any
// thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "base/histogram.h"
#include "base/pacing.h"
#include "base/timed_histogram.h"
#include "format/record_format.h"

namespace daqwriter {

// Where the ledger learns what has arrived by a moment.
struct Arrivals {
  std::function<std::uint64_t(std::int64_t t_ns)> due_bytes;  // by intended arrival, lost ones included
  std::function<std::uint64_t()> accepted_bytes;              // taken into the rings until now
};

class DurabilityLedger {
 public:
  // Times are nanoseconds after start_ns on the monotonic clock.
  DurabilityLedger(std::uint32_t links, std::int64_t start_ns, Arrivals arrivals);

  // A superchunk's last byte has gone into the block being filled.
  void note_superchunk(std::uint32_t link, std::uint64_t sequence, std::int64_t intended_ns) {
    filling_.push_back({intended_ns, sequence, link});
  }
  // The block being filled is complete with `payload_bytes`; ends_inside: its last superchunk goes on in the
  // next. Returns the block's number. Blocks are sealed in the order of their offsets; from now on the target
  // has work.
  std::uint64_t seal_block(std::uint64_t payload_bytes, bool ends_inside, std::int64_t now_ns);
  // The whole block is on the target. May come in any order.
  void complete_block(std::uint64_t block, std::int64_t now_ns, std::int64_t submitted_ns);
  // Remembers up to so many completions for history(); before the first one.
  void keep_history(std::size_t most_completions) { history_.emplace(most_completions); }
  // Looks at the backlog once more, when no completion did (end of the record, nothing written).
  void observe(std::int64_t now_ns);

  // Relaxed: a statistic for the reporter.
  std::uint64_t durable_bytes() const { return durable_bytes_.load(std::memory_order_relaxed); }

  const Histogram& latency_ns() const { return latency_ns_; }
  const TimedHistogram& latency_over_time() const { return latency_over_time_; }  // by intended arrival
  const Histogram& write_latency_ns() const { return write_latency_ns_; }
  const ServiceCurve& service_curve() const { return service_curve_; }  // due against durable
  const ServiceRecord& service_record() const { return service_record_; }
  // To be put together with those of other ledgers (JointServiceCurve); null unless it was kept.
  const ServiceHistory* history() const { return history_ ? &*history_ : nullptr; }
  const ServiceCurve& held() const { return held_; }  // accepted against durable
  // Superchunks in the gapless durable beginning of the record; `lost` is left to the source.
  const std::vector<LinkAccount>& accounts() const { return accounts_; }
  std::uint64_t superchunks_stored() const { return latency_ns_.count(); }

 private:
  struct End {
    std::int64_t intended_ns;
    std::uint64_t sequence;
    std::uint32_t link;
  };
  struct Block {
    std::uint64_t payload_bytes = 0;
    bool ends_inside = false;
    bool complete = false;
    std::int64_t completed_ns = 0;
    std::vector<End> ends;
  };

  void retire(const Block& block);
  std::int64_t busy_ns(std::int64_t now_ns) const;

  std::int64_t start_ns_;
  Arrivals arrivals_;
  std::vector<End> filling_;
  std::deque<Block> open_;        // sealed and not yet retired, in order
  std::uint64_t first_open_ = 0;  // number of open_.front()
  std::int64_t carried_ns_ = 0;   // latest completion among the retired blocks of the superchunk in between
  std::vector<std::vector<End>> spare_;  // emptied vectors, so that the data path does not allocate
  std::atomic<std::uint64_t> durable_bytes_{0};
  Histogram latency_ns_;
  TimedHistogram latency_over_time_;
  Histogram write_latency_ns_;
  ServiceCurve service_curve_;
  ServiceCurve held_;
  ServiceRecord service_record_;
  std::optional<ServiceHistory> history_;
  std::size_t incomplete_ = 0;      // blocks sealed and not complete
  std::int64_t busy_ns_ = 0;        // time with such blocks, up to ...
  std::int64_t busy_since_ns_ = 0;  // ... the beginning of the present such time
  std::vector<LinkAccount> accounts_;
};

}  // namespace daqwriter
