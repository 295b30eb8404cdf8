// Promise: what netprobe is, for its main(). No work is done here.
#include "commands.h"

namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 complete, 1 failed, 2 refused, 130 interrupted (the result is written, if anything was "
    "measured).";

}  // namespace

int main(int argc, char** argv) {
  const auto add = [](CLI::App& app) {
    return std::vector{netprobe::add_serve(app), netprobe::add_latency(app), netprobe::add_build(app)};
  };
  return daqwriter::run_program(
      {"netprobe", NETPROBE_VERSION, "small-message latency and event building over TCP", kExitCodes, add},
      argc, argv);
}
