// Promise: what daqwriter is, for its main(). No work is done here.
#include <algorithm>
#include <string_view>

#include "cli/cli.h"

namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 complete or intact (losses are counted in the JSON), 1 failed (I/O or system error), 2 "
    "refused or\n"
    "bad usage (nothing was written), 3 verify or checksum found damage, 130 interrupted by SIGINT, "
    "SIGTERM\n"
    "or SIGHUP (the JSON says what is stored and whether the record was closed).";

}  // namespace

int main(int argc, char** argv) {
  // The words behind guard's -- are another program's: no parser of ours may change their order or meaning.
  const bool guards = argc > 1 && argv[1] == std::string_view("guard");
  char** const own_end = guards ? std::find(argv, argv + argc, std::string_view("--")) : argv + argc;
  const std::vector<std::string> behind(std::min(own_end + 1, argv + argc), argv + argc);
  const auto add = [&](CLI::App& app) { return daqwriter::add_commands(app, behind); };
  return daqwriter::run_program(
      {"daqwriter", DAQWRITER_VERSION, "writes and verifies data-acquisition records, to qualify storage",
       kExitCodes, add},
      static_cast<int>(own_end - argv), argv);
}
