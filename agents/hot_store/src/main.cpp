// Promise: what hotstore is, for its main(). No work is done here.
#include "commands.h"

namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 complete, intact or passed, 1 failed (engine or system error), 2 refused or bad usage "
    "(nothing was done),\n"
    "3 verify found damage or semantics a row that failed, 130 interrupted by SIGINT, SIGTERM or SIGHUP (the "
    "result is written).";

}  // namespace

int main(int argc, char** argv) {
  const auto add = [](CLI::App& app) {
    return std::vector{hotstore::add_bench(app), hotstore::add_semantics(app), hotstore::add_verify(app)};
  };
  return daqwriter::run_program(
      {"hotstore", HOTSTORE_VERSION,
       "DAQDB's key-value semantics over LMDB, Redis or Redis Cluster, and the load to measure them",
       kExitCodes, add},
      argc, argv);
}
