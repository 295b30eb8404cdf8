#include "format/stream_manifest.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "base/status.h"

namespace daqwriter {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kFormat = "daqwriter streams";
constexpr int kUnsealedVersion = 1;
constexpr int kManifestVersion = 2;  // ends with a seal
constexpr std::size_t kMaxLineBytes = 64 << 10;
constexpr std::size_t kMostBadLines = 1000;  // what begins so badly is not read to its end
constexpr std::size_t kMaxNameBytes = 255;   // of a prefix: a file's name must fit a directory

Json run_json(const RunParameters& run, const std::string& prefix) {
  return {{"format", kFormat},
          {"version", kManifestVersion},
          {"run_id", record_id_text(run.run_id)},
          {"seed", run.seed},
          {"shares", run.shares},
          {"event_bytes", run.event_bytes},
          {"event_spread", run.event_spread},
          {"slots_per_stream", run.slots_per_stream},
          {"prefix", prefix}};
}

// Foreign text in a message: printable ASCII, not more than a line of it.
std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 300;
  std::string shown;
  for (const char c : text.substr(0, kMost)) {
    const bool plain = c >= ' ' && c <= '~';
    const auto byte = static_cast<unsigned char>(c);
    shown += plain ? std::string(1, c)
                   : std::string("\\x") + "0123456789abcdef"[byte >> 4] + "0123456789abcdef"[byte & 0xf];
  }
  return shown + (text.size() > kMost ? "..." : "");
}

[[noreturn]] void wrong(const std::string& what) {
  throw std::invalid_argument(what);
}

// One JSON object of simple values and lists of them, no name twice.
Json parse_object(const std::string& text) {
  constexpr int kDeepest = 2;
  std::set<std::string> names;
  const auto look = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kDeepest) wrong("values are nested deeper than in any line of a manifest");
    if (event != Json::parse_event_t::key) return true;
    if (!names.insert(value.get<std::string>()).second)
      wrong("'" + value.get<std::string>() + "' stands there twice");
    return true;
  };
  const Json line = Json::parse(text, look);
  if (!line.is_object()) wrong("is not a JSON object");
  return line;
}

const Json& field(const Json& line, const char* name) {
  const auto found = line.find(name);
  if (found == line.end()) wrong("'" + std::string(name) + "' is not there");
  return *found;
}

std::string shown_json(const Json& value) {
  constexpr std::size_t kMost = 40;
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

std::uint64_t count_field(const Json& value, const char* name, std::uint64_t least, std::uint64_t most) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() >= least && value.get<std::uint64_t>() <= most)
    return value;
  wrong("'" + std::string(name) + "' is " + shown_json(value) + ", not an integer from " +
        std::to_string(least) + " to " + std::to_string(most));
}

std::uint64_t count(const Json& line, const char* name, std::uint64_t least = 0,
                    std::uint64_t most = kMaxCount) {
  return count_field(field(line, name), name, least, most);
}

double share_field(const Json& value, const char* name) {
  if (value.is_number() && value.get<double>() >= 0 && value.get<double>() <= 1) return value;
  wrong("'" + std::string(name) + "' is " + shown_json(value) + ", not a number from 0 to 1");
}

std::string text(const Json& line, const char* name) {
  const Json& value = field(line, name);
  if (value.is_string()) return value;
  wrong("'" + std::string(name) + "' is " + shown_json(value) + ", not a text");
}

RecordId id(const Json& line) {
  try {
    return parse_record_id(text(line, "run_id"));
  } catch (const Refusal&) {
    wrong("'run_id' is " + shown_json(line.at("run_id")) + ", not 32 lower-case hexadecimal digits");
  }
}

std::uint32_t checksum_field(const Json& line, const char* name) {
  const std::string digits = text(line, name);
  const bool good = digits.size() == 8 && digits.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (good) return static_cast<std::uint32_t>(std::stoul(digits, nullptr, 16));
  wrong("'" + std::string(name) + "' is " + shown_json(line.at(name)) +
        ", not 8 lower-case hexadecimal digits");
}

template <typename Value, typename Read>
std::vector<Value> list(const Json& line, const char* name, std::size_t most, const Read& read) {
  const Json& values = field(line, name);
  if (!values.is_array() || values.empty() || values.size() > most)
    wrong("'" + std::string(name) + "' is not a list of 1 to " + std::to_string(most) + " values");
  std::vector<Value> all;
  for (const Json& value : values) all.push_back(read(value, name));
  return all;
}

