// Promise: `netprobe latency` measures round trips of one message size, one message at a time (ping-pong),
// each from the call that sends it to its whole answer; the whole histogram goes into the result
// (inventory/schemas/netprobe-latency.schema.json).
#include <cstring>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "commands.h"
#include "wire.h"

namespace netprobe {
namespace {

using daqwriter::ExitCode;
using daqwriter::monotonic_ns;

struct LatencyOptions {
  Timing timing;
  std::string peer;
  std::uint64_t message_bytes = 64;
};

// `message` holds the request at its front while it is sent, and the answer afterwards: one call each.
std::int64_t round_trip(Connection& connection, std::uint64_t event, std::span<std::byte> message) {
  Header request;
  request.size = request.answer = static_cast<std::uint32_t>(message.size());
  request.event = event;
  const std::int64_t sent = monotonic_ns();
  connection.send(request, message.subspan(sizeof request));
  connection.receive_whole(message);
  const std::int64_t took = monotonic_ns() - sent;
  Header reply;
  std::memcpy(&reply, message.data(), sizeof reply);
  if (reply.magic != kMagic || reply.size != request.size || reply.event != event)
    throw daqwriter::Failure(connection.peer() + ": answered something else than was asked");
  return took;
}

// Round trips until `end`, or until an interruption, which leaves out the one that it meets.
template <typename Done>
void ping_pong(Connection& connection, std::span<std::byte> message, std::int64_t end,
               const std::atomic<int>& stop_signal, std::uint64_t& event, const Done& done) {
  try {
    while (monotonic_ns() < end && stop_signal.load() == 0) done(round_trip(connection, event++, message));
  } catch (const Interrupted&) {
    return;
  }
}

ExitCode run_latency(const LatencyOptions& options, const std::atomic<int>& stop_signal) {
  const Timing& timing = options.timing;
  check_output(timing, "--message-size", options.message_bytes, stop_signal);
  Connection connection = Connection::open(parse_endpoint("--peer", options.peer), timing.connect_s,
                                           {&stop_signal, daqwriter::to_ns(timing.stall_limit_s)});
  std::vector<std::byte> message(options.message_bytes);
  std::uint64_t event = 0;
  ping_pong(connection, message, monotonic_ns() + daqwriter::to_ns(timing.warm_up_s), stop_signal, event,
            [](std::int64_t) {});
  daqwriter::Histogram trips;
  const std::int64_t started_utc = daqwriter::utc_ns();
  const std::int64_t started = monotonic_ns();
  const daqwriter::CpuUse before = daqwriter::process_cpu_use();
  ping_pong(connection, message, started + daqwriter::to_ns(timing.seconds), stop_signal, event,
            [&](std::int64_t took) { trips.record(took); });
  const double measured_s = daqwriter::seconds(monotonic_ns() - started);
  const daqwriter::CpuUse cpu = daqwriter::process_cpu_use() - before;
  const bool interrupted = stop_signal.load() != 0;
  nlohmann::ordered_json document = head_json("latency", timing, interrupted, started_utc, measured_s, cpu);
  document["message_bytes"] = options.message_bytes;
  document["round_trips"] = trips.count();
  document["segments_sent_again"] = connection.segments_sent_again();
  document["round_trip_us"] = daqwriter::latency_json(
      trips, "from the call that sends a message to its whole answer of the same size");
  daqwriter::write_json(timing.json_path, document);
  return interrupted ? ExitCode::interrupted : ExitCode::complete;
}

}  // namespace

daqwriter::ParsedCommand add_latency(CLI::App& parent) {
  auto options = std::make_shared<LatencyOptions>();
  CLI::App* app = parent.add_subcommand("latency", "Round trips of one message at a time");
  app->add_option("--peer", options->peer, "HOST:PORT of a `netprobe serve`")->required();
  daqwriter::add_number(*app, {"--message-size", 0, UINT64_MAX, ""}, options->message_bytes,
                        "Bytes of each message, its header of 24 B included");
  add_timing(*app, options->timing);
  return {app, [options](const std::atomic<int>& stop_signal) { return run_latency(*options, stop_signal); }};
}

}  // namespace netprobe
