// Promise: one writer of a record: the links that are its own, and engine, blocks, ledger and thread for
// them. A gapless record has one for all links; those of a framed record share nothing but the rings' source
// and the number of the next block.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/memory.h"
#include "base/stop_clock.h"
#include "io/block_writer.h"
#include "record/data_writer.h"
#include "record/minidaq.h"

namespace daqwriter {

// The state that the applications of a run share.
struct RunControl {
  const std::atomic<int>& stop_signal;
  StopClock stop{stop_signal};
  std::atomic<bool> abort{false};  // one of them failed
  std::int64_t start_ns = 0;
};

class RecordWriter {
 public:
  using Rings = std::vector<std::unique_ptr<LinkRing>>;

  RecordWriter(const MiniDaqOptions& options, const MiniDaqPlan& plan, const ApplicationPlan& application,
               std::uint32_t number, RunControl& control)
      : options_(options),
        plan_(plan),
        mine_(application),
        number_(number),
        links_(links_of(number, options)),
        control_(control),
        memory_(BlockWriter::buffer_count(options.io_depth) * options.block_bytes, mine_.target.numa_node) {}

  // `rings`: the memory of all links.
  void open(const EngineFactory& make_engine, int fd, const Memory& rings) {
    engine_ = make_engine(options_.io_depth);
    const std::size_t ring_bytes = plan_.slots_per_link * options_.superchunk_bytes;
    const std::array<iovec, 2> memory = {
        iovec{rings.data() + links_.first * ring_bytes, links_.count * ring_bytes},
        iovec{memory_.data(), memory_.size()}};
    engine_->register_memory(memory);
    engine_->register_file(fd);
  }

  // All outlive this.
  void build(Rings& rings, ReadoutEmulator& source, const ArrivalSchedule& schedule, int fd,
             std::optional<Framing> framing) {
    rings_ = &rings;
    source_ = &source;
    schedule_ = &schedule;
    if (framing) framing->frame.writer = number_;
    ledger_ = std::make_unique<DurabilityLedger>(
        options_.links, control_.start_ns,
        Arrivals{[this](std::int64_t t) { return due_bytes(t); },
                 [this] { return accepted() * options_.superchunk_bytes; }});
    const std::size_t beside = plan_.applications.size() * options_.writers;
    if (beside > 1) ledger_->keep_history(kMostCompletionsKept / beside);
    data_ = std::make_unique<DataWriter>(
        rings, source, control_.stop,
        DataWriter::Config{options_.checksum, links_, plan_.chunk, plan_.window});
    BlockWriter::Config config;
    config.fd = fd;
    config.target = mine_.target.path;
    config.start_offset = mine_.base + mine_.target.alignment;
    config.block_bytes = options_.block_bytes;
    config.alignment = mine_.target.alignment;
    config.depth = options_.io_depth;
    config.released = [this](std::uint64_t lease) { data_->released(lease); };
    config.stall_ns = to_ns(options_.stall_limit_s);
    config.stop = &control_.stop;
    config.watch = &watch_;
    config.framing = framing;
    config.clock = thread_cpu_ns;
    blocks_ = std::make_unique<BlockWriter>(config, *engine_, *ledger_, memory_.data());
    data_->attach(*blocks_, *ledger_);
  }

  // By its thread.
  void run() {
    pin_this_thread(mine_.writers[number_].writer_cpus());
    data_->run();
    drained_ns_ = monotonic_ns() - control_.start_ns;
  }

  // By another thread: whether that of run() is held in a call; see CallWatch.
  bool lost() { return watch_.held(control_.stop, to_ns(options_.stall_limit_s)) != nullptr; }

