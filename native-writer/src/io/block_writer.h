// Promise: a gapless byte stream, or superchunks that are never cut (framed), become aligned blocks on the
// target. Bytes are copied into rotating buffers, or written from where they lie (aligned pieces). A buffer
// is either being filled (ours) or in flight (the kernel's, until its completion is reaped); it is never
// both. The first error (see Requests) ends the stream; what did become durable stays accounted for in the
// ledger.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/stop_clock.h"
#include "format/record_format.h"
#include "io/durability.h"
#include "io/requests.h"

namespace daqwriter {

// Blocks of a framed record, which several writers may make at once.
struct Framing {
  BlockFrame frame;  // what all frames of this writer have in common
  std::uint64_t superchunks_per_block = 0;
  std::size_t superchunk_bytes = 0;
  std::uint64_t most_blocks = 0;                      // for which the record has room
  std::atomic<std::uint64_t>* next_number = nullptr;  // of the record's next block, all writers
};

class BlockWriter {
 public:
  static constexpr std::size_t kMostPieces = 1024;  // of a block: IOV_MAX of Linux

  struct Config : Requests::Rules {  // `alignment`: block_bytes is a multiple of it
    std::uint64_t start_offset = 0;
    std::size_t block_bytes = 0;
    // Told the lease of every piece appended in place once its block is on the target.
    std::function<void(std::uint64_t lease)> released = [](std::uint64_t) {};
    std::optional<Framing> framing = {};     // nothing: a gapless record
    std::int64_t (*clock)() = monotonic_ns;  // of io_ns()
  };

  // `memory` holds buffer_count(depth) * block_bytes, aligned, and outlives the writer and the engine's
  // requests.
  BlockWriter(const Config& config, IoEngine& engine, DurabilityLedger& ledger, std::byte* memory);
  // Half of them in flight, half filled or being filled: while a block is filled, completions must not leave
  // the target with less than `depth` requests.
  static constexpr std::size_t buffer_count(unsigned depth) { return std::size_t{2} * depth; }

  // Appends bytes, waiting for a free buffer where needed. False once the stream has failed.
  bool append(const std::byte* data, std::size_t bytes);
  // The same for a caller that copies by itself: room for the next `bytes`, or for as many of them as the
  // block being filled takes, which the caller fills and tells by filled(). Empty once the stream has failed.
  std::span<std::byte> room(std::size_t bytes) {
    const bool at_hand = !failed() && current_ && current_->pieces.empty() && current_->filled < full_;
    if (!at_hand && !make_room_for_copies()) return {};
    return {current_->data + current_->filled, std::min(bytes, full_ - current_->filled)};
  }
  void filled(std::size_t bytes) {
    current_->filled += bytes;
    unnoted_ += bytes;
  }
  // Appends an aligned piece of aligned length without copying it; it belongs to the engine until `lease` is
  // released. Not to be used while a copied block is partly filled; the other way round is fine.
  bool append_in_place(std::byte* piece, std::size_t bytes, std::uint64_t lease);
  // Submits the block being filled if it is full; call when what was appended has been noted in the ledger.
  void submit_if_full();
  // Submits a block made of pieces in place, however full it is.
  void submit_in_place();
  // Reaps what has completed; with a timeout, waits for one completion if any is in flight.
  bool poll(std::int64_t timeout_ns = 0);
  // Submits the last block, padded to the alignment, and waits for everything, but not for ever: see
  // in_flight().
  bool finish();

  bool failed() const { return requests_.failed(); }
  const IoError& error() const { return requests_.error(); }
  // After finish(): requests that were given up. The kernel may still use their buffers.
  unsigned in_flight() const { return requests_.in_flight(); }
  std::uint64_t in_flight_bytes() const { return requests_.in_flight_bytes(); }
  bool interrupted() const { return requests_.interrupted(); }  // it ended because of that
  std::uint64_t padding_bytes() const { return padding_bytes_; }
  std::uint64_t frame_bytes() const { return blocks_ * frame_; }      // of all blocks
  std::uint64_t blocks() const { return blocks_; }                    // submitted
  std::uint64_t end_offset() const { return end_offset_; }            // highest one of what was submitted
  std::uint64_t completed_end() const { return completed_end_; }      // highest end of a completed block
  std::uint64_t completed_bytes() const { return completed_bytes_; }  // padding included
  std::int64_t io_ns() const { return io_ns_; }                       // spent submitting and waiting

 private:
  struct Buffer {
    std::byte* data = nullptr;
    std::vector<iovec> pieces;  // made at submission when the bytes were copied
    std::vector<std::uint64_t> leases;
    std::size_t filled = 0;
    std::uint64_t offset = 0;
    std::uint64_t block = 0;
  };

  bool acquire();
  bool make_room();
  bool make_room_for_copies();
  void submit_current(bool ends_inside = false);
  void pad_current();
  bool place_current();
  void reap(unsigned min_count, std::int64_t timeout_ns);
  void complete(std::size_t index);

  Config config_;
  std::size_t frame_;  // bytes before a block's first superchunk
  std::size_t full_;   // from how many bytes on a block is full
  DurabilityLedger& ledger_;
  std::vector<Buffer> buffers_;
  std::vector<std::size_t> free_;
  Buffer* current_ = nullptr;
  std::size_t unnoted_ = 0;  // bytes appended since the last noted superchunk
  Requests requests_;
  std::uint64_t end_offset_;
  std::uint64_t blocks_ = 0;
  std::uint64_t padding_bytes_ = 0;
  std::uint64_t completed_end_;
  std::uint64_t completed_bytes_ = 0;
  std::int64_t io_ns_ = 0;
};

}  // namespace daqwriter
