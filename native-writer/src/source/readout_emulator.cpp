#include "source/readout_emulator.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "format/payload.h"

namespace daqwriter {
namespace {

constexpr std::uint64_t kLookAtClockEvery = 1024;

void stamp(std::byte* slot, std::uint64_t sequence, std::uint64_t ordinal, std::int64_t intended_ns) {
  std::memcpy(slot + offsetof(SuperchunkHeader, sequence), &sequence, sizeof sequence);
  std::memcpy(slot + offsetof(SuperchunkHeader, ordinal), &ordinal, sizeof ordinal);
  std::memcpy(slot + offsetof(SuperchunkHeader, intended_ns), &intended_ns, sizeof intended_ns);
}

}  // namespace

ReadoutEmulator::ReadoutEmulator(std::vector<std::unique_ptr<LinkRing>>& rings,
                                 const ArrivalSchedule& schedule, const Config& config,
                                 const std::atomic<int>& stop_signal, const std::atomic<bool>& abort)
    : rings_(rings),
      schedule_(schedule),
      config_(config),
      stop_signal_(stop_signal),
      abort_(abort),
      next_sequence_(rings.size(), 0),
      next_ordinal_(rings.size(), 0),
      lost_per_link_(rings.size(), 0) {
  if (config.trigger.window > 0) trigger_.emplace(config.trigger, schedule, rings);
}

void ReadoutEmulator::run(std::int64_t start_ns, const std::atomic<bool>& writer_done) {
  const CpuUse before = thread_cpu_use();
  start_ns_ = start_ns;
  std::int64_t tick = start_ns;
  while (!stopped()) {
    const std::int64_t now = monotonic_ns();
    config_.unpaced ? fill_room() : emit_due();
    if (over(now - start_ns)) break;
    // The schedule's end is a tick too, so that nothing waits for a tick beyond it.
    tick = std::max(tick + (config_.unpaced ? kUnpacedTickNs : kTickNs), now);
    sleep_until_monotonic_ns(std::min(tick, start_ns + schedule_.duration_ns()));
  }
  emission_ns_ = std::clamp<std::int64_t>(monotonic_ns() - start_ns, 0, schedule_.duration_ns() + kOverrunNs);
  finished_.store(true, std::memory_order_release);
  // Acquire: after it, no more slots are freed, so waiting longer could not end an episode.
  while (busy_.busy() && !writer_done.load(std::memory_order_acquire)) {
    sleep_until_monotonic_ns(monotonic_ns() + kTickNs);
    if (trigger_) trigger_->release_served();
    watch_busy(monotonic_ns() - start_ns);
  }
  busy_.finish(monotonic_ns() - start_ns);
  cpu_ = thread_cpu_use() - before;
}

// Relaxed loads: the flags carry no data, and a tick's delay in seeing them does no harm.
bool ReadoutEmulator::stopped() const {
  return stop_signal_.load(std::memory_order_relaxed) != 0 || abort_.load(std::memory_order_relaxed);
}

bool ReadoutEmulator::over(std::int64_t t_ns) const {
  if (t_ns >= schedule_.duration_ns()) return true;
  if (!config_.unpaced) return false;
  return std::none_of(next_ordinal_.begin(), next_ordinal_.end(),
                      [this](std::uint64_t ordinal) { return may_emit(ordinal); });
}

// Each link has its share of the limit: the record's header promises that no link has more.
bool ReadoutEmulator::may_emit(std::uint64_t ordinal) const {
  return ordinal + per_turn(config_.trigger.window) <= config_.most_superchunks / rings_.size();
}

void ReadoutEmulator::emit_due() {
  for (std::uint32_t link = 0; link < rings_.size(); ++link) emit_paced(link, monotonic_ns() - start_ns_);
  const std::int64_t t = monotonic_ns() - start_ns_;
  if (trigger_) trigger_->tick(std::min(t, schedule_.duration_ns() - 1), busy_.busy());
  watch_busy(t);
}

void ReadoutEmulator::emit_paced(std::uint32_t link, std::int64_t t_ns) {
  std::uint64_t& sequence = next_sequence_[link];
  std::uint64_t& ordinal = next_ordinal_[link];
  const std::uint64_t due = schedule_.due_by(link, t_ns);
  if (sequence == due) return;
  LinkRing& ring = *rings_[link];
  worst_lateness_ns_ = std::max(worst_lateness_ns_, t_ns - schedule_.intended_ns(link, sequence));
  const std::uint64_t first = sequence;
  const std::uint64_t first_ordinal = ordinal;
  std::byte* slot = ring.slot(trigger_ ? sequence : ordinal);
  for (; sequence < due; ++sequence) {
    // Superchunks that cannot be emitted by then stay unoffered: so a source too slow for the load shows
    // itself.
    if (sequence % kLookAtClockEvery == 0 && overrun()) break;
    const std::int64_t intended = schedule_.intended_ns(link, sequence);
    if (t_ns - intended > kLateNs) ++late_;
    if (t_ns - intended > kInTimeNs) ++too_late_;
    // With requests a position is a sequence number, so that a window is a range of time.
    const std::uint64_t position = trigger_ ? sequence : ordinal;
    if (!ring.has_room(position)) {  // counted below, its sequence number is skipped
      if (trigger_) trigger_->missed(link, sequence);
      if (trigger_) slot = ring.next(slot);
      continue;
    }
    stamp(slot, sequence, ordinal, intended);
    slot = ring.next(slot);
    ++ordinal;
    // A late tick hands over its work in portions, not at its end.
    if (ordinal % kTurn == 0) ring.publish(position + 1);
  }
  ring.publish(trigger_ ? sequence : ordinal);
  // Nobody had asked for the superchunks that requests kept out of a ring: no window reaches over them,
  // nothing is lost.
  const std::uint64_t missed = (sequence - first) - (ordinal - first_ordinal);
  const std::uint64_t lost = trigger_ ? 0 : missed;
  unbuffered_ += missed - lost;
  lost_per_link_[link] += lost;
  // Relaxed read-modify-writes: this thread is the only writer.
  accepted_.fetch_add(ordinal - first_ordinal, std::memory_order_relaxed);
  lost_.fetch_add(lost, std::memory_order_relaxed);
  emitted_.fetch_add(sequence - first, std::memory_order_relaxed);
}

// Goes on as long as the writer keeps making room, and looks at the clock and the stop flags in between.
void ReadoutEmulator::fill_room() {
  const std::uint64_t most = per_turn(config_.trigger.window);
  for (bool any = true; any;) {
    const std::int64_t t = monotonic_ns() - start_ns_;
    if (t < 0 || over(t) || stopped()) return;
    if (trigger_) trigger_->release_served();
    any = false;
    if (trigger_ && !trigger_->wants_more()) return;
    for (std::uint32_t link = 0; link < rings_.size(); ++link) {
      if (!may_emit(next_ordinal_[link]) || !rings_[link]->has_room(next_ordinal_[link] + most - 1)) continue;
      emit_unpaced(link, most, t);
      any = true;
    }
    if (trigger_) trigger_->tick(t, false);
  }
}

void ReadoutEmulator::emit_unpaced(std::uint32_t link, std::uint64_t count, std::int64_t t_ns) {
  std::uint64_t& ordinal = next_ordinal_[link];
  LinkRing& ring = *rings_[link];
  std::byte* slot = ring.slot(ordinal);
  for (const std::uint64_t end = ordinal + count; ordinal < end; ++ordinal, slot = ring.next(slot))
    stamp(slot, ordinal, ordinal, t_ns);
  ring.publish(ordinal);
  accepted_.fetch_add(count, std::memory_order_relaxed);
  emitted_.fetch_add(count, std::memory_order_relaxed);
}

bool ReadoutEmulator::overrun() const {
  return monotonic_ns() - start_ns_ > schedule_.duration_ns() + kOverrunNs;
}

void ReadoutEmulator::watch_busy(std::int64_t t_ns) {
  double fullest = 0;
  for (const auto& ring : rings_) fullest = std::max(fullest, ring->occupancy());
  busy_.observe(t_ns, fullest);
  busy_count_.store(busy_.count(), std::memory_order_relaxed);
}

void prepare_rings(const std::vector<std::unique_ptr<LinkRing>>& rings, std::uint64_t payload_key,
                   const RecordId& record_id, ChecksumKind checksum) {
  for (std::uint32_t link = 0; link < rings.size(); ++link) {
    const LinkRing& ring = *rings[link];
    SuperchunkHeader header{};
    header.magic = kSuperchunkMagic;
    header.record_id = record_id;
    header.link = link;
    header.payload_bytes = static_cast<std::uint32_t>(ring.slot_bytes() - sizeof header);
    header.checksum_kind = static_cast<std::uint32_t>(checksum);
    for (std::uint64_t slot = 0; slot < ring.slots(); ++slot) {
      std::memcpy(ring.slot(slot), &header, sizeof header);
      fill_payload({ring.slot(slot) + sizeof header, header.payload_bytes}, payload_key, link, slot);
    }
  }
}

}  // namespace daqwriter
