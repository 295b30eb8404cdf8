// Promise: the manifest of a streams run, manifest.jsonl: its first line says what the content follows from,
// one line per closed file says what is in it, then one says that the run was closed and a last one seals all
// of them with a checksum. Each line is on the medium before anything relies on it; a file without a line is
// not closed. Readers believe values within bounds only, and name contradictions.
#pragma once

#include <iosfwd>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/file_identity.h"
#include "format/event_format.h"

namespace daqwriter {

constexpr const char* kManifestName = "manifest.jsonl";

struct ClosedFile {
  std::uint32_t stream = 0;
  std::uint64_t number = 0;
  std::string name;
  std::uint64_t events = 0;
  std::uint64_t first_serial = 0;
  std::uint64_t last_serial = 0;
  std::uint64_t bytes = 0;
  std::optional<std::uint32_t> adler32;  // of all its bytes
  RecordId run_id{};
};

struct RunEnd {
  std::string status;                 // complete or interrupted
  std::vector<std::uint64_t> events;  // of each stream
};

// Appends; used by all streams.
class ManifestWriter {
 public:
  // Creates it in `directory`, with its first line. Throws Failure.
  ManifestWriter(const std::string& directory, const RunParameters& run, const std::string& prefix);
  // The file itself has been flushed. Throws Failure.
  void add(const ClosedFile& file);
  void close(const RunEnd& end);

 private:
  void append(const std::string& line);

  std::string path_;
  std::uint32_t crc_ = 0;  // of what was appended
  std::mutex mutex_;
  OpenFile directory_;
  OpenFile file_;
};

struct Manifest {
  bool seals = true;    // false: of an older format, which ends without a seal
  bool sealed = false;  // ends with the right one
  RunParameters run;
  std::string prefix;
  std::vector<ClosedFile> files;  // in the order in which they were closed
  std::optional<RunEnd> end;
  struct BadLine {
    std::uint64_t offset;  // B
    std::string text;      // what is wrong
  };
  std::vector<BadLine> bad_lines;  // an unfinished last one is not: the run ended while it was written
};

Manifest read_manifest(const std::string& directory);                  // throws Refusal
Manifest read_manifest(std::istream& lines, const std::string& name);  // `name`: in messages

std::string adler_text(std::uint32_t adler32);  // 8 hexadecimal digits

}  // namespace daqwriter
