// Promise: the Fragment Receiver and the Data Writer (the paper's Algorithm 1 with rotating buffers) of one
// application, in one thread; each of several writers has links of its own. A continuous record takes what
// has arrived from the links in turn; triggered requests, which have one writer, are taken one after the
// other, each link's fragment behind that of the link before. Two data paths: copy (checksum and copy into
// aligned blocks) and zero-copy (aligned chunks are written from the ring itself; only what is left at the
// end of a continuous record, less than a chunk of each link, is copied).
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "io/block_writer.h"
#include "source/link_ring.h"
#include "source/readout_emulator.h"

namespace daqwriter {

class DataWriter {
 public:
  static constexpr std::uint64_t kFragmentSuperchunks = 64;  // most that one link contributes per turn
  static constexpr std::int64_t kIdleNs = 200'000;

  struct Config {
    ChecksumKind checksum = ChecksumKind::off;
    LinkRange links;           // that are this writer's own
    std::uint64_t chunk = 0;   // zero-copy: superchunks of an aligned chunk; 0: copy
    std::uint64_t window = 0;  // superchunks that a request takes from each link
  };

  DataWriter(std::vector<std::unique_ptr<LinkRing>>& rings, ReadoutEmulator& source, const StopClock& stop,
             const Config& config);
  // `blocks` must tell released() of the leases that it gives back.
  void attach(BlockWriter& blocks, DurabilityLedger& ledger);
  void released(std::uint64_t lease);

  // Until the source has finished and all that it has for us is written, the stream has failed, or an
  // interrupted record has been drained for long enough. On return everything submitted has completed or was
  // given up (BlockWriter::in_flight()).
  void run();

  // To be read after the thread has been joined.
  std::int64_t copy_ns() const { return copy_ns_; }  // CPU time of copying and checksumming, without I/O
  std::uint64_t copied_bytes() const { return copied_bytes_; }
  const CpuUse& cpu() const { return cpu_; }

 private:
  struct Lease {
    std::uint32_t link = 0;
    std::uint64_t count = 0;  // superchunks
    bool ends_request = false;
    bool done = false;
  };

  std::uint64_t gather();
  std::uint64_t gather_rest();
  std::uint64_t serve();
  bool store(std::uint32_t link, std::uint64_t first, std::uint64_t count, const DataRequest* request);
  bool store_chunk(std::uint32_t link, std::uint64_t first, const DataRequest* request, bool ends_request);
  bool copy_run(LinkRing& ring, std::uint64_t first, std::uint64_t count, const DataRequest* request);
  bool put(const std::byte* data, std::size_t bytes);
  void seal(SuperchunkHeader& header, const std::byte* payload, const DataRequest* request);

  std::vector<std::unique_ptr<LinkRing>>& rings_;
  ReadoutEmulator& source_;
  RequestQueue* requests_;
  const StopClock& stop_;
  Config config_;
  BlockWriter* blocks_ = nullptr;
  DurabilityLedger* ledger_ = nullptr;
  std::vector<std::uint64_t> next_ordinal_;  // of each link
  std::deque<Lease> leases_;                 // in the order in which they were given
  std::uint64_t first_lease_ = 0;
  std::int64_t copy_ns_ = 0;
  std::uint64_t copied_bytes_ = 0;
  CpuUse cpu_;
};

}  // namespace daqwriter
