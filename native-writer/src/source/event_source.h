// Promise: emits the planned events as fast as the streams take them, or paced. Each already lies in its
// stream's queue, as if the network card's DMA had put it there, so that the source costs the CPU only the
// headers. Loses nothing: a full queue holds the source back, and how long is counted.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/pacing.h"
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
              const std::atomic<int>& stop_signal, const std::atomic<bool>& abort)
      : queues_(queues),
        plan_(plan),
        limits_(limits),
        stop_signal_(stop_signal),
        abort_(abort),
        accounts_(queues.size()),
        offered_bytes_(queues.size()) {}

  // Until a limit is reached, or somebody stops it.
  void run(std::int64_t start_ns) {
    const CpuUse before = thread_cpu_use();
    start_ns_ = start_ns;
    for (std::uint64_t event = 0; emit(event); ++event) {
    }
    emission_ns_ = std::clamp<std::int64_t>(now_ns(), 0, limits_.duration_ns);
    cpu_ = thread_cpu_use() - before;
    // Release: see finished().
    finished_.store(true, std::memory_order_release);
  }

  // Its thread has ended before run() could.
  void give_up() { finished_.store(true, std::memory_order_release); }
  // By any thread. Acquire: whoever sees it also sees the last event in its queue.
  bool finished() const { return finished_.load(std::memory_order_acquire); }
  // Relaxed: a statistic for reporter and ledger.
  std::uint64_t offered_bytes(std::uint32_t stream) const {
    return offered_bytes_[stream].value.load(std::memory_order_relaxed);
  }
  std::uint64_t offered_bytes() const {
    std::uint64_t sum = 0;
    for (std::uint32_t stream = 0; stream < offered_bytes_.size(); ++stream) sum += offered_bytes(stream);
    return sum;
  }

  // To be read after the thread has been joined.
  const std::vector<Account>& accounts() const { return accounts_; }
  std::int64_t emission_ns() const { return emission_ns_; }  // start to the end of the last event's emission
  // The offered bytes that came later than kInTimeNs because this thread did not run.
  std::uint64_t too_late_bytes() const {
    const double bytes = static_cast<double>(limits_.rate_bytes_per_s) * seconds(overslept_ns_);
    return static_cast<std::uint64_t>(std::min(bytes, static_cast<double>(total_bytes_)));
  }

  // By then, by the pace; what was offered if there is none.
  std::uint64_t due_bytes() const {
    if (limits_.rate_bytes_per_s == 0) return total_bytes_;
    const double by_pace = static_cast<double>(limits_.rate_bytes_per_s) * seconds(emission_ns_);
    const auto due = std::min(limits_.bytes, static_cast<std::uint64_t>(by_pace));
    return std::max(total_bytes_, due);
  }

  const std::string& ended_by() const {
    return ended_by_;
  }  // bytes, duration, or nothing: somebody stopped it
  const CpuUse& cpu() const { return cpu_; }

 private:
  static constexpr std::int64_t kHeldNs = 100'000;     // between two looks at a full queue
  static constexpr std::int64_t kNapNs = 100'000'000;  // longest sleep without a look at the stop signal

  struct alignas(64) Counter {
    std::atomic<std::uint64_t> value{0};
  };

  // False once there is nothing more to emit.
  bool emit(std::uint64_t event) {
    const std::uint32_t stream = plan_.stream_of(event);
    Account& account = accounts_[stream];
    const std::uint64_t serial = account.events;
    const std::uint32_t bytes = plan_.bytes_of(stream, serial);
    if (bytes > limits_.bytes - total_bytes_) {
      ended_by_ = "bytes";
      return false;
    }
    const bool paced = limits_.rate_bytes_per_s > 0;
    const std::int64_t due_ns =
        paced ? to_ns(static_cast<double>(total_bytes_) / static_cast<double>(limits_.rate_bytes_per_s))
              : now_ns();
    if (due_ns >= limits_.duration_ns) ended_by_ = "duration";
    if (!wait_until_due(std::min(due_ns, limits_.duration_ns)) || !ended_by_.empty()) return false;
    if (!wait_for_room(stream, serial)) return false;
    LinkRing& queue = *queues_[stream];
    const EventHeader header = plan_.header(stream, serial, event, paced ? due_ns : now_ns());
    std::memcpy(queue.slot(serial), &header, sizeof header);
    total_bytes_ += bytes;
    // Relaxed: this thread is the only writer.
    offered_bytes_[stream].value.fetch_add(bytes, std::memory_order_relaxed);
    queue.publish(++account.events);
    account.fullest_queue = std::max(account.fullest_queue, queue.occupancy());
    return true;
  }

  // The source sleeps most of its time: a thread that is kept from running shows here.
  void sleep_until(std::int64_t t_ns) {
    sleep_until_monotonic_ns(start_ns_ + t_ns);
    overslept_ns_ += std::max<std::int64_t>(0, now_ns() - t_ns - kInTimeNs);
  }

  bool wait_until_due(std::int64_t due_ns) {
    for (std::int64_t now = now_ns(); now < due_ns && !stopped(); now = now_ns())
      sleep_until(std::min(due_ns, now + kNapNs));
    return !stopped();
  }

  bool wait_for_room(std::uint32_t stream, std::uint64_t serial) {
    if (queues_[stream]->has_room(serial)) return true;
    const std::int64_t since = now_ns();
    std::int64_t now = since;
    bool room = false;
    while (!room && !stopped() && now < limits_.duration_ns) {
      sleep_until(now + kHeldNs);
      now = now_ns();
      room = queues_[stream]->has_room(serial);
    }
    Account& account = accounts_[stream];
    ++account.held_events;
    account.held_ns += now - since;
    if (!room && !stopped()) ended_by_ = "duration";
    return room;
  }

  // Relaxed loads: they carry no data, and seeing them a little later does no harm.
  bool stopped() const {
    return stop_signal_.load(std::memory_order_relaxed) != 0 || abort_.load(std::memory_order_relaxed);
  }

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
inline void prepare_queues(const std::vector<std::unique_ptr<LinkRing>>& queues, const EventPlan& plan) {
  for (std::uint32_t stream = 0; stream < queues.size(); ++stream) {
    const LinkRing& queue = *queues[stream];
    for (std::uint64_t slot = 0; slot < queue.slots(); ++slot) {
      plan.fill_body({queue.slot(slot) + sizeof(EventHeader), plan.largest_bytes() - sizeof(EventHeader)},
                     stream, slot);
    }
  }
}

}  // namespace daqwriter
