// Promise: writes one stream, in the order of its events, to a sequence of files: checksums and copies each
// event in one go into aligned blocks, begins a new file where the next event would exceed the size, and
// enters a file into the manifest once it is whole and flushed. Runs in one thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/memory.h"
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
               const StopClock& stop, std::atomic<bool>& abort);

  // Until the source has finished and the queue is empty, something failed (sets `abort`), or an interrupted
  // run has been drained for long enough. On return every completion has been reaped, or the account says
  // `unanswered`. Does not throw.
  void run();
  // By another thread: whether that of run() is held in a call; see CallWatch.
  bool lost();

  // Relaxed: a statistic for the reporter.
  std::uint64_t durable_bytes() const { return ledger_.durable_bytes(); }
  // To be read after the thread has been joined.
  Account account() const;
  bool unanswered() const { return account_.unanswered; }
  const Histogram& latency_ns() const { return ledger_.latency_ns(); }

 private:
  void write_events();
  bool take_events();
  bool append(std::span<const std::byte> event);
  std::uint32_t store(const std::byte* event);
  void open_file();
  void close_file();
  void abandon_file();
  void fail(const std::string& text, int target_errno);
  void within(const std::string& what, const std::function<void()>& call);

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
