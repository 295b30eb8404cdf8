// Promise: the asynchronous I/O interfaces by name.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "io/io_engine.h"

namespace daqwriter {

using EngineFactory = std::function<std::unique_ptr<IoEngine>(unsigned depth)>;

enum class Engine { libaio, io_uring, null };
const char* engine_name(Engine engine);
// The engines throw Failure when the kernel refuses them.
EngineFactory engine_factory(Engine engine);
inline constexpr std::array kEngines = {Engine::libaio, Engine::io_uring};  // those that reach a medium

}  // namespace daqwriter
