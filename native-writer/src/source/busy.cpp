#include "source/busy.h"

#include <algorithm>

namespace daqwriter {

void BusyTracker::observe(std::int64_t t_ns, double occupancy) {
  if (!busy_ && occupancy > kAssertAbove) {
    busy_ = true;
    since_ns_ = t_ns;
    ++count_;
  } else if (busy_ && occupancy <= kReleaseAtOrBelow) {
    release(t_ns);
  }
}

void BusyTracker::finish(std::int64_t t_ns) {
  if (busy_) release(t_ns);
}

void BusyTracker::add(const BusyTracker& other) {
  count_ += other.count_;
  total_ns_ += other.total_ns_;
  episodes_.insert(episodes_.end(), other.episodes_.begin(), other.episodes_.end());
  episodes_.resize(std::min(episodes_.size(), kMaxEpisodes));
}

void BusyTracker::release(std::int64_t t_ns) {
  busy_ = false;
  total_ns_ += t_ns - since_ns_;
  if (episodes_.size() < kMaxEpisodes) episodes_.push_back({since_ns_, t_ns - since_ns_});
}

}  // namespace daqwriter