void parse_run(const Json& line, Manifest& manifest) {
  if (text(line, "format") != kFormat) wrong("'format' is not '" + std::string(kFormat) + "'");
  manifest.seals = count(line, "version", kUnsealedVersion, kManifestVersion) == kManifestVersion;
  manifest.prefix = text(line, "prefix");
  if (manifest.prefix.empty() || manifest.prefix.size() > kMaxNameBytes ||
      manifest.prefix.find('/') != std::string::npos)
    wrong("'prefix' is not the beginning of a file name");
  manifest.run = {id(line),
                  count(line, "seed", 0, UINT64_MAX),
                  list<double>(line, "shares", kMostStreams, share_field),
                  static_cast<std::uint32_t>(count(line, "event_bytes", kMinEventBytes, kMaxEventBytes)),
                  share_field(field(line, "event_spread"), "event_spread"),
                  count(line, "slots_per_stream", 1)};
}

const ClosedFile* last_of(std::uint32_t stream, const std::vector<ClosedFile>& files) {
  const auto last = std::find_if(files.rbegin(), files.rend(),
                                 [&](const ClosedFile& file) { return file.stream == stream; });
  return last == files.rend() ? nullptr : &*last;
}

// Why a file cannot follow on those listed before it; empty if it can.
std::string order_fault(const ClosedFile& file, const std::vector<ClosedFile>& files) {
  const ClosedFile* const before = last_of(file.stream, files);
  const std::uint64_t number = before ? before->number + 1 : 0;
  const std::uint64_t serial = before ? before->last_serial + 1 : 0;
  if (file.number != number)
    return "'number' is " + std::to_string(file.number) + ", the next of the stream is " +
           std::to_string(number);
  if (file.first_serial != serial)
    return "'first_serial' is " + std::to_string(file.first_serial) + ", the next of the stream is " +
           std::to_string(serial);
  if (!files.empty() && files.front().adler32.has_value() != file.adler32.has_value())
    return "'adler32' is null here and not in other lines, or the other way round";
  return {};
}

ClosedFile parse_file(const Json& line, const Manifest& manifest) {
  ClosedFile file;
  file.stream = static_cast<std::uint32_t>(count(line, "stream", 0, manifest.run.shares.size() - 1));
  file.number = count(line, "number");
  file.name = text(line, "file");
  file.events = count(line, "events", 1);
  file.first_serial = count(line, "first_serial");
  file.last_serial = count(line, "last_serial", file.first_serial);
  file.bytes = count(line, "bytes", file.events * sizeof(EventHeader), kMaxRecordBytes);
  if (!field(line, "adler32").is_null()) file.adler32 = checksum_field(line, "adler32");
  file.run_id = id(line);
  if (file.name != stream_file_name(manifest.prefix, file.stream, file.number))
    wrong("'file' is " + shown_json(line.at("file")) + ", not the name of that stream and number");
  if (file.last_serial - file.first_serial + 1 != file.events)
    wrong("'events' is " + std::to_string(file.events) + ", its serials are " +
          std::to_string(file.first_serial) + " to " + std::to_string(file.last_serial));
  return file;
}

RunEnd parse_end(const Json& line) {
  const auto events = [](const Json& value, const char* name) {
    return count_field(value, name, 0, kMaxCount);
  };
  const RunEnd end{text(line, "end"), list<std::uint64_t>(line, "events", kMostStreams, events)};
  if (end.status == "complete" || end.status == "interrupted") return end;
  wrong("'end' is " + shown_json(line.at("end")) + ", not \"complete\" or \"interrupted\"");
}

void check_end(const RunEnd& end, const std::vector<ClosedFile>& files) {
  for (std::uint32_t stream = 0; stream < end.events.size(); ++stream) {
    const ClosedFile* const last = last_of(stream, files);
    const std::uint64_t listed = last ? last->last_serial + 1 : 0;
    if (end.events[stream] != listed)
      wrong("'events' of stream " + std::to_string(stream) + " is " + std::to_string(end.events[stream]) +
            ", the lines of its files end at " + std::to_string(listed));
  }
}

