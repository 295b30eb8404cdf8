// Promise: the Fragment Receiver and the Data Writer (the paper's Algorithm 1 with rotating buffers) of one
// application, in one thread; each of several writers has links of its own. A continuous record takes what
// has arrived from the links in turn; triggered requests, which have one writer, are taken one after the
// other, each link's fragment behind that of the link before. Two data paths: copy (checksum and copy into
// aligned blocks) and zero-copy (aligned chunks are written from the ring itself; only what is left at the
// end of a continuous record, less than a chunk of each link, is copied).
#pragma once

#include <algorithm>
#include <cstring>
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
             const Config& config)
      : rings_(rings),
        source_(source),
        requests_(source.requests()),
        stop_(stop),
        config_(config),
        next_ordinal_(rings.size(), 0) {}

  // `blocks` must tell released() of the leases that it gives back.
  void attach(BlockWriter& blocks, DurabilityLedger& ledger) {
    blocks_ = &blocks;
    ledger_ = &ledger;
  }

  // Slots go back in the order in which they were taken, whatever the order of the completions.
  void released(std::uint64_t lease) {
    leases_[lease - first_lease_].done = true;
    for (; !leases_.empty() && leases_.front().done; leases_.pop_front(), ++first_lease_) {
      const Lease& front = leases_.front();
      if (!requests_) {
        rings_[front.link]->release(front.count);
      } else if (front.ends_request) {
        requests_->finish();
      }
    }
  }

  // Until the source has finished and all that it has for us is written, the stream has failed, or an
  // interrupted record has been drained for long enough. On return everything submitted has completed or was
  // given up (BlockWriter::in_flight()).
  void run() {
    const CpuUse before = thread_cpu_use();
    while (!blocks_->failed()) {
      // Read before the rings: if the source had finished by then, rings found empty stay empty.
      const bool source_finished = source_.finished();
      std::uint64_t stored = requests_ ? serve() : gather();
      if (stored == 0 && source_finished) stored = requests_ ? 0 : gather_rest();
      if (stored == 0 && source_finished) break;
      if (source_finished && stop_.expired(StopClock::kDrainNs)) break;
      if (stored > 0) continue;
      if (blocks_->in_flight() > 0) {
        blocks_->poll(kIdleNs);
      } else {
        sleep_until_monotonic_ns(monotonic_ns() + kIdleNs);
      }
    }
    blocks_->finish();
    ledger_->observe(monotonic_ns());
    cpu_ = thread_cpu_use() - before;
  }

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

  // One turn over the links of a continuous record.
  std::uint64_t gather() {
    std::uint64_t stored = 0;
    for (std::uint32_t link = config_.links.first; link < config_.links.end(); ++link) {
      LinkRing& ring = *rings_[link];
      const bool zero_copy = config_.chunk > 0;
      const std::uint64_t available = ring.available(zero_copy ? config_.chunk : 1);
      const std::uint64_t count = zero_copy ? (available >= config_.chunk ? config_.chunk : 0)
                                            : std::min(available, kFragmentSuperchunks);
      if (count > 0 && !store(link, ring.taken(), count, nullptr)) return stored;
      stored += count;
      if (!blocks_->poll()) return stored;
    }
    return stored;
  }

  // Copies the rest that is left in the rings when the source has ended: less than a chunk of each link.
  std::uint64_t gather_rest() {
    std::uint64_t stored = 0;
    config_.chunk = 0;
    for (std::uint32_t link = config_.links.first; link < config_.links.end(); ++link) {
      const std::uint64_t count = rings_[link]->available();
      if (count > 0 && !store(link, rings_[link]->taken(), count, nullptr)) break;
      stored += count;
    }
    return stored;
  }

  // The next request: the fragments of all links.
  std::uint64_t serve() {
    const DataRequest* request = requests_->take();
    if (!request) {
      blocks_
          ->submit_in_place();  // the windows in a block that is not full must not wait for the next request
      return 0;
    }
    for (std::uint32_t link = 0; link < rings_.size(); ++link) {
      if (!store(link, request->first[link], config_.window, request) || !blocks_->poll()) return 0;
    }
    if (config_.chunk == 0) requests_->finish();
    return rings_.size() * config_.window;
  }

  bool store(std::uint32_t link, std::uint64_t first, std::uint64_t count, const DataRequest* request) {
    const std::int64_t since = thread_cpu_ns();
    const std::int64_t io_before = blocks_->io_ns();
    LinkRing& ring = *rings_[link];
    bool good = true;
    if (config_.chunk > 0) {
      const bool last_link = link + 1 == rings_.size();
      for (std::uint64_t k = 0; k < count && good; k += config_.chunk)
        good = store_chunk(link, first + k, request, request && last_link && k + config_.chunk == count);
      if (!request) ring.take(count);
    } else {
      good = copy_run(ring, first, count, request);
      copied_bytes_ += count * ring.slot_bytes();
      if (!request) {
        ring.take(count);
        ring.release(count);
      }
    }
    copy_ns_ += (thread_cpu_ns() - since) - (blocks_->io_ns() - io_before);
    return good;
  }

  // The slots are ours until the lease is released: the headers are completed where they lie.
  bool store_chunk(std::uint32_t link, std::uint64_t first, const DataRequest* request, bool ends_request) {
    LinkRing& ring = *rings_[link];
    leases_.push_back({link, config_.chunk, ends_request, false});
    const std::uint64_t lease = first_lease_ + leases_.size() - 1;
    if (!blocks_->append_in_place(ring.slot(first), config_.chunk * ring.slot_bytes(), lease)) return false;
    std::byte* slot = ring.slot(first);
    for (std::uint64_t k = 0; k < config_.chunk; ++k, slot = ring.next(slot)) {
      SuperchunkHeader header;
      std::memcpy(&header, slot, sizeof header);
      seal(header, slot + sizeof header, request);
      std::memcpy(slot, &header, sizeof header);
      ledger_->note_superchunk(link, header.sequence, header.intended_ns);
    }
    blocks_->submit_if_full();
    return true;
  }

  // Checksum first, over the source: it brings the superchunk into L1, from where the streaming copy takes
  // it.
  bool copy_run(LinkRing& ring, std::uint64_t first, std::uint64_t count, const DataRequest* request) {
    std::byte* slot = ring.slot(first);
    for (std::uint64_t k = 0; k < count; ++k) {
      SuperchunkHeader header;
      std::memcpy(&header, slot, sizeof header);
      const std::byte* payload = slot + sizeof header;
      slot = ring.next(slot);
      seal(header, payload, request);
      if (!put(reinterpret_cast<const std::byte*>(&header), sizeof header)) return false;
      if (!put(payload, header.payload_bytes)) return false;
      ledger_->note_superchunk(header.link, header.sequence, header.intended_ns);
      blocks_->submit_if_full();
    }
    return true;
  }

  bool put(const std::byte* data, std::size_t bytes) {
    const std::span<std::byte> room = blocks_->room(bytes);
    if (room.size() < bytes) return blocks_->append(data, bytes);  // it goes on in the next block
    stream_copy(room.data(), data, bytes);
    blocks_->filled(bytes);
    return true;
  }

  void seal(SuperchunkHeader& header, const std::byte* payload, const DataRequest* request) {
    if (request) {  // a window begins anywhere in the ring: what is stored is counted here
      header.ordinal = next_ordinal_[header.link]++;
      header.intended_ns = request->intended_ns;
    }
    header.payload_checksum = checksum(config_.checksum, {payload, header.payload_bytes});
    header.header_crc = header_crc(header);
  }

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
