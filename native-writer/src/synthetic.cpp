#include "synthetic.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "aio_engine.h"
#include "line_protocol.h"
#include "memory.h"
#include "payload.h"
#include "ticker.h"
#include "units.h"

namespace daqwriter {
namespace {

constexpr std::int64_t kWaitNs = 10'000'000;
constexpr std::int64_t kRefusedNs = 5'000'000'000;  // how long a full kernel queue is borne
constexpr unsigned kMaxStalls = 8;
constexpr std::size_t kPage = 4096;

// What the threads of one pass share.
struct Shared {
  const WriteOptions& options;
  const WritePlan& plan;
  int fd;
  const std::atomic<int>& stop_signal;
  std::atomic<bool> failed{false};
  std::atomic<std::int64_t> start_ns{0};
};

// One thread of the load: its part of the span, its buffers, its engine.
class Worker {
 public:
  Worker(Shared& shared, std::uint32_t number, const EngineFactory& make_engine)
      : shared_(shared),
        number_(number),
        block_(shared.options.block_bytes),
        memory_(shared.options.io_depth * block_, numa_node_of(shared.plan.placement.cpus[number])),
        engine_(make_engine(shared.options.io_depth)),
        slots_(shared.options.io_depth),
        completions_(shared.options.io_depth),
        order_(shared.plan.part_blocks, shared.options.seed + number) {
    if (!shared.options.zeros) fill_payload({memory_.data(), memory_.size()}, shared.options.seed, number, 0);
    const iovec whole{memory_.data(), memory_.size()};
    engine_->register_memory({&whole, 1});
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slots_[i].data = memory_.data() + i * block_;
      free_.push_back(i);
    }
    requests_.reserve(slots_.size());
  }

  // The measured load: until all is written, the time is over, or somebody stops it.
  void run(std::int64_t deadline_ns, std::uint64_t blocks, bool random) {
    const CpuUse before = thread_cpu_use();
    now_ns_ = monotonic_ns();
    random_ = random;
    while (error_.empty()) {
      if (now_ns_ >= deadline_ns || stopped()) {
        requests_.clear();
      } else {
        prepare_requests(blocks);
      }
      if (!submit()) break;
      if (in_flight_ == 0 && requests_.empty()) break;
      reap();
    }
    drain();
    if (!error_.empty()) shared_.failed.store(true, std::memory_order_relaxed);
    result_.cpu = thread_cpu_use() - before;
  }

  // Relaxed: a statistic for the reporter.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  const std::string& error() const { return error_; }
  const Histogram& latency_ns() const { return latency_ns_; }
  WriteThreadResult result() const {
    WriteThreadResult whole = result_;
    whole.bytes = bytes();
    return whole;
  }

 private:
  struct Slot {
    std::byte* data = nullptr;
    iovec piece{};
    std::uint64_t offset = 0;
    std::int64_t submitted_ns = 0;
    unsigned stalls = 0;
  };

  // Relaxed loads: the flags carry no data, and seeing them a little later does no harm.
  bool stopped() const {
    return shared_.stop_signal.load(std::memory_order_relaxed) != 0 ||
           shared_.failed.load(std::memory_order_relaxed);
  }

  void prepare_requests(std::uint64_t blocks) {
    for (; !free_.empty() && issued_ < blocks; ++issued_) {
      const std::size_t index = free_.back();
      free_.pop_back();
      const std::uint64_t turn = issued_ % shared_.plan.part_blocks;
      const std::uint64_t place = random_ ? order_(turn) : turn;
      Slot& slot = slots_[index];
      slot.offset = (number_ * shared_.plan.part_blocks + place) * block_;
      slot.piece = {slot.data, block_};
      slot.submitted_ns = now_ns_;
      slot.stalls = 0;
      if (!shared_.options.zeros) stamp(slot);
      enqueue(index);
    }
  }

  // Every page differs from every other one, so that no drive can gain by recognising repetitions.
  void stamp(const Slot& slot) const {
    for (std::size_t page = 0; page < block_; page += kPage) {
      const std::array<std::uint64_t, 2> words = {slot.offset + page, issued_};
      std::memcpy(slot.data + page, words.data(), sizeof words);
    }
  }

  void enqueue(std::size_t index) {
    Slot& slot = slots_[index];
    const std::uint64_t done = block_ - slot.piece.iov_len;
    requests_.push_back({shared_.fd, IoDirection::write, {&slot.piece, 1}, slot.offset + done, index});
  }

  bool submit() {
    while (!requests_.empty()) {
      const int taken = engine_->submit(requests_);
      if (taken == -EAGAIN || taken == -EINTR) return bear_refusal();
      if (taken < 0) return fail(-taken, slots_[requests_.front().tag], "submit");
      refused_since_ns_ = 0;
      in_flight_ += static_cast<unsigned>(taken);
      requests_.erase(requests_.begin(), requests_.begin() + taken);
    }
    return true;
  }

