// Promise: every reason not to start the storage application is found here, before anything is written, and
// names its remedy.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/memory.h"
#include "base/units.h"
#include "report/report_json.h"
#include "streams/streams.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kManifestRoom = 1u << 20;

void check_streams_ranges(const StreamsOptions& o) {
  const std::vector<double>& shares = o.run.shares;
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  require(!shares.empty() && shares.size() <= kMostStreams && std::abs(sum - 1) < 1e-6,
          "--shares: give 1 to " + std::to_string(kMostStreams) +
              " numbers above 0 whose sum is 1, e.g. 0.7,0.2,0.1; their sum is " + format_number(sum));
  require(o.run.event_bytes >= kMinEventBytes && o.run.event_bytes <= kMaxEventBytes,
          "--event-size " + format_size(o.run.event_bytes) + ": give " + std::to_string(kMinEventBytes) +
              " B (a 64 B header and payload) to " + format_size(kMaxEventBytes));
  require(o.bytes > 0 || o.duration_s > 0, "give --bytes or --duration, or both");
  require(o.null_sink || !o.target.empty(), "--target: name a new or empty directory");
  require(!o.prefix.empty() && o.prefix.find('/') == std::string::npos,
          "--prefix '" + o.prefix + "': give the beginning of a file name, without /");
}

void check_sizes(const StreamsOptions& o, std::uint64_t largest, std::uint64_t alignment) {
  const std::string event = " B, the largest event";
  require(o.queue_bytes >= 2 * largest, "--queue-size " + format_size(o.queue_bytes) +
                                            ": give at least 2 x " + std::to_string(largest) + event +
                                            ", at most 1TiB");
  require(o.file_bytes >= largest,
          "--file-size " + format_size(o.file_bytes) + ": give at least " + std::to_string(largest) + event);
  require(o.bytes == 0 || o.bytes >= largest,
          "--bytes " + format_size(o.bytes) + ": give at least " + std::to_string(largest) + event);
  require(o.block_bytes >= alignment && o.block_bytes % alignment == 0 && o.block_bytes <= (1ull << 30),
          "--block-size " + format_size(o.block_bytes) + ": give a multiple of " + std::to_string(alignment) +
              " B, the alignment of direct I/O here, up to 1GiB");
}

// The same checks as for a record's file, on the file system where the files will be.
void plan_directory(const StreamsOptions& o, const CallLimits& limits, StreamsPlan& plan) {
  const fs::path directory(o.target);
  struct Found {
    bool directory = false;
    bool empty = false;
    bool anything = false;
  };
  const auto found = limits.answer<Found>(o.target + ": looking at it", [directory] {
    const bool is_directory = fs::is_directory(directory);
    return Found{is_directory, is_directory && fs::is_empty(directory), fs::exists(directory)};
  });
  TargetSet set(o.consent, limits);
  if (found.directory) {
    require(found.empty, "--target " + o.target + ": the directory is not empty; name a new or an empty one");
    plan.target = set.plan((directory / kManifestName).string());
  } else {
    require(!found.anything, "--target " + o.target + ": not a directory; name a new or an empty one");
    plan.target = set.plan(o.target);
    plan.create_directory = true;
  }
  plan.target.path = o.target;
}

// Limits the bytes to write: as many as were asked for, or half of the free space.
void limit_bytes(const StreamsOptions& o, StreamsPlan& plan) {
  EventSource::Limits& limits = plan.limits;
  limits.rate_bytes_per_s = o.rate_bytes_per_s;
  if (o.duration_s > 0) limits.duration_ns = to_ns(o.duration_s);
  const double by_pace = static_cast<double>(o.rate_bytes_per_s) * o.duration_s;
  if (o.bytes > 0) limits.bytes = o.bytes;
  if (by_pace > 0) limits.bytes = std::min(limits.bytes, static_cast<std::uint64_t>(by_pace));
  if (o.null_sink) return;
  // While the files are written, each stream's last one takes its full size.
  const std::uint64_t open_files =
      o.run.shares.size() * round_up(o.preallocate ? o.file_bytes : 1, plan.target.alignment);
  const std::uint64_t reserve = open_files + kManifestRoom;
  plan.limited_by_space = limits.bytes == UINT64_MAX;
  // Others write to the file system too: a run of unknown size leaves them half of what is free.
  const std::uint64_t free = plan.limited_by_space ? plan.target.free_bytes / 2 : plan.target.free_bytes;
  const std::uint64_t room = free > reserve ? free - reserve : 0;
  if (plan.limited_by_space) limits.bytes = room;
  if (limits.bytes <= room && room > 0) return;
  throw Refusal("streams need " + format_gb(limits.bytes) + " and " + format_gb(reserve) +
                " for the open file of each stream; " + o.target + " has " +
                format_gb(plan.target.free_bytes) +
                " free; use a smaller --bytes, --duration or --file-size or another target");
}

}  // namespace

StreamsPlan plan_streams(StreamsOptions& o, const StopClock* stop) {
  const CallLimits limits{o.stall_limit_s, stop};
  if (!o.cpus.empty()) {
    check_cpus(allowed_cpus(), o.cpus, "--cpus");
    pin_this_thread(o.cpus);  // every thread inherits it, those of the checksums too
  }
  if (o.checksum_threads == 0)
    o.checksum_threads = std::min(static_cast<unsigned>(allowed_cpus().size()), kMostAdlerThreads);
  if (o.smallest_parallel_bytes == 0) o.smallest_parallel_bytes = default_smallest_parallel_bytes(o.checksum);
  check_streams_ranges(o);
  check_reporting(o, {o.target}, limits);
  if (o.random_run_id) o.run.run_id = random_record_id();
  StreamsPlan plan;
  plan.target.path = "null sink";
  if (!o.null_sink) plan_directory(o, limits, plan);
  const std::uint32_t largest = EventPlan(o.run).largest_bytes();
  check_sizes(o, largest, plan.target.alignment);
  limit_bytes(o, plan);
  plan.slot_bytes = round_up(largest, 64);  // no cache line is both the source's and the stream's
  o.run.slots_per_stream = o.queue_bytes / plan.slot_bytes;
  const std::uint64_t streams = o.run.shares.size();
  plan.buffer_bytes = streams * (round_up(o.run.slots_per_stream * plan.slot_bytes, kBlockAlignment) +
                                 BlockWriter::buffer_count(o.io_depth) * o.block_bytes);
  require_memory(plan.buffer_bytes, "queues and blocks (streams x (--queue-size + blocks))");
  plan.placement = place_threads(allowed_cpus(), cpus_of_node(plan.target.numa_node), {},
                                 static_cast<std::uint32_t>(streams) + 1);
  if (!o.cpus.empty()) plan.placement.note = "confined as asked; " + plan.placement.note;
  return plan;
}

}  // namespace daqwriter
