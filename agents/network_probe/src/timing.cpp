// Promise: the options that both measuring commands have, their bounds, and the beginning of their results.
#include "commands.h"
#include "wire.h"

namespace netprobe {
namespace {

constexpr daqwriter::Bounds<double> kSeconds{"--seconds", 1e-3, 86'400, "seconds"};
constexpr daqwriter::Bounds<double> kWarmUp{"--warm-up", 0, 86'400, "seconds"};
constexpr daqwriter::Bounds<double> kConnect{"--connect", 0, 86'400, "seconds"};

}  // namespace

void add_timing(CLI::App& app, Timing& timing) {
  daqwriter::add_number(app, kSeconds, timing.seconds, "Measured time, seconds");
  daqwriter::add_number(app, kWarmUp, timing.warm_up_s, "Time before it that is not measured, seconds");
  daqwriter::add_number(app, kConnect, timing.connect_s, "Longest wait for a peer that starts, seconds");
  daqwriter::add_stall_limit(app, timing.stall_limit_s);
  app.add_option("--json", timing.json_path, "Result file; - is standard output");
}

void check_output(const Timing& timing, const std::string& size_option, std::uint64_t size,
                  const std::atomic<int>& stop_signal) {
  daqwriter::Reporting results;
  results.json_path = timing.json_path;
  const daqwriter::StopClock stop(stop_signal);
  daqwriter::check_reporting(results, {}, {timing.stall_limit_s, &stop});
  if (size < sizeof(Header) || size > kSizeMax)
    throw daqwriter::Refusal(size_option + " " + std::to_string(size) + ": give " +
                             std::to_string(sizeof(Header)) + " to " + std::to_string(kSizeMax) + " bytes");
}

nlohmann::ordered_json head_json(const char* command, const Timing& timing, bool interrupted,
                                 std::int64_t started_utc_ns, double measured_s,
                                 const daqwriter::CpuUse& cpu) {
  return {{"schema_version", 1},
          {"tool", "netprobe"},
          {"version", NETPROBE_VERSION},
          {"command", command},
          {"status", interrupted ? "interrupted" : "complete"},
          {"started_utc", daqwriter::iso8601_utc(started_utc_ns)},
          {"seconds", timing.seconds},
          {"warm_up_s", timing.warm_up_s},
          {"measured_s", measured_s},
          {"cpu", {{"user_s", cpu.user_s}, {"system_s", cpu.system_s}}}};
}

}  // namespace netprobe
