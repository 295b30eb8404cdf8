// Promise: every reason not to start a record is found here, before anything is written, and names its
// remedy.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/memory.h"
#include "base/units.h"
#include "io/block_writer.h"
#include "record/data_writer.h"
#include "record/minidaq.h"

namespace daqwriter {
namespace {

void check_minidaq_ranges(const MiniDaqOptions& o) {
  require(o.writers <= o.links, "--writers " + std::to_string(o.writers) +
                                    ": each has links of its own, and an " + "application has " +
                                    std::to_string(o.links) + "; give no more writers, or " + "more --links");
  require(
      !o.triggered() || !o.framed(),
      "--writers " + std::to_string(o.writers) +
          ": only with --mode continuous, for a request takes from all links; leave --writers away, or use "
          "--applications for more writers");
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

std::uint64_t frame_bytes(const MiniDaqOptions& o, const MiniDaqPlan& plan) {
  return o.framed() ? plan.target().alignment : 0;
}

// Whole superchunks, of zero-copy whole chunks, that a framed block has room for behind its frame.
std::uint64_t superchunks_per_block(const MiniDaqOptions& o, const MiniDaqPlan& plan, std::uint64_t chunk) {
  const std::uint64_t room = o.block_bytes - frame_bytes(o, plan);
  if (chunk == 0) return room / o.superchunk_bytes;
  // The frame is a piece of the block too.
  return std::min<std::uint64_t>(room / (chunk * o.superchunk_bytes), BlockWriter::kMostPieces - 1) * chunk;
}

// By itself the program takes the path that spares a copy, unless load or record were not what was asked for.
void choose_data_path(const MiniDaqOptions& o, MiniDaqPlan& plan) {
  const std::uint64_t chunk = aligned_chunk(o, plan.target().alignment);
  const std::string chunk_text = std::to_string(chunk) + " superchunks of " +
                                 std::to_string(o.superchunk_bytes) + " B make an aligned chunk";
  const std::uint64_t slots = o.ring_bytes / o.superchunk_bytes / chunk * chunk;
  const std::uint64_t frame = frame_bytes(o, plan);
  bool zero_copy = false;
  if (o.zero_copy) {
    zero_copy = *o.zero_copy;
    plan.data_path_reason = "--data-path asks for it";
  } else if (chunk != DataWriter::kFragmentSuperchunks) {
    plan.data_path_reason =
        chunk_text + ", more than the " + std::to_string(DataWriter::kFragmentSuperchunks) + " of a turn";
  } else if (frame + chunk * o.superchunk_bytes > o.block_bytes) {
    plan.data_path_reason = chunk_text + ", " + (frame > 0 ? "with a block's frame " : "") +
                            "more than --block-size " + format_size(o.block_bytes);
  } else if (o.framed() &&
             10 * superchunks_per_block(o, plan, chunk) < 9 * superchunks_per_block(o, plan, 0)) {
    plan.data_path_reason = chunk_text +
                            ", and whole ones would leave a tenth or more of a block of --block-size " +
                            format_size(o.block_bytes) + " unused";
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

// A block has to hold a frame and what is never cut: a superchunk; zero-copy, a chunk.
void shape_blocks(const MiniDaqOptions& o, MiniDaqPlan& plan) {
  if (!o.framed()) return;
  plan.superchunks_per_block = superchunks_per_block(o, plan, plan.chunk);
  const std::uint64_t frame = frame_bytes(o, plan);
  const std::uint64_t bytes = std::max<std::uint64_t>(plan.chunk, 1) * o.superchunk_bytes;
  require(plan.superchunks_per_block > 0,
          "--block-size " + format_size(o.block_bytes) + ": with --writers " + std::to_string(o.writers) +
              " a block holds a frame of " + std::to_string(frame) + " B and at least " +
              (plan.zero_copy() ? "an aligned chunk" : "a superchunk") + " of " + std::to_string(bytes) +
              " B; use at least " + format_size(round_up(frame + bytes, frame)) +
              (plan.zero_copy() ? ", or --data-path copy" : ", or smaller superchunks"));
}

// Blocks that need not be full: each writer's last one, and with zero-copy its last one from the rings too.
std::uint64_t partial_blocks(const MiniDaqOptions& o, const MiniDaqPlan& plan) {
  return std::uint64_t{o.writers} * (plan.zero_copy() ? 2 : 1);
}

void size_record(const MiniDaqOptions& o, MiniDaqPlan& plan) {
  const std::uint64_t alignment = plan.target().alignment;
  if (!o.framed()) {
    plan.record_bytes = record_bytes(plan.intended_superchunks, o.superchunk_bytes, alignment);
    return;
  }
  plan.most_blocks = plan.intended_superchunks / plan.superchunks_per_block + partial_blocks(o, plan);
  require(plan.most_blocks < kMaxRecordBytes / o.block_bytes,
          "--duration " + format_number(o.duration_s) + ": " + std::to_string(plan.most_blocks) +
              " blocks of --block-size " + format_size(o.block_bytes) + " are more than a record can hold");
  plan.record_bytes = alignment + plan.most_blocks * o.block_bytes + alignment;
}

// Superchunks for which there is room in so many bytes.
std::uint64_t superchunks_in(const MiniDaqOptions& o, const MiniDaqPlan& plan, std::uint64_t bytes) {
  const std::uint64_t data = bytes - std::min<std::uint64_t>(bytes, 4 * plan.target().alignment);
  if (!o.framed()) return data / o.superchunk_bytes;
  const std::uint64_t blocks = data / o.block_bytes;
  return (blocks - std::min(blocks, partial_blocks(o, plan))) * plan.superchunks_per_block;
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

// How many applications, those of other targets included, store on the file system or device of this one.
std::size_t sharers(const MiniDaqOptions& o, const MiniDaqPlan& plan, const TargetPlan& target) {
  return o.applications * sharing_space(target, plan.targets());
}

// An application's share of it, in whole MiB.
std::uint64_t room_on(const MiniDaqOptions& o, const MiniDaqPlan& plan, const TargetPlan& target) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  return target.free_bytes / sharers(o, plan, target) / kMiB * kMiB;
}

// "record needs 9.243 GB/s x 100 s = 924.3 GB (... B); ..." when it does not fit.
void require_space(const MiniDaqOptions& o, const MiniDaqPlan& plan, const ApplicationPlan& mine) {
  const std::size_t share = sharers(o, plan, mine.target);
  const std::uint64_t room = share > 1 ? room_on(o, plan, mine.target) : mine.target.free_bytes;
  if (o.null_sink || plan.record_bytes <= room) return;
  const double rate = asked_bytes_per_s(o, plan) / static_cast<double>(o.all_applications());
  const double usable = o.framed() ? static_cast<double>(superchunks_in(o, plan, room) * o.superchunk_bytes)
                                   : static_cast<double>(room) - 3.0 * mine.target.alignment;
  const double longest = std::floor(std::max(0.0, usable / rate) * 10) / 10;
  const double largest = std::floor(std::max(0.0, o.scale * usable / (rate * o.duration_s)) * 1e4) / 1e4;
  const std::uint64_t data = plan.intended_superchunks * o.superchunk_bytes;
  throw Refusal("record needs " + format_gb(rate) + "/s x " + format_number(o.duration_s) +
                " s = " + format_gb(data) + " (" + std::to_string(data) + " B) + " +
                std::to_string(plan.record_bytes - data) + " B of header, " + (o.framed() ? "frames, " : "") +
                "padding and trailer" +
                (share > 1 ? " for each of " + std::to_string(share) + " applications" : "") + "; " +
                o.targets()[mine.target_number] + " has " + format_gb(room) + (share > 1 ? " for each" : "") +
                " free; use --duration <= " + format_number(longest) +
                " or --scale <= " + format_number(largest) + " or another target");
}

// The most that one application can come to store there.
std::uint64_t intended(const MiniDaqOptions& o, const MiniDaqPlan& plan, const TargetPlan& target) {
  if (!o.unpaced && !o.triggered()) return ArrivalSchedule(o.links, plan.rate_hz, o.duration_s).total();
  if (!o.unpaced) {
    const auto decisions = static_cast<std::uint64_t>(std::ceil(o.duration_s * o.trigger_rate_hz));
    return decisions * plan.window * o.links;
  }
  if (o.most_bytes > 0)
    return (o.most_bytes / o.all_applications() + o.superchunk_bytes - 1) / o.superchunk_bytes;
  if (o.null_sink && !o.framed()) return 1ull << 48;
  if (o.null_sink) return std::min<std::uint64_t>(1ull << 48, superchunks_in(o, plan, kMaxRecordBytes / 2));
  // Nobody knows how fast the target is: twice the nominal load, as far as there is room for it. Others write
  // to a file system too: a file leaves them half of what is free.
  const double nominal = 2 * o.links * plan.rate_hz * o.duration_s;
  const std::uint64_t room = room_on(o, plan, target);
  const std::uint64_t ours = target.kind == TargetKind::raw_device ? room : room / 2;
  return std::min(superchunks_in(o, plan, ours), static_cast<std::uint64_t>(nominal));
}

// Checks all applications together, once: each alone could fit where all do not.
void require_buffer(const MiniDaqOptions& o, std::uint64_t bytes) {
  const auto sum = [&](std::size_t applications) {
    return std::to_string(applications * o.links) + " x " + format_size(o.ring_bytes) + " + " +
           std::to_string(applications * o.writers * BlockWriter::buffer_count(o.io_depth)) + " x " +
           format_size(o.block_bytes);
  };
  const bool several = o.target_count() > 1;
  const std::string arithmetic = several
                                     ? std::to_string(o.target_count()) + " targets x " +
                                           std::to_string(o.applications) + " applications x (" + sum(1) + ")"
                                     : sum(o.applications);
  if (o.max_buffer_bytes > 0 && bytes > o.max_buffer_bytes) {
    throw Refusal("rings and block buffers take " + std::to_string(bytes) + " B (" + arithmetic +
                  "); --max-buffer allows " + std::to_string(o.max_buffer_bytes) + " B");
  }
  if (!several) return require_memory(bytes, "rings and block buffers");
  require_memory(bytes, ("rings and block buffers, " + arithmetic + ",").c_str(),
                 "--ring-size, --block-size, --links or --applications, or fewer targets");
}

// An application's file, when a target has several.
std::string own_path(const std::string& target, std::uint32_t number) {
  return target + "." + std::to_string(number);
}

// Each target is a file or device that its applications share, or each application's own.
std::vector<std::string> target_paths(const MiniDaqOptions& o) {
  std::vector<std::string> paths;
  for (const std::string& target : o.targets()) {
    paths.push_back(target);
    for (std::uint32_t i = 0; i < o.applications && o.applications > 1; ++i)
      paths.push_back(own_path(target, i));
  }
  return paths;
}

// A file of its own for each application; on a device a part of its own.
void plan_targets(const MiniDaqOptions& o, const CallLimits& limits, MiniDaqPlan& plan) {
  require(o.null_sink || !o.target.empty(), "--target: name a new file or a block device");
  TargetSet set(o.consent, limits);
  std::uint32_t alignment = 0;
  for (const std::string& target : o.targets()) {
    TargetPlan shared;
    shared.path = "null sink";
    if (!o.null_sink) shared = set.plan(target);
    for (std::uint32_t i = 0; i < o.applications; ++i) {
      const bool own = shared.kind == TargetKind::scratch_file && o.applications > 1;
      plan.applications.push_back({own ? set.plan(own_path(target, i), target) : shared, 0, 0, {}, {}});
      plan.applications.back().target_number = (plan.applications.size() - 1) / o.applications;
    }
    alignment = std::max(alignment, shared.alignment);
  }
  // The largest one is right for all of them, and makes all records alike.
  for (ApplicationPlan& each : plan.applications) each.target.alignment = alignment;
}

std::optional<int> in_turn(const std::vector<int>& cpus, std::size_t i) {
  return cpus.empty() ? std::nullopt : std::optional(cpus[i % cpus.size()]);
}

// A single target's applications with a writer each are placed by themselves, all others by what is left.
std::vector<Placement> placements(const MiniDaqOptions& o, const std::vector<DriveOfWriter>& drives) {
  const std::vector<int> allowed = allowed_cpus();
  if (o.target_count() > 1 || o.framed()) return deal_placements(allowed, drives);
  std::vector<Placement> all;
  for (std::size_t i = 0; i < drives.size(); ++i) {
    all.push_back(choose_placement(allowed, drives[i].near, drives[i].numa_node, drives[i].asked_writer,
                                   drives[i].asked_source, i, drives.size()));
  }
  return all;
}

void place_minidaq(const MiniDaqOptions& o, MiniDaqPlan& plan) {
  std::vector<DriveOfWriter> drives;
  for (std::size_t i = 0; i < plan.applications.size(); ++i) {
    const std::optional<int> node = plan.applications[i].target.numa_node;
    for (std::uint32_t writer = 0; writer < o.writers; ++writer) {
      drives.push_back({cpus_of_node(node), node, in_turn(o.writer_cpus, drives.size()),
                        writer == 0 ? in_turn(o.source_cpus, i) : std::nullopt, writer == 0});
    }
  }
  const std::vector<Placement> all = placements(o, drives);
  for (std::size_t i = 0; i < plan.applications.size(); ++i) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(i * o.writers);
    plan.applications[i].placement = *first;
    plan.applications[i].writers.assign(first, first + o.writers);
  }
}

}  // namespace

std::vector<TargetPlan> MiniDaqPlan::targets() const {
  std::vector<TargetPlan> all;
  for (const ApplicationPlan& each : applications) {
    if (each.target_number == all.size()) all.push_back(each.target);
  }
  return all;
}

double asked_bytes_per_s(const MiniDaqOptions& o, const MiniDaqPlan& plan) {
  const double per_second =
      o.triggered() ? o.trigger_rate_hz * static_cast<double>(plan.window) : plan.rate_hz;
  return static_cast<double>(o.all_applications()) * o.links * per_second * o.superchunk_bytes;
}

MiniDaqPlan plan_minidaq(const MiniDaqOptions& options, const StopClock* stop) {
  const CallLimits limits{options.stall_limit_s, stop};
  check_minidaq_ranges(options);
  check_reporting(options, target_paths(options), limits);
  check_target_tags(options, options.targets());
  MiniDaqPlan plan;
  plan_targets(options, limits, plan);
  const TargetPlan& target = plan.target();
  require(options.block_bytes >= target.alignment && options.block_bytes % target.alignment == 0,
          "--block-size " + format_size(options.block_bytes) + ": must be a multiple of " +
              std::to_string(target.alignment) + " B, the alignment of direct I/O here");
  plan.rate_hz = options.superchunk_rate_hz * options.scale;
  shape_rings(options, plan);
  shape_blocks(options, plan);
  plan.intended_superchunks = UINT64_MAX;
  for (std::size_t i = 0; i < plan.applications.size(); i += options.applications) {
    plan.intended_superchunks =
        std::min(plan.intended_superchunks, intended(options, plan, plan.applications[i].target));
  }
  plan.buffer_bytes = options.all_applications() *
                      (options.links * options.ring_bytes +
                       options.writers * BlockWriter::buffer_count(options.io_depth) * options.block_bytes);
  size_record(options, plan);
  require(plan.intended_superchunks > 0, "--duration: no superchunk is due within it at this rate");
  require(
      !options.unpaced || plan.intended_superchunks >= options.links * ReadoutEmulator::per_turn(plan.window),
      "--bytes or the free space: too little for one turn over the links");
  for (std::size_t i = 0; i < plan.applications.size(); i += options.applications)
    require_space(options, plan, plan.applications[i]);
  require_buffer(options, plan.buffer_bytes);
  for (std::size_t i = 0; i < plan.applications.size(); ++i) {
    ApplicationPlan& mine = plan.applications[i];
    if (mine.target.kind == TargetKind::raw_device)
      mine.base = i % options.applications * room_on(options, plan, mine.target);
  }
  place_minidaq(options, plan);
  return plan;
}

}  // namespace daqwriter
