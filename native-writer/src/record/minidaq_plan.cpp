// Promise: every reason not to start a record is found here, before anything is written, and names its
// remedy.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/memory.h"
#include "base/units.h"
#include "format/option_bounds.h"
#include "io/block_writer.h"
#include "record/data_writer.h"
#include "record/minidaq.h"

namespace daqwriter {
namespace {

void require(bool good, const std::string& message) {
  if (!good) throw Refusal(message);
}

void check_ranges(const MiniDaqOptions& o) {
  require_within(bounds::kRecordDuration, o.duration_s);
  require_within(bounds::kApplications, o.applications);
  require_within(bounds::kLinks, o.links);
  require_within(bounds::kSuperchunkBytes, o.superchunk_bytes);
  require_within(bounds::kSuperchunkRate, o.superchunk_rate_hz);
  require_within(bounds::kScale, o.scale);
  require_within(bounds::kStreamDepth, o.io_depth);
  require_within(bounds::kRingSize, o.ring_bytes);
  require_within(bounds::kBlockSize, o.block_bytes);
  require_within(bounds::kStallLimit, o.stall_limit_s);
  if (o.trigger_rate_hz != 0) require_within(bounds::kTriggerRate, o.trigger_rate_hz);
  if (o.most_bytes > 0) require_within(bounds::kBytes, o.most_bytes);
  if (o.triggered()) require_within(bounds::kRequestSize, o.request_bytes);
  require(o.triggered() || o.trigger_rate_hz == 0, "--trigger-rate: only with --mode triggered");
  require(!o.triggered() || o.unpaced || o.trigger_rate_hz > 0,
          "--mode triggered: give --trigger-rate in Hz, or --unpaced for as many requests as are served");
  require(o.most_bytes == 0 || o.unpaced,
          "--bytes: only with --unpaced; a paced record is as long as it takes");
}

// Superchunks of a chunk that is a multiple of the alignment, at least as many as are taken in one turn.
std::uint64_t aligned_chunk(const MiniDaqOptions& o, std::uint64_t alignment) {
  const std::uint64_t unit = alignment / std::gcd(alignment, std::uint64_t{o.superchunk_bytes});
  return round_up(DataWriter::kFragmentSuperchunks, unit);
}

// Superchunks that a request asks of each link, before they are rounded up to whole chunks.
std::uint64_t asked_window(const MiniDaqOptions& o) {
  const std::uint64_t per_link = std::uint64_t{o.links} * o.superchunk_bytes;
  return (o.request_bytes + per_link - 1) / per_link;
}

std::uint64_t least_slots(std::uint64_t unit, std::uint64_t window) {
  return std::max({2 * unit, 3 * window + unit, std::uint64_t{2}});
}

// By itself the program takes the path that spares a copy, unless load or record were not what was asked for.
void choose_data_path(const MiniDaqOptions& o, MiniDaqPlan& plan) {
  const std::uint64_t chunk = aligned_chunk(o, plan.target().alignment);
  const std::string chunk_text = std::to_string(chunk) + " superchunks of " +
                                 std::to_string(o.superchunk_bytes) + " B make an aligned chunk";
  const std::uint64_t slots = o.ring_bytes / o.superchunk_bytes / chunk * chunk;
  bool zero_copy = false;
  if (o.zero_copy) {
    zero_copy = *o.zero_copy;
    plan.data_path_reason = "--data-path asks for it";
  } else if (chunk != DataWriter::kFragmentSuperchunks) {
    plan.data_path_reason =
        chunk_text + ", more than the " + std::to_string(DataWriter::kFragmentSuperchunks) + " of a turn";
  } else if (chunk * o.superchunk_bytes > o.block_bytes) {
    plan.data_path_reason = chunk_text + ", more than --block-size " + format_size(o.block_bytes);
  } else if (o.triggered() && asked_window(o) % chunk != 0) {
    plan.data_path_reason = "a request takes " + std::to_string(asked_window(o)) +
                            " superchunks of each link, and whole chunks of " + std::to_string(chunk) +
                            " would be more than was asked for";
  } else if (slots < least_slots(chunk, o.triggered() ? asked_window(o) : 0)) {
    plan.data_path_reason = "a ring of " + format_size(o.ring_bytes) + " holds too few chunks of " +
                            std::to_string(chunk) + " superchunks";
  } else {
    zero_copy = true;
    plan.data_path_reason = chunk_text;
  }
  if (zero_copy) plan.chunk = chunk;
}

void shape_rings(const MiniDaqOptions& o, MiniDaqPlan& plan) {
  choose_data_path(o, plan);
  const std::uint64_t unit = std::max<std::uint64_t>(plan.chunk, 1);
  plan.slots_per_link = o.ring_bytes / o.superchunk_bytes / unit * unit;
  if (o.triggered()) {
    plan.window = round_up(asked_window(o), unit);
    require(o.trigger_rate_hz * static_cast<double>(plan.window) <= plan.rate_hz,
            "--trigger-rate " + format_number(o.trigger_rate_hz) + ": requests of " +
                std::to_string(plan.window) + " superchunks of each link ask for more than its " +
                format_number(plan.rate_hz) + " Hz; lower --trigger-rate or --request-size");
  }
  const std::uint64_t least = least_slots(unit, plan.window);
  require(plan.slots_per_link >= least,
          "--ring-size " + format_size(o.ring_bytes) + ": a ring must hold at least " +
              std::to_string(least) + " superchunks of " + std::to_string(o.superchunk_bytes) + " B, " +
              format_size(least * o.superchunk_bytes) + (plan.window ? " (three requests)" : ""));
}

// "record needs 9.243 GB/s x 100 s = 924.3 GB (... B); ..." when it does not fit.
void require_space(const MiniDaqOptions& o, const MiniDaqPlan& plan, std::uint64_t room) {
  if (o.null_sink || plan.record_bytes <= room) return;
  const double rate = asked_bytes_per_s(o, plan) / o.applications;
  const double usable = static_cast<double>(room) - 3.0 * plan.target().alignment;
  const double longest = std::floor(std::max(0.0, usable / rate) * 10) / 10;
  const double largest = std::floor(std::max(0.0, o.scale * usable / (rate * o.duration_s)) * 1e4) / 1e4;
  const std::uint64_t data = plan.intended_superchunks * o.superchunk_bytes;
  throw Refusal(
      "record needs " + format_gb(rate) + "/s x " + format_number(o.duration_s) +
      " s = " + format_gb(static_cast<double>(data)) + " (" + std::to_string(data) + " B) + " +
      std::to_string(plan.record_bytes - data) + " B of header, padding and trailer" +
      (o.applications > 1 ? " for each of " + std::to_string(o.applications) + " applications" : "") + "; " +
      o.target + " has " + format_gb(static_cast<double>(room)) + (o.applications > 1 ? " for each" : "") +
      " free; use --duration <= " + format_number(longest) + " or --scale <= " + format_number(largest) +
      " or another target");
}

// The most that one application can come to store.
std::uint64_t intended(const MiniDaqOptions& o, const MiniDaqPlan& plan, std::uint64_t room) {
  if (!o.unpaced && !o.triggered()) return ArrivalSchedule(o.links, plan.rate_hz, o.duration_s).total();
  if (!o.unpaced) {
    const auto decisions = static_cast<std::uint64_t>(std::ceil(o.duration_s * o.trigger_rate_hz));
    return decisions * plan.window * o.links;
  }
  if (o.most_bytes > 0) return (o.most_bytes / o.applications + o.superchunk_bytes - 1) / o.superchunk_bytes;
  if (o.null_sink) return 1ull << 48;
  // Nobody knows how fast the target is: twice the nominal load, as far as there is room for it. Others write
  // to a file system too: a file leaves them half of what is free.
  const double nominal = 2 * o.links * plan.rate_hz * o.duration_s;
  const std::uint64_t ours = plan.target().kind == TargetKind::raw_device ? room : room / 2;
  const std::uint64_t fits =
      (ours - std::min<std::uint64_t>(ours, 4 * plan.target().alignment)) / o.superchunk_bytes;
  return std::min(fits, static_cast<std::uint64_t>(nominal));
}

void require_buffer(const MiniDaqOptions& o, std::uint64_t bytes) {
  if (o.max_buffer_bytes && bytes > *o.max_buffer_bytes) {
    throw Refusal("rings and block buffers take " + std::to_string(bytes) + " B (" +
                  std::to_string(o.applications * o.links) + " x " + format_size(o.ring_bytes) + " + " +
                  std::to_string(o.applications * BlockWriter::buffer_count(o.io_depth)) + " x " +
                  format_size(o.block_bytes) + "); --max-buffer allows " +
                  std::to_string(*o.max_buffer_bytes) + " B");
  }
  require_memory(bytes, "rings and block buffers");
}

// A file of its own for each application; on a device a part of its own.
// An application's file, when there are several.
std::string own_path(const MiniDaqOptions& o, std::uint32_t number) {
  return o.target + "." + std::to_string(number);
}

// It is a file or device that all share, or each application's own.
std::vector<std::string> target_paths(const MiniDaqOptions& o) {
  std::vector<std::string> paths = {o.target};
  for (std::uint32_t i = 0; i < o.applications && o.applications > 1; ++i) paths.push_back(own_path(o, i));
  return paths;
}

void plan_targets(const MiniDaqOptions& o, MiniDaqPlan& plan) {
  require(o.null_sink || !o.target.empty(), "--target: name a new file or a block device");
  plan.applications.resize(o.applications);
  for (std::uint32_t i = 0; i < o.applications; ++i) {
    ApplicationPlan& mine = plan.applications[i];
    mine.target.path = "null sink";
    if (o.null_sink) continue;
    const bool device = i > 0 && plan.target().kind == TargetKind::raw_device;
    if (i == 0) {
      mine.target = plan_target(o.target, o.consent);
      if (mine.target.kind == TargetKind::scratch_file && o.applications > 1)
        mine.target = plan_target(own_path(o, i), o.consent);
    } else {
      mine.target = device ? plan.target() : plan_target(own_path(o, i), o.consent);
    }
  }
}

std::optional<int> in_turn(const std::vector<int>& cpus, std::size_t i) {
  return cpus.empty() ? std::nullopt : std::optional(cpus[i % cpus.size()]);
}

}  // namespace

double asked_bytes_per_s(const MiniDaqOptions& o, const MiniDaqPlan& plan) {
  const double per_second =
      o.triggered() ? o.trigger_rate_hz * static_cast<double>(plan.window) : plan.rate_hz;
  return o.applications * o.links * per_second * o.superchunk_bytes;
}

MiniDaqPlan plan_minidaq(const MiniDaqOptions& options) {
  check_ranges(options);
  check_reporting(options, target_paths(options));
  MiniDaqPlan plan;
  plan_targets(options, plan);
  const TargetPlan& target = plan.target();
  require(options.block_bytes >= target.alignment && options.block_bytes % target.alignment == 0,
          "--block-size " + format_size(options.block_bytes) + ": must be a multiple of " +
              std::to_string(target.alignment) + " B, the alignment of direct I/O here");
  plan.rate_hz = options.superchunk_rate_hz * options.scale;
  shape_rings(options, plan);
  const std::uint64_t room =
      target.free_bytes / options.applications / (std::uint64_t{1} << 20) * (std::uint64_t{1} << 20);
  plan.intended_superchunks = intended(options, plan, room);
  plan.record_bytes = record_bytes(plan.intended_superchunks, options.superchunk_bytes, target.alignment);
  plan.buffer_bytes =
      options.applications * (options.links * options.ring_bytes +
                              BlockWriter::buffer_count(options.io_depth) * options.block_bytes);
  require(plan.intended_superchunks > 0, "--duration: no superchunk is due within it at this rate");
  require(
      !options.unpaced || plan.intended_superchunks >= options.links * ReadoutEmulator::per_turn(plan.window),
      "--bytes or the free space: too little for one turn over the links");
  require_space(options, plan, options.applications > 1 ? room : target.free_bytes);
  require_buffer(options, plan.buffer_bytes);
  for (std::uint32_t i = 0; i < options.applications; ++i) {
    ApplicationPlan& mine = plan.applications[i];
    if (target.kind == TargetKind::raw_device) mine.base = i * room;
    mine.placement = choose_placement(allowed_cpus(), cpus_of_node(mine.target.numa_node),
                                      mine.target.numa_node, in_turn(options.writer_cpus, i),
                                      in_turn(options.source_cpus, i), i, options.applications);
  }
  return plan;
}

}  // namespace daqwriter
