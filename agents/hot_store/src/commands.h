// Promise: the commands of hotstore. Each adds its options to the command line
// and returns what runs it.
#pragma once

#include "cli/cli.h"

namespace hotstore {

daqwriter::ParsedCommand add_bench(CLI::App& parent);
daqwriter::ParsedCommand add_semantics(CLI::App& parent);
daqwriter::ParsedCommand add_verify(CLI::App& parent);

}  // namespace hotstore
