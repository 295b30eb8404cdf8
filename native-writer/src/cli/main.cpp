// Promise: the command line's frame: commands, signals, exit codes. No work is done here.
#include <signal.h>
#include <unistd.h>

#include <iostream>

#include "base/stop_clock.h"
#include "cli/cli.h"

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

// Written by the signal handler: lock-free, so that it is safe there.
std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

// The first signal asks for an orderly end, a second one of whatever kind for an end without waiting for the
// target, a third one ends the process on the spot.
void on_signal(int number) {
  int seen = 0;
  if (stop_signal.compare_exchange_strong(seen, number, std::memory_order_relaxed)) return;
  if ((seen & kSecondSignal) != 0) _exit(static_cast<int>(ExitCode::interrupted));
  stop_signal.fetch_or(kSecondSignal, std::memory_order_relaxed);
}

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigfillset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    // Who starts us with nohup wants a closed terminal to change nothing.
    if (number != SIGHUP || before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
  // A write beyond the limit of a file's size, or into a closed pipe, is an error that names its place.
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
}

int run(int argc, char** argv) {
  CLI::App app("daqwriter: writes and verifies data-acquisition records, to qualify storage");
  app.set_version_flag("--version", std::string("daqwriter ") + DAQWRITER_VERSION);
  app.footer(kFooter);
  app.require_subcommand(1);
  const std::vector<ParsedCommand> commands = add_commands(app);
  for (const ParsedCommand& command : commands) command.app->footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::refused);
  }
  install_signal_handlers();
  for (const ParsedCommand& command : commands) {
    if (command.app->parsed()) return static_cast<int>(command.run(stop_signal));
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
    return static_cast<int>(daqwriter::ExitCode::failed);
  }
}
