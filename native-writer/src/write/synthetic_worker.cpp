#include "write/synthetic_worker.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/status.h"
#include "format/payload.h"
#include "io/aio_engine.h"

namespace daqwriter {
namespace {

constexpr std::int64_t kWaitNs = 10'000'000;
constexpr std::int64_t kRefusedNs = 5'000'000'000;  // how long a full kernel queue is borne
constexpr unsigned kMaxStalls = 8;
constexpr std::size_t kPage = 4096;

using Stamp = std::array<std::uint64_t, 2>;

}  // namespace

// Every page differs from every other one, so that no drive can gain by recognising repetitions.
void stamp_pages(std::span<std::byte> block, std::uint64_t offset, std::uint64_t turn) {
  for (std::size_t page = 0; page < block.size(); page += kPage) {
    const Stamp stamp = {offset + page, turn};
    std::memcpy(block.data() + page, stamp.data(), sizeof stamp);
  }
}

SyntheticWorker::SyntheticWorker(SharedLoad& shared, const WriteTargetPlan& plan, int fd,
                                 std::uint32_t number, const EngineFactory& make_engine)
    : shared_(shared),
      plan_(plan),
      fd_(fd),
      number_(number),
      block_(shared.options.block_bytes),
      memory_(shared.options.io_depth * block_, numa_node_of(plan.placement.cpus[number])),
      engine_(make_engine(shared.options.io_depth)),
      slots_(shared.options.io_depth),
      completions_(shared.options.io_depth),
      order_(plan.part_blocks, shared.options.seed + number),
      in_flight_(shared.options.io_depth) {
  if (!shared.options.zeros) fill_payload({memory_.data(), memory_.size()}, shared.options.seed, number, 0);
  const iovec whole{memory_.data(), memory_.size()};
  engine_->register_memory({&whole, 1});
  engine_->register_file(fd_);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].data = memory_.data() + i * block_;
    free_.push_back(i);
  }
  requests_.reserve(slots_.size());
}

void SyntheticWorker::run(std::int64_t deadline_ns) {
  const CpuUse before = thread_cpu_use();
  now_ns_ = monotonic_ns();
  while (error_.empty()) {
    if (now_ns_ >= deadline_ns || stopped()) {
      requests_.clear();
    } else {
      prepare_requests(plan_.blocks_per_thread);
    }
    if (!submit()) break;
    if (in_flight_.count() == 0 && requests_.empty()) break;
    reap();
  }
  drain();
  if (!error_.empty()) shared_.failed.store(true, std::memory_order_relaxed);
  result_.cpu = thread_cpu_use() - before;
}

WriteThreadResult SyntheticWorker::result() const {
  WriteThreadResult whole = result_;
  whole.bytes = bytes();
  return whole;
}

// Relaxed loads: the flags carry no data, and seeing them a little later does no harm.
bool SyntheticWorker::stopped() const {
  return shared_.stop.asked() || shared_.failed.load(std::memory_order_relaxed);
}

void SyntheticWorker::prepare_requests(std::uint64_t blocks) {
  for (; !free_.empty() && issued_ < blocks; ++issued_) {
    const std::size_t index = free_.back();
    free_.pop_back();
    const std::uint64_t turn = issued_ % plan_.part_blocks;
    const std::uint64_t place = shared_.options.random ? order_(turn) : turn;
    Slot& slot = slots_[index];
    slot.offset = (number_ * plan_.part_blocks + place) * block_;
    slot.piece = {slot.data, block_};
    slot.submitted_ns = now_ns_;
    slot.stalls = 0;
    // A stamp of its own keeps an earlier answer in this buffer from passing for this read.
    const std::uint64_t turn_of_stamp = shared_.options.reads ? 0 : issued_;
    if (!shared_.options.zeros) stamp_pages({slot.data, block_}, slot.offset, turn_of_stamp);
    enqueue(index);
  }
}

// What was read is what was written before: otherwise the rate is that of something else.
bool SyntheticWorker::check(const Slot& slot) {
  const WriteOptions& o = shared_.options;
  if (!o.reads || o.zeros || o.null_sink) return true;
  for (std::size_t page = 0; page < block_; page += kPage) {
    const Stamp expected = {slot.offset + page, kPrefillTurn};
    if (std::memcmp(slot.data + page, expected.data(), sizeof expected) == 0) continue;
    if (error_.empty())
      error_ = plan_.target.path + ": the read of " + std::to_string(block_) + " B at offset " +
               std::to_string(slot.offset) + " returned other data at offset " +
               std::to_string(slot.offset + page) + " than was written there before";
    return false;
  }
  return true;
}

void SyntheticWorker::enqueue(std::size_t index) {
  Slot& slot = slots_[index];
  const std::uint64_t done = block_ - slot.piece.iov_len;
  const IoDirection direction = shared_.options.reads ? IoDirection::read : IoDirection::write;
  requests_.push_back({fd_, direction, {&slot.piece, 1}, slot.offset + done, in_flight_.tag(index)});
}

