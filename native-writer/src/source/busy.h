// Promise: turns readings of the fullest ring into "Dataflow is BUSY" episodes with hysteresis. In a
// continuous record the detector cannot be slowed down: BUSY is recorded, it throttles nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace daqwriter {

struct BusyEpisode {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
};

class BusyTracker {
 public:
  static constexpr double kAssertAbove = 0.8;
  static constexpr double kReleaseAtOrBelow = 0.5;
  static constexpr std::size_t kMaxEpisodes = 1000;  // kept in detail; all are counted

  void observe(std::int64_t t_ns, double occupancy) {
    if (!busy_ && occupancy > kAssertAbove) {
      busy_ = true;
      since_ns_ = t_ns;
      ++count_;
    } else if (busy_ && occupancy <= kReleaseAtOrBelow) {
      finish(t_ns);
    }
  }
  // Closes an open episode.
  void finish(std::int64_t t_ns) {
    if (!busy_) return;
    busy_ = false;
    total_ns_ += t_ns - since_ns_;
    if (episodes_.size() < kMaxEpisodes) episodes_.push_back({since_ns_, t_ns - since_ns_});
  }
  // Another application's episodes.
  void add(const BusyTracker& other) {
    count_ += other.count_;
    total_ns_ += other.total_ns_;
    episodes_.insert(episodes_.end(), other.episodes_.begin(), other.episodes_.end());
    episodes_.resize(std::min(episodes_.size(), kMaxEpisodes));
  }

  bool busy() const { return busy_; }
  std::uint64_t count() const { return count_; }
  std::int64_t total_ns() const { return total_ns_; }
  const std::vector<BusyEpisode>& episodes() const { return episodes_; }

 private:
  bool busy_ = false;
  std::int64_t since_ns_ = 0;
  std::uint64_t count_ = 0;
  std::int64_t total_ns_ = 0;
  std::vector<BusyEpisode> episodes_;
};

}  // namespace daqwriter
