#include "record/record_writer.h"

#include <algorithm>

namespace daqwriter {
namespace {

// The limit for all writers together; at 8 MiB a block, 8.8 TB.
constexpr std::size_t kMostCompletionsKept = std::size_t{1} << 20;

// Shares the links as evenly as possible; each writer gets at least one.
LinkRange links_of(std::uint32_t writer, const MiniDaqOptions& options) {
  const std::uint32_t first = writer * options.links / options.writers;
  return {first, (writer + 1) * options.links / options.writers - first};
}

}  // namespace

RecordWriter::RecordWriter(const MiniDaqOptions& options, const MiniDaqPlan& plan,
                           const ApplicationPlan& application, std::uint32_t number, RunControl& control)
    : options_(options),
      plan_(plan),
      mine_(application),
      number_(number),
      links_(links_of(number, options)),
      control_(control),
      memory_(BlockWriter::buffer_count(options.io_depth) * options.block_bytes, mine_.target.numa_node) {}

void RecordWriter::open(const EngineFactory& make_engine, int fd, const Memory& rings) {
  engine_ = make_engine(options_.io_depth);
  const std::size_t ring_bytes = plan_.slots_per_link * options_.superchunk_bytes;
  const std::array<iovec, 2> memory = {
      iovec{rings.data() + links_.first * ring_bytes, links_.count * ring_bytes},
      iovec{memory_.data(), memory_.size()}};
  engine_->register_memory(memory);
  engine_->register_file(fd);
}

void RecordWriter::build(Rings& rings, ReadoutEmulator& source, const ArrivalSchedule& schedule, int fd,
                         std::optional<Framing> framing) {
  rings_ = &rings;
  source_ = &source;
  schedule_ = &schedule;
  if (framing) framing->frame.writer = number_;
  ledger_ =
      std::make_unique<DurabilityLedger>(options_.links, control_.start_ns,
                                         Arrivals{[this](std::int64_t t) { return due_bytes(t); },
                                                  [this] { return accepted() * options_.superchunk_bytes; }});
  const std::size_t beside = plan_.applications.size() * options_.writers;
  if (beside > 1) ledger_->keep_history(kMostCompletionsKept / beside);
  data_ = std::make_unique<DataWriter>(
      rings, source, control_.stop, DataWriter::Config{options_.checksum, links_, plan_.chunk, plan_.window});
  blocks_ = std::make_unique<BlockWriter>(
      BlockWriter::Config{.fd = fd,
                          .target = mine_.target.path,
                          .start_offset = mine_.base + mine_.target.alignment,
                          .block_bytes = options_.block_bytes,
                          .alignment = mine_.target.alignment,
                          .depth = options_.io_depth,
                          .released = [this](std::uint64_t lease) { data_->released(lease); },
                          .stall_ns = to_ns(options_.stall_limit_s),
                          .stop = &control_.stop,
                          .watch = &watch_,
                          .framing = framing,
                          .clock = thread_cpu_ns},
      *engine_, *ledger_, memory_.data());
  data_->attach(*blocks_, *ledger_);
}

void RecordWriter::run() {
  pin_this_thread(mine_.writers[number_].writer_cpus());
  data_->run();
  drained_ns_ = monotonic_ns() - control_.start_ns;
}

// Superchunks that the links of this writer have handed over, or requests asked of them.
std::uint64_t RecordWriter::accepted() const {
  if (options_.triggered()) return source_->accepted();
  std::uint64_t sum = 0;
  for (std::uint32_t link = links_.first; link < links_.end(); ++link) sum += (*rings_)[link]->head();
  return sum;
}

// The losses may be read only when the source has finished, see finished().
std::uint64_t RecordWriter::offered() const {
  if (options_.triggered()) return source_->offered();
  std::uint64_t sum = accepted();
  for (std::uint32_t link = links_.first; link < links_.end() && source_->finished(); ++link)
    sum += source_->lost_per_link()[link];
  return sum;
}

// By intended time where there is one; once the source has stopped early, never more than it had to offer.
std::uint64_t RecordWriter::due_bytes(std::int64_t t_ns) const {
  const bool stopped = source_->finished() && control_.stop_signal.load(std::memory_order_relaxed) != 0;
  if (options_.unpaced || options_.triggered()) return offered() * options_.superchunk_bytes;
  std::uint64_t due = 0;
  for (std::uint32_t link = links_.first; link < links_.end(); ++link) due += schedule_->due_by(link, t_ns);
  return (stopped ? std::min(due, offered()) : due) * options_.superchunk_bytes;
}

void RecordWriter::add_to(ApplicationResult& r) const {
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

}  // namespace daqwriter
