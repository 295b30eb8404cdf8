#include "io/engines.h"

#include "io/aio_engine.h"
#include "io/null_engine.h"
#include "io/uring_engine.h"

namespace daqwriter {

EngineFactory engine_factory(Engine engine) {
  if (engine == Engine::null) return [](unsigned) { return std::make_unique<NullEngine>(); };
  if (engine == Engine::io_uring) return [](unsigned depth) { return std::make_unique<UringEngine>(depth); };
  return [](unsigned depth) { return std::make_unique<AioEngine>(depth); };
}

const char* engine_name(Engine engine) {
  static constexpr std::array<const char*, 3> kNames = {"libaio", "io_uring", "null"};
  return kNames[static_cast<std::size_t>(engine)];
}

}  // namespace daqwriter
