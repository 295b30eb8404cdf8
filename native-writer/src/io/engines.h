// Promise: the asynchronous I/O interfaces by name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/io_engine.h"

namespace daqwriter {

using EngineFactory = std::function<std::unique_ptr<IoEngine>(unsigned depth)>;

// "libaio", "io_uring" or "null"; the engines throw Failure when the kernel refuses them.
EngineFactory engine_factory(const std::string& name);
const std::vector<std::string>& engine_names();  // those that reach a medium

}  // namespace daqwriter
