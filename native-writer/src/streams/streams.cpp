#include "streams/streams.h"

#include <algorithm>
#include <memory>

#include "base/file_identity.h"
#include "base/memory.h"
#include "io/run.h"
#include "report/line_protocol.h"

namespace daqwriter {
namespace {

// One running application. Members are destroyed in reverse order: the engines (which wait for the kernel) go
// before the memory that the kernel may still be reading.
class StreamsApplication {
 public:
  StreamsApplication(const StreamsOptions& options, const StreamsPlan& plan,
                     const std::atomic<int>& stop_signal)
      : options_(options),
        stop_signal_(stop_signal),
        stop_(stop_signal),
        plan_(plan),
        events_(options_.run),
        memory_(plan.buffer_bytes, plan.target.numa_node),
        lines_(options.line_protocol_path, options.tags, "streams") {
    const std::size_t slot_bytes = plan.slot_bytes;
    const std::uint64_t queue_bytes = round_up(events_.slots() * slot_bytes, kBlockAlignment);
    for (std::uint32_t stream = 0; stream < events_.streams(); ++stream) {
      queues_.push_back(
          std::make_unique<LinkRing>(memory_.data() + stream * queue_bytes, events_.slots(), slot_bytes));
    }
    block_memory_ = memory_.data() + events_.streams() * queue_bytes;
    prepare_queues(queues_, events_);
    result_.memory_locked = memory_.locked();
  }

  StreamsResult run(const EngineFactory& make_engine, std::int64_t since_ns) {
    source_ = std::make_unique<EventSource>(queues_, events_, plan_.limits, stop_signal_, abort_);
    for (std::uint32_t stream = 0; stream < events_.streams(); ++stream) {
      engines_.push_back(make_engine(options_.io_depth));
      adlers_.push_back(
          make_adler_engine(options_.checksum, options_.checksum_threads, options_.smallest_parallel_bytes));
    }
    if (!options_.null_sink) begin_manifest();
    result_.started_utc_ns = utc_ns();
    const CpuUse before = process_cpu_use();
    start_ns_ = monotonic_ns() + 2'000'000;  // all threads are up before it
    for (std::uint32_t stream = 0; stream < events_.streams(); ++stream) make_writer(stream);
    result_.prepare_ns = start_ns_ - since_ns;
    run_threads();
    collect();
    if (manifest_ && result_.status != RunStatus::failed && !unanswered_) end_manifest();
    result_.flush_ns = monotonic_ns() - start_ns_ - result_.write_ns;
    result_.cpu = process_cpu_use() - before;
    return std::move(result_);
  }

  // The kernel may still use targets and memory.
  bool unanswered() const { return unanswered_; }

 private:
  void begin_manifest() {
    const CallLimits limits{options_.stall_limit_s, &stop_};
    directory_ = plan_.target;
    if (plan_.create_directory)
      directory_ = limits.answer<TargetPlan>(options_.target + ": making it",
                                             [plan = plan_.target] { return make_directory(plan); });
    using Manifest = std::unique_ptr<ManifestWriter>;
    const auto begin = [target = options_.target, run = options_.run, prefix = options_.prefix] {
      return std::make_unique<ManifestWriter>(target, run, prefix);
    };
    manifest_ = limits.answer<Manifest>(options_.target + ": beginning the manifest", begin);
    require_in_place();
  }

  // Files and manifest are written to one directory, and the path leads to it still.
  void require_in_place() const {
    if (identity_of(options_.target) == identity_of(*directory_.directory)) return;
    throw Failure(
        "--target " + options_.target +
        ": was removed, renamed or replaced while it was written; what was written does not have this "
        "name any more");
  }

  void make_writer(std::uint32_t stream) {
    StreamWriter::Config config;
    config.stream = stream;
    config.run_id = options_.run.run_id;
    config.directory = directory_;
    config.prefix = options_.prefix;
    config.file_bytes = options_.file_bytes;
    config.preallocate = options_.preallocate;
    config.stall_ns = to_ns(options_.stall_limit_s);
    config.block_bytes = options_.block_bytes;
    config.io_depth = options_.io_depth;
    config.checksum = options_.checksum != AdlerVariant::off;
    const bool parallel = uses_threads(options_.checksum) && options_.checksum_threads > 1;
    config.smallest_parallel_bytes = parallel ? options_.smallest_parallel_bytes : 0;
    const std::size_t blocks_bytes = BlockWriter::buffer_count(options_.io_depth) * options_.block_bytes;
    writers_.push_back(std::make_unique<StreamWriter>(
        config, *queues_[stream], *source_, *engines_[stream], *adlers_[stream], manifest_.get(),
        block_memory_ + stream * blocks_bytes, start_ns_, stop_, abort_));
  }

  void run_threads() {
    Crew crew(writers_.size());
    const auto noted = [this](const std::string& failure) { note(failure, 0); };
    // First: the streams wait for its end.
    crew.start(
        [this] {
          pin_this_thread(plan_.placement.cpus.back());
          sleep_until_monotonic_ns(start_ns_);
          source_->run(start_ns_);
        },
        [this](bool failed) {
          if (failed) source_->give_up();
        },
        noted);
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      crew.start(
          [this, i] {
            pin_this_thread(plan_.placement.cpus[i]);
            writers_[i]->run();
          },
          [&](bool failed) {
            if (failed) abort_.store(true, std::memory_order_relaxed);
            crew.one_ended();
          },
          noted, [this, i] { return writers_[i]->unanswered(); }, [this, i] { return writers_[i]->lost(); });
    }
    crew.run_to_end(start_ns_, options_.interval_s, [this] { sample(); });
  }

