#include "stream_manifest.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "status.h"

namespace daqwriter {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kFormat = "daqwriter streams";
constexpr int kVersion = 1;

Json run_json(const RunParameters& run, const std::string& prefix) {
  return {{"format", kFormat},
          {"version", kVersion},
          {"run_id", record_id_text(run.run_id)},
          {"seed", run.seed},
          {"shares", run.shares},
          {"event_bytes", run.event_bytes},
          {"event_spread", run.event_spread},
          {"slots_per_stream", run.slots_per_stream},
          {"prefix", prefix}};
}

RunParameters parse_run(const Json& line) {
  RunParameters run{parse_record_id(line.at("run_id").get<std::string>()),
                    line.at("seed"),
                    line.at("shares"),
                    line.at("event_bytes"),
                    line.at("event_spread"),
                    line.at("slots_per_stream")};
  const bool good = line.at("format") == kFormat && line.at("version") == kVersion && !run.shares.empty() &&
                    run.event_bytes >= kMinEventBytes && run.event_bytes <= kMaxEventBytes &&
                    run.event_spread >= 0 && run.event_spread <= 1 && run.slots_per_stream > 0;
  if (!good) throw std::invalid_argument("values outside their ranges");
  return run;
}

ClosedFile parse_file(const Json& line) {
  ClosedFile file{line.at("stream"),
                  line.at("number"),
                  line.at("file"),
                  line.at("events"),
                  line.at("first_serial"),
                  line.at("last_serial"),
                  line.at("bytes"),
                  std::nullopt,
                  {}};
  if (!line.at("adler32").is_null())
    file.adler32 = static_cast<std::uint32_t>(std::stoul(line.at("adler32").get<std::string>(), nullptr, 16));
  file.run_id = parse_record_id(line.at("run_id").get<std::string>());
  return file;
}

void parse_line(const std::string& text, Manifest& manifest) {
  const Json line = Json::parse(text);
  if (line.contains("end")) {
    manifest.end = {line.at("end"), line.at("events")};
    if (manifest.end->events.size() != manifest.run.shares.size())
      throw std::invalid_argument("the end counts other streams");
    return;
  }
  const ClosedFile file = parse_file(line);
  const std::string name = stream_file_name(manifest.prefix, file.stream, file.number);
  if (file.stream >= manifest.run.shares.size() || file.name != name || file.events == 0 ||
      file.last_serial - file.first_serial + 1 != file.events)
    throw std::invalid_argument("its values contradict each other");
  manifest.files.push_back(file);
}

}  // namespace

std::string adler_text(std::uint32_t adler32) {
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", adler32);
  return text.data();
}

ManifestWriter::ManifestWriter(const std::string& directory, const RunParameters& run,
                               const std::string& prefix)
    : path_(directory + "/" + kManifestName) {
  constexpr mode_t kMode = 0644;
  directory_fd_ = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, kMode);
  const int error = errno;
  try {
    if (fd_ < 0) throw Failure(path_ + ": cannot be created: " + errno_text(error));
    append(run_json(run, prefix).dump());
  } catch (...) {
    if (fd_ >= 0) ::close(fd_);  // a constructor that throws has no destructor
    if (directory_fd_ >= 0) ::close(directory_fd_);
    throw;
  }
}

ManifestWriter::~ManifestWriter() {
  ::close(fd_);
  ::close(directory_fd_);
}

void ManifestWriter::add(const ClosedFile& file) {
  append(Json({{"file", file.name},
               {"stream", file.stream},
               {"number", file.number},
               {"events", file.events},
               {"first_serial", file.first_serial},
               {"last_serial", file.last_serial},
               {"bytes", file.bytes},
               {"adler32", file.adler32 ? Json(adler_text(*file.adler32)) : Json(nullptr)},
               {"run_id", record_id_text(file.run_id)}})
             .dump());
}

void ManifestWriter::close(const RunEnd& end) {
  append(Json({{"end", end.status}, {"events", end.events}}).dump());
}

void ManifestWriter::append(const std::string& line) {
  const std::lock_guard lock(mutex_);
  const std::string text = line + "\n";
  // The directory first: the name of the file that this line vouches for has to last as well.
  const bool good = fsync(directory_fd_) == 0 &&
                    write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                    fsync(fd_) == 0;
  if (!good) throw Failure(path_ + ": cannot be appended to: " + errno_text(errno));
}

Manifest read_manifest(const std::string& directory) {
  const std::string path = directory + "/" + kManifestName;
  std::ifstream in(path);
  std::stringstream whole;
  if (!in || !(whole << in.rdbuf()))
    throw Refusal("--target " + directory + ": a directory without a readable " + kManifestName);
  const std::string text = whole.str();
  Manifest manifest;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    try {
      if (begin == 0) {
        const Json first = Json::parse(line);
        manifest.run = parse_run(first);
        manifest.prefix = first.at("prefix");
      } else {
        parse_line(line, manifest);
      }
    } catch (const std::exception& error) {
      if (begin == 0)
        throw Refusal(path + ": does not begin with the parameters of a streams run: " + error.what());
      manifest.bad_lines.push_back({begin, error.what()});
    }
  }
  if (manifest.run.slots_per_stream == 0) throw Refusal(path + ": does not hold one whole line");
  return manifest;
}

}  // namespace daqwriter
