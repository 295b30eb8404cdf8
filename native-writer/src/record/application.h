// Promise: one MiniDAQ application: Readout Emulator, rings, Data Writer, its record on the target. Two
// threads run it; everything before and after is done by the caller's thread.
#pragma once

#include <memory>
#include <vector>

#include "base/memory.h"
#include "base/stop_clock.h"
#include "base/worker_thread.h"
#include "io/block_writer.h"
#include "record/data_writer.h"
#include "record/minidaq.h"

namespace daqwriter {

// What the applications of a run share.
struct RunControl {
  const std::atomic<int>& stop_signal;
  StopClock stop{stop_signal};
  std::atomic<bool> abort{false};  // one of them failed
  std::int64_t start_ns = 0;
};

class Application {
 public:
  Application(const MiniDaqOptions& options, const MiniDaqPlan& plan, std::uint32_t number,
              RunControl& control);

  // Takes the opened target; nothing is written yet.
  void open(std::shared_ptr<Target> target, const EngineFactory& make_engine);
  void write_header(std::int64_t started_utc_ns);
  const IoEngine& engine() const { return *engine_; }

  void build();  // the parts that the threads run
  // Starts the two threads; `done` is called when the writer has ended, also when it could not be started.
  void start(const std::function<void()>& done);
  void join();
  // Data first, made durable, then the trailer that vouches for it, made durable too.
  void close();
  // Gives back what was preallocated and not needed. The record is whole without it, so it is not part of its
  // time.
  void cut();
  ApplicationResult result();
  // The kernel may still use target and memory: neither must be freed.
  bool unanswered() const { return held_ || (blocks_ && blocks_->in_flight() > 0); }

  // Momentary, by any thread.
  const ReadoutEmulator& source() const { return *source_; }
  const ArrivalSchedule& schedule() const { return schedule_; }
  const DurabilityLedger& ledger() const { return *ledger_; }
  std::uint64_t durable_bytes() const { return ledger_->durable_bytes(); }

 private:
  std::span<std::byte> control_block();
  std::uint64_t due_bytes(std::int64_t t_ns) const;
  void start_source();
  void start_writer(const std::function<void()>& done);
  void writer_ended(bool failed, const std::function<void()>& done);
  void clear_old_trailer();
  void write_trailer();
  void within(const char* what, const std::function<void()>& call);
  void give_up(const std::string& text);
  void fail(const std::string& text);

  const MiniDaqOptions& options_;
  const MiniDaqPlan& plan_;
  const ApplicationPlan& mine_;
  RunControl& control_;
  ApplicationResult result_;
  std::uint32_t header_crc_ = 0;  // of the record header; the trailer carries it
  ArrivalSchedule schedule_;
  // Members are destroyed in reverse order: the engine (which waits for the kernel) goes before the memory
  // that the kernel may still be reading.
  Memory ring_memory_;
  Memory block_memory_;
  std::vector<std::unique_ptr<LinkRing>> rings_;
  std::shared_ptr<Target> target_;
  std::unique_ptr<IoEngine> engine_;
  std::atomic<bool> writer_done_{false};
  std::unique_ptr<ReadoutEmulator> source_;
  std::unique_ptr<DurabilityLedger> ledger_;
  std::unique_ptr<BlockWriter> blocks_;
  std::unique_ptr<DataWriter> writer_;
  bool held_ = false;  // a call on the target has not returned
  WorkerThread source_thread_;
  WorkerThread writer_thread_;
};

}  // namespace daqwriter
