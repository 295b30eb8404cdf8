// Promise: the command line's frame: commands, what the measuring ones share, signals, exit codes.
#include <signal.h>

#include <iostream>

#include "base/clock.h"
#include "commands.h"
#include "wire.h"

namespace netprobe {

using daqwriter::ExitCode;

void add_timing(CLI::App& app, Timing& timing) {
  app.add_option("--seconds", timing.seconds, "Measured time")->capture_default_str();
  app.add_option("--warm-up", timing.warm_up_s, "Time before it that is not measured, seconds")
      ->capture_default_str();
  app.add_option("--connect", timing.connect_s, "Longest wait for a peer that starts, seconds")
      ->capture_default_str();
  app.add_option("--json", timing.json_path, "Result file; - is standard output");
}

void check_timing(const Timing& timing, const std::string& size_option, std::uint64_t size) {
  daqwriter::require_writable_output("--json", timing.json_path);
  if (!(timing.seconds > 0) || timing.seconds > 86400 || !(timing.warm_up_s >= 0))
    throw daqwriter::Refusal("--seconds: give more than 0 and at most 86400; --warm-up: 0 or more");
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

namespace {

std::atomic<int> stop_signal{0};

ExitCode run(int argc, char** argv) {
  CLI::App app("netprobe: small-message latency and event building over TCP");
  app.set_version_flag("--version", std::string("netprobe ") + NETPROBE_VERSION);
  app.footer(
      "Sizes: with B, KiB, MiB (powers of 1024) or MB (powers of 1000); without a unit: bytes.\n"
      "Exit codes: 0 complete, 1 failed, 2 refused, 130 interrupted (the result is written).");
  app.require_subcommand(1);
  const auto commands = {add_serve(app), add_latency(app), add_build(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ExitCode::complete : ExitCode::refused;
  }
  for (const int number : {SIGINT, SIGTERM}) signal(number, [](int which) { stop_signal.store(which); });
  for (const auto& command : commands)
    if (command.app->parsed()) return command.run(stop_signal);
  return ExitCode::refused;
}

ExitCode guarded(int argc, char** argv) {
  std::string text;
  ExitCode code = ExitCode::failed;
  try {
    return run(argc, argv);
  } catch (const daqwriter::Refusal& refusal) {
    text = refusal.what();
    code = ExitCode::refused;
  } catch (const std::exception& failure) {
    text = failure.what();
  }
  std::cerr << "netprobe: " << text << "\n";
  return code;
}

}  // namespace
}  // namespace netprobe

int main(int argc, char** argv) {
  return static_cast<int>(netprobe::guarded(argc, argv));
}
