// A hot store's log of acknowledgements of any bytes: read, or refused.
#include "ack_log.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/status.h"
#include "fuzz.h"

namespace {

// One for the whole process, in memory where there is such a place; removed at its end.
struct Directory {
  Directory() {
    namespace fs = std::filesystem;
    path = (fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) / "acks-XXXXXX";
    daqwriter::fuzz::require(mkdtemp(path.data()) != nullptr);
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string path;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Directory directory;
  std::ofstream(directory.path + "/0.acks", std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    hotstore::read_acks(directory.path);
  } catch (const daqwriter::Refusal&) {
    return 0;
  } catch (const daqwriter::Failure&) {
    return 0;
  }
  return 0;
}
