// Promise: one MiniDAQ application: Readout Emulator, rings, its writers, their record on the target. The
// source and each writer have a thread; everything before and after is done by the caller's thread.
#pragma once

#include <memory>
#include <vector>

#include "base/memory.h"
#include "io/run.h"
#include "record/minidaq.h"
#include "record/record_writer.h"

namespace daqwriter {

class MiniDaqApplication {
 public:
  MiniDaqApplication(const MiniDaqOptions& options, const MiniDaqPlan& plan, std::uint32_t number,
                     RunControl& control);

  // Takes the opened target; nothing is written yet.
  void open(std::shared_ptr<Target> target, const EngineFactory& make_engine);
  void write_header(std::int64_t started_utc_ns);
  const IoEngine& engine() const { return writers_.front()->engine(); }

  void build();  // the parts that the threads run
  // Starts the threads; one of the crew has ended when the last writer has.
  void start(Crew& crew);
  // Data first, made durable, then the trailer that vouches for it, made durable too.
  void close();
  // Gives back what was preallocated and not needed, and closes the target. The record is whole without it,
  // so it is not part of its time.
  void cut();
  ApplicationResult result();
  // The kernel may still use target and memory: neither must be freed.
  bool unanswered() const;

  // Momentary, by any thread.
  const ReadoutEmulator& source() const { return *source_; }
  const ArrivalSchedule& schedule() const { return schedule_; }
  const std::vector<std::unique_ptr<RecordWriter>>& writers() const { return writers_; }
  std::uint64_t durable_bytes() const;

 private:
  std::span<std::byte> control_block();
  std::optional<Framing> framing();
  std::uint64_t stored() const;
  std::uint64_t end_offset() const;
  void writer_ended(bool failed, Crew& crew);
  void clear_old_trailer();
  bool close_failed(const std::string& rest);
  void encode_trailer();
  void within(const char* what, const std::function<void()>& call);
  void not_answered(const std::string& text);
  void give_up(const std::string& text);
  void fail(const std::string& text, int target_errno = 0);

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
