#include "write/synthetic.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "base/memory.h"
#include "format/payload.h"
#include "io/run.h"
#include "report/line_protocol.h"
#include "write/synthetic_worker.h"

namespace daqwriter {
namespace {

// Writes the whole span once, each page with its own stamp: the measured writes overwrite it, and the
// measured reads know what they must find. False when stopped.
bool prefill(const WriteOptions& options, const WriteTargetPlan& plan, Target& target, const Memory& memory,
             const StopClock& stop) {
  fill_payload({memory.data(), memory.size()}, ~options.seed, 0, 0);
  const std::uint64_t span = plan.span_bytes(options.block_bytes);
  for (std::uint64_t offset = 0; offset < span; offset += memory.size()) {
    if (stop.asked()) return false;
    if (!options.zeros) stamp_pages({memory.data(), memory.size()}, offset, kPrefillTurn);
    CallLimits{options.stall_limit_s, &stop}.within(
        plan.target.path + ": the write before the measurement", [&target, &memory, span, offset] {
          target.write_block(memory.data(), std::min<std::uint64_t>(memory.size(), span - offset), offset);
        });
  }
  return true;
}

// One target of a running load, from its opening to its result.
class TargetLoad {
 public:
  TargetLoad(SharedLoad& shared, const WriteTargetPlan& plan, const EngineFactory& make_engine)
      : shared_(shared),
        options_(shared.options),
        plan_(plan),
        target_(
            open_target(plan.target, span_, options_.preallocate, {options_.stall_limit_s, &shared.stop})) {
    for (std::uint32_t i = 0; i < options_.threads; ++i)
      workers_.push_back(std::make_unique<SyntheticWorker>(shared, plan, target_->fd(), i, make_engine));
  }

  void keep() { target_->keep(); }

  // False when stopped, or when it failed.
  bool prepare() {
    bool ready = false;
    broken_ = !guarded([&] { ready = make_ready(); });
    return ready;
  }

  // Starts the threads; `ended` is called for each of them, also when it could not be started.
  void start(Crew& crew, std::int64_t deadline_ns, const std::function<void(bool failed)>& ended) {
    const std::int64_t start_ns = shared_.start_ns.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const auto work = [this, i, start_ns, deadline_ns] {
        pin_this_thread(plan_.placement.cpus[i]);
        sleep_until_monotonic_ns(start_ns);
        workers_[i]->run(deadline_ns);
      };
      crew.start(
          work, ended, [this](const std::string& failure) { note(failure, 0); },
          [this, i] { return workers_[i]->unanswered_bytes() > 0; },
          [this, i] { return workers_[i]->lost(); });
    }
  }

  // Makes durable what was written, and closes the target.
  void finish() {
    if (!broken_ && !unanswered()) {
      guarded([this] {
        const std::int64_t from_ns = monotonic_ns();
        flush();
        result_.flush_ns = monotonic_ns() - from_ns;
        // Where a write failed, that is the cause, and nobody vouches for the file.
        const bool sound = std::all_of(workers_.begin(), workers_.end(),
                                       [](const auto& worker) { return worker->error().text.empty(); });
        if (sound)
          within("looking whether it is whole",
                 [this, stored = stored_bytes()] { target_->require_whole(stored); });
      });
    }
    if (unanswered()) return;  // a target that does not answer would hold us here too
    try {
      within("closing it", [this] { target_->close(); });
    } catch (const Unanswered& failure) {
      held_ = true;  // what was written is stored all the same
      if (!shared_.stop.asked()) note(failure.what(), 0);
    }
  }

  bool broken() const { return broken_; }  // it could not be prepared

  // The kernel may still use target and memory.
  bool unanswered() const {
    return held_ || std::any_of(workers_.begin(), workers_.end(),
                                [](const auto& worker) { return worker->unanswered_bytes() > 0; });
  }

