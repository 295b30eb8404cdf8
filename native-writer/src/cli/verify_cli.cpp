#include <charconv>
#include <memory>

#include "base/worker_thread.h"
#include "cli/cli.h"
#include "verify/verify_command.h"

namespace daqwriter {
namespace {

constexpr const char* kSuperchunks = "--superchunks";

// A whole number, and no size.
std::uint64_t parse_count(const std::string& text) {
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end == text.data() + text.size() && count < kMaxCount) return count;
  throw Refusal(std::string(kSuperchunks) + " '" + text + "': give a whole number below 2^56");
}

}  // namespace

ParsedCommand add_verify(CLI::App& parent) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App* app = parent.add_subcommand(
      "verify", "Read a record or a streams run back and prove it present once, in order, intact");
  app->add_option("--target", options->target,
                  "File or block device that holds the record, or directory of a streams run")
      ->required();
  add_number(*app, {"--offset", 0, bounds::kMostBytes}, options->offset,
             "Where the record begins, if not at the start (several applications on one device)");
  const auto sought = std::make_shared<Sought>();
  CLI::Option* const id = app->add_option_function<std::string>(
      "--record-id", [sought](const std::string& text) { sought->id = parse_record_id(text); },
      "The record (directory: run) that the writer says it wrote here, 32 hexadecimal digits: a target "
      "without "
      "it has then lost it, which is damage (3), and one that cannot be opened has failed (1)");
  app->add_option_function<std::string>(
         kSuperchunks, [sought](const std::string& text) { sought->superchunks = parse_count(text); },
         "With --record-id: superchunks (directory: events) that the writer says it stored; those that "
         "cannot "
         "be found are counted as missing")
      ->type_name("NUMBER")
      ->needs(id);
  add_stall_limit(*app, options->stall_limit_s);
  add_reporting(*app, *options);
  return {app, [options, sought, id](const std::atomic<int>& stop_signal) {
            if (id->count() > 0) options->sought = *sought;
            return leave(run_verify(*options, stop_signal));
          }};
}

}  // namespace daqwriter
