// Promise: the command line's frame: commands, signals, exit codes. No work is done here.
#include <algorithm>
#include <iostream>
#include <string_view>

#include "base/worker_thread.h"
#include "cli/cli.h"
#include "cli/signals.h"

namespace daqwriter {
namespace {

constexpr const char* kFooter =
    "Sizes: an integer with B, KiB, MiB, GiB, TiB (powers of 1024) or MB, GB, TB (powers of 1000); without a "
    "unit: bytes.\n"
    "Exit codes: 0 complete or intact (losses are counted in the JSON), 1 failed (I/O or system error), 2 "
    "refused or\n"
    "bad usage (nothing was written), 3 verify or checksum found damage, 130 interrupted by SIGINT, "
    "SIGTERM\n"
    "or SIGHUP (the JSON says what is stored and whether the record was closed).";

int run(int argc, char** argv) {
  CLI::App app("daqwriter: writes and verifies data-acquisition records, to qualify storage");
  app.set_version_flag("--version", std::string("daqwriter ") + DAQWRITER_VERSION);
  app.footer(kFooter);
  app.require_subcommand(1);
  // The words behind guard's -- are another program's: no parser of ours may change their order or meaning.
  const std::string_view first = argc > 1 ? argv[1] : "";
  char** const own_end =
      first == "guard" ? std::find(argv, argv + argc, std::string_view("--")) : argv + argc;
  const std::vector<std::string> behind(std::min(own_end + 1, argv + argc), argv + argc);
  const std::vector<ParsedCommand> commands = add_commands(app, behind);
  for (const ParsedCommand& command : commands) command.app->footer(kFooter);
  try {
    app.parse(static_cast<int>(own_end - argv), argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::refused);
  }
  const std::atomic<int>& stop_signal = stop_on_signals();
  for (const ParsedCommand& command : commands) {
    if (!command.app->parsed()) continue;
    try {
      return static_cast<int>(command.run(stop_signal));
    } catch (const Unanswered& failure) {  // before there was a run: no JSON
      std::cerr << "daqwriter: " << failure.what() << "\n";
      return static_cast<int>(leave(stop_signal != 0 ? ExitCode::interrupted : ExitCode::failed));
    }
  }
  return static_cast<int>(ExitCode::refused);
}

}  // namespace
}  // namespace daqwriter

int main(int argc, char** argv) {
  daqwriter::occupy_standard_descriptors();
  try {
    return daqwriter::run(argc, argv);
  } catch (const daqwriter::Refusal& refusal) {
    std::cerr << "daqwriter: " << refusal.what() << "\n";
    return static_cast<int>(daqwriter::ExitCode::refused);
  } catch (const std::exception& failure) {
    std::cerr << "daqwriter: " << failure.what() << "\n";
    return static_cast<int>(daqwriter::leave(daqwriter::ExitCode::failed));
  }
}