  // The first failure is the cause.
  void note(const std::string& failure, int target_errno) {
    if (!failed_) result_.target_errno = target_errno;
    if (!failed_) result_.error = failure;
    failed_ = true;
  }

  void sample() {
    std::uint64_t written = 0;
    for (const auto& writer : writers_) written += writer->durable_bytes();
    const std::uint64_t offered = std::max(source_->offered_bytes(), written);
    const double t = seconds(monotonic_ns() - start_ns_);
    result_.series.add(t, offered, written, offered - written);
    const double by_bytes = static_cast<double>(written) / static_cast<double>(plan_.limits.bytes);
    const double share = std::max(options_.duration_s > 0 ? t / options_.duration_s : 0, by_bytes);
    lines_.write(source_->finished() ? "drain" : "record",
                 {{"offered_bytes", offered},
                  {"stored_bytes", written},
                  {"backlog_bytes", offered - written},
                  {"elapsed_s", t},
                  {"total_s", share > 0 ? t / std::min(share, 1.0) : t}});
  }

  void collect() {
    for (std::uint32_t stream = 0; stream < writers_.size(); ++stream) {
      result_.written.push_back(writers_[stream]->account());
      result_.offered_bytes.push_back(source_->offered_bytes(stream));
      const StreamWriter::Account& account = result_.written.back();
      result_.latency_ns.add(writers_[stream]->latency_ns());
      result_.write_ns = std::max(result_.write_ns, account.last_block_ns - start_ns_);
      unanswered_ = unanswered_ || account.unanswered;
      if (account.error.empty()) continue;
      // Writes that an interruption did not wait for are told, and are no failure.
      if (account.unanswered && stop_signal_.load(std::memory_order_relaxed) != 0) {
        if (result_.error.empty()) result_.error = account.error;
      } else {
        note(account.error, account.target_errno);
      }
    }
    result_.too_late_bytes = source_->too_late_bytes();
    result_.offered = source_->accounts();
    result_.due_bytes = source_->due_bytes();
    result_.emission_ns = source_->emission_ns();
    result_.source_cpu = source_->cpu();
    result_.engine_features = engines_.front()->features();
    result_.failed_line_records = lines_.failed_records();
    result_.ended_by = failed_                                                    ? "error"
                       : unanswered_                                              ? "signal"
                       : source_->ended_by().empty()                              ? "signal"
                       : source_->ended_by() == "bytes" && plan_.limited_by_space ? "space"
                                                                                  : source_->ended_by();
    if (result_.ended_by == "signal") result_.status = RunStatus::interrupted;
    if (result_.ended_by == "error") result_.status = RunStatus::failed;
  }

  void end_manifest() {
    RunEnd end{run_status_name(result_.status), {}};
    for (const StreamWriter::Account& account : result_.written) end.events.push_back(account.closed_events);
    try {
      CallLimits{options_.stall_limit_s, &stop_, StopClock::kCloseNs}.within(
          options_.target + ": closing the manifest", [this, end] { manifest_->close(end); });
      require_in_place();
    } catch (const Failure& failure) {
      unanswered_ = unanswered_ || dynamic_cast<const Unanswered*>(&failure) != nullptr;
      result_.error = failure.what();
      result_.target_errno = failure.target_errno();
      result_.ended_by = "error";
      result_.status = RunStatus::failed;
    }
  }

  // Its own: a thread that a call holds may come back after the caller's are gone.
  const StreamsOptions options_;
  const std::atomic<int>& stop_signal_;
  StopClock stop_;
  const StreamsPlan plan_;
  TargetPlan directory_;  // of the files
  EventPlan events_;
  Memory memory_;  // the queues, then the blocks
  std::byte* block_memory_ = nullptr;
  LineProtocol lines_;
  std::vector<std::unique_ptr<LinkRing>> queues_;
  std::vector<std::unique_ptr<IoEngine>> engines_;
  std::vector<std::unique_ptr<AdlerEngine>> adlers_;
  std::unique_ptr<ManifestWriter> manifest_;
  std::atomic<bool> abort_{false};
  std::unique_ptr<EventSource> source_;
  std::vector<std::unique_ptr<StreamWriter>> writers_;
  std::int64_t start_ns_ = 0;
  bool failed_ = false;
  bool unanswered_ = false;
  StreamsResult result_;
};

}  // namespace

StreamsResult failed_streams(const StreamsOptions& options, const std::string& error) {
  StreamsResult result;
  result.status = RunStatus::failed;
  result.error = error;
  result.ended_by = "error";
  result.started_utc_ns = utc_ns();
  result.offered.resize(options.run.shares.size());
  result.offered_bytes.resize(options.run.shares.size());
  result.written.resize(options.run.shares.size());
  return result;
}

StreamsResult run_streams(const StreamsOptions& options, const StreamsPlan& plan,
                          const EngineFactory& make_engine, const std::atomic<int>& stop_signal) {
  const std::int64_t since = monotonic_ns();
  const auto application = std::make_shared<StreamsApplication>(options, plan, stop_signal);
  return run_and_keep(application,
                      [&](StreamsApplication& running) { return running.run(make_engine, since); });
}

}  // namespace daqwriter
