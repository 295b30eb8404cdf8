#include "cli/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <iostream>
#include <optional>

#include "base/stop_clock.h"
#include "base/units.h"
#include "base/worker_thread.h"

namespace daqwriter {
namespace {

void occupy_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free number is given: this one. Opened the wrong way round, it
    // fails as a closed one does.
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

// Written by the signal handler: lock-free, so that it is safe there.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int number) {
  int seen = 0;
  if (received_signal.compare_exchange_strong(seen, number, std::memory_order_relaxed)) return;
  if ((seen & kSecondSignal) != 0) _exit(static_cast<int>(ExitCode::interrupted));
  received_signal.fetch_or(kSecondSignal, std::memory_order_relaxed);
}

// From now on SIGINT, SIGTERM and SIGHUP write their number into `received_signal`; a second one of whatever
// kind adds kSecondSignal, a third one ends the process on the spot. A write beyond the limit of a file's
// size, or into a closed pipe, is an error and no signal.
void receive_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigfillset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    // A user of nohup wants a closed terminal to change nothing.
    if (number != SIGHUP || before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
}

constexpr const char* kSizes =
    "Sizes: an integer with B, KiB, MiB, GiB, TiB (powers of 1024) or MB, GB, TB (powers of 1000); without a "
    "unit: bytes.\n";

ExitCode parse_and_run(const Program& program, int argc, char** argv) {
  CLI::App app(program.name + ": " + program.description);
  app.set_version_flag("--version", program.name + " " + program.version);
  app.footer(kSizes + program.exit_codes);
  app.require_subcommand(1);
  const std::vector<ParsedCommand> commands = program.add_commands(app);
  for (const ParsedCommand& command : commands) command.app->footer(kSizes + program.exit_codes);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ExitCode::complete : ExitCode::refused;
  }
  receive_signals();
  for (const ParsedCommand& command : commands) {
    if (!command.app->parsed()) continue;
    try {
      return command.run(received_signal);
    } catch (const Unanswered& failure) {  // before there was a run: no JSON
      if (received_signal != 0) throw Interrupted(failure.what());
      throw;
    }
  }
  return ExitCode::refused;
}

}  // namespace

ExitCode reported(const std::string& program, const std::function<ExitCode()>& work) {
  const auto ended = [&](ExitCode code, const std::exception& why) {
    std::cerr << program << ": " << why.what() << "\n";
    return code;
  };
  try {
    return work();
  } catch (const Refusal& refusal) {
    return ended(ExitCode::refused, refusal);
  } catch (const Interrupted& interrupted) {
    return ended(ExitCode::interrupted, interrupted);
  } catch (const std::exception& failure) {
    return ended(ExitCode::failed, failure);
  }
}

int run_program(const Program& program, int argc, char** argv) {
  occupy_standard_descriptors();
  return static_cast<int>(leave(reported(program.name, [&] { return parse_and_run(program, argc, argv); })));
}

template <typename Value>
Value parse_within(const Bounds<Value>& bounds, std::string_view text) {
  std::optional<Value> value;
  if constexpr (std::is_same_v<Value, std::uint64_t>) {
    try {
      value = parse_size(text);
    } catch (const Refusal& refusal) {
      throw Refusal(std::string(bounds.option) + ": " + refusal.what());
    }
  } else {
    value = parse_number<Value>(text);
  }
  if (value && *value >= bounds.least && *value <= bounds.most) return *value;  // NaN is not
  const auto shown = [](Value bound) {
    if constexpr (std::is_same_v<Value, std::uint64_t>) return format_size(bound);
    return format_number(static_cast<double>(bound), 9);
  };
  const std::string unit = *bounds.unit ? std::string(" ") + bounds.unit : "";
  throw Refusal(std::string(bounds.option) + " " + std::string(text) + ": give " + shown(bounds.least) +
                " to " + shown(bounds.most) + unit);
}

