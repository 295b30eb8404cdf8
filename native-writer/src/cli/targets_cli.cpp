// Promise: the option for several targets. Apart from cli.cpp, so that programs that share only that need
// nothing of what examines drives.
#include "cli/cli.h"
#include "target/target_set.h"

namespace daqwriter {

void add_targets(CLI::App& app, std::vector<std::string>& names, const std::string& help) {
  app.add_option_function<std::vector<std::string>>(
         "--target", [&names](const std::vector<std::string>& texts) { names = split_targets(texts); },
         help + "; several: a,b or --target again; '\\,' is a comma within a name")
      ->type_name("PATH")
      ->allow_extra_args(false);
}

}  // namespace daqwriter
