#include "report/report_json.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>

#include "base/clock.h"
#include "base/file_identity.h"
#include "base/hdr_encoding.h"
#include "base/status.h"
#include "base/worker_thread.h"
#include "format/option_bounds.h"
#include "report/reporting.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using Identities = std::vector<FileIdentity>;

bool meet(const Identities& one, const Identities& other) {
  return std::find_first_of(one.begin(), one.end(), other.begin(), other.end()) != one.end();
}

void require_apart(const std::string& result, const Identities& identities,
                   const std::vector<std::string>& used) {
  for (const std::string& path : used) {
    if (path.empty() || !meet(identities, all_that_is_in(path))) continue;
    throw Refusal(result + ": is, or lies in, " + path +
                  ", which the command itself reads or writes; give the results another file");
  }
}

void require_standard_output() {
  const int flags = fcntl(STDOUT_FILENO, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
    throw Refusal("--json -: standard output is closed; open it or name a file");
}

// Refuses a standard output or error that the shell has opened onto one of the `used` files.
void require_apart(int fd, const std::string& name, const std::vector<std::string>& used) {
  if (const auto identity = identity_of(fd)) require_apart(name, {*identity}, used);
}

// The message must not be written to the data either: then the exit code alone says it.
void require_standard_error_apart(const std::vector<std::string>& used) {
  try {
    require_apart(STDERR_FILENO, "standard error", used);
  } catch (const Refusal&) {
    close(STDERR_FILENO);
    throw;
  }
}

void require_usable_name(const std::string& option, const std::string& path) {
  const fs::file_status status = fs::symlink_status(path);
  if (fs::is_symlink(status) && !fs::exists(path))
    throw Refusal(option + " " + path + ": a dangling symbolic link; name the file itself");
  const fs::path parent = fs::absolute(path).parent_path();
  if (!fs::is_directory(parent))
    throw Refusal(option + " " + path + ": the directory " + parent.string() + " does not exist");
  if (access(parent.c_str(), W_OK) != 0)
    throw Refusal(option + " " + path + ": " + parent.string() + ": " + errno_text(errno));
  if (fs::exists(path) && !fs::is_regular_file(path))
    throw Refusal(option + " " + path + ": not a regular file");
}

// All of it, or Failure.
void write_all(int fd, const std::string& text, const std::string& name) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t put = write(fd, text.data() + done, text.size() - done);
    if (put > 0) {
      done += static_cast<std::size_t>(put);
    } else if (put < 0 && errno == EAGAIN) {
      pollfd room{fd, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (put == 0 || errno != EINTR) {
      throw Failure(name + ": cannot be written: " + errno_text(put < 0 ? errno : ENOSPC));
    }
  }
}

void sync(int fd, const std::string& name) {
  if (fsync(fd) != 0) throw Failure(name + ": cannot be written: " + errno_text(errno));
}

void write_standard_output(const std::string& text) {
  const std::string name = "--json -: standard output";
  write_all(STDOUT_FILENO, text, name);
  struct stat status {};
  if (fstat(STDOUT_FILENO, &status) == 0 && S_ISREG(status.st_mode)) sync(STDOUT_FILENO, name);
}

// A name that nobody can have foreseen, and that nobody else has.
std::string unused_name(const std::string& path) {
  std::random_device random;
  return path + ".tmp" + std::to_string(random()) + std::to_string(random());
}

// A file that is closed when the block ends.
struct OpenFile {
  explicit OpenFile(int opened) : fd(opened) {}
  ~OpenFile() {
    if (fd >= 0) close(fd);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd;
};

void replace_file(const std::string& path, const std::string& text) {
  constexpr mode_t kMode = 0644;
  const std::string temporary = unused_name(path);
  const OpenFile file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
  if (file.fd < 0) throw Failure(temporary + ": cannot be created: " + errno_text(errno));
  try {
    write_all(file.fd, text, path);
    sync(file.fd, path);
    if (std::rename(temporary.c_str(), path.c_str()) != 0)
      throw Failure(path + ": cannot be replaced: " + errno_text(errno));
  } catch (...) {
    if (leads_to(AT_FDCWD, temporary, file.fd)) unlink(temporary.c_str());
    throw;
  }
  const OpenFile directory(
      open(fs::absolute(path).parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.fd >= 0) sync(directory.fd, path);  // one that cannot be read cannot be synced either
}

}  // namespace

void require_writable_output(const std::string& option, const std::string& path,
                             const std::vector<std::string>& used) {
  require_standard_error_apart(used);
  if (path.empty()) return;
  if (path == "-") {
    require_standard_output();
    require_apart(STDOUT_FILENO, option + " -: standard output", used);
    return;
  }
  require_usable_name(option, path);
  require_apart(option + " " + path, all_that_holds(path), used);
}

void check_reporting(const Reporting& reporting, const std::vector<std::string>& used,
                     const CallLimits& limits) {
  require_within(bounds::kInterval, reporting.interval_s);
  const auto look = [reporting, used] {
    require_writable_output("--json", reporting.json_path, used);
    std::vector<std::string> others = used;
    if (reporting.json_path != "-") others.push_back(reporting.json_path);
    require_writable_output("--line-protocol", reporting.line_protocol_path, others);
  };
  limits.within((used.empty() || used.front().empty() ? reporting.json_path : used.front()) +
                    ": looking whether the results lie apart from it",
                look);
}

void check_target_tags(const Reporting& reporting, const std::vector<std::string>& targets) {
  if (targets.size() < 2 || reporting.line_protocol_path.empty()) return;
  const auto given = reporting.tags.find(kTargetTag);
  if (given != reporting.tags.end()) {
    throw Refusal("--tag " + given->first + "=" + given->second + ": with several targets daqwriter sets '" +
                  kTargetTag + "' itself; use another key");
  }
  for (const std::string& target : targets) {
    if (target.find('\n') == std::string::npos && target.back() != '\\') continue;
    throw Refusal("--line-protocol: the name of --target " + target +
                  " cannot be a tag, since it has a line break or ends in a backslash; leave it away");
  }
}

void write_json(const std::string& path, const nlohmann::ordered_json& document) {
  if (path.empty()) return;
  // Names of files may hold any byte.
  using Json = nlohmann::ordered_json;
  const std::string text = document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  path == "-" ? write_standard_output(text) : replace_file(path, text);
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

nlohmann::ordered_json errno_json(int target_errno) {
  if (target_errno == 0) return nullptr;
  return errno_name(target_errno);
}

nlohmann::ordered_json features_json(const std::vector<Feature>& features) {
  using Json = nlohmann::ordered_json;
  Json all = Json::array();
  for (const Feature& each : features) {
    all.push_back({{"name", each.name},
                   {"in_use", each.in_use},
                   {"reason", each.in_use ? Json(nullptr) : Json(each.reason)}});
  }
  return all;
}

}  // namespace daqwriter
