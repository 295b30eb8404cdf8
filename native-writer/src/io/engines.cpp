#include "io/engines.h"

#include "io/aio_engine.h"
#include "io/null_engine.h"
#include "io/uring_engine.h"

namespace daqwriter {

EngineFactory engine_factory(const std::string& name) {
  if (name == "null") return [](unsigned) { return std::make_unique<NullEngine>(); };
  if (name == "io_uring") return [](unsigned depth) { return std::make_unique<UringEngine>(depth); };
  return [](unsigned depth) { return std::make_unique<AioEngine>(depth); };
}

const std::vector<std::string>& engine_names() {
  static const std::vector<std::string> names = {"libaio", "io_uring"};
  return names;
}

}  // namespace daqwriter
