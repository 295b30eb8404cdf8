#include <memory>

#include "base/worker_thread.h"
#include "cli/cli.h"
#include "verify/verify_command.h"

namespace daqwriter {
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
  const auto superchunks = std::make_shared<std::uint64_t>(0);
  CLI::Option* const count = add_count(
      *app, {"--superchunks", 0, kMaxCount - 1}, *superchunks,
      "With --record-id: superchunks (directory: events) that the writer says it stored; those that "
      "cannot "
      "be found are counted as missing");
  count->needs(id)->default_str("");
  add_stall_limit(*app, options->stall_limit_s);
  add_reporting(*app, *options);
  return {app, [=](const std::atomic<int>& stop_signal) {
            if (count->count() > 0) sought->superchunks = *superchunks;
            if (id->count() > 0) options->sought = *sought;
            return leave(run_verify(*options, stop_signal));
          }};
}

}  // namespace daqwriter
