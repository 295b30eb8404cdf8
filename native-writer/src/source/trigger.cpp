#include "source/trigger.h"

#include <algorithm>

#include "format/record_format.h"

namespace daqwriter {

TriggerEmulator::TriggerEmulator(const TriggerConfig& config, const ArrivalSchedule& schedule,
                                 std::vector<std::unique_ptr<LinkRing>>& rings)
    : config_(config),
      schedule_(schedule),
      rings_(rings),
      queue_(rings.size()),
      not_before_(rings.size(), 0) {}

void TriggerEmulator::tick(std::int64_t t_ns, bool busy) {
  queue_.collect();
  if (config_.rate_hz > 0) {
    const double period_ns = 1e9 / config_.rate_hz;
    for (;; ++next_) {
      const auto intended = static_cast<std::int64_t>(static_cast<double>(next_) * period_ns);
      if (intended > t_ns) break;
      if (busy || queue_.full()) {
        ++vetoed_;
      } else if (!decide(intended)) {
        break;  // its data is still arriving
      }
    }
  } else {
    while (!queue_.full() && decide(t_ns)) {
    }
  }
  hold_windows();
}

void TriggerEmulator::release_served() {
  queue_.collect();
  hold_windows();
}

std::uint64_t TriggerEmulator::window_start(std::uint32_t link, std::int64_t intended_ns) const {
  const std::uint64_t untaken = round_up(not_before_[link], config_.unit);
  if (config_.rate_hz == 0) return untaken;
  const LinkRing& ring = *rings_[link];
  const std::uint64_t end = schedule_.due_by(link, intended_ns);
  const std::uint64_t wanted =
      end > config_.window ? (end - config_.window) / config_.unit * config_.unit : 0;
  const std::uint64_t intact =
      ring.head() > ring.slots() ? round_up(ring.head() - ring.slots(), config_.unit) : 0;
  return std::max({wanted, untaken, intact});
}

// False while a link has not got all superchunks of the window.
bool TriggerEmulator::decide(std::int64_t intended_ns) {
  DataRequest& request = queue_.next();
  for (std::uint32_t link = 0; link < rings_.size(); ++link) {
    request.first[link] = window_start(link, intended_ns);
    if (request.first[link] + config_.window > rings_[link]->head()) return false;
  }
  for (std::size_t link = 0; link < rings_.size(); ++link)
    not_before_[link] = request.first[link] + config_.window;
  request.intended_ns = intended_ns;
  queue_.publish();
  ++decisions_;
  // Relaxed read-modify-write: this thread is the only writer.
  requested_.fetch_add(rings_.size() * config_.window, std::memory_order_relaxed);
  return true;
}

// Everything older than the oldest outstanding window may be overwritten.
void TriggerEmulator::hold_windows() {
  const bool any = queue_.outstanding() > 0;
  for (std::size_t link = 0; link < rings_.size(); ++link) {
    LinkRing& ring = *rings_[link];
    ring.keep_from(any ? queue_.oldest().first[link] : ring.head());
  }
}

bool TriggerEmulator::wants_more() const {
  for (const auto& ring : rings_) {
    const auto held = static_cast<std::uint64_t>(ring->occupancy() * static_cast<double>(ring->slots()));
    if (held + config_.window > ring->slots() * 3 / 4) return false;
  }
  return !queue_.full();
}

}  // namespace daqwriter
