// Promise: the options for targets and engine. Apart from cli.cpp, so that programs that share only that need
// nothing of what examines drives or writes to them.
#include "cli/cli.h"

namespace daqwriter {

void add_targets(CLI::App& app, LoadTargets& load, const std::string& help) {
  const auto take = [&load](const std::vector<std::string>& texts) {
    load.further_targets = split_targets(texts);
    load.target = load.further_targets.front();
    load.further_targets.erase(load.further_targets.begin());
  };
  app.add_option_function<std::vector<std::string>>(
         "--target", take, help + "; several: a,b or --target again; '\\,' is a comma within a name")
      ->type_name("PATH")
      ->allow_extra_args(false);
}

void add_engine(CLI::App& app, Engine& engine) {
  std::vector<std::pair<std::string, Engine>> choices;
  for (const Engine each : kEngines) choices.emplace_back(engine_name(each), each);
  add_choice(app, "--engine", engine, choices, "Asynchronous I/O interface");
}

}  // namespace daqwriter
