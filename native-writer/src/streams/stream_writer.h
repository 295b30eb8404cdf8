// Promise: writes one stream, in the order of its events, to a sequence of files: checksums and copies each
// event in one go into aligned blocks, begins a new file where the next event would exceed the size, and
// enters a file into the manifest once it is whole and flushed. Runs in one thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/worker_thread.h"
#include "checksum/parallel_adler.h"
#include "format/stream_manifest.h"
#include "io/block_writer.h"
#include "source/event_source.h"
#include "target/target.h"

namespace daqwriter {

class StreamWriter {
 public:
  struct Config {
    std::uint32_t stream = 0;
    RecordId run_id{};
    TargetPlan directory;  // path: of the directory
    std::string prefix;
    std::uint64_t file_bytes = 0;
    bool preallocate = true;
    std::size_t block_bytes = 0;
    unsigned io_depth = 1;
    bool checksum = true;
    std::size_t smallest_parallel_bytes = 0;  // 0: events do not fall back
    std::int64_t stall_ns = to_ns(kDefaultStallLimitS);
  };
  struct Account {
    std::uint64_t events = 0;  // durable, without a gap
    std::uint64_t bytes = 0;   // durable
    std::uint64_t closed_events = 0;
    std::uint64_t closed_files = 0;
    std::uint64_t fallback_events = 0;
    std::uint64_t backlog_high_water_bytes = 0;
    std::int64_t copy_ns = 0;        // checksumming and copying, I/O calls excluded
    std::int64_t close_ns = 0;       // flushing files and entering them into the manifest
    std::int64_t last_block_ns = 0;  // when the last block was on the target, monotonic clock
    CpuUse cpu;
    std::string error;
    int target_errno = 0;     // what the target answered, where that is the error
    bool unanswered = false;  // the kernel may still use target and memory
    std::uint64_t unanswered_bytes = 0;
  };

  // `manifest` may be null: nothing is entered.
  StreamWriter(const Config& config, LinkRing& queue, const EventSource& source, IoEngine& engine,
               AdlerEngine& adler, ManifestWriter* manifest, std::byte* memory, std::int64_t start_ns,
               const StopClock& stop, std::atomic<bool>& abort)
      : config_(config),
        queue_(queue),
        source_(source),
        engine_(engine),
        adler_(adler),
        manifest_(manifest),
        memory_(memory),
        stop_(stop),
        abort_(abort),
        ledger_(1, start_ns,
                Arrivals{[](std::int64_t) { return std::uint64_t{0}; },
                         [this] { return source_.offered_bytes(config_.stream); }}) {}

  // Until the source has finished and the queue is empty, something failed (sets `abort`), or an interrupted
  // run has been drained for long enough. On return every completion has been reaped, or the account says
  // `unanswered`. Does not throw.
  void run() {
    const CpuUse before = thread_cpu_use();
    try {
      write_events();
      if (blocks_) close_file();
    } catch (const Unanswered& error) {
      account_.unanswered = true;
      fail(error.what(), 0);
    } catch (const std::exception& error) {
      fail(error.what(), target_errno_of(error));
    } catch (...) {
      fail("an unknown error", 0);
    }
    account_.cpu = thread_cpu_use() - before;
  }

  // By another thread: whether that of run() is held in a call; see CallWatch.
  bool lost() {
    const Requests* requests = watch_.held(stop_, config_.stall_ns);
    if (!requests) return false;
    account_.unanswered = true;
    account_.unanswered_bytes = requests->in_flight_bytes();
    if (account_.error.empty()) account_.error = requests->error().text;
    return true;
  }

  // Relaxed: a statistic for the reporter.
  std::uint64_t durable_bytes() const { return ledger_.durable_bytes(); }
  // To be read after the thread has been joined.
  StreamWriter::Account account() const {
    Account whole = account_;
    whole.events = ledger_.superchunks_stored();
    whole.bytes = ledger_.durable_bytes();
    whole.backlog_high_water_bytes = ledger_.held().needed_bytes();
    return whole;
  }

  bool unanswered() const { return account_.unanswered; }
  const Histogram& latency_ns() const { return ledger_.latency_ns(); }

 private:
  static constexpr std::int64_t kIdleNs = 200'000;
  static constexpr std::uint64_t kPollBytes =
      1u << 20;  // completions are looked at after as many bytes at the latest

  void write_events() {
    while (true) {
      // Read before the queue: if the source had finished by then, a queue found empty stays empty.
      const bool source_finished = source_.finished();
      const bool took = take_events();
      if (source_finished && (!took || stop_.expired(StopClock::kDrainNs))) return;
      if (took) continue;
      if (blocks_ && blocks_->in_flight() > 0) {
        blocks_->poll(kIdleNs);
      } else {
        sleep_until_monotonic_ns(monotonic_ns() + kIdleNs);
      }
    }
  }

  // False if there was nothing to take.
  bool take_events() {
    const std::uint64_t count = queue_.available();
    std::uint64_t bytes = 0;
    for (std::uint64_t i = 0; i < count && bytes < kPollBytes; ++i) {
      bytes += store(queue_.slot(queue_.taken()));
      queue_.take(1);
      queue_.release(1);
    }
    if (blocks_) blocks_->poll();
    return count > 0;
  }