template double parse_within(const Bounds<double>&, std::string_view);
template std::uint32_t parse_within(const Bounds<std::uint32_t>&, std::string_view);
template std::uint64_t parse_within(const Bounds<std::uint64_t>&, std::string_view);

CLI::Option* add_count(CLI::App& app, const Bounds<std::uint64_t>& bounds, std::uint64_t& value,
                       const std::string& help) {
  const auto parse = [&value, bounds](const std::string& text) {
    const auto count = parse_number<std::uint64_t>(text);
    if (!count || *count < bounds.least || *count > bounds.most)
      throw Refusal(std::string(bounds.option) + " " + text + ": give a whole number from " +
                    std::to_string(bounds.least) + " to " + std::to_string(bounds.most));
    value = *count;
  };
  return app.add_option_function<std::string>(bounds.option, parse, help)
      ->type_name("NUMBER")
      ->default_str(std::to_string(value));
}

void add_seed(CLI::App& app, std::uint64_t& seed, const std::string& help) {
  add_count(app, {"--seed", 0, UINT64_MAX}, seed, help);
}

CLI::Option* add_cpus(CLI::App& app, const std::string& name, std::vector<int>& cpus,
                      const std::string& help) {
  return app.add_option(name, cpus, help)->delimiter(',')->check(CLI::Range(0, 1 << 20));
}

void add_stall_limit(CLI::App& app, double& seconds) {
  add_number(app, {"--stall-limit", 0.1, 86'400, "seconds"}, seconds,
             "How long the target may owe an answer before the command fails, seconds");
}

CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        const std::vector<std::string>& choices, const std::string& help) {
  return app.add_option(name, value, help)->check(CLI::IsMember(choices))->capture_default_str();
}

void add_sink(CLI::App& app, LoadTargets& load, const std::string& help) {
  add_choice<bool>(app, "--sink", load.null_sink, {{"target", false}, {"null", true}}, help);
}

void add_preallocate(CLI::App& app, LoadTargets& load, const std::string& help) {
  add_choice<bool>(app, "--preallocate", load.preallocate, {{"full", true}, {"none", false}}, help);
}

void require_no_target(const LoadTargets& load) {
  if (load.null_sink && !load.target.empty())
    throw Refusal("--sink null writes nowhere: leave --target away");
}

void add_reporting(CLI::App& app, Reporting& reporting, bool with_series) {
  app.add_option("--json", reporting.json_path, "Result file; - is standard output");
  if (!with_series) return;
  add_number(app, {"--interval", 0.01, 3600, "seconds"}, reporting.interval_s,
             "Time between two line-protocol records and series points, seconds");
  app.add_option("--line-protocol", reporting.line_protocol_path, "File to append line-protocol records to");
  app.add_option_function<std::vector<std::string>>(
         "--tag", [&reporting](const std::vector<std::string>& texts) { reporting.tags = parse_tags(texts); },
         "key=value for the line-protocol records; repeatable")
      ->allow_extra_args(false);
}

void add_consent(CLI::App& app, Consent& consent) {
  const auto add = [&app](const std::string& name, Serials& serials, const std::string& help) {
    app.add_option_function<std::vector<std::string>>(
           name, [&serials](const std::vector<std::string>& given) { serials = given; }, help)
        ->type_name("TEXT")
        ->allow_extra_args(false);
  };
  add("--allow-serial", consent.allow_serial,
      "Serial or WWN of the raw drive that may be written; repeatable, for several drives");
  add("--destroy", consent.destroy_serial,
      "The same serial again: its old signature may be destroyed; repeatable");
  app.add_flag("--allow-memory-target", consent.memory_target,
               "Tests only: accept tmpfs, ramfs, overlay, zram");
}

void print_caution(const TargetPlan& target) {
  if (target.caution.empty()) return;
  std::cerr << "daqwriter: " << target.path
            << ": who has it open for writing is not fully known: " << target.caution << "\n";
}

}  // namespace daqwriter
