// Promise: the command line's frame: commands, options that the measuring ones share, signals, exit codes.
#include <iostream>

#include "base/clock.h"
#include "base/worker_thread.h"
#include "cli/signals.h"
#include "commands.h"
#include "wire.h"

namespace netprobe {

using daqwriter::ExitCode;

namespace {

ExitCode run(int argc, char** argv) {
  CLI::App app("netprobe: small-message latency and event building over TCP");
  app.set_version_flag("--version", std::string("netprobe ") + NETPROBE_VERSION);
  app.footer(
      "Sizes: with B, KiB, MiB (powers of 1024) or MB (powers of 1000); without a unit: bytes.\n"
      "Exit codes: 0 complete, 1 failed, 2 refused, 130 interrupted (the result is written, if anything was "
      "measured).");
  app.require_subcommand(1);
  const auto commands = {add_serve(app), add_latency(app), add_build(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ExitCode::complete : ExitCode::refused;
  }
  const std::atomic<int>& stop_signal = daqwriter::stop_on_signals();
  for (const auto& command : commands)
    if (command.app->parsed()) try {
        return command.run(stop_signal);
      } catch (const daqwriter::Unanswered& failure) {
        if (stop_signal != 0) throw Interrupted(failure.what());
        throw;
      }
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
  } catch (const Interrupted& interrupted) {
    text = interrupted.what();
    code = ExitCode::interrupted;
  } catch (const std::exception& failure) {
    text = failure.what();
  }
  std::cerr << "netprobe: " << text << "\n";
  return code;
}

}  // namespace
}  // namespace netprobe

int main(int argc, char** argv) {
  daqwriter::occupy_standard_descriptors();
  return static_cast<int>(daqwriter::leave(netprobe::guarded(argc, argv)));
}
