// Promise: the command line's frame: commands, signals, exit codes. No work is
// done here.
#include <signal.h>

#include <iostream>

#include "apart.h"
#include "base/worker_thread.h"
#include "commands.h"

namespace hotstore {
namespace {

using daqwriter::ExitCode;

constexpr const char* kFooter =
    "Sizes: an integer with B, KiB, MiB, GiB, TiB (powers of 1024) or MB, GB, "
    "TB (powers of 1000); without a "
    "unit: bytes.\n"
    "Exit codes: 0 complete, intact or passed, 1 failed (engine or system "
    "error), 2 refused or bad usage (nothing was "
    "done),\n"
    "3 verify found damage or semantics a row that failed, 130 interrupted by "
    "SIGINT, SIGTERM or SIGHUP (the result is "
    "written).";

// Written by the signal handler: lock-free, so that it is safe there.
std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int number) {
  stop_signal.store(number, std::memory_order_relaxed);
}

// The first signal asks for an orderly end, a second one ends the process at
// once (SA_RESETHAND).
void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup stays nohup
  signal(SIGPIPE,
         SIG_IGN);  // a lost server shall cause an error reply, not the end
}

int run(int argc, char** argv) {
  CLI::App app(
      "hotstore: DAQDB's key-value semantics over LMDB, Redis or "
      "Redis Cluster, and the load to measure them");
  app.set_version_flag("--version", std::string("hotstore ") + HOTSTORE_VERSION);
  app.footer(kFooter);
  app.require_subcommand(1);
  const std::vector<daqwriter::ParsedCommand> commands = {add_bench(app), add_semantics(app),
                                                          add_verify(app)};
  for (const daqwriter::ParsedCommand& command : commands) command.app->footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::refused);
  }
  install_signal_handlers();
  for (const daqwriter::ParsedCommand& command : commands) {
    if (!command.app->parsed()) continue;
    try {
      return static_cast<int>(command.run(stop_signal));
    } catch (const daqwriter::Unanswered& failure) {
      std::cerr << "hotstore: " << failure.what() << "\n";
      return static_cast<int>(stop_signal != 0 ? ExitCode::interrupted : ExitCode::failed);
    }
  }
  return static_cast<int>(ExitCode::refused);
}

}  // namespace
}  // namespace hotstore

int main(int argc, char** argv) {
  daqwriter::occupy_standard_descriptors();
  return static_cast<int>(daqwriter::leave(
      hotstore::reported([&] { return static_cast<daqwriter::ExitCode>(hotstore::run(argc, argv)); })));
}