  const LinkRange& links() const { return links_; }
  const IoEngine& engine() const { return *engine_; }
  const BlockWriter& blocks() const { return *blocks_; }
  const DurabilityLedger& ledger() const { return *ledger_; }
  bool memory_locked() const { return memory_.locked(); }
  bool failed() const { return blocks_ && blocks_->failed(); }
  bool unanswered() const { return blocks_ && blocks_->in_flight() > 0; }
  // Before what is said of this writer, where there are several.
  std::string label() const { return options_.framed() ? "writer " + std::to_string(number_) + ": " : ""; }
  // Adds what this writer did to its application's figures; after join().
  void add_to(ApplicationResult& r) const {
    r.stored += ledger_->superchunks_stored();
    r.padding_bytes += blocks_->padding_bytes();
    r.frame_bytes += blocks_->frame_bytes();
    r.copied_bytes += data_->copied_bytes();
    r.drained_ns = std::max(r.drained_ns, drained_ns_);
    r.held.add(ledger_->held());
    r.service_curve.add(ledger_->service_curve());
    r.latency_ns.add(ledger_->latency_ns());
    r.latency_over_time.add(ledger_->latency_over_time());
    r.write_latency_ns.add(ledger_->write_latency_ns());
    r.writer_cpu = r.writer_cpu + data_->cpu();
    r.copy_ns += data_->copy_ns();
    r.writers.push_back({links_, ledger_->superchunks_stored(), blocks_->blocks(), drained_ns_, data_->cpu(),
                         ledger_->service_record()});
  }

 private:
  // The limit for all writers together; at 8 MiB a block, 8.8 TB.
  static constexpr std::size_t kMostCompletionsKept = std::size_t{1} << 20;

  // Shares the links as evenly as possible; each writer gets at least one.
  static LinkRange links_of(std::uint32_t writer, const MiniDaqOptions& options) {
    const std::uint32_t first = writer * options.links / options.writers;
    return {first, (writer + 1) * options.links / options.writers - first};
  }

  // Superchunks that the links of this writer have handed over, or requests asked of them.
  std::uint64_t accepted() const {
    if (options_.triggered()) return source_->accepted();
    std::uint64_t sum = 0;
    for (std::uint32_t link = links_.first; link < links_.end(); ++link) sum += (*rings_)[link]->head();
    return sum;
  }

  // The losses may be read only when the source has finished, see finished().
  std::uint64_t offered() const {
    if (options_.triggered()) return source_->offered();
    std::uint64_t sum = accepted();
    for (std::uint32_t link = links_.first; link < links_.end() && source_->finished(); ++link)
      sum += source_->lost_per_link()[link];
    return sum;
  }

  // By intended time where there is one; once the source has stopped early, never more than it had to offer.
  std::uint64_t due_bytes(std::int64_t t_ns) const {
    const bool stopped = source_->finished() && control_.stop_signal.load(std::memory_order_relaxed) != 0;
    if (options_.unpaced || options_.triggered()) return offered() * options_.superchunk_bytes;
    std::uint64_t due = 0;
    for (std::uint32_t link = links_.first; link < links_.end(); ++link) due += schedule_->due_by(link, t_ns);
    return (stopped ? std::min(due, offered()) : due) * options_.superchunk_bytes;
  }

  const MiniDaqOptions& options_;
  const MiniDaqPlan& plan_;
  const ApplicationPlan& mine_;
  const std::uint32_t number_;
  const LinkRange links_;
  RunControl& control_;
  const Rings* rings_ = nullptr;
  const ReadoutEmulator* source_ = nullptr;
  const ArrivalSchedule* schedule_ = nullptr;
  // Members are destroyed in reverse order: the engine (which waits for the kernel) goes before the memory
  // that the kernel may still be reading.
  Memory memory_;
  std::unique_ptr<IoEngine> engine_;
  CallWatch watch_;
  std::unique_ptr<DurabilityLedger> ledger_;
  std::unique_ptr<BlockWriter> blocks_;
  std::unique_ptr<DataWriter> data_;
  std::int64_t drained_ns_ = 0;
};

}  // namespace daqwriter
