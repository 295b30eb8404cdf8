#include "io/requests.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/status.h"
#include "io/aio_engine.h"

namespace daqwriter {
namespace {

constexpr unsigned kMaxStalls = 8;
constexpr std::int64_t kBetweenTriesNs = 1'000'000;

bool passes_by_itself(std::int64_t result) {
  return result == -EAGAIN || result == -EINTR;
}

}  // namespace

Requests::Requests(Rules rules, std::size_t slots, IoEngine& engine)
    : rules_(std::move(rules)),
      engine_(engine),
      slots_(slots),
      completions_(rules_.depth),
      now_ns_(monotonic_ns()) {
  waiting_.reserve(slots);
}

void Requests::ask(std::size_t index, std::span<iovec> pieces, std::uint64_t offset, std::size_t enough) {
  Slot& slot = slots_[index];
  slot.pieces = pieces;
  slot.offset = offset;
  slot.left = enough;
  slot.bytes = bytes_of(pieces);
  slot.stalls = 0;
  slot.taken_ns = 0;
  fill(waiting_.emplace_back(), index);
}

// In its place: a copy would wait for its own stores, a tenth of what a request of 4 KiB to nowhere costs.
void Requests::fill(IoRequest& request, std::size_t index) const {
  const Slot& slot = slots_[index];
  request.fd = rules_.fd;
  request.direction = rules_.direction;
  request.pieces = slot.pieces;
  request.offset = slot.offset;
  request.tag = slot.turn << kSlotBits | index;
}

template <typename Call>
int Requests::watched(const Call& call) {
  return rules_.watch ? rules_.watch->around(*this, call) : call();
}

void Requests::submit(bool reap_follows) {
  while (!waiting_.empty() && count_ < rules_.depth && !failed() && !given_up_) {
    // One by one, or all that there is room for when the engine hands them over together.
    const std::size_t most = reap_follows ? std::min<std::size_t>(waiting_.size(), rules_.depth - count_) : 1;
    const auto offered = offered_ = std::span<const IoRequest>(waiting_).first(most);
    const int taken =
        watched([&] { return reap_follows ? engine_.accept(offered) : engine_.submit(offered); });
    offered_ = {};
    if (passes_by_itself(taken)) return bear_refusal(offered.front().tag);
    if (taken < 0) return fail(-taken, slots_[slot_of(offered.front().tag)], "submit");
    const std::int64_t now = reap_follows ? now_ns_ : monotonic_ns();
    for (const IoRequest& each : offered.first(static_cast<std::size_t>(taken))) take(each, now);
    waiting_.erase(waiting_.begin(), waiting_.begin() + taken);
  }
}

// The engine has it.
void Requests::take(const IoRequest& request, std::int64_t now_ns) {
  Slot& slot = slots_[slot_of(request.tag)];
  slot.taken = true;
  if (slot.taken_ns == 0) slot.taken_ns = now_ns;
  bytes_ += slot.bytes;
  if (count_++ == 0) silence_.restart(now_ns);
}

// For lack of resources; others may give some back, but not for ever.
void Requests::bear_refusal(std::uint64_t tag) {
  const std::int64_t now = monotonic_ns();
  if (refused_ != tag) refused_since_ns_ = now;
  refused_ = tag;
  if (now - refused_since_ns_ > rules_.retry_ns)
    fail(EAGAIN, slots_[slot_of(tag)], "submit refused; " + aio_limits_text());
}

std::span<const IoCompletion> Requests::answers(unsigned min_count, std::int64_t timeout_ns) {
  if (given_up_) return {};
  int count = 0;
  if (count_ > 0) {
    count = watched([&] { return engine_.reap(completions_, min_count, timeout_ns); });
  } else if (!waiting_.empty()) {
    // Nothing of ours can complete and make room: somebody else holds it. Wait without spinning.
    sleep_until_monotonic_ns(monotonic_ns() + kBetweenTriesNs);
  }
  now_ns_ = monotonic_ns();
  if (count >= 0) return std::span(completions_).first(static_cast<std::size_t>(count));
  fail(-count, slots_.front(), "waiting for completions");
  disown_unsubmitted();
  return {};
}

// The slot whose request is done.
std::optional<std::size_t> Requests::settle(const IoCompletion& answer) {
  const std::size_t index = slot_of(answer.tag);
  if (!owed(answer.tag) || answer.result > static_cast<std::int64_t>(slots_[index].bytes)) {
    end({EPROTO, 0,
         rules_.target + ": the system answered " + std::to_string(answer.result) +
             " to a request that is not in flight or is shorter (tag " + std::to_string(answer.tag) +
             "); what is stored cannot be told: verify it, and do not use this kernel or drive"});
    return std::nullopt;
  }
  Slot& slot = slots_[index];
  free_slot(slot);
  silence_.restart(now_ns_);
  if (!advance(slot, answer)) return std::nullopt;
  if (slot.left == 0) return index;
  fill(*waiting_.emplace(waiting_.begin()), index);
  return std::nullopt;
}

// False when it has failed.
bool Requests::advance(Slot& slot, const IoCompletion& answer) {
  const bool again = passes_by_itself(answer.result);
  if (answer.result < 0 && !again) {
    const int error_number = static_cast<int>(-answer.result);
    fail(error_number, slot, verb(), error_number);
    return false;
  }
  // An unaligned rest of what was done is asked for again.
  const std::size_t good = again ? 0 : static_cast<std::size_t>(answer.result);
  std::size_t progress = good >= slot.left ? slot.bytes : good - good % rules_.alignment;
  slot.stalls = progress > 0 ? 0 : slot.stalls + 1;
  if (progress == 0 && !again && rules_.direction == IoDirection::read) {
    end({EIO, slot.offset,
         rules_.target + ": read at offset " + std::to_string(slot.offset) + ": unexpected end of the data"});
    return false;
  }
  if (slot.stalls > kMaxStalls) {
    fail(again ? static_cast<int>(-answer.result) : EIO, slot, std::string(verb()) + " makes no progress");
    return false;
  }
  slot.left -= std::min(slot.left, progress);
  slot.offset += progress;
  slot.bytes -= progress;
  for (; !slot.pieces.empty() && slot.pieces.front().iov_len <= progress;
       slot.pieces = slot.pieces.subspan(1))
    progress -= slot.pieces.front().iov_len;
  if (progress == 0) return true;
  iovec& rest = slot.pieces.front();
  rest = {static_cast<std::byte*>(rest.iov_base) + progress, rest.iov_len - progress};
  return true;
}

void Requests::go_on() {
  if (given_up_) return;
  const std::vector<std::uint64_t> unsubmitted = engine_.unsubmitted();
  if (!unsubmitted.empty()) bear_refusal(unsubmitted.front());
  submit();
  look_at_the_clock();
  if (failed() && count_ == engine_.unsubmitted().size()) disown_unsubmitted();
}

bool Requests::owed(std::uint64_t tag) const {
  const std::size_t index = slot_of(tag);
  return index < slots_.size() && slots_[index].taken && slots_[index].turn == tag >> kSlotBits;
}

void Requests::free_slot(Slot& slot) {
  slot.taken = false;
  ++slot.turn;
  bytes_ -= slot.bytes;
  --count_;
}

// The kernel was never given them, and will not be: they are not stored, and nothing is owed.
void Requests::disown_unsubmitted() {
  given_up_ = true;
  for (const std::uint64_t tag : engine_.unsubmitted()) {
    if (owed(tag)) free_slot(slots_[slot_of(tag)]);
  }
}

// Whatever is still owed after the answers that have just been taken is given up when its time is over.
void Requests::look_at_the_clock() {
  if (idle()) return;
  const bool interrupted = rules_.stop && rules_.stop->expired(StopClock::kAnswerNs);
  if (!interrupted && (count_ == 0 || !silence_.exceeds(rules_.stall_ns, now_ns_))) return;
  disown_unsubmitted();
  if (failed()) return;
  (interrupted ? interrupted_ : silent_) = true;
  std::uint64_t first = waiting_.empty() ? UINT64_MAX : waiting_.front().offset;
  for (const Slot& slot : slots_) {
    if (slot.taken) first = std::min(first, slot.offset);
  }
  std::string text = rules_.target + ": " + std::to_string(count_) + " " + verb() + "s of " +
                     std::to_string(bytes_) + " B together, the first at offset " + std::to_string(first) +
                     ", ";
  text += (interrupted ? "were not answered " : "have had no answer ") +
          without_answer(interrupted, rules_.stall_ns);
  if (rules_.direction == IoDirection::write) text += "; whether they are stored is unknown";
  end({interrupted ? ECANCELED : ETIMEDOUT, first, text});
}

void Requests::take_over(bool interrupted) {
  for (const IoRequest& each : offered_) take(each, now_ns_);
  given_up_ = true;
  if (failed()) return;
  (interrupted ? interrupted_ : silent_) = true;
  end({interrupted ? ECANCELED : ETIMEDOUT, 0,
       rules_.target + ": the system has not returned from the call that hands it requests " +
           without_answer(interrupted, rules_.stall_ns) + "; what it was given last may be done or not"});
}

void Requests::fail(int error_number, const Slot& slot, const std::string& what, int target_errno) {
  end({error_number, slot.offset,
       rules_.target + ": " + what + " of " + std::to_string(slot.bytes) + " B at offset " +
           std::to_string(slot.offset) + " failed: " + errno_text(error_number),
       target_errno});
}

}  // namespace daqwriter
