// Promise: one room for what the command lines of all commands share. Each command's own options stand in
// <command>_cli.cpp; main.cpp only calls them.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "io/engines.h"
#include "report/reporting.h"
#include "target/target_set.h"

namespace daqwriter {

// Does the work of a parsed command. `stop_signal`: non-zero asks for an orderly end.
using Command = std::function<ExitCode(const std::atomic<int>& stop_signal)>;

// Each adds its subcommand to the application and returns what runs it.
struct ParsedCommand {
  CLI::App* app;
  Command run;
};
ParsedCommand add_write(CLI::App& parent);
ParsedCommand add_read(CLI::App& parent);
ParsedCommand add_minidaq(CLI::App& parent);
ParsedCommand add_streams(CLI::App& parent);
ParsedCommand add_verify(CLI::App& parent);
ParsedCommand add_checksum(CLI::App& parent);
ParsedCommand add_guard(CLI::App& parent, const std::vector<std::string>& command);

// Every command; parsing their command lines does no I/O. `command`: another program's words, for guard.
std::vector<ParsedCommand> add_commands(CLI::App& app, const std::vector<std::string>& command = {});

// Does `work` and returns its exit code; where it throws, says on standard error why, and returns that of the
// exception.
ExitCode reported(const std::string& program, const std::function<ExitCode()>& work);

// What a program of the bench is.
struct Program {
  std::string name;
  std::string version;
  std::string description;
  std::string exit_codes;  // stands below its help and its commands'
  std::function<std::vector<ParsedCommand>(CLI::App& app)> add_commands;
};
// Does all of a main(): it parses the command line, runs the command and returns the exit code. Before that,
// an open descriptor takes the place of each standard one that is closed, and fails when it is used: what is
// meant for standard output must not go to the next file that is opened.
int run_program(const Program& program, int argc, char** argv);

// What a numeric option takes, NaN and infinity never.
template <typename Value>
struct Bounds {
  const char* option;
  Value least;
  Value most;
  const char* unit = "";  // what the number counts
};

namespace bounds {
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 60;  // sums and roundings of sizes still fit 64 bits
constexpr std::uint64_t kTiB = std::uint64_t{1} << 40;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// Several commands have these.
constexpr Bounds<std::uint64_t> kBytes{"--bytes", 1, kMostBytes};
constexpr Bounds<std::uint64_t> kBlockSize{"--block-size", 4096, kGiB};
constexpr Bounds<std::uint32_t> kStreamDepth{"--io-depth", 1, 256, "writes in flight"};
constexpr Bounds<double> kLoadDuration{"--duration", 1e-3, 604'800, "seconds"};
constexpr Bounds<std::uint64_t> kSmallestParallel{"--smallest-parallel", 0, kTiB};
}  // namespace bounds

// The whole text as a number within the bounds: a double, std::uint32_t, or std::uint64_t, which is a size.
// Throws Refusal.
template <typename Value>
Value parse_within(const Bounds<Value>& bounds, std::string_view text);

// A number within its bounds, of 64 bits a size ("8MiB"), anything else is refused; a value other than 0 is
// shown as the default.
template <typename Value>
CLI::Option* add_number(CLI::App& app, const Bounds<Value>& bounds, Value& value, const std::string& help) {
  const auto parse = [&value, bounds](const std::string& text) { value = parse_within(bounds, text); };
  constexpr bool kSize = std::is_same_v<Value, std::uint64_t>;
  CLI::Option* option = app.add_option_function<std::string>(bounds.option, parse, help);
  option->type_name(kSize ? "SIZE" : "NUMBER");
  if (value == 0) return option;
  if constexpr (kSize) return option->default_str(format_size(value));
  return option->default_str(format_number(static_cast<double>(value)));
}
// A whole number within its bounds, and no size.
CLI::Option* add_count(CLI::App& app, const Bounds<std::uint64_t>& bounds, std::uint64_t& value,
                       const std::string& help);
void add_seed(CLI::App& app, std::uint64_t& seed, const std::string& help);
CLI::Option* add_cpus(CLI::App& app, const std::string& name, std::vector<int>& cpus,
                      const std::string& help);
void add_stall_limit(CLI::App& app, double& seconds);
// One of `choices`, anything else is refused; the present value is the default.
CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        const std::vector<std::string>& choices, const std::string& help);
// The same, straight into what a choice stands for.
template <typename Value>
CLI::Option* add_choice(CLI::App& app, const std::string& name, Value& value,
                        const std::vector<std::pair<std::string, Value>>& choices, const std::string& help) {
  std::vector<std::string> names;
  std::string present;
  for (const auto& [text, meant] : choices) {
    names.push_back(text);
    if (meant == value) present = text;
  }
  const auto choose = [&value, choices](const std::string& chosen) {
    for (const auto& [text, meant] : choices) {
      if (text == chosen) value = meant;
    }
  };
  return app.add_option_function<std::string>(name, choose, help)
      ->check(CLI::IsMember(names))
      ->default_str(present);
}
// Options that several loads have.
void add_sink(CLI::App& app, LoadTargets& load, const std::string& help);
void add_preallocate(CLI::App& app, LoadTargets& load, const std::string& help);
void add_engine(CLI::App& app, Engine& engine);
// Throws Refusal when a null sink is given a target.
void require_no_target(const LoadTargets& load);
void add_reporting(CLI::App& app, Reporting& reporting, bool with_series = true);
// The list of targets, and of further ones when the option is given again.
void add_targets(CLI::App& app, LoadTargets& load, const std::string& help);
void add_consent(CLI::App& app, Consent& consent);

// Says what the examination of a device could not see.
void print_caution(const TargetPlan& target);

}  // namespace daqwriter