  // The checksum is taken on the way.
  bool append(std::span<const std::byte> event) {
    while (!event.empty()) {
      const std::span<std::byte> room = blocks_->room(event.size());
      if (room.empty()) return false;
      adler32_ = adler_.update_and_copy(adler32_, room.data(), event.first(room.size()));
      blocks_->filled(room.size());
      event = event.subspan(room.size());
    }
    return true;
  }

  // Returns the event's size.
  std::uint32_t store(const std::byte* event) {
    EventHeader header;
    std::memcpy(&header, event, sizeof header);
    if (blocks_ && file_.bytes + header.bytes > config_.file_bytes) close_file();
    if (!blocks_) open_file();
    const std::int64_t since = monotonic_ns();
    const std::int64_t io_before = blocks_->io_ns();
    const bool good = append({event, header.bytes});
    account_.copy_ns += (monotonic_ns() - since) - (blocks_->io_ns() - io_before);
    if (!good) throw Failure(blocks_->error().text, blocks_->error().target_errno);
    if (header.bytes < config_.smallest_parallel_bytes) ++account_.fallback_events;
    if (file_.events++ == 0) file_.first_serial = header.serial;
    file_.last_serial = header.serial;
    file_.bytes += header.bytes;
    ledger_.note_superchunk(0, header.serial, header.arrival_ns);
    blocks_->submit_if_full();
    return header.bytes;
  }

  void open_file() {
    file_ = {};
    file_.stream = config_.stream;
    file_.number = next_number_++;
    file_.name = stream_file_name(config_.prefix, file_.stream, file_.number);
    file_.run_id = config_.run_id;
    adler32_ = checksum_initial(ChecksumKind::adler32);
    TargetPlan plan = config_.directory;
    plan.path += "/" + file_.name;
    target_ = open_target(plan, round_up(config_.file_bytes, plan.alignment), config_.preallocate,
                          {seconds(config_.stall_ns), &stop_});
    target_->keep();
    BlockWriter::Config config;
    config.fd = target_->fd();
    config.target = plan.path;
    config.block_bytes = config_.block_bytes;
    config.alignment = plan.alignment;
    config.depth = config_.io_depth;
    config.stall_ns = config_.stall_ns;
    config.stop = &stop_;
    config.watch = &watch_;
    blocks_ = std::make_unique<BlockWriter>(config, engine_, ledger_, memory_);
  }

  void close_file() {
    const bool good = blocks_->finish();
    account_.last_block_ns = monotonic_ns();
    if (!good) throw Failure(blocks_->error().text, blocks_->error().target_errno);
    if (config_.checksum) file_.adler32 = adler32_;
    within("closing the file", [this] {
      target_->truncate_file(file_.bytes);
      target_->flush();
      target_->require_in_place();
      target_->require_whole(file_.bytes);
      target_->close();
      if (manifest_) manifest_->add(file_);
    });
    account_.close_ns += monotonic_ns() - account_.last_block_ns;
    account_.closed_events += file_.events;
    ++account_.closed_files;
    blocks_.reset();
    target_.reset();
  }

  // The blocks of a failed file that reached the medium stay there, without a line in the manifest.
  void abandon_file() {
    if (!blocks_) return;
    blocks_->finish();  // the kernel gives its buffers back, if it does
    account_.unanswered = account_.unanswered || blocks_->in_flight() > 0;
    account_.unanswered_bytes = blocks_->in_flight_bytes();
    if (account_.unanswered) return;  // a target that does not answer would hold us here too
    within("closing the incomplete file", [this] {
      target_->truncate_file(blocks_->completed_end());
      target_->flush();
      target_->close();
    });
  }

  void fail(const std::string& text, int target_errno) {
    account_.error = text;
    account_.target_errno = target_errno;
    abort_.store(true, std::memory_order_relaxed);  // it carries no data
    try {
      abandon_file();
    } catch (const Unanswered& error) {
      account_.unanswered = true;
      account_.error += std::string("; ") + error.what();
    } catch (const std::exception& error) {
      account_.error += std::string("; ") + error.what();
    }
  }

  void within(const std::string& what, const std::function<void()>& call) {
    CallLimits{seconds(config_.stall_ns), &stop_, StopClock::kCloseNs}.within(file_.name + ": " + what, call);
  }

  Config config_;
  LinkRing& queue_;
  const EventSource& source_;
  IoEngine& engine_;
  AdlerEngine& adler_;
  ManifestWriter* manifest_;
  std::byte* memory_;
  const StopClock& stop_;
  std::atomic<bool>& abort_;
  DurabilityLedger ledger_;
  CallWatch watch_;
  std::shared_ptr<Target> target_;
  std::unique_ptr<BlockWriter> blocks_;
  ClosedFile file_;  // the one being written
  std::uint32_t adler32_ = 0;
  std::uint64_t next_number_ = 0;
  Account account_;
};

}  // namespace daqwriter
