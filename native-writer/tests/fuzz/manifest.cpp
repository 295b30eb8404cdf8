// A manifest of any bytes: refused, or read with every bad line named in plain ASCII.
#include <sstream>

#include "base/status.h"
#include "format/stream_manifest.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace daqwriter;
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  try {
    const Manifest manifest = read_manifest(in, "manifest.jsonl");
    fuzz::require(!manifest.run.shares.empty() && manifest.run.shares.size() <= kMostStreams);
    for (const ClosedFile& file : manifest.files) {
      fuzz::require(file.stream < manifest.run.shares.size() && file.last_serial < UINT64_MAX);
    }
    fuzz::require(!manifest.end || manifest.end->events.size() == manifest.run.shares.size());
    for (const Manifest::BadLine& line : manifest.bad_lines) {
      const auto plain = [](char c) { return c >= ' ' && c <= '~'; };
      fuzz::require(!line.text.empty() && std::all_of(line.text.begin(), line.text.end(), plain));
    }
  } catch (const Refusal&) {
    return 0;
  }
  return 0;
}
