#include "cli.h"

#include "units.h"

namespace daqwriter {

CLI::Option* add_size(CLI::App& app, const std::string& name, std::uint64_t& value, const std::string& help) {
  const auto parse = [&value, name](const std::string& text) {
    try {
      value = parse_size(text);
    } catch (const Refusal& refusal) {
      throw Refusal(name + ": " + refusal.what());
    }
  };
  CLI::Option* option = app.add_option_function<std::string>(name, parse, help)->type_name("SIZE");
  if (value > 0) option->default_str(format_size(value));
  return option;
}

CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        const std::vector<std::string>& choices, const std::string& help) {
  return app.add_option(name, value, help)->check(CLI::IsMember(choices))->capture_default_str();
}

void add_reporting(CLI::App& app, Reporting& reporting, bool with_series) {
  app.add_option("--json", reporting.json_path, "Result file; - is standard output");
  if (!with_series) return;
  app.add_option("--interval", reporting.interval_s,
                 "Time between two line-protocol records and series points, seconds")
      ->capture_default_str();
  app.add_option("--line-protocol", reporting.line_protocol_path, "File to append line-protocol records to");
  app.add_option_function<std::vector<std::string>>(
         "--tag", [&reporting](const std::vector<std::string>& texts) { reporting.tags = parse_tags(texts); },
         "key=value for the line-protocol records; repeatable")
      ->allow_extra_args(false);
}

void add_consent(CLI::App& app, Consent& consent) {
  app.add_option("--allow-serial", consent.allow_serial,
                 "Serial or WWN of the raw drive that may be written");
  app.add_option("--destroy", consent.destroy_serial,
                 "The same serial again: its old signature may be destroyed");
  app.add_flag("--allow-memory-target", consent.memory_target,
               "Tests only: accept tmpfs, ramfs, overlay, zram");
}

}  // namespace daqwriter
