// Promise: one line-protocol record per call, escaped, with a nanosecond timestamp, appended with a single
// write() so that a reader that follows the file never sees half a line. A failing file costs its records,
// never the run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "report/output_path.h"

namespace daqwriter {

using Tags = std::map<std::string, std::string>;
using Fields = std::vector<std::pair<std::string, std::variant<std::uint64_t, double>>>;

// "key=value" arguments. Throws Refusal for a malformed, repeated or reserved (command, phase) key.
Tags parse_tags(const std::vector<std::string>& arguments);
std::string format_line(const Tags& tags, const Fields& fields, std::int64_t utc_nanoseconds);

class LineProtocol {
 public:
  LineProtocol(const OutputPath& path, Tags tags, const std::string& command);  // "": writes nothing

  // `more`: tags of this record only.
  void write(const std::string& phase, const Fields& fields, const Tags& more = {});
  std::uint64_t failed_records() const { return failed_; }

 private:
  Tags tags_;
  OutputPath path_;  // keeps fd_ open
  int fd_ = -1;
  std::uint64_t failed_ = 0;
};

}  // namespace daqwriter
