#include "synthetic.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "line_protocol.h"
#include "memory.h"
#include "payload.h"
#include "synthetic_worker.h"
#include "ticker.h"

namespace daqwriter {
namespace {

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
      workers_.push_back(std::make_unique<SyntheticWorker>(shared_, i, make_engine));
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
        workers_[i]->run(deadline);
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
    result_.engine_note = workers_.front()->engine_note();
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
  SharedLoad shared_;
  LineProtocol lines_;
  std::vector<std::unique_ptr<SyntheticWorker>> workers_;
  std::int64_t start_ns_ = 0;
  std::uint64_t seen_bytes_ = 0;
  WriteResult result_;
};

}  // namespace

WriteResult run_write(const WriteOptions& options, const WritePlan& plan, const EngineFactory& make_engine,
                      const std::atomic<int>& stop_signal) {
  const std::int64_t since = monotonic_ns();
  return Load(options, plan, make_engine, stop_signal).run(since);
}

}  // namespace daqwriter
