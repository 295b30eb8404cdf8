// Promise: one MiniDAQ application: Readout Emulator, rings, its writers, their record on the target. The
// source and each writer have a thread; everything before and after is done by the caller's thread.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/memory.h"
#include "format/payload.h"
#include "io/run.h"
#include "record/minidaq.h"
#include "record/record_writer.h"

namespace daqwriter {

class MiniDaqApplication {
 public:
  MiniDaqApplication(const MiniDaqOptions& options, const MiniDaqPlan& plan, std::uint32_t number,
                     RunControl& control)
      : options_(options),
        plan_(plan),
        mine_(plan.applications[number]),
        control_(control),
        run_key_(random_run_key()),
        schedule_(options.links, plan.rate_hz, options.duration_s),
        ring_memory_(options.links * plan.slots_per_link * options.superchunk_bytes, mine_.target.numa_node),
        control_memory_(mine_.target.alignment, mine_.target.numa_node),
        writers_left_(options.writers) {
    result_.record_id = record_id_of(options, number);
    result_.memory_features = ring_memory_.features();
    result_.memory_locked = ring_memory_.locked();
    for (std::uint32_t i = 0; i < options.writers; ++i) {
      writers_.push_back(std::make_unique<RecordWriter>(options, plan, mine_, i, control));
      result_.memory_locked = result_.memory_locked && writers_.back()->memory_locked();
    }
    for (std::uint32_t link = 0; link < options.links; ++link) {
      std::byte* memory = ring_memory_.data() + link * plan.slots_per_link * options.superchunk_bytes;
      rings_.push_back(std::make_unique<LinkRing>(memory, plan.slots_per_link, options.superchunk_bytes));
    }
    prepare_rings(rings_, payload_key(options.seed, result_.record_id, run_key_), result_.record_id,
                  options.checksum);
  }

  // Takes the opened target; nothing is written yet.
  void open(std::shared_ptr<Target> target, const EngineFactory& make_engine) {
    target_ = std::move(target);
    for (const auto& writer : writers_) writer->open(make_engine, target_->fd(), ring_memory_);
  }

  void write_header(std::int64_t started_utc_ns) {
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
    if (options_.framed()) {
      header.block_bytes = static_cast<std::uint32_t>(options_.block_bytes);
      header.writers = options_.writers;
      header.most_blocks = plan_.most_blocks;
    }
    header.run_key = run_key_;
    try {
      within("clearing an older record's trailer", [this] { clear_old_trailer(); });
      encode_record_header(header, control_block());
      header_crc_ = header.block_crc;
      within("writing the record's header", [this] {
        target_->write_block(control_block().data(), control_block().size(), mine_.base);
        target_->flush();  // the start of the record is on the medium before its first superchunk
      });
    } catch (const Unanswered& failure) {
      not_answered(failure.what());
      control_.abort.store(true, std::memory_order_relaxed);  // nothing is recorded: the others end theirs
    }
  }

  const IoEngine& engine() const { return writers_.front()->engine(); }

  // The parts that the threads run.
  void build() {
    const std::uint64_t limit = options_.unpaced ? plan_.intended_superchunks : UINT64_MAX;
    source_ = std::make_unique<ReadoutEmulator>(
        rings_, schedule_,
        ReadoutEmulator::Config{options_.unpaced,
                                limit,
                                {plan_.window, std::max<std::uint64_t>(plan_.chunk, 1),
                                 options_.unpaced ? 0 : options_.trigger_rate_hz}},
        control_.stop_signal, control_.abort);
    for (const auto& writer : writers_) writer->build(rings_, *source_, schedule_, target_->fd(), framing());
  }

  // Starts the threads; one of the crew has ended when the last writer has.
  void start(Crew& crew) {
    const auto emit = [this] {
      pin_this_thread(mine_.placement.source_cpus());
      source_->run(control_.start_ns, writer_done_);
    };
    const auto emitted = [this](bool failed) {
      if (!failed) return;
      control_.abort.store(true, std::memory_order_relaxed);
      source_->give_up();  // the writers wait for its end
    };
    crew.start(emit, emitted, [this](const std::string& failure) { fail(failure); });
    for (const auto& each : writers_) {
      RecordWriter* const writer = each.get();
      crew.start([writer] { writer->run(); },
                 [this, writer, &crew](bool failed) { writer_ended(failed || writer->failed(), crew); },
                 [this, writer](const std::string& failure) { fail(writer->label() + failure); },
                 [writer] { return writer->unanswered(); }, [writer] { return writer->lost(); });
    }
  }

