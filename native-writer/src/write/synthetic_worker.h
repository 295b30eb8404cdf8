// Promise: one thread of the synthetic load: its part of the span, its buffers, its engine. It writes until
// all is written, the time is over or somebody stops it; the first error ends it, with its place.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "base/memory.h"
#include "base/stop_clock.h"
#include "io/engines.h"
#include "io/requests.h"
#include "write/block_permutation.h"
#include "write/synthetic.h"

namespace daqwriter {

// The state that the threads of all targets share.
struct SharedLoad {
  const WriteOptions& options;
  const StopClock& stop;
  std::atomic<bool> failed{false};
  std::atomic<std::int64_t> start_ns{0};
};

// The turn of a stamp that prefill() leaves: no thread's.
inline constexpr std::uint64_t kPrefillTurn = UINT64_MAX;
// Stamps every page of a block that stands at `offset`, so that no two pages on the target are the same.
void stamp_pages(std::span<std::byte> block, std::uint64_t offset, std::uint64_t turn);

class SyntheticWorker {
 public:
  // `number`: among the threads of its target, which is open as `fd`.
  SyntheticWorker(SharedLoad& shared, const WriteTargetPlan& plan, int fd, std::uint32_t number,
                  const EngineFactory& make_engine);
  void run(std::int64_t deadline_ns);
  // By another thread: whether that of run() is held in a call; see CallWatch.
  bool lost() { return watch_.held(shared_.stop, to_ns(shared_.options.stall_limit_s)) != nullptr; }

  // Relaxed: a statistic for the reporter.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  const IoError& error() const { return requests_.error(); }
  bool interrupted() const { return requests_.interrupted(); }  // that is its error
  // After run(): requests that were given up. The kernel may still use their buffers.
  std::uint64_t unanswered_bytes() const { return requests_.in_flight_bytes(); }
  std::string engine_note() const { return engine_->note(); }
  std::vector<Feature> engine_features() const { return engine_->features(); }
  const Histogram& latency_ns() const { return latency_ns_; }
  WriteThreadResult result() const;

 private:
  struct Slot {
    std::byte* data = nullptr;
    iovec piece{};
    std::uint64_t offset = 0;
    std::int64_t submitted_ns = 0;
  };

  bool stopped() const;
  void prepare_requests(std::uint64_t blocks);
  bool check(const Slot& slot);
  void reap();
  void complete(std::size_t index);

  SharedLoad& shared_;
  const WriteTargetPlan& plan_;
  int fd_;
  std::uint32_t number_;
  std::size_t block_;
  Memory memory_;
  std::unique_ptr<IoEngine> engine_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;
  BlockPermutation order_;
  std::uint64_t issued_ = 0;
  CallWatch watch_;
  Requests requests_;
  Histogram latency_ns_;
  WriteThreadResult result_;
  alignas(64) std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace daqwriter
