#include "record/application.h"

#include <algorithm>

namespace daqwriter {
namespace {

std::vector<int> where(std::optional<int> cpu, const Placement& placement) {
  return cpu ? std::vector<int>{*cpu} : placement.node_cpus;
}

// Of all applications together; at 8 MiB a block, 8.8 TB.
constexpr std::size_t kMostCompletionsKept = std::size_t{1} << 20;

// Applications of one run are told apart by their record ids also when the first one was given.
RecordId record_id_of(const MiniDaqOptions& options, std::uint32_t number) {
  RecordId id = options.record_id ? *options.record_id : random_record_id();
  if (!options.record_id) return id;
  id.back() = static_cast<std::uint8_t>(id.back() + number);
  id[id.size() - 2] = static_cast<std::uint8_t>(id[id.size() - 2] + (number >> 8));
  return id;
}

}  // namespace

Application::Application(const MiniDaqOptions& options, const MiniDaqPlan& plan, std::uint32_t number,
                         RunControl& control)
    : options_(options),
      plan_(plan),
      mine_(plan.applications[number]),
      control_(control),
      schedule_(options.links, plan.rate_hz, options.duration_s),
      ring_memory_(options.links * plan.slots_per_link * options.superchunk_bytes, mine_.target.numa_node),
      block_memory_(
          BlockWriter::buffer_count(options.io_depth) * options.block_bytes + mine_.target.alignment,
          mine_.target.numa_node) {
  result_.record_id = record_id_of(options, number);
  result_.memory_features = ring_memory_.features();
  result_.memory_locked = ring_memory_.locked() && block_memory_.locked();
  for (std::uint32_t link = 0; link < options.links; ++link) {
    std::byte* memory = ring_memory_.data() + link * plan.slots_per_link * options.superchunk_bytes;
    rings_.push_back(std::make_unique<LinkRing>(memory, plan.slots_per_link, options.superchunk_bytes));
  }
  prepare_rings(rings_, options.seed, result_.record_id, options.checksum);
}

// Behind the block buffers: header and trailer are built here.
std::span<std::byte> Application::control_block() {
  return {block_memory_.data() + block_memory_.size() - mine_.target.alignment, mine_.target.alignment};
}

void Application::open(std::shared_ptr<Target> target, const EngineFactory& make_engine) {
  target_ = std::move(target);
  engine_ = make_engine(options_.io_depth);
  const std::array<iovec, 2> memory = {iovec{ring_memory_.data(), ring_memory_.size()},
                                       iovec{block_memory_.data(), block_memory_.size()}};
  engine_->register_memory(memory);
  engine_->register_file(target_->fd());
}

void Application::write_header(std::int64_t started_utc_ns) {
  RecordHeader header{result_.record_id,
                      options_.seed,
                      started_utc_ns,
                      options_.links,
                      options_.superchunk_bytes,
                      plan_.slots_per_link,
                      plan_.rate_hz,
                      options_.duration_s,
                      options_.checksum,
                      mine_.target.alignment,
                      plan_.intended_superchunks,
                      options_.triggered() ? RecordMode::triggered : RecordMode::continuous};
  try {
    within("clearing an older record's trailer", [this] { clear_old_trailer(); });
    encode_record_header(header, control_block());
    header_crc_ = header.block_crc;
    within("writing the record's header", [this] {
      target_->write_block(control_block().data(), control_block().size(), mine_.base);
      target_->flush();  // the start of the record is on the medium before its first superchunk
    });
  } catch (const Unanswered&) {
    held_ = true;
    throw;
  }
}

// An earlier record on this device may have had the same id. Its trailer, wherever it stands, is bound to the
// header that is overwritten now; where one is looked for first, none is left.
void Application::clear_old_trailer() {
  if (mine_.target.kind != TargetKind::raw_device) return;
  const std::span<std::byte> block = control_block();
  std::fill(block.begin(), block.end(), std::byte{0});
  target_->write_block(block.data(), block.size(), mine_.base + plan_.record_bytes - block.size());
}

void Application::build() {
  const std::uint64_t limit = options_.unpaced ? plan_.intended_superchunks : UINT64_MAX;
  source_ = std::make_unique<ReadoutEmulator>(
      rings_, schedule_,
      ReadoutEmulator::Config{options_.unpaced,
                              limit,
                              {plan_.window, std::max<std::uint64_t>(plan_.chunk, 1),
                               options_.unpaced ? 0 : options_.trigger_rate_hz}},
      control_.stop_signal, control_.abort);
  ledger_ = std::make_unique<DurabilityLedger>(
      options_.links, control_.start_ns,
      Arrivals{[this](std::int64_t t) { return due_bytes(t); },
               [this] { return source_->accepted() * options_.superchunk_bytes; }});
  const std::size_t beside = plan_.applications.size();
  if (beside > 1) ledger_->keep_history(kMostCompletionsKept / beside);
  writer_ = std::make_unique<DataWriter>(rings_, *source_, control_.stop,
                                         DataWriter::Config{options_.checksum, plan_.chunk, plan_.window});
  blocks_ = std::make_unique<BlockWriter>(
      BlockWriter::Config{.fd = target_->fd(),
                          .target = mine_.target.path,
                          .start_offset = mine_.base + mine_.target.alignment,
                          .block_bytes = options_.block_bytes,
                          .alignment = mine_.target.alignment,
                          .depth = options_.io_depth,
                          .released = [this](std::uint64_t lease) { writer_->released(lease); },
                          .stall_ns = to_ns(options_.stall_limit_s),
                          .stop = &control_.stop},
      *engine_, *ledger_, block_memory_.data());
  writer_->attach(*blocks_, *ledger_);
}

void Application::start(const std::function<void()>& done) {
  try {
    start_source();
    start_writer(done);
  } catch (const std::exception& failure) {
    fail(failure.what());
    writer_ended(true, done);
  }
}

void Application::start_source() {
  const auto work = [this] {
    pin_this_thread(where(mine_.placement.source_cpu, mine_.placement));
    source_->run(control_.start_ns, writer_done_);
  };
  source_thread_ = WorkerThread(work, [this](bool failed) {
    if (!failed) return;
    control_.abort.store(true, std::memory_order_relaxed);
    source_->give_up();  // the writer waits for its end
  });
}

void Application::start_writer(const std::function<void()>& done) {
  const auto work = [this] {
    pin_this_thread(where(mine_.placement.writer_cpu, mine_.placement));
    writer_->run();
    result_.drained_ns = monotonic_ns() - control_.start_ns;
  };
  writer_thread_ =
      WorkerThread(work, [this, done](bool failed) { writer_ended(failed || blocks_->failed(), done); });
}

void Application::writer_ended(bool failed, const std::function<void()>& done) {
  // Relaxed: the flag carries no data.
  if (failed) control_.abort.store(true, std::memory_order_relaxed);
  // Release: whoever sees it also sees the end state of the ledger and the rings.
  writer_done_.store(true, std::memory_order_release);
  done();
}

// By intended time where there is one; once the source has stopped early, never more than it had to offer.
std::uint64_t Application::due_bytes(std::int64_t t_ns) const {
  const bool stopped = source_->finished() && control_.stop_signal.load(std::memory_order_relaxed) != 0;
  if (options_.unpaced || options_.triggered()) return source_->offered() * options_.superchunk_bytes;
  const std::uint64_t due = schedule_.due_by(t_ns);
  return (stopped ? std::min(due, source_->offered()) : due) * options_.superchunk_bytes;
}

void Application::join() {
  for (WorkerThread* thread : {&writer_thread_, &source_thread_}) {
    try {
      thread->join();
    } catch (const std::exception& failure) {
      fail(std::string("a thread ended: ") + failure.what());
    }
  }
}

void Application::close() {
  const std::uint64_t alignment = mine_.target.alignment;
  result_.written_bytes = alignment + blocks_->completed_bytes();
  result_.unanswered_bytes = blocks_->in_flight_bytes();
  const std::string rest = "; the record is incomplete: " + std::to_string(ledger_->superchunks_stored()) +
                           " superchunks are stored without a gap";
  try {
    if (blocks_->interrupted()) return give_up(blocks_->error().text + rest);
    if (blocks_->failed()) {
      fail(blocks_->error().text + rest);
      if (unanswered()) return;  // a target that does not answer would hold us here too
      within("closing the incomplete record", [this] {
        target_->truncate_file(blocks_->completed_end());
        target_->flush();
      });
      return;
    }
    if (result_.status == RunStatus::failed) return;
    const bool early = control_.stop_signal.load(std::memory_order_relaxed) != 0 || control_.abort.load();
    if (early) result_.status = RunStatus::interrupted;
    within("closing the record", [this] {
      target_->flush();
      write_trailer();
      target_->flush();
    });
    result_.written_bytes += alignment;
  } catch (const Unanswered& failure) {
    held_ = true;
    control_.stop.asked() ? give_up(failure.what() + rest) : fail(failure.what() + rest);
  } catch (const Failure& failure) {
    fail(failure.what());
  }
}

void Application::cut() {
  try {
    if (result_.status == RunStatus::failed || unanswered()) return;
    within("giving back what was preallocated", [this] {
      target_->truncate_file(blocks_->end_offset() + mine_.target.alignment);
      target_->flush();
    });
    target_->require_in_place();
  } catch (const Unanswered&) {
    held_ = true;  // the record is whole all the same
  } catch (const Failure& failure) {
    fail(failure.what());
  }
}

void Application::within(const char* what, const std::function<void()>& call) {
  call_within(control_.stop, StopClock::kCloseNs, to_ns(options_.stall_limit_s),
              mine_.target.path + ": " + what, call);
}

// Interrupted, and the target did not answer in the time that this leaves.
void Application::give_up(const std::string& text) {
  result_.status = RunStatus::interrupted;
  result_.error += (result_.error.empty() ? "" : "; then ") + text;
}

void Application::write_trailer() {
  std::vector<LinkAccount> accounts = ledger_->accounts();
  for (std::size_t link = 0; link < accounts.size(); ++link)
    accounts[link].lost = source_->lost_per_link()[link];
  const bool interrupted = result_.status == RunStatus::interrupted;
  encode_trailer({result_.record_id,
                  interrupted ? TrailerStatus::interrupted : TrailerStatus::complete,
                  ledger_->superchunks_stored(),
                  ledger_->durable_bytes(),
                  utc_ns(),
                  std::move(accounts),
                  header_crc_,
                  {}},
                 control_block());
  target_->write_block(control_block().data(), control_block().size(), blocks_->end_offset());
}

// What fails after the cause may take back what was thought to be stored: it is said too.
void Application::fail(const std::string& text) {
  result_.status = RunStatus::failed;
  result_.error += (result_.error.empty() ? "" : "; then ") + text;
}

ApplicationResult Application::result() {
  ApplicationResult& r = result_;
  r.record_ns = source_->emission_ns();
  r.emitted = source_->emitted();
  r.due = options_.unpaced
              ? r.emitted
              : std::max(r.emitted, schedule_.due_by(std::min(r.record_ns, schedule_.duration_ns())));
  r.in_time = r.emitted - source_->too_late();
  r.offered = source_->offered();
  r.stored = ledger_->superchunks_stored();
  r.lost_per_link = source_->lost_per_link();
  r.decisions = source_->decisions();
  r.vetoed = source_->vetoed();
  r.unbuffered = source_->unbuffered();
  r.payload_bytes = r.stored * options_.superchunk_bytes;
  r.padding_bytes = blocks_->padding_bytes();
  r.copied_bytes = writer_->copied_bytes();
  r.worst_lateness_ns = source_->worst_lateness_ns();
  r.late_superchunks = source_->late_superchunks();
  r.busy = source_->busy();
  r.held = ledger_->held();
  r.service_curve = ledger_->service_curve();
  r.service_record = ledger_->service_record();
  r.latency_ns = ledger_->latency_ns();
  r.write_latency_ns = ledger_->write_latency_ns();
  r.writer_cpu = writer_->cpu();
  r.source_cpu = source_->cpu();
  r.copy_ns = writer_->copy_ns();
  return r;
}

}  // namespace daqwriter
