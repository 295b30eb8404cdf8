// Promise: everything about an event but the moment of its arrival follows from the run's parameters, its
// stream and its serial number: so the verifier knows what must be where, without trusting what the writer
// said.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/record_format.h"

namespace daqwriter {

// Starts each event and is part of its size.
struct EventHeader {
  static constexpr std::uint32_t kMagic = 0x56455144;  // "DQEV"
  std::uint32_t magic;
  std::uint32_t header_crc;
  RecordId run_id;
  std::uint64_t event;      // counts the events of all streams
  std::uint64_t serial;     // counts those of this stream. Payload slot = serial % slots
  std::int64_t arrival_ns;  // after the run's start
  std::uint64_t seed;
  std::uint32_t stream;
  std::uint32_t bytes;  // header included
};
static_assert(sizeof(EventHeader) == kFrameHeaderBytes);
constexpr std::uint32_t kEventMagic = EventHeader::kMagic;
constexpr std::uint32_t kMinEventBytes = sizeof(EventHeader) + 1;
constexpr std::uint32_t kMaxEventBytes = 256u << 20;  // mean; the largest is less than twice that
constexpr std::size_t kMostStreams = 64;

// The content of a run's files follows from these parameters.
struct RunParameters {
  RecordId run_id{};
  std::uint64_t seed = 1;
  std::vector<double> shares = {0.67, 0.13, 0.1, 0.06, 0.04};  // of the events, by stream; sum 1
  std::uint32_t event_bytes = 1'000'000;                       // mean
  double event_spread =
      0.5;  // sizes are uniform in event_bytes x (1 - spread) ... event_bytes x (1 + spread)
  std::uint64_t slots_per_stream = 0;  // prepared payloads, used in turn
};

class EventPlan {
 public:
  explicit EventPlan(const RunParameters& run);

  std::uint32_t streams() const { return static_cast<std::uint32_t>(edges_.size()); }
  std::uint32_t stream_of(std::uint64_t event) const;
  std::uint32_t bytes_of(std::uint32_t stream, std::uint64_t serial) const;
  std::uint32_t largest_bytes() const { return static_cast<std::uint32_t>(smallest_ + range_ - 1); }
  std::uint64_t slots() const { return run_.slots_per_stream; }
  // With its checksum.
  EventHeader header(std::uint32_t stream, std::uint64_t serial, std::uint64_t event,
                     std::int64_t arrival_ns) const;
  void fill_body(std::span<std::byte> body, std::uint32_t stream, std::uint64_t slot) const;

 private:
  RunParameters run_;
  std::vector<double> edges_;  // upper edges of the streams' shares
  std::uint64_t key_;
  std::uint64_t smallest_;
  std::uint64_t range_;  // number of possible sizes
};

// "events.0.12.events"
std::string stream_file_name(const std::string& prefix, std::uint32_t stream, std::uint64_t number);

}  // namespace daqwriter
