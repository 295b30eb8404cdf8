// Promise: one writer of a record: the links that are its own, and engine, blocks, ledger and thread for
// them. A gapless record has one for all links; those of a framed record share nothing but the rings' source
// and the number of the next block.
#pragma once

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
               std::uint32_t number, RunControl& control);

  // `rings`: the memory of all links.
  void open(const EngineFactory& make_engine, int fd, const Memory& rings);
  // All outlive this.
  void build(Rings& rings, ReadoutEmulator& source, const ArrivalSchedule& schedule, int fd,
             std::optional<Framing> framing);
  void run();  // by its thread
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
  void add_to(ApplicationResult& result) const;

 private:
  std::uint64_t accepted() const;
  std::uint64_t offered() const;
  std::uint64_t due_bytes(std::int64_t t_ns) const;

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
