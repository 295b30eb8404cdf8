// Promise: `daqwriter guard -- COMMAND` runs another program on a whole drive under the interlock and the
// claim that daqwriter's own writes have. The program takes our place (exec) and inherits the claim, which
// lasts exactly as long as it does: killing a parent would leave it unguarded.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "cli/cli.h"

namespace daqwriter {
namespace {

constexpr const char* kClaim = "DAQWRITER_CLAIM";

struct GuardAsked {
  std::string target;
  Consent consent;
  std::vector<std::string> command;
};

void pass_on(const Descriptor& claim) {
  if (fcntl(*claim, F_SETFD, 0) != 0) throw Refusal("the claim cannot be passed on: " + errno_text(errno));
}

// The signals that daqwriter handles itself. Those that it ignores would stay ignored in the command.
void give_signals_back() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    if (now.sa_handler != SIG_IGN) signal(number, SIG_DFL);
  }
  signal(SIGXFSZ, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
}

TargetPlan claimed(const GuardAsked& asked) {
  TargetPlan plan = plan_target(asked.target, asked.consent);
  if (plan.kind != TargetKind::raw_device)
    throw Refusal("--target " + asked.target + ": guard claims whole drives, and this is no whole drive");
  if (asked.consent.allow_serial.text() != asked.consent.destroy_serial.text())
    throw Refusal(
        asked.target + ": refused: " + asked.command.front() +
        " may write anywhere on it, and there may be data without a known signature; --destroy with "
        "the same serial as --allow-serial consents to lose all");
  return plan;
}

ExitCode run_guard_command(const GuardAsked& asked, const std::atomic<int>& stop_signal) {
  if (asked.command.empty()) throw Refusal("guard: name the command to run behind --");
  const TargetPlan plan = claimed(asked);
  print_caution(plan);
  pass_on(plan.claim);
  for (const Descriptor& twin : plan.twin_claims) pass_on(twin);
  setenv(kClaim, std::to_string(*plan.claim).c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : asked.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  give_signals_back();
  if (stop_signal != 0) return ExitCode::interrupted;
  execvp(words.front(), words.data());
  throw Refusal("guard: " + asked.command.front() + " cannot be started: " + errno_text(errno));
}

}  // namespace

ParsedCommand add_guard(CLI::App& parent, const std::vector<std::string>& command) {
  const auto asked = std::make_shared<GuardAsked>();
  asked->command = command;
  CLI::App* app = parent.add_subcommand(
      "guard",
      "Run another program on a whole drive (-- COMMAND ...) that passes the interlock, and hold the claim "
      "on it "
      "until that ends; its exit code is the command's, which finds the number of the claimed descriptor in "
      "DAQWRITER_CLAIM");
  app->add_option("--target", asked->target, "Block device that the command will write to")->required();
  add_consent(*app, asked->consent);
  return {app,
          [asked](const std::atomic<int>& stop_signal) { return run_guard_command(*asked, stop_signal); }};
}

}  // namespace daqwriter
