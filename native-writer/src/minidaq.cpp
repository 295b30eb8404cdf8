#include "minidaq.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "block_writer.h"
#include "data_writer.h"
#include "memory.h"
#include "status.h"

namespace daqwriter {
namespace {

std::vector<int> only(std::optional<int> cpu) {
  return cpu ? std::vector<int>{*cpu} : std::vector<int>{};
}

// One running record: owns the threads and what they share. Members are destroyed in reverse order: the
// engine (which waits for the kernel) goes before the memory that the kernel may still be reading.
class Record {
 public:
  Record(const MiniDaqOptions& options, const MiniDaqPlan& plan, const std::atomic<int>& stop_signal)
      : options_(options),
        plan_(plan),
        stop_signal_(stop_signal),
        schedule_(options.links, plan.rate_hz, options.duration_s),
        ring_memory_(options.links * plan.slots_per_link * options.superchunk_bytes, plan.target.numa_node),
        block_memory_(
            BlockWriter::buffer_count(options.io_depth) * options.block_bytes + plan.target.alignment,
            plan.target.numa_node) {
    result_.record_id = options.record_id ? *options.record_id : random_record_id();
    result_.memory_locked = ring_memory_.locked() && block_memory_.locked();
    for (std::uint32_t link = 0; link < options.links; ++link) {
      std::byte* memory = ring_memory_.data() + link * plan.slots_per_link * options.superchunk_bytes;
      rings_.push_back(std::make_unique<LinkRing>(memory, plan.slots_per_link, options.superchunk_bytes));
    }
    prepare_rings(rings_, options.seed, result_.record_id, options.checksum);
  }

  MiniDaqResult run(const EngineFactory& make_engine, std::int64_t prepared_since_ns) {
    target_ = std::make_unique<Target>(plan_.target, plan_.record_bytes, options_.preallocate);
    lines_ = std::make_unique<LineProtocol>(options_.line_protocol_path, options_.tags, "minidaq");
    engine_ = make_engine(options_.io_depth);
    result_.engine = engine_->name();
    result_.started_utc_ns = utc_ns();
    write_header();
    target_->flush();  // the start of the record is on the medium before its first superchunk
    target_->keep();
    result_.prepare_ns = monotonic_ns() - prepared_since_ns;
    record();
    return std::move(result_);
  }

 private:
  std::span<std::byte> control_block() {  // behind the block buffers: header and trailer are built here
    return {block_memory_.data() + block_memory_.size() - plan_.target.alignment, plan_.target.alignment};
  }

  void write_header() {
    encode_record_header({result_.record_id, options_.seed, result_.started_utc_ns, options_.links,
                          options_.superchunk_bytes, plan_.slots_per_link, plan_.rate_hz, options_.duration_s,
                          options_.checksum, plan_.target.alignment, plan_.intended_superchunks},
                         control_block());
    target_->write_block(control_block().data(), control_block().size(), 0);
  }

  void record() {
    source_ = std::make_unique<LinkSource>(rings_, schedule_, stop_signal_, abort_);
    const CpuUse before = process_cpu_use();
    start_ns_ = monotonic_ns() + 1'000'000;  // the threads are up before the first superchunk is due
    ledger_ = std::make_unique<DurabilityLedger>(
        options_.links, start_ns_,
        Arrivals{[this](std::int64_t t) { return due_by(t) * options_.superchunk_bytes; },
                 [this] { return source_->accepted() * options_.superchunk_bytes; }});
    blocks_ = std::make_unique<BlockWriter>(
        BlockWriter::Config{target_->fd(), plan_.target.path, plan_.target.alignment, options_.block_bytes,
                            plan_.target.alignment, options_.io_depth},
        *engine_, *ledger_, block_memory_.data());
    writer_ =
        std::make_unique<DataWriter>(rings_, *source_, *blocks_, *ledger_, stop_signal_, options_.checksum);
    run_threads();
    close_record();
    result_.cpu = process_cpu_use() - before;
    collect();
  }

  // Superchunks due by a time; once the source has stopped, never more than it had to offer.
  std::uint64_t due_by(std::int64_t t_ns) const {
    const bool stopped = source_->finished() && stop_signal_.load(std::memory_order_relaxed) != 0;
    const std::uint64_t due = schedule_.due_by(t_ns);
    return stopped ? std::min(due, source_->offered()) : due;
  }

  void run_threads() {
    std::thread source([this] {
      pin_this_thread(only(plan_.placement.source_cpu));
      source_->run(start_ns_, writer_done_);
    });
    std::thread writer([this] {
      pin_this_thread(only(plan_.placement.writer_cpu));
      writer_->run();
      result_.drain_ns = monotonic_ns();
      abort_.store(blocks_->failed(), std::memory_order_relaxed);
      // Release: whoever sees it also sees the end state of the ledger and the rings.
      writer_done_.store(true, std::memory_order_release);
      const std::lock_guard lock(mutex_);
      wake_.notify_all();
    });
    report_while_running();
    writer.join();
    source.join();
    sample();
  }

  void report_while_running() {
    const auto done = [this] { return writer_done_.load(std::memory_order_acquire); };
    const auto interval = std::chrono::nanoseconds(std::llround(options_.interval_s * 1e9));
    auto next = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(start_ns_)) + interval;
    for (std::unique_lock lock(mutex_); !wake_.wait_until(lock, next, done); next += interval) sample();
  }

