#include "io/block_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/status.h"
#include "checksum/checksum.h"

namespace daqwriter {
namespace {

constexpr std::int64_t kWaitNs = 10'000'000;

}  // namespace

BlockWriter::BlockWriter(const Config& config, IoEngine& engine, DurabilityLedger& ledger, std::byte* memory)
    : config_(config),
      frame_(config.framing ? config.alignment : 0),
      full_(config.framing ? frame_ + config.framing->superchunks_per_block * config.framing->superchunk_bytes
                           : config.block_bytes),
      ledger_(ledger),
      buffers_(buffer_count(config.depth)),
      requests_(config, buffer_count(config.depth), engine),
      end_offset_(config.start_offset),
      completed_end_(config.start_offset) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    buffers_[i].data = memory + i * config.block_bytes;
    free_.push_back(i);
  }
}

bool BlockWriter::append(const std::byte* data, std::size_t bytes) {
  while (bytes > 0) {
    const std::span<std::byte> part = room(bytes);
    if (part.empty()) return false;
    stream_copy(part.data(), data, part.size());
    filled(part.size());
    data += part.size();
    bytes -= part.size();
  }
  return !failed();
}

bool BlockWriter::make_room_for_copies() {
  submit_in_place();  // what is copied begins a block of its own
  return make_room() && !failed();
}

bool BlockWriter::append_in_place(std::byte* piece, std::size_t bytes, std::uint64_t lease) {
  if (current_ && current_->pieces.size() == kMostPieces) submit_current();
  if (!make_room()) return false;
  if (frame_ > 0 && current_->pieces.empty()) current_->pieces.push_back({current_->data, frame_});
  current_->pieces.push_back({piece, bytes});
  current_->leases.push_back(lease);
  current_->filled += bytes;
  return true;
}

void BlockWriter::submit_if_full() {
  unnoted_ = 0;
  if (current_ && current_->filled >= full_) submit_current();
}

void BlockWriter::submit_in_place() {
  if (current_ && !current_->pieces.empty()) submit_current();
}

// A block with room: the one being filled, or a new one.
bool BlockWriter::make_room() {
  if (current_ && current_->filled >= full_) submit_current(unnoted_ > 0);
  return current_ || acquire();
}

bool BlockWriter::acquire() {
  const std::int64_t since = config_.clock();
  while (free_.empty() && !failed()) reap(1, kWaitNs);  // ends: reap() looks at the clock
  io_ns_ += config_.clock() - since;
  if (failed()) return false;
  current_ = &buffers_[free_.back()];
  free_.pop_back();
  current_->filled = frame_;
  current_->pieces.clear();
  current_->leases.clear();
  return true;
}

void BlockWriter::submit_current(bool ends_inside) {
  const std::int64_t since = config_.clock();
  publish_streamed();
  if (!place_current()) return;
  const std::uint64_t payload_bytes = current_->filled - frame_;
  pad_current();
  if (current_->pieces.empty()) current_->pieces.push_back({current_->data, current_->filled});
  end_offset_ = std::max(end_offset_, current_->offset + current_->filled);
  ++blocks_;
  current_->block = ledger_.seal_block(payload_bytes, ends_inside, monotonic_ns());
  requests_.ask(static_cast<std::size_t>(current_ - buffers_.data()), current_->pieces, current_->offset,
                current_->filled);
  current_ = nullptr;
  requests_.submit();
  io_ns_ += config_.clock() - since;
}

// Where the block stands: behind the one before, or with a frame at the place of the record's next number,
// which is taken only now that there is something to write.
bool BlockWriter::place_current() {
  if (!config_.framing) {
    current_->offset = end_offset_;
    return true;
  }
  const Framing& framing = *config_.framing;
  BlockFrame frame = framing.frame;
  // Relaxed: the number says where this block goes, and orders nothing.
  frame.number = framing.next_number->fetch_add(1, std::memory_order_relaxed);
  frame.superchunks = static_cast<std::uint32_t>((current_->filled - frame_) / framing.superchunk_bytes);
  current_->offset = config_.start_offset + frame.number * config_.block_bytes;
  encode_frame(frame, {current_->data, frame_});
  if (frame.number < framing.most_blocks) return true;
  requests_.end({EOVERFLOW, current_->offset,
                 config_.target + ": block " + std::to_string(frame.number) +
                     " has no room in the record: write of " + std::to_string(current_->filled) +
                     " B at offset " + std::to_string(current_->offset) +
                     " failed: " + errno_text(EOVERFLOW)});
  current_ = nullptr;
  return false;
}

// Pieces in place are aligned already.
void BlockWriter::pad_current() {
  if (!current_->pieces.empty()) return;
  const std::size_t payload = current_->filled;
  current_->filled = round_up(payload, config_.alignment);
  std::memset(current_->data + payload, 0, current_->filled - payload);
  padding_bytes_ += current_->filled - payload;
}

void BlockWriter::reap(unsigned min_count, std::int64_t timeout_ns) {
  requests_.reap(min_count, timeout_ns, [this](std::size_t index) { complete(index); });
}

void BlockWriter::complete(std::size_t index) {
  Buffer& buffer = buffers_[index];
  completed_end_ = std::max(completed_end_, buffer.offset + buffer.filled);
  completed_bytes_ += buffer.filled;
  ledger_.complete_block(buffer.block, requests_.now_ns(), requests_.taken_ns(index));
  for (const std::uint64_t lease : buffer.leases) config_.released(lease);
  free_.push_back(index);
}

bool BlockWriter::poll(std::int64_t timeout_ns) {
  if (!requests_.idle()) {
    const std::int64_t since = config_.clock();
    reap(timeout_ns > 0 ? 1 : 0, timeout_ns);
    io_ns_ += config_.clock() - since;
  }
  return !failed();
}

bool BlockWriter::finish() {
  if (current_ && current_->filled > frame_ && !failed()) submit_current();
  while (!requests_.given_up() && (in_flight() > 0 || (requests_.waits() && !failed()))) reap(1, kWaitNs);
  return !failed();
}

}  // namespace daqwriter