  bool bear_refusal() {
    const std::int64_t now = monotonic_ns();
    if (refused_since_ns_ == 0) refused_since_ns_ = now;
    if (now - refused_since_ns_ > kRefusedNs)
      return fail(EAGAIN, slots_[requests_.front().tag], "submit refused; " + aio_limits_text());
    if (in_flight_ == 0) sleep_until_monotonic_ns(now + 1'000'000);
    now_ns_ = now;
    return true;
  }

  void reap() {
    if (in_flight_ == 0) return;
    const int count = engine_->reap(completions_, 1, kWaitNs);
    now_ns_ = monotonic_ns();
    if (count < 0) {
      fail(-count, slots_.front(), "waiting for completions");
      in_flight_ = 0;  // cannot be waited for; the engine's destructor blocks until the kernel has let go
      return;
    }
    for (int i = 0; i < count; ++i) handle(completions_[static_cast<std::size_t>(i)]);
  }

  void handle(const IoCompletion& completion) {
    --in_flight_;
    Slot& slot = slots_[completion.tag];
    const bool again = completion.result == -EAGAIN || completion.result == -EINTR;
    if (completion.result < 0 && !again) {
      fail(static_cast<int>(-completion.result), slot, "write");
      return;
    }
    // Direct I/O continues at an aligned offset only: an unaligned rest of a short write is written again.
    const std::size_t good = again ? 0 : static_cast<std::size_t>(completion.result);
    const std::size_t progress = good >= slot.piece.iov_len ? slot.piece.iov_len : good - good % kPage;
    slot.piece = {static_cast<std::byte*>(slot.piece.iov_base) + progress, slot.piece.iov_len - progress};
    if (slot.piece.iov_len > 0) {
      slot.stalls = progress > 0 ? 0 : slot.stalls + 1;
      if (slot.stalls > kMaxStalls) {
        fail(again ? static_cast<int>(-completion.result) : EIO, slot, "write makes no progress");
      } else {
        enqueue(completion.tag);
      }
      return;
    }
    latency_ns_.record(now_ns_ - slot.submitted_ns);
    bytes_.store(bytes() + block_, std::memory_order_relaxed);
    result_.end_ns = now_ns_ - shared_.start_ns.load(std::memory_order_relaxed);
    free_.push_back(completion.tag);
  }

  void drain() {
    requests_.clear();
    while (in_flight_ > 0) reap();
  }

  bool fail(int error_number, const Slot& slot, const std::string& what) {
    if (!error_.empty()) return false;  // the first error is the cause
    const std::uint64_t offset = slot.offset + (block_ - slot.piece.iov_len);
    error_ = shared_.plan.target.path + ": " + what + " of " + std::to_string(slot.piece.iov_len) +
             " B at offset " + std::to_string(offset) + " failed: " + errno_text(error_number);
    return false;
  }

  Shared& shared_;
  std::uint32_t number_;
  std::size_t block_;
  Memory memory_;
  std::unique_ptr<IoEngine> engine_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;
  std::vector<IoRequest> requests_;  // prepared and not yet taken by the engine
  std::vector<IoCompletion> completions_;
  BlockPermutation order_;
  bool random_ = false;
  std::uint64_t issued_ = 0;
  unsigned in_flight_ = 0;
  std::int64_t now_ns_ = 0;
  std::int64_t refused_since_ns_ = 0;
  std::string error_;
  Histogram latency_ns_;
  WriteThreadResult result_;
  alignas(64) std::atomic<std::uint64_t> bytes_{0};
};

// Writes the whole span once, so that the measured writes overwrite. False when stopped.
bool prefill(const WriteOptions& options, const WritePlan& plan, Target& target,
             const std::atomic<int>& stop_signal) {
  const Memory memory(8u << 20, plan.target.numa_node);
  fill_payload({memory.data(), memory.size()}, ~options.seed, 0, 0);
  const std::uint64_t span = plan.span_bytes(options.block_bytes);
  for (std::uint64_t offset = 0; offset < span; offset += memory.size()) {
    if (stop_signal.load(std::memory_order_relaxed) != 0) return false;
    target.write_block(memory.data(), std::min<std::uint64_t>(memory.size(), span - offset), offset);
  }
  target.flush();
  return true;
}

// One running load, from the opened target to the result.
class Load {
 public:
  Load(const WriteOptions& options, const WritePlan& plan, const EngineFactory& make_engine,
       const std::atomic<int>& stop_signal)
      : options_(options),
        plan_(plan),
        stop_signal_(stop_signal),
        target_(plan.target, plan.span_bytes(options.block_bytes), options.preallocate),
        shared_{options, plan, target_.fd(), stop_signal},
        lines_(options.line_protocol_path, options.tags, "write") {
    for (std::uint32_t i = 0; i < options.threads; ++i)
      workers_.push_back(std::make_unique<Worker>(shared_, i, make_engine));
  }

