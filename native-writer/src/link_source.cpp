#include "link_source.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "payload.h"

namespace daqwriter {
namespace {

constexpr std::uint64_t kLookAtClockEvery = 1024;
constexpr std::uint64_t kPublishEvery = 64;  // a late tick hands over its work in portions, not at its end

void stamp(std::byte* slot, std::uint64_t sequence, std::uint64_t ordinal, std::int64_t intended_ns) {
  std::memcpy(slot + offsetof(SuperchunkHeader, sequence), &sequence, sizeof sequence);
  std::memcpy(slot + offsetof(SuperchunkHeader, ordinal), &ordinal, sizeof ordinal);
  std::memcpy(slot + offsetof(SuperchunkHeader, intended_ns), &intended_ns, sizeof intended_ns);
}

}  // namespace

LinkSource::LinkSource(std::vector<std::unique_ptr<LinkRing>>& rings, const ArrivalSchedule& schedule,
                       const std::atomic<int>& stop_signal, const std::atomic<bool>& abort)
    : rings_(rings),
      schedule_(schedule),
      stop_signal_(stop_signal),
      abort_(abort),
      next_sequence_(rings.size(), 0),
      next_ordinal_(rings.size(), 0),
      lost_per_link_(rings.size(), 0) {}

void LinkSource::run(std::int64_t start_ns, const std::atomic<bool>& writer_done) {
  const CpuUse before = thread_cpu_use();
  start_ns_ = start_ns;
  std::int64_t tick = start_ns;
  // Relaxed loads of stop and abort: they carry no data, and a tick's delay in seeing them does no harm.
  while (stop_signal_.load(std::memory_order_relaxed) == 0 && !abort_.load(std::memory_order_relaxed)) {
    const std::int64_t now = monotonic_ns();
    emit_due();
    if (now - start_ns >= schedule_.duration_ns()) break;
    // The schedule's end is a tick too, so that nothing waits for a tick beyond it.
    tick = std::max(tick + kTickNs, now);
    sleep_until_monotonic_ns(std::min(tick, start_ns + schedule_.duration_ns()));
  }
  emission_ns_ = std::clamp<std::int64_t>(monotonic_ns() - start_ns, 0, schedule_.duration_ns() + kOverrunNs);
  finished_.store(true, std::memory_order_release);
  // Acquire: after it, no more slots are freed, so waiting longer could not end an episode.
  while (busy_.busy() && !writer_done.load(std::memory_order_acquire)) {
    sleep_until_monotonic_ns(monotonic_ns() + kTickNs);
    watch_busy(monotonic_ns() - start_ns);
  }
  busy_.finish(monotonic_ns() - start_ns);
  cpu_ = thread_cpu_use() - before;
}

void LinkSource::emit_due() {
  for (std::uint32_t link = 0; link < rings_.size(); ++link) emit_link(link, monotonic_ns() - start_ns_);
  watch_busy(monotonic_ns() - start_ns_);
}

void LinkSource::emit_link(std::uint32_t link, std::int64_t t_ns) {
  std::uint64_t& sequence = next_sequence_[link];
  std::uint64_t& ordinal = next_ordinal_[link];
  const std::uint64_t due = schedule_.due_by(link, t_ns);
  if (sequence == due) return;
  LinkRing& ring = *rings_[link];
  worst_lateness_ns_ = std::max(worst_lateness_ns_, t_ns - schedule_.intended_ns(link, sequence));
  const std::uint64_t first = sequence;
  const std::uint64_t first_ordinal = ordinal;
  for (; sequence < due; ++sequence) {
    // What cannot be emitted by then stays unoffered: that is how a source too slow for the load shows
    // itself.
    if (sequence % kLookAtClockEvery == 0 && overrun()) break;
    const std::int64_t intended = schedule_.intended_ns(link, sequence);
    if (t_ns - intended > kLateNs) ++late_;
    if (!ring.has_room(ordinal)) continue;  // lost: counted below, its sequence number is skipped
    stamp(ring.slot(ordinal), sequence, ordinal, intended);
    ++ordinal;
    if (ordinal % kPublishEvery == 0) ring.publish(ordinal);
  }
  ring.publish(ordinal);
  const std::uint64_t lost = (sequence - first) - (ordinal - first_ordinal);
  lost_per_link_[link] += lost;
  // Relaxed read-modify-writes: this thread is the only writer.
  accepted_.fetch_add(ordinal - first_ordinal, std::memory_order_relaxed);
  lost_.fetch_add(lost, std::memory_order_relaxed);
  offered_.fetch_add(sequence - first, std::memory_order_relaxed);
}

bool LinkSource::overrun() const {
  return monotonic_ns() - start_ns_ > schedule_.duration_ns() + kOverrunNs;
}

void LinkSource::watch_busy(std::int64_t t_ns) {
  double fullest = 0;
  for (const auto& ring : rings_) fullest = std::max(fullest, ring->occupancy());
  busy_.observe(t_ns, fullest);
  busy_count_.store(busy_.count(), std::memory_order_relaxed);
}

void prepare_rings(const std::vector<std::unique_ptr<LinkRing>>& rings, std::uint64_t seed,
                   const RecordId& record_id, ChecksumKind checksum) {
  const std::uint64_t key = payload_key(seed, record_id);
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
      fill_payload({ring.slot(slot) + sizeof header, header.payload_bytes}, key, link, slot);
    }
  }
}

}  // namespace daqwriter
