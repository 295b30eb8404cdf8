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
  add_size(*app, bounds::kOffset, options->offset,
           "Where the record begins, if not at the start (several applications on one device)");
  add_stall_limit(*app, options->stall_limit_s);
  add_reporting(*app, *options);
  return {app, [options](const std::atomic<int>& stop_signal) {
            return leave(run_verify(*options, stop_signal));
          }};
}

}  // namespace daqwriter