  WriteResult run(std::int64_t since_ns) {
    if (options_.keep) target_.keep();
    result_.started_utc_ns = utc_ns();
    try {
      if (!options_.overwrite) target_.discard(plan_.span_bytes(options_.block_bytes));
      const bool ready = !options_.overwrite || prefill(options_, plan_, target_, stop_signal_);
      result_.prepare_ns = monotonic_ns() - since_ns;
      if (ready) measure();
      const std::int64_t flush_from_ns = monotonic_ns();
      target_.flush();
      result_.flush_ns = monotonic_ns() - flush_from_ns;
    } catch (const Failure& failure) {
      result_.error = failure.what();
    }
    collect();
    return std::move(result_);
  }

 private:
  void measure() {
    const CpuUse before = process_cpu_use();
    start_ns_ = monotonic_ns() + 2'000'000;  // all threads are up before it
    shared_.start_ns.store(start_ns_, std::memory_order_relaxed);
    const std::int64_t deadline =
        options_.duration_s > 0 ? start_ns_ + to_ns(options_.duration_s) : INT64_MAX;
    std::atomic<std::size_t> running{workers_.size()};
    Ticker ticker;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      threads.emplace_back([&, i] {
        pin_this_thread(plan_.placement.cpus[i]);
        sleep_until_monotonic_ns(start_ns_);
        workers_[i]->run(deadline, plan_.blocks_per_thread, options_.random);
        if (running.fetch_sub(1) == 1) ticker.finish();
      });
    }
    ticker.run(start_ns_, options_.interval_s, [this] { sample(); });
    for (std::thread& thread : threads) thread.join();
    sample();
    result_.cpu = process_cpu_use() - before;
  }

  void sample() {
    std::uint64_t bytes = 0;
    for (const auto& worker : workers_) bytes += worker->bytes();
    const double t = seconds(monotonic_ns() - start_ns_);
    result_.series_t_s.push_back(t);
    result_.series_bytes.push_back(bytes - seen_bytes_);
    seen_bytes_ = bytes;
    const double by_bytes = static_cast<double>(bytes) / static_cast<double>(total_bytes());
    const double share = options_.duration_s > 0 ? std::max(t / options_.duration_s, by_bytes) : by_bytes;
    lines_.write(
        "write",
        {{"written_bytes", bytes}, {"elapsed_s", t}, {"total_s", share > 0 ? t / std::min(share, 1.0) : t}});
  }

  std::uint64_t total_bytes() const {
    if (plan_.blocks_per_thread == UINT64_MAX) return UINT64_MAX;
    return plan_.blocks_per_thread * options_.threads * options_.block_bytes;
  }

  void collect() {
    for (const auto& worker : workers_) {
      result_.threads.push_back(worker->result());
      result_.bytes += worker->bytes();
      result_.write_ns = std::max(result_.write_ns, result_.threads.back().end_ns);
      result_.latency_ns.add(worker->latency_ns());
      if (result_.error.empty()) result_.error = worker->error();
    }
    const bool signalled = stop_signal_.load(std::memory_order_relaxed) != 0;
    const bool all = result_.bytes == total_bytes();
    result_.ended_by = !result_.error.empty() ? "error"
                       : all                  ? (options_.bytes > 0 ? "bytes" : "span")
                       : signalled            ? "signal"
                                              : "duration";
    if (signalled && !all) result_.status = RunStatus::interrupted;
    if (!result_.error.empty()) result_.status = RunStatus::failed;
  }

  const WriteOptions& options_;
  const WritePlan& plan_;
  const std::atomic<int>& stop_signal_;
  Target target_;
  Shared shared_;
  LineProtocol lines_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::int64_t start_ns_ = 0;
  std::uint64_t seen_bytes_ = 0;
  WriteResult result_;
};

}  // namespace

BlockPermutation::BlockPermutation(std::uint64_t count, std::uint64_t seed) : count_(count), seed_(seed) {
  half_bits_ = static_cast<int>(std::bit_width(std::max<std::uint64_t>(count, 2) - 1) + 1) / 2;
}

// A four-round Feistel network over 2^(2 x half_bits) numbers, walked on until the result is below count.
std::uint64_t BlockPermutation::operator()(std::uint64_t index) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  do {
    std::uint64_t left = index >> half_bits_;
    std::uint64_t right = index & mask;
    for (std::uint64_t round = 1; round <= 4; ++round) {
      const std::uint64_t next = left ^ (scramble(right + (seed_ << 3) + round) & mask);
      left = right;
      right = next;
    }
    index = left << half_bits_ | right;
  } while (index >= count_);
  return index;
}

WriteResult run_write(const WriteOptions& options, const WritePlan& plan, const EngineFactory& make_engine,
                      const std::atomic<int>& stop_signal) {
  const std::int64_t since = monotonic_ns();
  return Load(options, plan, make_engine, stop_signal).run(since);
}

}  // namespace daqwriter