  std::uint64_t written_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& worker : workers_) bytes += worker->bytes();
    return bytes;
  }

  std::uint64_t total_bytes() const {
    if (plan_.blocks_per_thread == UINT64_MAX) return UINT64_MAX;
    return plan_.blocks_per_thread * options_.threads * options_.block_bytes;
  }

  const WriteTargetResult& result() {
    result_.engine_note = workers_.front()->engine_note();
    result_.engine_features = workers_.front()->engine_features();
    for (const auto& worker : workers_) {
      result_.threads.push_back(worker->result());
      result_.bytes += worker->bytes();
      result_.unanswered_bytes += worker->unanswered_bytes();
      result_.write_ns = std::max(result_.write_ns, result_.threads.back().end_ns);
      result_.latency_ns.add(worker->latency_ns());
      const IoError& error = worker->error();
      worker->interrupted() ? give_up(error.text) : note(error.text, error.target_errno);
    }
    const bool signalled = shared_.stop.asked();
    const bool all = result_.bytes == total_bytes();
    // Another target's failure ends this one too.
    const bool cut_short = !all && !signalled && shared_.failed.load(std::memory_order_relaxed);
    result_.ended_by = failed_ || cut_short ? "error"
                       : all                ? (options_.bytes > 0 ? "bytes" : "span")
                       : signalled          ? "signal"
                                            : "duration";
    if ((signalled && !all) || cut_short) result_.status = RunStatus::interrupted;
    if (failed_) result_.status = RunStatus::failed;
    return result_;
  }

 private:
  bool make_ready() {
    if (!options_.prefilled()) {
      // A large drive takes its time to discard: it answers piece by piece.
      static constexpr std::uint64_t kPiece = std::uint64_t{4} << 30;
      const std::uint64_t end = plan_.target.kind == TargetKind::raw_device ? span_ : 0;
      for (std::uint64_t at = 0; at < end; at += kPiece) {
        if (shared_.stop.asked()) return false;
        CallLimits{options_.stall_limit_s, &shared_.stop}.within(
            plan_.target.path + ": the discard from offset " + std::to_string(at) + " on",
            [this, at, end] { target_->discard(at, std::min(kPiece, end - at)); });
      }
      return true;
    }
    prefill_memory_.emplace(std::size_t{8} << 20, plan_.target.numa_node);
    if (!prefill(options_, plan_, *target_, *prefill_memory_, shared_.stop)) return false;
    flush();
    prefill_memory_.reset();
    prefilled_ = true;
    return true;
  }

  void flush() {
    within("the flush", [this] {
      target_->flush();
      target_->require_in_place();
    });
  }

  // That the file must hold. A file system may keep zeros as holes.
  std::uint64_t stored_bytes() const {
    if (options_.zeros) return 0;
    return prefilled_ ? span_ : written_bytes();
  }

  void within(const char* what, const std::function<void()>& call) {
    CallLimits{options_.stall_limit_s, &shared_.stop, StopClock::kCloseNs}.within(
        plan_.target.path + ": " + what, call);
  }

  bool guarded(const std::function<void()>& work) {
    try {
      work();
      return true;
    } catch (const Unanswered& failure) {
      held_ = true;
      shared_.stop.asked() ? give_up(failure.what()) : note(failure.what(), 0);
    } catch (const std::exception& failure) {
      note(failure.what(), target_errno_of(failure));
    }
    return false;
  }

  // An interruption did not wait for it: that is said, and is no failure.
  void give_up(const std::string& what) {
    if (result_.error.empty()) result_.error = what;
  }

  // The first failure is the cause.
  void note(const std::string& failure, int target_errno) {
    if (failure.empty()) return;
    if (!failed_) result_.error = failure;
    if (!failed_) result_.target_errno = target_errno;
    failed_ = true;
  }

  SharedLoad& shared_;
  const WriteOptions& options_;
  const WriteTargetPlan& plan_;
  const std::uint64_t span_ = plan_.span_bytes(options_.block_bytes);
  std::shared_ptr<Target> target_;
  std::optional<Memory> prefill_memory_;
  std::vector<std::unique_ptr<SyntheticWorker>> workers_;
  bool prefilled_ = false;
  bool broken_ = false;
  bool failed_ = false;
  bool held_ = false;  // a call on the target has not returned
  WriteTargetResult result_;
};

// A running load on all its targets: they are prepared, start and end together.
class Load {
 public:
  Load(const WriteOptions& options, const WritePlan& plan, const EngineFactory& make_engine,
       const std::atomic<int>& stop_signal)
      : options_(options),
        plan_(plan),
        names_(options.targets()),
        stop_(stop_signal),
        shared_{options_, stop_} {
    for (const WriteTargetPlan& each : plan_.targets)
      targets_.push_back(std::make_unique<TargetLoad>(shared_, each, make_engine));
    lines_ = std::make_unique<LineProtocol>(options.line_protocol_path, options.tags, options.command());
  }

  WriteResult run(std::int64_t since_ns) {
    for (const auto& target : targets_) {
      if (options_.keep) target->keep();
    }
    result_.started_utc_ns = utc_ns();
    std::atomic<bool> ready{true};
    run_at_once(targets_.size(), [&](std::size_t i) {
      if (!targets_[i]->prepare()) ready.store(false, std::memory_order_relaxed);
    });
    const bool broken = any(&TargetLoad::broken);
    if (broken) shared_.failed.store(true, std::memory_order_relaxed);
    if (!broken) result_.prepare_ns = monotonic_ns() - since_ns;
    if (ready) measure();
    run_at_once(targets_.size(), [this](std::size_t i) { targets_[i]->finish(); });
    for (const auto& target : targets_) {
      result_.targets.push_back(target->result());
      result_.add(result_.targets.back());
    }
    return std::move(result_);
  }

  bool unanswered() const { return any(&TargetLoad::unanswered); }

 private:
  bool any(bool (TargetLoad::*is)() const) const {
    return std::any_of(targets_.begin(), targets_.end(),
                       [is](const auto& target) { return ((*target).*is)(); });
  }

