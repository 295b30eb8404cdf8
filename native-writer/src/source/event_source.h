// Promise: emits the planned events as fast as the streams take them, or paced. Each already lies in its
// stream's queue, as if the network card's DMA had put it there, so that the source costs the CPU only the
// headers. Loses nothing: a full queue holds the source back, and how long is counted.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "format/event_format.h"
#include "source/link_ring.h"

namespace daqwriter {

class EventSource {
 public:
  struct Limits {
    std::uint64_t bytes = UINT64_MAX;  // of all events
    std::int64_t duration_ns = INT64_MAX;
    std::uint64_t rate_bytes_per_s = 0;  // 0: not paced
  };
  struct Account {
    std::uint64_t events = 0;
    std::uint64_t held_events = 0;  // found their queue full
    std::int64_t held_ns = 0;
    double fullest_queue = 0;  // high-water mark, share of its slots
  };

  EventSource(std::vector<std::unique_ptr<LinkRing>>& queues, const EventPlan& plan, const Limits& limits,
              const std::atomic<int>& stop_signal, const std::atomic<bool>& abort);

  // Until a limit is reached, or somebody stops it.
  void run(std::int64_t start_ns);

  // Its thread has ended before run() could.
  void give_up() { finished_.store(true, std::memory_order_release); }
  // By any thread. Acquire: whoever sees it also sees the last event in its queue.
  bool finished() const { return finished_.load(std::memory_order_acquire); }
  // Relaxed: a statistic for reporter and ledger.
  std::uint64_t offered_bytes(std::uint32_t stream) const {
    return offered_bytes_[stream].value.load(std::memory_order_relaxed);
  }
  std::uint64_t offered_bytes() const;

  // To be read after the thread has been joined.
  const std::vector<Account>& accounts() const { return accounts_; }
  std::int64_t emission_ns() const { return emission_ns_; }  // start to the end of the last event's emission
  // The offered bytes that came later than kInTimeNs because this thread did not run.
  std::uint64_t too_late_bytes() const;
  std::uint64_t due_bytes() const;  // by then, by the pace; what was offered if there is none
  const std::string& ended_by() const {
    return ended_by_;
  }  // bytes, duration, or nothing: somebody stopped it
  const CpuUse& cpu() const { return cpu_; }

 private:
  struct alignas(64) Counter {
    std::atomic<std::uint64_t> value{0};
  };

  bool emit(std::uint64_t event);
  void sleep_until(std::int64_t t_ns);
  bool wait_until_due(std::int64_t due_ns);
  bool wait_for_room(std::uint32_t stream, std::uint64_t serial);
  bool stopped() const;
  std::int64_t now_ns() const { return monotonic_ns() - start_ns_; }

  std::vector<std::unique_ptr<LinkRing>>& queues_;
  const EventPlan& plan_;
  Limits limits_;
  const std::atomic<int>& stop_signal_;
  const std::atomic<bool>& abort_;
  std::int64_t start_ns_ = 0;
  std::uint64_t total_bytes_ = 0;
  std::vector<Account> accounts_;
  std::vector<Counter> offered_bytes_;
  std::string ended_by_;
  std::int64_t emission_ns_ = 0;
  std::int64_t overslept_ns_ = 0;  // beyond kInTimeNs each
  CpuUse cpu_;
  std::atomic<bool> finished_{false};
};

// Fills every slot with the payload of its number.
void prepare_queues(const std::vector<std::unique_ptr<LinkRing>>& queues, const EventPlan& plan);

}  // namespace daqwriter