// Parses one line behind the first. A listed file counts even if it contradicts other lines: verify then
// looks for it.
void parse_line(const std::string& content, std::uint32_t crc_before, Manifest& manifest) {
  const Json line = parse_object(content);
  const bool after_seal = manifest.sealed;
  manifest.sealed = false;
  if (after_seal) wrong("stands behind the seal");
  if (line.contains("crc32")) {
    if (!manifest.end) wrong("a seal, and no line before it that ends the run");
    const std::uint32_t seal = checksum_field(line, "crc32");
    if (seal != crc_before)
      wrong("'crc32' is " + adler_text(seal) + ", of the lines before it " + adler_text(crc_before));
    manifest.sealed = true;
    return;
  }
  const bool after_end = manifest.end.has_value();
  if (line.contains("end")) {
    const RunEnd end = parse_end(line);
    if (after_end) wrong("a second end");
    if (end.events.size() != manifest.run.shares.size())
      wrong("'events' counts other streams than the run has");
    manifest.end = end;
    return check_end(end, manifest.files);
  }
  const ClosedFile file = parse_file(line, manifest);
  const std::string fault = order_fault(file, manifest.files);
  manifest.files.push_back(file);
  if (after_end) wrong("a file behind the line that ends the run");
  if (!fault.empty()) wrong(fault);
}

// Up to the end of the line; false at the end of the file, also before an unfinished line. A line that is too
// long is cut off and its rest skipped.
bool next_line(std::istream& in, std::string& line, std::uint64_t& bytes, std::uint32_t& crc) {
  line.clear();
  bytes = 0;
  for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
    const auto byte = static_cast<char>(c);
    crc = libdeflate_crc32(crc, &byte, 1);
    ++bytes;
    if (byte == '\n') return true;
    if (line.size() <= kMaxLineBytes) line += byte;
  }
  return false;
}

}  // namespace

std::string adler_text(std::uint32_t adler32) {
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", adler32);
  return text.data();
}

ManifestWriter::ManifestWriter(const std::string& directory, const RunParameters& run,
                               const std::string& prefix)
    : path_(directory + "/" + kManifestName),
      directory_(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  constexpr mode_t kMode = 0644;
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, kMode);
  if (file_ < 0) throw Failure(path_ + ": cannot be created: " + errno_text(errno));
  append(run_json(run, prefix).dump());
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
  append(Json({{"crc32", adler_text(crc_)}}).dump());
}

void ManifestWriter::append(const std::string& line) {
  const std::lock_guard lock(mutex_);
  const std::string text = line + "\n";
  // The directory first: the name of the file that this line vouches for has to last as well.
  const bool good = fsync(directory_) == 0 &&
                    write(file_, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                    fsync(file_) == 0;
  if (!good) throw Failure(path_ + ": cannot be appended to: " + errno_text(errno), errno);
  crc_ = libdeflate_crc32(crc_, text.data(), text.size());
}

Manifest read_manifest(std::istream& in, const std::string& name) {
  Manifest manifest;
  std::string line;
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
  for (std::uint32_t before = 0; next_line(in, line, bytes, crc); begin += bytes, before = crc) {
    try {
      if (line.size() > kMaxLineBytes) wrong("is longer than " + std::to_string(kMaxLineBytes) + " bytes");
      if (begin == 0) {
        parse_run(parse_object(line), manifest);
      } else {
        parse_line(line, before, manifest);
      }
    } catch (const std::exception& error) {
      const std::string text = quoted(error.what());
      if (begin == 0) throw Refusal(name + ": does not begin with the parameters of a streams run: " + text);
      manifest.bad_lines.push_back({begin, text});
      if (manifest.bad_lines.size() == kMostBadLines) break;
    }
  }
  if (manifest.sealed && bytes > 0) {
    manifest.sealed = false;
    manifest.bad_lines.push_back(
        {begin, std::to_string(bytes) + " bytes without a line's end stand behind the seal"});
  }
  if (manifest.run.slots_per_stream == 0) throw Refusal(name + ": does not hold one whole line");
  return manifest;
}

Manifest read_manifest(const std::string& directory) {
  const std::string path = directory + "/" + kManifestName;
  std::error_code missing;  // opening anything but a file could wait for ever
  std::ifstream in(std::filesystem::is_regular_file(path, missing) ? path : "");
  if (!in.is_open())
    throw Refusal("--target " + directory + ": a directory without a readable " + kManifestName);
  return read_manifest(in, path);
}

}  // namespace daqwriter
