#include "report_json.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "hdr_encoding.h"
#include "reporting.h"
#include "status.h"
#include "verifier.h"

namespace daqwriter {

void require_writable_output(const std::string& option, const std::string& path) {
  if (path.empty() || path == "-") return;
  namespace fs = std::filesystem;
  const fs::path parent = fs::absolute(path).parent_path();
  if (!fs::is_directory(parent))
    throw Refusal(option + " " + path + ": the directory " + parent.string() + " does not exist");
  if (access(parent.c_str(), W_OK) != 0)
    throw Refusal(option + " " + path + ": " + parent.string() + ": " + errno_text(errno));
  if (fs::exists(path) && !fs::is_regular_file(path))
    throw Refusal(option + " " + path + ": not a regular file");
}

void check_reporting(const Reporting& reporting) {
  if (!(reporting.interval_s >= 0.01)) throw Refusal("--interval: give at least 0.01 seconds");
  require_writable_output("--json", reporting.json_path);
  require_writable_output("--line-protocol", reporting.line_protocol_path);
}

void write_json(const std::string& path, const nlohmann::ordered_json& document) {
  if (path.empty()) return;
  const std::string text = document.dump(2) + "\n";
  if (path == "-") {
    std::cout << text << std::flush;
    return;
  }
  constexpr mode_t kMode = 0644;
  const std::string temporary = path + ".tmp" + std::to_string(getpid());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
  if (fd < 0) throw Failure(temporary + ": " + errno_text(errno));
  const bool written =
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  const int error = errno;
  close(fd);
  if (written && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int cause = written ? errno : error;
  unlink(temporary.c_str());
  throw Failure(path + ": cannot be written: " + errno_text(cause));
}

nlohmann::ordered_json latency_json(const Histogram& nanoseconds, const std::string& definition) {
  constexpr double kNsPerUs = 1e3;
  const auto us = [&](double percent) {
    return static_cast<double>(nanoseconds.percentile(percent)) / kNsPerUs;
  };
  return {{"definition", definition},
          {"count", nanoseconds.count()},
          {"min", static_cast<double>(nanoseconds.min()) / kNsPerUs},
          {"mean", nanoseconds.mean() / kNsPerUs},
          {"p50", us(50)},
          {"p90", us(90)},
          {"p99", us(99)},
          {"p99_9", us(99.9)},
          {"p99_99", us(99.99)},
          {"max", static_cast<double>(nanoseconds.max()) / kNsPerUs},
          {"hdr_unit", "ns"},
          {"hdr", encode_hdr_v2(nanoseconds)}};
}

nlohmann::ordered_json counts_json(const VerifyCounts& counts) {
  return {{"expected", counts.expected},
          {"present", counts.present},
          {"missing", counts.missing},
          {"duplicated", counts.duplicated},
          {"out_of_order", counts.out_of_order},
          {"corrupt", counts.corrupt},
          {"torn", counts.torn},
          {"stale", counts.stale}};
}

}  // namespace daqwriter
