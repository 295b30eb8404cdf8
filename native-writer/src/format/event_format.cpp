#include "format/event_format.h"

#include <algorithm>
#include <cmath>

#include "format/payload.h"

namespace daqwriter {
namespace {

// Uniform in [0, 1), exact in a double.
double unit_interval(std::uint64_t random) {
  return static_cast<double>(random >> 11) * 0x1p-53;
}

}  // namespace

EventPlan::EventPlan(const RunParameters& run) : run_(run), key_(payload_key(run.seed, run.run_id)) {
  double sum = 0;
  for (const double share : run.shares) edges_.push_back(sum += share);
  const double half = run.event_spread * run.event_bytes;
  smallest_ = std::max<std::uint64_t>(kMinEventBytes, run.event_bytes - static_cast<std::uint64_t>(half));
  range_ = run.event_bytes + static_cast<std::uint64_t>(half) - smallest_ + 1;
}

std::uint32_t EventPlan::stream_of(std::uint64_t event) const {
  const double draw = unit_interval(scramble(key_ ^ scramble(event + 1)));
  const auto edge = std::upper_bound(edges_.begin(), edges_.end() - 1, draw);
  return static_cast<std::uint32_t>(edge - edges_.begin());
}

std::uint32_t EventPlan::bytes_of(std::uint32_t stream, std::uint64_t serial) const {
  const double draw = unit_interval(scramble(scramble(key_ + stream + 1) ^ serial));
  return static_cast<std::uint32_t>(smallest_ +
                                    static_cast<std::uint64_t>(draw * static_cast<double>(range_)));
}

EventHeader EventPlan::header(std::uint32_t stream, std::uint64_t serial, std::uint64_t event,
                              std::int64_t arrival_ns) const {
  EventHeader header{
      kEventMagic, 0, run_.run_id, event, serial, arrival_ns, run_.seed, stream, bytes_of(stream, serial)};
  header.header_crc = header_crc(header);
  return header;
}

void EventPlan::fill_body(std::span<std::byte> body, std::uint32_t stream, std::uint64_t slot) const {
  fill_payload(body, key_, stream, slot);
}

std::string stream_file_name(const std::string& prefix, std::uint32_t stream, std::uint64_t number) {
  return prefix + "." + std::to_string(stream) + "." + std::to_string(number) + ".events";
}

}  // namespace daqwriter
