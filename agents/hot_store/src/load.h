// Promise: the load of the DAQDB paper: threads that put events beside threads
// that get and at once remove them, and each one's count in each interval.
// Values can be recomputed from their keys, so that every value that is read is
// compared.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "subject.h"

namespace hotstore {

struct LoadOptions {
  std::uint64_t value_bytes = 1000;
  double seconds = 30;
  double warm_up_s = 1;
  double interval_s = 1;
  unsigned producers = 1;
  unsigned consumers = 1;
  unsigned fragments = 1;          // of each event: one per detector
  std::string consume = "direct";  // get and remove by key, in the order of the puts; or getany
  double lease_s = 10;
  double hold_s = 0;  // work of a consumer between get and removal
  std::uint64_t backlog_bytes = 256ull
                                << 20;    // put, and not yet removed; a producer waits for room beyond it
  std::uint64_t backlog_floor_bytes = 0;  // consumers wait below it, so that the working set has that size
  unsigned pipeline = 1;                  // requests under way at once on each connection
  std::uint64_t events = 0;               // 0: as many as there is time for
  double until_empty_s = 0;               // end after so long with nothing to consume;
                                          // 0: at the end of the time
  std::uint64_t first_event = 0;
  std::uint64_t stride = 1;  // between two events of all producers of this process
  unsigned level = 1;
  std::string ack_log;
  std::string owner = "consumer";
};

// The bytes of each fragment's value: a piece of one pool of random bytes.
class ValuePool {
 public:
  explicit ValuePool(std::uint64_t value_bytes);
  View of(std::uint64_t event, std::uint64_t detector) const;

 private:
  std::uint64_t value_bytes_;
  Bytes pool_;
};

// One kind of work, all threads together, in the measured time.
struct SideResult {
  std::uint64_t operations = 0;  // fragments put, or got and removed
  std::vector<double> per_s;     // of each interval
  daqwriter::Histogram latency_ns;
  double waited_s = 0;  // producers: for room; consumers: for events
};

struct LoadResult {
  SideResult put;
  SideResult consume;
  std::vector<std::uint64_t> backlog_bytes;  // at the end of each interval: put, and not yet removed
  std::vector<double> commits_per_s;         // of each interval, where the engine counts them
  double seconds = 0;
  std::int64_t started_utc_ns = 0;
  std::map<std::string, std::uint64_t> answers;  // other than ok
  std::uint64_t returned_events = 0;             // claimed after another one's lease had run out
  std::uint64_t corrupt = 0;
  daqwriter::CpuUse cpu;
  std::string error;
  bool interrupted = false;
};

void check_load(const LoadOptions& options, const KeySchema& schema);
double fill_s(const LoadOptions& options);  // the most that filling up to the floor may take
LoadResult run_load(Subject& subject, const LoadOptions& options, const std::atomic<int>& stop_signal);

}  // namespace hotstore
