// Promise: the commands of netprobe. Each adds its options to the command line and returns what runs it.
#pragma once

#include "base/clock.h"
#include "base/stop_clock.h"
#include "cli/cli.h"
#include "report/report_json.h"
#include "report/reporting.h"

namespace netprobe {

daqwriter::ParsedCommand add_serve(CLI::App& parent);
daqwriter::ParsedCommand add_latency(CLI::App& parent);
daqwriter::ParsedCommand add_build(CLI::App& parent);

// The options of both measuring commands.
struct Timing {
  double seconds = 10;
  double warm_up_s = 1;
  double connect_s = 10;
  double stall_limit_s = daqwriter::kDefaultStallLimitS;
  daqwriter::OutputPath json_path;
};
void add_timing(CLI::App& app, Timing& timing);
// Throws Refusal for a result that could not be written, and for a size that no message has.
void check_output(const Timing& timing, const std::string& size_option, std::uint64_t size,
                  const std::atomic<int>& stop_signal);
// The beginning of every result document.
nlohmann::ordered_json head_json(const char* command, const Timing& timing, bool interrupted,
                                 std::int64_t started_utc_ns, double measured_s,
                                 const daqwriter::CpuUse& cpu);

}  // namespace netprobe