  // Data first, made durable, then the trailer that vouches for it, made durable too.
  void close() {
    if (held_) return;
    const std::uint64_t alignment = mine_.target.alignment;
    result_.written_bytes = alignment;
    for (const auto& writer : writers_) {
      result_.written_bytes += writer->blocks().completed_bytes();
      result_.unanswered_bytes += writer->blocks().in_flight_bytes();
    }
    const std::string rest =
        "; the record is incomplete: " + std::to_string(stored()) + " superchunks are stored without a gap";
    try {
      if (close_failed(rest) || result_.status == RunStatus::failed) return;
      const bool early = control_.stop_signal.load(std::memory_order_relaxed) != 0 || control_.abort.load();
      if (early) result_.status = RunStatus::interrupted;
      encode_trailer();
      within("closing the record", [this, end = end_offset()] {
        target_->flush();
        target_->write_block(control_block().data(), control_block().size(), end);
        target_->flush();
      });
      result_.written_bytes += alignment;
    } catch (const Unanswered& failure) {
      not_answered(failure.what() + rest);
    } catch (const Failure& failure) {
      fail(failure.what(), failure.target_errno());
    }
  }

  // Gives back what was preallocated and not needed, and closes the target. The record is whole without it,
  // so it is not part of its time.
  void cut() {
    try {
      if (unanswered()) return;
      if (result_.status != RunStatus::failed) {
        within("giving back what was preallocated", [this, end = end_offset() + mine_.target.alignment] {
          target_->truncate_file(end);
          target_->flush();
        });
        within("looking whether the record is whole", [this, written = result_.written_bytes] {
          target_->require_in_place();
          target_->require_whole(written);
        });
      }
      within("closing it", [this] { target_->close(); });
    } catch (const Unanswered& failure) {
      held_ = true;  // the record is whole all the same
      if (!control_.stop.asked()) fail(failure.what());
    } catch (const Failure& failure) {
      fail(failure.what(), failure.target_errno());
    }
  }

  ApplicationResult result() {
    ApplicationResult& r = result_;
    r.record_ns = source_->emission_ns();
    r.emitted = source_->emitted();
    r.due = options_.unpaced
                ? r.emitted
                : std::max(r.emitted, schedule_.due_by(std::min(r.record_ns, schedule_.duration_ns())));
    r.in_time = r.emitted - source_->too_late();
    r.offered = source_->offered();
    r.lost_per_link = source_->lost_per_link();
    r.decisions = source_->decisions();
    r.vetoed = source_->vetoed();
    r.unbuffered = source_->unbuffered();
    for (const auto& writer : writers_) writer->add_to(r);
    r.payload_bytes = r.stored * options_.superchunk_bytes;
    r.worst_lateness_ns = source_->worst_lateness_ns();
    r.late_superchunks = source_->late_superchunks();
    r.busy = source_->busy();
    r.source_cpu = source_->cpu();
    return r;
  }

  // The kernel may still use target and memory: neither must be freed.
  bool unanswered() const {
    return held_ || std::any_of(writers_.begin(), writers_.end(),
                                [](const auto& writer) { return writer->unanswered(); });
  }

