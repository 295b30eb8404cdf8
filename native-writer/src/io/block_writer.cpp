#include "io/block_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/status.h"
#include "checksum/checksum.h"
#include "io/aio_engine.h"

namespace daqwriter {
namespace {

constexpr unsigned kMaxStalls = 8;
constexpr std::int64_t kWaitNs = 10'000'000;

// Takes `bytes` away from the front of what is still to be written.
void advance(std::vector<iovec>& pieces, std::size_t bytes) {
  auto piece = pieces.begin();
  for (; piece != pieces.end() && piece->iov_len <= bytes; ++piece) bytes -= piece->iov_len;
  pieces.erase(pieces.begin(), piece);
  if (bytes == 0) return;
  pieces.front().iov_base = static_cast<std::byte*>(pieces.front().iov_base) + bytes;
  pieces.front().iov_len -= bytes;
}

}  // namespace

BlockWriter::BlockWriter(const Config& config, IoEngine& engine, DurabilityLedger& ledger, std::byte* memory)
    : config_(config),
      frame_(config.framing ? config.alignment : 0),
      full_(config.framing ? frame_ + config.framing->superchunks_per_block * config.framing->superchunk_bytes
                           : config.block_bytes),
      engine_(engine),
      ledger_(ledger),
      buffers_(buffer_count(config.depth)),
      completions_(config.depth),
      requests_(buffer_count(config.depth)),
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
  const std::int64_t since = monotonic_ns();
  while (free_.empty() && !failed()) reap(1, kWaitNs);  // ends: reap() looks at the clock
  io_ns_ += monotonic_ns() - since;
  if (failed()) return false;
  current_ = &buffers_[free_.back()];
  free_.pop_back();
  current_->filled = frame_;
  current_->written = 0;
  current_->stalls = 0;
  current_->pieces.clear();
  current_->leases.clear();
  return true;
}

void BlockWriter::submit_current(bool ends_inside) {
  const std::int64_t since = monotonic_ns();
  publish_streamed();
  if (!place_current()) return;
  const std::uint64_t payload_bytes = current_->filled - frame_;
  pad_current();
  if (current_->pieces.empty()) current_->pieces.push_back({current_->data, current_->filled});
  end_offset_ = std::max(end_offset_, current_->offset + current_->filled);
  ++blocks_;
  current_->block = ledger_.seal_block(payload_bytes, ends_inside, since);
  current_->submitted_ns = 0;
  to_submit_.push_back(static_cast<std::size_t>(current_ - buffers_.data()));
  current_ = nullptr;
  pump();
  io_ns_ += monotonic_ns() - since;
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
  fail(EOVERFLOW, *current_, "block " + std::to_string(frame.number) + " has no room in the record: write");
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

// Offers what waits to the engine, in order. All buffers can be full at once: those beyond the depth wait
// here.
void BlockWriter::pump() {
  while (!to_submit_.empty() && requests_.count() < config_.depth && !failed()) {
    const std::size_t index = to_submit_.front();
    Buffer& buffer = buffers_[index];
    const IoRequest request{config_.fd, IoDirection::write, buffer.pieces, buffer.offset + buffer.written,
                            requests_.tag(index)};
    const int result = engine_.submit({&request, 1});
    if (result == -EAGAIN || result == -EINTR) return bear_refusal(request.tag);
    if (result < 0) return fail(-result, buffer, "submit");
    const std::int64_t now = monotonic_ns();
    if (buffer.submitted_ns == 0) buffer.submitted_ns = now;
    requests_.taken(index, buffer.filled - buffer.written, now);
    to_submit_.pop_front();
  }
  const std::vector<std::uint64_t> unsubmitted = engine_.unsubmitted();
  if (!unsubmitted.empty()) bear_refusal(unsubmitted.front());
}

// For lack of resources; others may give some back, but not for ever.
void BlockWriter::bear_refusal(std::uint64_t tag) {
  const std::int64_t now = monotonic_ns();
  if (refused_ != tag) refused_since_ns_ = now;
  refused_ = tag;
  if (now - refused_since_ns_ > config_.retry_ns)
    fail(EAGAIN, buffers_[InFlight::slot_of(tag)], "submit refused; " + aio_limits_text());
}

// The kernel was never given them, and will not be: they are not stored, and their buffers are ours.
void BlockWriter::disown_unsubmitted() {
  engine_broken_ = true;
  for (const std::uint64_t tag : engine_.unsubmitted()) requests_.withdraw(tag);
}

void BlockWriter::reap(unsigned min_count, std::int64_t timeout_ns) {
  if (engine_broken_) return;
  if (requests_.count() == 0 && !to_submit_.empty()) {
    // Nothing of ours can complete and make room: somebody else holds it. Wait without spinning.
    sleep_until_monotonic_ns(monotonic_ns() + 1'000'000);
  } else if (requests_.count() > 0) {
    const int count = engine_.reap(completions_, min_count, timeout_ns);
    if (count < 0) {
      disown_unsubmitted();
      return fail(-count, buffers_.front(), "waiting for completions");
    }
    for (int i = 0; i < count; ++i) handle(completions_[static_cast<std::size_t>(i)]);
  }
  pump();
  look_at_the_clock();
}

// Whatever is still owed after the answers that have just been reaped is given up when its time is over.
void BlockWriter::look_at_the_clock() {
  if (requests_.count() == 0 && to_submit_.empty()) return;
  const bool interrupted = config_.stop && config_.stop->expired(StopClock::kAnswerNs);
  if (interrupted || requests_.silent_for(config_.stall_ns, monotonic_ns())) give_up(interrupted);
}

void BlockWriter::give_up(bool interrupted) {
  disown_unsubmitted();
  if (failed()) return;
  std::uint64_t first = end_offset_;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (requests_.holds(i)) first = std::min(first, buffers_[i].offset + buffers_[i].written);
  }
  error_ = {interrupted ? ECANCELED : ETIMEDOUT, first,
            unanswered_text(config_.target, "writes", requests_, first, interrupted, config_.stall_ns) +
                "; whether they are stored is unknown"};
}

