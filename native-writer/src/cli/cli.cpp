#include "cli/cli.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <iostream>

#include "base/units.h"

namespace daqwriter {

CLI::Option* add_size(CLI::App& app, const Bounds<std::uint64_t>& bounds, std::uint64_t& value,
                      const std::string& help) {
  const auto parse = [&value, bounds](const std::string& text) { value = parse_within(bounds, text); };
  CLI::Option* option = app.add_option_function<std::string>(bounds.option, parse, help)->type_name("SIZE");
  if (value > 0) option->default_str(format_size(value));
  return option;
}

// Any number of 64 bits, and no size.
void add_seed(CLI::App& app, std::uint64_t& seed, const std::string& help) {
  const auto parse = [&seed](const std::string& text) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, seed);
    if (error == std::errc() && rest == end) return;
    throw Refusal(std::string(bounds::kSeed.option) + " " + text + ": give a whole number from " +
                  std::to_string(bounds::kSeed.least) + " to " + std::to_string(bounds::kSeed.most));
  };
  app.add_option_function<std::string>(bounds::kSeed.option, parse, help)
      ->type_name("NUMBER")
      ->default_str(std::to_string(seed));
}

CLI::Option* add_cpus(CLI::App& app, const std::string& name, std::vector<int>& cpus,
                      const std::string& help) {
  return app.add_option(name, cpus, help)->delimiter(',')->check(CLI::Range(0, bounds::kMostCpu));
}

void add_stall_limit(CLI::App& app, double& seconds) {
  add_number(app, bounds::kStallLimit, seconds,
             "How long the target may owe an answer before the command fails, seconds");
}

CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        const std::vector<std::string>& choices, const std::string& help) {
  return app.add_option(name, value, help)->check(CLI::IsMember(choices))->capture_default_str();
}

void add_sink(CLI::App& app, bool& null_sink, const std::string& help) {
  add_choice<bool>(app, "--sink", null_sink, {{"target", false}, {"null", true}}, help);
}

void add_preallocate(CLI::App& app, bool& preallocate, const std::string& help) {
  add_choice<bool>(app, "--preallocate", preallocate, {{"full", true}, {"none", false}}, help);
}

void require_no_target(bool null_sink, const std::string& target) {
  if (null_sink && !target.empty()) throw Refusal("--sink null writes nowhere: leave --target away");
}

void add_reporting(CLI::App& app, Reporting& reporting, bool with_series) {
  app.add_option("--json", reporting.json_path, "Result file; - is standard output");
  if (!with_series) return;
  add_number(app, bounds::kInterval, reporting.interval_s,
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

void occupy_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free number is given: this one. Opened the wrong way round, it fails as a closed one does.
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace daqwriter
