#include "cli/cli.h"

namespace daqwriter {

// Alone in its file: what other programs share of cli.cpp must not need the libraries of every command.
std::vector<ParsedCommand> add_commands(CLI::App& app, const std::vector<std::string>& command) {
  return {add_write(app),  add_read(app),     add_minidaq(app),       add_streams(app),
          add_verify(app), add_checksum(app), add_guard(app, command)};
}

}  // namespace daqwriter
