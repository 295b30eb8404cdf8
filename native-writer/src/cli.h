// Promise: one room for what the command lines of all commands share. Each command's own options stand in
// <command>_cli.cpp; main.cpp only calls them.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reporting.h"
#include "status.h"
#include "target.h"

namespace daqwriter {

// Does the work of a parsed command. `stop_signal`: non-zero asks for an orderly end.
using Command = std::function<ExitCode(const std::atomic<int>& stop_signal)>;

// Each adds its subcommand to the application and returns what runs it.
struct ParsedCommand {
  CLI::App* app;
  Command run;
};
ParsedCommand add_write(CLI::App& parent);
ParsedCommand add_minidaq(CLI::App& parent);
ParsedCommand add_streams(CLI::App& parent);
ParsedCommand add_verify(CLI::App& parent);
ParsedCommand add_checksum(CLI::App& parent);

// An option whose text our own parser reads ("8MiB"); the present value is shown as the default. The Refusal
// of parse_size names the option.
CLI::Option* add_size(CLI::App& app, const std::string& name, std::uint64_t& value, const std::string& help);
// One of `choices`, anything else is refused; the present value is the default.
CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        const std::vector<std::string>& choices, const std::string& help);
void add_reporting(CLI::App& app, Reporting& reporting, bool with_series = true);
void add_consent(CLI::App& app, Consent& consent);

}  // namespace daqwriter
