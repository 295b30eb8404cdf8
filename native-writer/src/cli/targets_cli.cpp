// Promise: the options for targets and engine. Apart from cli.cpp, so that programs that share only that need
// nothing of what examines drives or writes to them.
#include "cli/cli.h"
#include "target/target_set.h"

namespace daqwriter {

void add_targets(CLI::App& app, std::string& target, std::vector<std::string>& further_targets,
                 const std::string& help) {
  const auto take = [&](const std::vector<std::string>& texts) {
    further_targets = split_targets(texts);
    target = further_targets.front();
    further_targets.erase(further_targets.begin());
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
