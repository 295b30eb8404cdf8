// Promise: every reason not to start a record is found here, before anything is written, and names its
// remedy.
#include <algorithm>
#include <cmath>

#include "block_writer.h"
#include "memory.h"
#include "minidaq.h"
#include "status.h"
#include "units.h"

namespace daqwriter {
namespace {

void require(bool good, const std::string& message) {
  if (!good) throw Refusal(message);
}

void check_ranges(const MiniDaqOptions& o) {
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  require(positive(o.duration_s) && o.duration_s <= 86'400,
          "--duration: give seconds above 0 and up to 86400");
  require(o.links >= 1 && o.links <= kMaxLinks, "--links: give 1 to " + std::to_string(kMaxLinks));
  require(o.superchunk_bytes >= kMinSuperchunkBytes && o.superchunk_bytes <= (64u << 20),
          "--superchunk-bytes: give " + std::to_string(kMinSuperchunkBytes) +
              " (a 64 B header and payload) to 64MiB");
  require(positive(o.superchunk_rate_hz) && o.superchunk_rate_hz <= 1e8,
          "--superchunk-rate: give Hz above 0, up to 1e8");
  require(positive(o.scale) && o.scale <= 100, "--scale: give a factor above 0, up to 100");
  require(o.io_depth >= 1 && o.io_depth <= 256, "--io-depth: give 1 to 256");
  require(o.ring_bytes >= 2ull * o.superchunk_bytes, "--ring-size " + format_size(o.ring_bytes) +
                                                         ": a ring must hold at least two superchunks of " +
                                                         std::to_string(o.superchunk_bytes) + " B");
  require(o.ring_bytes <= (1ull << 40) && o.block_bytes <= (1ull << 30),
          "--ring-size is limited to 1TiB, --block-size to 1GiB");
}

// "record needs 9.243 GB/s x 100 s = 924.3 GB (... B); ..." when it does not fit.
void require_space(const MiniDaqOptions& o, const MiniDaqPlan& plan) {
  if (plan.target.kind == TargetKind::null_sink || plan.record_bytes <= plan.target.free_bytes) return;
  const double rate = o.links * plan.rate_hz * o.superchunk_bytes;
  const double room = static_cast<double>(plan.target.free_bytes) - 3.0 * plan.target.alignment;
  const double longest = std::floor(std::max(0.0, room / rate) * 10) / 10;
  const double largest = std::floor(std::max(0.0, o.scale * room / (rate * o.duration_s)) * 1e4) / 1e4;
  const std::uint64_t data = plan.intended_superchunks * o.superchunk_bytes;
  throw Refusal("record needs " + format_gb(rate) + "/s x " + format_number(o.duration_s) +
                " s = " + format_gb(static_cast<double>(data)) + " (" + std::to_string(data) + " B) + " +
                std::to_string(plan.record_bytes - data) + " B of header, padding and trailer; " + o.target +
                " has " + format_gb(static_cast<double>(plan.target.free_bytes)) +
                " free; use --duration <= " + format_number(longest) +
                " or --scale <= " + format_number(largest) + " or another target");
}

void require_buffer(const MiniDaqOptions& o, std::uint64_t bytes) {
  if (o.max_buffer_bytes && bytes > *o.max_buffer_bytes) {
    throw Refusal("rings and block buffers take " + std::to_string(bytes) + " B (" + std::to_string(o.links) +
                  " x " + format_size(o.ring_bytes) + " + " + std::to_string(o.io_depth + 1) + " x " +
                  format_size(o.block_bytes) + "); --max-buffer allows " +
                  std::to_string(*o.max_buffer_bytes) + " B");
  }
  require_memory(bytes, "rings and block buffers");
}

}  // namespace

MiniDaqPlan plan_minidaq(const MiniDaqOptions& options) {
  check_ranges(options);
  MiniDaqPlan plan;
  require(options.null_sink || !options.target.empty(), "--target: name a new file or a block device");
  plan.target.path = "null sink";
  if (!options.null_sink) plan.target = plan_target(options.target, options.consent);
  require(options.block_bytes >= plan.target.alignment && options.block_bytes % plan.target.alignment == 0,
          "--block-size " + format_size(options.block_bytes) + ": must be a multiple of " +
              std::to_string(plan.target.alignment) + " B, the alignment of direct I/O here");
  plan.rate_hz = options.superchunk_rate_hz * options.scale;
  plan.slots_per_link = options.ring_bytes / options.superchunk_bytes;
  plan.intended_superchunks = ArrivalSchedule(options.links, plan.rate_hz, options.duration_s).total();
  plan.record_bytes =
      record_bytes(plan.intended_superchunks, options.superchunk_bytes, plan.target.alignment);
  plan.buffer_bytes =
      options.links * options.ring_bytes + BlockWriter::buffer_count(options.io_depth) * options.block_bytes;
  require(plan.intended_superchunks > 0, "--duration: no superchunk is due within it at this rate");
  require_space(options, plan);
  require_buffer(options, plan.buffer_bytes);
  plan.placement = choose_placement(allowed_cpus(), cpus_of_node(plan.target.numa_node),
                                    plan.target.numa_node, options.writer_cpu, options.source_cpu);
  check_reporting(options);
  return plan;
}

}  // namespace daqwriter