bool SyntheticWorker::submit() {
  while (!requests_.empty()) {
    const int taken = engine_->accept(requests_);  // reap() follows
    if (taken == -EAGAIN || taken == -EINTR) return bear_refusal(requests_.front().tag);
    if (taken < 0) return fail(-taken, slots_[InFlight::slot_of(requests_.front().tag)], "submit");
    for (int i = 0; i < taken; ++i) {
      const IoRequest& request = requests_[static_cast<std::size_t>(i)];
      in_flight_.taken(InFlight::slot_of(request.tag), bytes_of(request.pieces), now_ns_);
    }
    requests_.erase(requests_.begin(), requests_.begin() + taken);
  }
  return true;
}

// For lack of resources; others may give some back, but not for ever.
bool SyntheticWorker::bear_refusal(std::uint64_t tag) {
  const std::int64_t now = monotonic_ns();
  if (refused_ != tag) refused_since_ns_ = now;
  refused_ = tag;
  if (now - refused_since_ns_ > kRefusedNs)
    return fail(EAGAIN, slots_[InFlight::slot_of(tag)], "submit refused; " + aio_limits_text());
  if (in_flight_.count() == 0) sleep_until_monotonic_ns(now + 1'000'000);
  now_ns_ = now;
  return true;
}

void SyntheticWorker::reap() {
  if (in_flight_.count() == 0) return;
  const int count = engine_->reap(completions_, 1, kWaitNs);
  now_ns_ = monotonic_ns();
  if (count < 0) {
    fail(-count, slots_.front(), "waiting for completions");
    return disown_unsubmitted();
  }
  for (int i = 0; i < count; ++i) handle(completions_[static_cast<std::size_t>(i)]);
  const std::vector<std::uint64_t> unsubmitted = engine_->unsubmitted();
  if (!unsubmitted.empty()) bear_refusal(unsubmitted.front());
  look_at_the_clock();
  if (!error_.empty() && in_flight_.count() == engine_->unsubmitted().size()) disown_unsubmitted();
}

// The kernel was never given them, and will not be: they are not stored, and nothing is owed.
void SyntheticWorker::disown_unsubmitted() {
  given_up_ = true;
  for (const std::uint64_t tag : engine_->unsubmitted()) in_flight_.withdraw(tag);
}

// Whatever is still owed after the answers that have just been reaped is given up when its time is over.
void SyntheticWorker::look_at_the_clock() {
  if (in_flight_.count() == 0) return;
  const bool interrupted = shared_.stop.expired(StopClock::kAnswerNs);
  const std::int64_t limit_ns = to_ns(shared_.options.stall_limit_s);
  if (!interrupted && !in_flight_.silent_for(limit_ns, now_ns_)) return;
  disown_unsubmitted();
  if (!error_.empty()) return;
  interrupted_ = interrupted;
  std::uint64_t first = UINT64_MAX;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (in_flight_.holds(i)) first = std::min(first, slots_[i].offset);
  }
  const bool reads = shared_.options.reads;
  error_ = unanswered_text(plan_.target.path, reads ? "reads" : "writes", in_flight_, first, interrupted,
                           limit_ns);
  if (!reads) error_ += "; whether they are stored is unknown";
}

void SyntheticWorker::handle(const IoCompletion& completion) {
  const std::optional<std::size_t> index = in_flight_.settle(completion, now_ns_);
  if (!index) {
    if (error_.empty()) error_ = false_answer_text(plan_.target.path, completion);
    return;
  }
  Slot& slot = slots_[*index];
  const bool again = completion.result == -EAGAIN || completion.result == -EINTR;
  if (completion.result < 0 && !again) {
    fail(static_cast<int>(-completion.result), slot, shared_.options.command());
    return;
  }
  // Direct I/O continues at an aligned offset only: an unaligned rest of a short write is written again.
  const std::size_t good = again ? 0 : static_cast<std::size_t>(completion.result);
  const std::size_t progress = good >= slot.piece.iov_len ? slot.piece.iov_len : good - good % kPage;
  slot.piece = {static_cast<std::byte*>(slot.piece.iov_base) + progress, slot.piece.iov_len - progress};
  if (slot.piece.iov_len > 0) {
    slot.stalls = progress > 0 ? 0 : slot.stalls + 1;
    if (slot.stalls > kMaxStalls) {
      fail(again ? static_cast<int>(-completion.result) : EIO, slot,
           std::string(shared_.options.command()) + " makes no progress");
    } else {
      enqueue(*index);
    }
    return;
  }
  if (!check(slot)) return;
  latency_ns_.record(now_ns_ - slot.submitted_ns);
  bytes_.store(bytes() + block_, std::memory_order_relaxed);
  result_.end_ns = now_ns_ - shared_.start_ns.load(std::memory_order_relaxed);
  free_.push_back(*index);
}

void SyntheticWorker::drain() {
  requests_.clear();
  while (in_flight_.count() > 0 && !given_up_) reap();
}

bool SyntheticWorker::fail(int error_number, const Slot& slot, const std::string& what) {
  if (!error_.empty()) return false;  // the first error is the cause
  const std::uint64_t offset = slot.offset + (block_ - slot.piece.iov_len);
  error_ = plan_.target.path + ": " + what + " of " + std::to_string(slot.piece.iov_len) + " B at offset " +
           std::to_string(offset) + " failed: " + errno_text(error_number);
  return false;
}

}  // namespace daqwriter