  void measure() {
    const CpuUse before = process_cpu_use();
    // All threads are up before it.
    start_ns_ = monotonic_ns() + 2'000'000 * static_cast<std::int64_t>(targets_.size());
    shared_.start_ns.store(start_ns_, std::memory_order_relaxed);
    const std::int64_t deadline =
        options_.duration_s > 0 ? start_ns_ + to_ns(options_.duration_s) : INT64_MAX;
    Crew crew(targets_.size() * options_.threads);
    const auto ended = [&](bool failed) {
      if (failed) shared_.failed.store(true, std::memory_order_relaxed);
      crew.one_ended();
    };
    for (const auto& target : targets_) target->start(crew, deadline, ended);
    crew.run_to_end(start_ns_, options_.interval_s, [this] { sample(); });
    result_.cpu = process_cpu_use() - before;
  }

  void write_line(std::uint64_t bytes, std::uint64_t total_bytes, double t, const Tags& more) {
    const double by_bytes = static_cast<double>(bytes) / static_cast<double>(total_bytes);
    const double share = options_.duration_s > 0 ? std::max(t / options_.duration_s, by_bytes) : by_bytes;
    lines_->write(options_.command(),
                  {{options_.reads ? "read_bytes" : "written_bytes", bytes},
                   {"elapsed_s", t},
                   {"total_s", share > 0 ? t / std::min(share, 1.0) : t}},
                  more);
  }

  // The sum comes last: who reads the last line has it.
  void sample() {
    const double t = seconds(monotonic_ns() - start_ns_);
    std::uint64_t bytes = 0;
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const std::uint64_t its_bytes = targets_[i]->written_bytes();
      const std::uint64_t its_total = targets_[i]->total_bytes();
      if (targets_.size() > 1) write_line(its_bytes, its_total, t, {{kTargetTag, names_[i]}});
      bytes += its_bytes;
      total = its_total > UINT64_MAX - total ? UINT64_MAX : total + its_total;
    }
    result_.series_t_s.push_back(t);
    result_.series_bytes.push_back(bytes - seen_bytes_);
    seen_bytes_ = bytes;
    write_line(bytes, total, t, {});
  }

  // Its own: a thread that a call holds may come back after the caller's are gone.
  const WriteOptions options_;
  const WritePlan plan_;
  const std::vector<std::string> names_;
  StopClock stop_;
  SharedLoad shared_;
  std::vector<std::unique_ptr<TargetLoad>> targets_;
  std::unique_ptr<LineProtocol> lines_;
  std::int64_t start_ns_ = 0;
  std::uint64_t seen_bytes_ = 0;
  WriteResult result_;
};

// How far an end was from what was asked for.
std::size_t rank(const std::string& ended_by) {
  constexpr std::array<std::string_view, 3> kWorse = {"duration", "signal", "error"};
  const auto found = std::find(kWorse.begin(), kWorse.end(), ended_by);
  return found == kWorse.end() ? 0 : static_cast<std::size_t>(found - kWorse.begin()) + 1;
}

}  // namespace

// The worst end counts; times are those of the last one to end.
void WriteTargetResult::add(const WriteTargetResult& one) {
  add_end(*this, one);
  if (ended_by.empty() || rank(one.ended_by) > rank(ended_by)) ended_by = one.ended_by;
  if (engine_note.empty()) engine_note = one.engine_note;
  if (engine_features.empty()) engine_features = one.engine_features;
  write_ns = std::max(write_ns, one.write_ns);
  flush_ns = std::max(flush_ns, one.flush_ns);
  bytes += one.bytes;
  unanswered_bytes += one.unanswered_bytes;
  threads.insert(threads.end(), one.threads.begin(), one.threads.end());
  latency_ns.add(one.latency_ns);
}

std::uint64_t WritePlan::span_bytes(std::uint64_t block_bytes) const {
  std::uint64_t bytes = 0;
  for (const WriteTargetPlan& each : targets) bytes += each.span_bytes(block_bytes);
  return bytes;
}

WriteResult failed_write(const WriteOptions& options, const std::string& error) {
  WriteTargetResult one;
  one.status = RunStatus::failed;
  one.error = error;
  one.ended_by = "error";
  one.threads.resize(options.threads);
  WriteResult result;
  result.started_utc_ns = utc_ns();
  result.targets.assign(options.target_count(), one);
  for (const WriteTargetResult& each : result.targets) result.add(each);
  return result;
}

WriteResult run_write(const WriteOptions& options, const WritePlan& plan, const EngineFactory& make_engine,
                      const std::atomic<int>& stop_signal) {
  const std::int64_t since = monotonic_ns();
  const auto load = std::make_shared<Load>(options, plan, make_engine, stop_signal);
  return run_and_keep(load, [since](Load& running) { return running.run(since); });
}

}  // namespace daqwriter
