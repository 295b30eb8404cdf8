#include "report/line_protocol.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/units.h"

namespace daqwriter {
namespace {

constexpr const char* kMeasurement = "daqwriter";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == ',' || c == ' ' || c == '=') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

Tags parse_tags(const std::vector<std::string>& arguments) {
  Tags tags;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == argument.size() ||
        argument.find('\n') != std::string::npos || argument[equals - 1] == '\\' || argument.back() == '\\') {
      throw Refusal("--tag '" + argument +
                    "': write key=value, both non-empty, on one line, neither ending in a backslash");
    }
    const std::string key = argument.substr(0, equals);
    if (key == "command" || key == "phase")
      throw Refusal("--tag " + argument + ": daqwriter sets '" + key + "' itself");
    if (!tags.emplace(key, argument.substr(equals + 1)).second)
      throw Refusal("--tag " + argument + ": key given twice");
  }
  return tags;
}

std::string format_line(const Tags& tags, const Fields& fields, std::int64_t utc_nanoseconds) {
  constexpr int kDigits = 17;
  std::string line = kMeasurement;
  for (const auto& [key, value] : tags) line += "," + escaped(key) + "=" + escaped(value);
  char separator = ' ';
  for (const auto& [key, value] : fields) {
    line += separator + escaped(key) + "=";
    if (const auto* integer = std::get_if<std::uint64_t>(&value)) {
      line += std::to_string(*integer) + "i";
    } else {
      line += format_number(std::get<double>(value), kDigits);
    }
    separator = ',';
  }
  return line + " " + std::to_string(utc_nanoseconds) + "\n";
}

LineProtocol::LineProtocol(const OutputPath& path, Tags tags, const std::string& command)
    : tags_(std::move(tags)), path_(path), fd_(path.empty() ? -1 : path.appending()) {
  tags_["command"] = command;
}

void LineProtocol::write(const std::string& phase, const Fields& fields, const Tags& more) {
  if (fd_ < 0) return;
  Tags tags = tags_;
  tags["phase"] = phase;
  tags.insert(more.begin(), more.end());
  const std::string line = format_line(tags, fields, utc_ns());
  if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) ++failed_;
}

}  // namespace daqwriter