  void sample() {
    const std::uint64_t size = options_.superchunk_bytes;
    const std::int64_t t = monotonic_ns() - start_ns_;
    const std::uint64_t offered = source_->offered() * size;
    const std::uint64_t stored = ledger_->durable_bytes();
    const std::uint64_t accepted = source_->accepted() * size;
    const std::uint64_t backlog = accepted > stored ? accepted - stored : 0;
    Series& series = result_.series;
    series.t_s.push_back(seconds(t));
    series.offered_bytes.push_back(offered - seen_offered_);
    series.stored_bytes.push_back(stored - seen_stored_);
    series.backlog_bytes.push_back(backlog);
    seen_offered_ = offered;
    seen_stored_ = stored;
    lines_->write(source_->finished() ? "drain" : "record", {{"offered_bytes", offered},
                                                             {"stored_bytes", stored},
                                                             {"backlog_bytes", backlog},
                                                             {"busy_count", source_->busy_count()},
                                                             {"lost_superchunks", source_->lost()},
                                                             {"elapsed_s", seconds(t)},
                                                             {"total_s", options_.duration_s}});
  }

  // Data first, made durable, then the trailer that vouches for it, made durable too.
  void close_record() {
    const std::int64_t drained_ns = result_.drain_ns;
    result_.written_bytes = plan_.target.alignment + blocks_->completed_bytes();
    try {
      if (blocks_->failed()) {
        fail(blocks_->error().text + "; the record is incomplete: " +
             std::to_string(ledger_->superchunks_stored()) + " superchunks are stored without a gap");
        target_->truncate_file(blocks_->completed_end());
        target_->flush();
      } else {
        if (stop_signal_.load(std::memory_order_relaxed) != 0) result_.status = RunStatus::interrupted;
        target_->truncate_file(blocks_->end_offset() + plan_.target.alignment);
        target_->flush();
        write_trailer();
        target_->flush();
        result_.written_bytes += plan_.target.alignment;
      }
    } catch (const Failure& failure) {
      fail(failure.what());
    }
    const std::int64_t end_ns = monotonic_ns();
    result_.record_ns = source_->emission_ns();
    result_.drain_ns = std::max<std::int64_t>(0, drained_ns - start_ns_ - result_.record_ns);
    result_.flush_ns = end_ns - drained_ns;
    result_.total_ns = std::max<std::int64_t>(0, end_ns - start_ns_);
  }

  void write_trailer() {
    std::vector<LinkAccount> accounts = ledger_->accounts();
    for (std::size_t link = 0; link < accounts.size(); ++link)
      accounts[link].lost = source_->lost_per_link()[link];
    const bool interrupted = result_.status == RunStatus::interrupted;
    encode_trailer({result_.record_id, interrupted ? TrailerStatus::interrupted : TrailerStatus::complete,
                    ledger_->superchunks_stored(), ledger_->durable_bytes(), utc_ns(), std::move(accounts)},
                   control_block());
    target_->write_block(control_block().data(), control_block().size(), blocks_->end_offset());
  }

  void fail(const std::string& text) {
    result_.status = RunStatus::failed;
    if (result_.error.empty()) result_.error = text;
  }

  void collect() {
    result_.offered = source_->offered();
    result_.due = schedule_.due_by(std::min(result_.record_ns, schedule_.duration_ns()));
    result_.due = std::max(result_.due, result_.offered);
    result_.stored = ledger_->superchunks_stored();
    result_.payload_bytes = result_.stored * options_.superchunk_bytes;
    result_.padding_bytes = blocks_->padding_bytes();
    result_.lost_per_link = source_->lost_per_link();
    result_.worst_lateness_ns = source_->worst_lateness_ns();
    result_.late_superchunks = source_->late_superchunks();
    result_.busy = source_->busy();
    result_.held = ledger_->held();
    result_.service_curve = ledger_->service_curve();
    result_.latency_ns = ledger_->latency_ns();
    result_.write_latency_ns = ledger_->write_latency_ns();
    result_.writer_cpu = writer_->cpu();
    result_.source_cpu = source_->cpu();
    result_.copy_ns = writer_->copy_ns();
    result_.failed_line_records = lines_->failed_records();
  }

  const MiniDaqOptions& options_;
  const MiniDaqPlan& plan_;
  const std::atomic<int>& stop_signal_;
  MiniDaqResult result_;
  ArrivalSchedule schedule_;
  Memory ring_memory_;
  Memory block_memory_;
  std::vector<std::unique_ptr<LinkRing>> rings_;
  std::unique_ptr<Target> target_;
  std::unique_ptr<LineProtocol> lines_;
  std::unique_ptr<IoEngine> engine_;
  std::int64_t start_ns_ = 0;
  std::atomic<bool> abort_{false};
  std::atomic<bool> writer_done_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::unique_ptr<LinkSource> source_;
  std::unique_ptr<DurabilityLedger> ledger_;
  std::unique_ptr<BlockWriter> blocks_;
  std::unique_ptr<DataWriter> writer_;
  std::uint64_t seen_offered_ = 0;
  std::uint64_t seen_stored_ = 0;
};

}  // namespace

MiniDaqResult run_minidaq(const MiniDaqOptions& options, const MiniDaqPlan& plan,
                          const EngineFactory& make_engine, const std::atomic<int>& stop_signal) {
  const std::int64_t since = monotonic_ns();
  return Record(options, plan, stop_signal).run(make_engine, since);
}

}  // namespace daqwriter
