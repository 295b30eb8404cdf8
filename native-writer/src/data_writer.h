// Promise: the Data Writer (the paper's Algorithm 1 with rotating buffers): gathers fragments from the links
// round robin, checksums and copies them into aligned blocks and hands those to the BlockWriter. Runs in one
// thread.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "block_writer.h"
#include "clock.h"
#include "link_ring.h"
#include "link_source.h"

namespace daqwriter {

class DataWriter {
 public:
  static constexpr std::uint64_t kFragmentSuperchunks = 64;  // most that one link contributes per turn
  static constexpr std::int64_t kIdleNs = 200'000;
  static constexpr std::int64_t kInterruptedDrainNs = 5'000'000'000;

  DataWriter(std::vector<std::unique_ptr<LinkRing>>& rings, const LinkSource& source, BlockWriter& blocks,
             DurabilityLedger& ledger, const std::atomic<int>& stop_signal, ChecksumKind checksum);

  // Until the source has finished and the rings are empty, the stream has failed, or an interrupted record
  // has been drained for kInterruptedDrainNs. Everything submitted has completed on return.
  void run();

  // To be read after the thread has been joined.
  std::int64_t copy_ns() const { return copy_ns_; }  // copying and checksumming, I/O calls excluded
  const CpuUse& cpu() const { return cpu_; }

 private:
  std::uint64_t gather();
  bool store_fragment(LinkRing& ring, std::uint64_t count);
  bool store_superchunk(const std::byte* slot, std::size_t bytes);
  bool drain_expired();

  std::vector<std::unique_ptr<LinkRing>>& rings_;
  const LinkSource& source_;
  BlockWriter& blocks_;
  DurabilityLedger& ledger_;
  const std::atomic<int>& stop_signal_;
  ChecksumKind checksum_;
  std::int64_t drain_until_ns_ = 0;
  std::int64_t copy_ns_ = 0;
  CpuUse cpu_;
};

}  // namespace daqwriter