void BlockWriter::handle(const IoCompletion& completion) {
  const std::optional<std::size_t> index = requests_.settle(completion, monotonic_ns());
  if (!index) {
    if (!failed()) error_ = {EPROTO, completed_end_, false_answer_text(config_.target, completion)};
    return;
  }
  Buffer& buffer = buffers_[*index];
  if (completion.result == -EAGAIN || completion.result == -EINTR) {
    if (++buffer.stalls > kMaxStalls) return fail(static_cast<int>(-completion.result), buffer, "write");
    to_submit_.push_front(*index);
    return;
  }
  if (completion.result < 0) return fail(static_cast<int>(-completion.result), buffer, "write");
  // Direct I/O continues at an aligned offset only: an unaligned rest of a short write is written again.
  const std::size_t end = buffer.written + static_cast<std::size_t>(completion.result);
  const std::size_t progress = end >= buffer.filled ? buffer.filled : end - end % config_.alignment;
  buffer.stalls = progress > buffer.written ? 0 : buffer.stalls + 1;
  advance(buffer.pieces, progress - buffer.written);
  buffer.written = progress;
  if (buffer.written < buffer.filled) {
    if (buffer.stalls > kMaxStalls) return fail(EIO, buffer, "write makes no progress");
    to_submit_.push_front(*index);
    return;
  }
  completed_end_ = std::max(completed_end_, buffer.offset + buffer.filled);
  completed_bytes_ += buffer.filled;
  ledger_.complete_block(buffer.block, monotonic_ns(), buffer.submitted_ns);
  for (const std::uint64_t lease : buffer.leases) config_.released(lease);
  free_.push_back(*index);
}

bool BlockWriter::poll(std::int64_t timeout_ns) {
  const std::int64_t since = monotonic_ns();
  if (requests_.count() > 0 || !to_submit_.empty()) reap(timeout_ns > 0 ? 1 : 0, timeout_ns);
  io_ns_ += monotonic_ns() - since;
  return !failed();
}

bool BlockWriter::finish() {
  if (current_ && current_->filled > frame_ && !failed()) submit_current();
  wait_for_all();
  return !failed();
}

void BlockWriter::wait_for_all() {
  while (!engine_broken_ && (requests_.count() > 0 || (!to_submit_.empty() && !failed()))) {
    reap(1, kWaitNs);
    if (failed() && requests_.count() == engine_.unsubmitted().size()) disown_unsubmitted();
  }
}

void BlockWriter::fail(int error_number, const Buffer& buffer, const std::string& what) {
  if (failed()) return;  // the first error is the cause
  error_ = {error_number, buffer.offset + buffer.written,
            config_.target + ": " + what + " of " + std::to_string(buffer.filled - buffer.written) +
                " B at offset " + std::to_string(buffer.offset + buffer.written) +
                " failed: " + errno_text(error_number)};
}

}  // namespace daqwriter
