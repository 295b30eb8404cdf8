// Promise: one MiniDAQ application: Readout Emulator, rings, Data Writer, its record on the target. Two
// threads run it; everything before and after is done by the caller's thread.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "block_writer.h"
#include "data_writer.h"
#include "memory.h"
#include "minidaq.h"

namespace daqwriter {

// What the applications of a run share.
struct RunControl {
  const std::atomic<int>& stop_signal;
  std::atomic<bool> abort{false};  // one of them failed
  std::int64_t start_ns = 0;
};

class Application {
 public:
  Application(const MiniDaqOptions& options, const MiniDaqPlan& plan, std::uint32_t number,
              RunControl& control);

  // Takes the opened target and writes the record's header.
  void open(std::shared_ptr<Target> target, const EngineFactory& make_engine, std::int64_t started_utc_ns);
  std::string engine_name() const { return std::string(engine_->name()); }

  // Starts the two threads; `done` is called by the writer when everything submitted has completed.
  void start(const std::function<void()>& done);
  void join();
  // Data first, made durable, then the trailer that vouches for it, made durable too.
  void close();
  ApplicationResult result();

  // Momentary, by any thread.
  const ReadoutEmulator& source() const { return *source_; }
  std::uint64_t durable_bytes() const { return ledger_->durable_bytes(); }

 private:
  std::span<std::byte> control_block();
  std::uint64_t due_bytes(std::int64_t t_ns) const;
  void write_trailer();
  void fail(const std::string& text);

  const MiniDaqOptions& options_;
  const MiniDaqPlan& plan_;
  const ApplicationPlan& mine_;
  RunControl& control_;
  ApplicationResult result_;
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
  std::thread source_thread_;
  std::thread writer_thread_;
};

}  // namespace daqwriter