  // Momentary, by any thread.
  const ReadoutEmulator& source() const { return *source_; }
  const ArrivalSchedule& schedule() const { return schedule_; }
  const std::vector<std::unique_ptr<RecordWriter>>& writers() const { return writers_; }
  std::uint64_t durable_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& writer : writers_) sum += writer->ledger().durable_bytes();
    return sum;
  }

 private:
  // Applications of one run are told apart by their record ids also when the first one was given.
  static RecordId record_id_of(const MiniDaqOptions& options, std::uint32_t number) {
    RecordId id = options.record_id ? *options.record_id : random_record_id();
    if (!options.record_id) return id;
    id.back() = static_cast<std::uint8_t>(id.back() + number);
    id[id.size() - 2] = static_cast<std::uint8_t>(id[id.size() - 2] + (number >> 8));
    return id;
  }

  static std::uint64_t random_run_key() {
    std::uint64_t key = 0;
    std::memcpy(&key, random_record_id().data(), sizeof key);
    return std::max<std::uint64_t>(key, 1);
  }

  std::span<std::byte> control_block() { return {control_memory_.data(), mine_.target.alignment}; }

  std::optional<Framing> framing() {
    if (!options_.framed()) return std::nullopt;
    return Framing{.frame = {.record_id = result_.record_id, .header_crc = header_crc_},
                   .superchunks_per_block = plan_.superchunks_per_block,
                   .superchunk_bytes = options_.superchunk_bytes,
                   .most_blocks = plan_.most_blocks,
                   .next_number = &next_number_};
  }

  std::uint64_t stored() const {
    std::uint64_t sum = 0;
    for (const auto& writer : writers_) sum += writer->ledger().superchunks_stored();
    return sum;
  }

  // Where the trailer stands.
  std::uint64_t end_offset() const {
    if (!options_.framed()) return writers_.front()->blocks().end_offset();
    return mine_.base + mine_.target.alignment + next_number_.load() * options_.block_bytes;
  }

  void writer_ended(bool failed, Crew& crew) {
    // Relaxed: the flag carries no data.
    if (failed) control_.abort.store(true, std::memory_order_relaxed);
    // Acquire and release: the last one to end has seen the end state of all.
    if (writers_left_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    // Release: whoever sees it also sees the end state of the ledgers and the rings.
    writer_done_.store(true, std::memory_order_release);
    crew.one_ended();
  }

  // An earlier record on this device may have had the same id. Its trailer, wherever it stands, is bound to
  // the header that is overwritten now; where one is looked for first, none is left.
  void clear_old_trailer() {
    if (mine_.target.kind != TargetKind::raw_device) return;
    const std::span<std::byte> block = control_block();
    std::fill(block.begin(), block.end(), std::byte{0});
    target_->write_block(block.data(), block.size(), mine_.base + plan_.record_bytes - block.size());
  }

  // Returns whether a writer failed or was given up: no trailer may vouch for the blocks that it leaves out.
  // A failed writer is the cause for those that were only given up.
  bool close_failed(const std::string& rest) {
    std::string failures;
    std::string given_up;
    int target_errno = 0;
    std::uint64_t end = mine_.base + mine_.target.alignment;
    for (const auto& writer : writers_) {
      end = std::max(end, writer->blocks().completed_end());
      if (!writer->failed()) continue;
      std::string& text = writer->blocks().interrupted() ? given_up : failures;
      text += (text.empty() ? "" : "; ") + writer->label() + writer->blocks().error().text;
      if (target_errno == 0) target_errno = writer->blocks().error().target_errno;
    }
    if (failures.empty() && given_up.empty()) return false;
    if (failures.empty()) {
      give_up(given_up + rest);
      return true;
    }
    fail(failures + rest, target_errno);
    if (unanswered()) return true;  // a target that does not answer would hold us here too
    within("closing the incomplete record", [this, end] {
      target_->truncate_file(end);
      target_->flush();
    });
    return true;
  }

  void encode_trailer() {
    RecordTrailer trailer;
    trailer.record_id = result_.record_id;
    trailer.status =
        result_.status == RunStatus::interrupted ? TrailerStatus::interrupted : TrailerStatus::complete;
    trailer.superchunks = stored();
    trailer.data_bytes = durable_bytes();
    trailer.ended_utc_ns = utc_ns();
    trailer.header_crc = header_crc_;
    if (options_.framed()) trailer.blocks = next_number_.load();
    for (const auto& writer : writers_) {  // their links follow on each other
      for (std::uint32_t link = writer->links().first; link < writer->links().end(); ++link) {
        trailer.links.push_back(writer->ledger().accounts()[link]);
        trailer.links.back().lost = source_->lost_per_link()[link];
      }
    }
    daqwriter::encode_trailer(trailer, control_block());
  }

  void within(const char* what, const std::function<void()>& call) {
    CallLimits{options_.stall_limit_s, &control_.stop, StopClock::kCloseNs}.within(
        mine_.target.path + ": " + what, call);
  }

  // A call on the target has not returned.
  void not_answered(const std::string& text) {
    held_ = true;
    control_.stop.asked() ? give_up(text) : fail(text);
  }

  // Interrupted, and the target did not answer in the time that this leaves.
  void give_up(const std::string& text) {
    result_.status = RunStatus::interrupted;
    result_.error += (result_.error.empty() ? "" : "; then ") + text;
  }

  // A failure after the first may take back data that was thought to be stored: the error names it too.
  void fail(const std::string& text, int target_errno = 0) {
    if (result_.status != RunStatus::failed) result_.target_errno = target_errno;
    result_.status = RunStatus::failed;
    result_.error += (result_.error.empty() ? "" : "; then ") + text;
  }

  const MiniDaqOptions& options_;
  const MiniDaqPlan& plan_;
  const ApplicationPlan& mine_;
  RunControl& control_;
  const std::uint64_t run_key_;  // of the payload
  ApplicationResult result_;
  std::uint32_t header_crc_ = 0;  // of the record header; the trailer carries it
  ArrivalSchedule schedule_;
  // Members are destroyed in reverse order: the engine (which waits for the kernel) goes before the memory
  // that the kernel may still be reading.
  Memory ring_memory_;
  Memory control_memory_;  // header and trailer are built here
  std::vector<std::unique_ptr<LinkRing>> rings_;
  std::shared_ptr<Target> target_;
  std::atomic<bool> writer_done_{false};
  std::atomic<std::size_t> writers_left_;      // that have not ended
  std::atomic<std::uint64_t> next_number_{0};  // of a framed record's blocks
  std::unique_ptr<ReadoutEmulator> source_;
  std::vector<std::unique_ptr<RecordWriter>> writers_;
  bool held_ = false;  // a call on the target has not returned
};

}  // namespace daqwriter
