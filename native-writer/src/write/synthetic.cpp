#include "write/synthetic.h"

#include <algorithm>
#include <memory>

#include "base/memory.h"
#include "base/ticker.h"
#include "base/worker_thread.h"
#include "format/payload.h"
#include "report/line_protocol.h"
#include "write/synthetic_worker.h"

namespace daqwriter {
namespace {

// Writes the whole span once, so that the measured writes overwrite. False when stopped.
bool prefill(const WriteOptions& options, const WritePlan& plan, Target& target, const Memory& memory,
             const StopClock& stop) {
  fill_payload({memory.data(), memory.size()}, ~options.seed, 0, 0);
  const std::uint64_t span = plan.span_bytes(options.block_bytes);
  for (std::uint64_t offset = 0; offset < span; offset += memory.size()) {
    if (stop.asked()) return false;
    call_within(stop, StopClock::kAnswerNs, to_ns(options.stall_limit_s),
                plan.target.path + ": the write before the measurement", [&target, &memory, span, offset] {
                  target.write_block(memory.data(), std::min<std::uint64_t>(memory.size(), span - offset),
                                     offset);
                });
  }
  return true;
}

// One running load, from the opened target to the result.
class Load {
 public:
  Load(const WriteOptions& options, const WritePlan& plan, const EngineFactory& make_engine,
       const std::atomic<int>& stop_signal)
      : options_(options),
        plan_(plan),
        stop_(stop_signal),
        target_(plan.target, plan.span_bytes(options.block_bytes), options.preallocate),
        shared_{options, plan, target_.fd(), stop_},
        lines_(options.line_protocol_path, options.tags, "write") {
    for (std::uint32_t i = 0; i < options.threads; ++i)
      workers_.push_back(std::make_unique<SyntheticWorker>(shared_, i, make_engine));
  }

  WriteResult run(std::int64_t since_ns) {
    if (options_.keep) target_.keep();
    result_.started_utc_ns = utc_ns();
    try {
      const bool ready = prepare();
      result_.prepare_ns = monotonic_ns() - since_ns;
      if (ready) measure();
      const std::int64_t flush_from_ns = monotonic_ns();
      if (!unanswered()) flush();
      result_.flush_ns = monotonic_ns() - flush_from_ns;
      target_.require_in_place();
    } catch (const Unanswered& failure) {
      held_ = true;
      if (!stop_.asked()) note(failure.what());
      result_.error = failure.what();
    } catch (const std::exception& failure) {
      note(failure.what());
    }
    collect();
    return std::move(result_);
  }

  // The kernel may still use target and memory.
  bool unanswered() const {
    return held_ || std::any_of(workers_.begin(), workers_.end(),
                                [](const auto& worker) { return worker->unanswered_bytes() > 0; });
  }

 private:
  // False when stopped.
  bool prepare() {
    if (!options_.overwrite) {
      // A large drive takes its time to discard: only an interruption ends the waiting.
      call_within(stop_, StopClock::kAnswerNs, INT64_MAX, plan_.target.path + ": the discard",
                  [this] { target_.discard(plan_.span_bytes(options_.block_bytes)); });
      return true;
    }
    prefill_memory_.emplace(std::size_t{8} << 20, plan_.target.numa_node);
    if (!prefill(options_, plan_, target_, *prefill_memory_, stop_)) return false;
    flush();
    prefill_memory_.reset();
    return true;
  }

  void flush() {
    call_within(stop_, StopClock::kCloseNs, to_ns(options_.stall_limit_s), plan_.target.path + ": the flush",
                [this] { target_.flush(); });
  }

  void measure() {
    const CpuUse before = process_cpu_use();
    start_ns_ = monotonic_ns() + 2'000'000;  // all threads are up before it
    shared_.start_ns.store(start_ns_, std::memory_order_relaxed);
    const std::int64_t deadline =
        options_.duration_s > 0 ? start_ns_ + to_ns(options_.duration_s) : INT64_MAX;
    std::atomic<std::size_t> running{workers_.size()};
    Ticker ticker;
    std::vector<WorkerThread> threads;
    const auto ended = [&](bool failed) {
      if (failed) shared_.failed.store(true, std::memory_order_relaxed);
      if (running.fetch_sub(1) == 1) ticker.finish();
    };
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const auto work = [this, i, deadline] {
        pin_this_thread(plan_.placement.cpus[i]);
        sleep_until_monotonic_ns(start_ns_);
        workers_[i]->run(deadline);
      };
      try {
        threads.emplace_back(work, ended);
      } catch (const Failure& failure) {
        note(failure.what());
        ended(true);
      }
    }
    ticker.run(start_ns_, options_.interval_s, [this] { sample(); });
    for (WorkerThread& thread : threads) join(thread);
    sample();
    result_.cpu = process_cpu_use() - before;
  }

  void join(WorkerThread& thread) {
    try {
      thread.join();
    } catch (const std::exception& failure) {
      note(std::string("a writing thread ended: ") + failure.what());
    }
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
    result_.engine_features = workers_.front()->engine_features();
    std::string given_up;  // what an interruption did not wait for is said, and is no failure
    for (const auto& worker : workers_) {
      result_.threads.push_back(worker->result());
      result_.bytes += worker->bytes();
      result_.unanswered_bytes += worker->unanswered_bytes();
      result_.write_ns = std::max(result_.write_ns, result_.threads.back().end_ns);
      result_.latency_ns.add(worker->latency_ns());
      if (worker->interrupted()) given_up = worker->error();
      if (!worker->interrupted()) note(worker->error());
    }
    if (result_.error.empty()) result_.error = given_up;
    const bool signalled = stop_.asked();
    const bool all = result_.bytes == total_bytes();
    result_.ended_by = failed_     ? "error"
                       : all       ? (options_.bytes > 0 ? "bytes" : "span")
                       : signalled ? "signal"
                                   : "duration";
    if (signalled && !all) result_.status = RunStatus::interrupted;
    if (failed_) result_.status = RunStatus::failed;
  }

  // The first failure is the cause.
  void note(const std::string& failure) {
    if (failure.empty()) return;
    if (!failed_) result_.error = failure;
    failed_ = true;
  }

  const WriteOptions& options_;
  const WritePlan& plan_;
  StopClock stop_;
  Target target_;
  std::optional<Memory> prefill_memory_;
  SharedLoad shared_;
  LineProtocol lines_;
  std::vector<std::unique_ptr<SyntheticWorker>> workers_;
  std::int64_t start_ns_ = 0;
  std::uint64_t seen_bytes_ = 0;
  bool failed_ = false;
  bool held_ = false;  // a call on the target has not returned
  WriteResult result_;
};

}  // namespace

WriteResult failed_write(const WriteOptions& options, const std::string& error) {
  WriteResult result;
  result.status = RunStatus::failed;
  result.error = error;
  result.ended_by = "error";
  result.started_utc_ns = utc_ns();
  result.threads.resize(options.threads);
  return result;
}

WriteResult run_write(const WriteOptions& options, const WritePlan& plan, const EngineFactory& make_engine,
                      const std::atomic<int>& stop_signal) {
  const std::int64_t since = monotonic_ns();
  const auto load = std::make_shared<Load>(options, plan, make_engine, stop_signal);
  WriteResult result = load->run(since);
  if (load->unanswered()) keep_until_exit(load);
  return result;
}

}  // namespace daqwriter
