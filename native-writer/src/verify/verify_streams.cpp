// Promise: reads the files of a streams run back with direct I/O and reports what the StreamVerifiers found.
// Writes nothing to the directory.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/clock.h"
#include "base/units.h"
#include "base/worker_thread.h"
#include "io/block_reader.h"
#include "report/report_json.h"
#include "verify/stream_verifier.h"
#include "verify/verify_command.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct FileCounts {
  std::uint64_t intact = 0;
  std::uint64_t missing = 0;
  std::uint64_t unlisted = 0;
};

// One read-back of a directory.
class ReadBack {
 public:
  explicit ReadBack(const std::shared_ptr<VerifyRun>& run)
      : run_(run), options_(run->options), stop_(run->stop) {}
  // The report when `given_up` is held in a call: its thread may still change all but the manifest.
  ReadBack(const ReadBack& given_up, const std::string& why)
      : run_(given_up.run_),
        options_(given_up.options_),
        stop_(given_up.stop_),
        manifest_(given_up.manifest_),
        error_(why) {}

  // Throws Refusal when there is no run, Unanswered.
  void open() {
    const std::string directory = options_.target;
    manifest_ = run_->answer<Manifest>(named(kManifestName) + ": reading it",
                                       [directory] { return read_manifest(directory); });
  }

  void run() {
    start_ns_ = monotonic_ns();
    next_report_ns_ = start_ns_ + to_ns(options_.interval_s);
    try {
      lines_ = std::make_unique<LineProtocol>(options_.line_protocol_path, options_.tags, "verify");
      room_ = read_room(run_->watch);
      check_manifest();
      list_directory();
      for (std::uint32_t stream = 0; stream < manifest_.run.shares.size() && !stopped(); ++stream)
        verify_stream(stream);
    } catch (const Unanswered& error) {
      keep_until_exit(run_);
      error_ = error.what();
    } catch (const std::exception& error) {
      error_ = error.what();
    }
    report();
    findings_.events.sum_up();
    if (findings_.events.expected == 0 && findings_.total == 0 && !stopped())
      add(FaultKind::incomplete, kManifestName, 0, "the run holds no event: there is nothing to verify");
  }

  std::string status() const {
    if (stopped()) return "interrupted";
    if (!error_.empty()) return "failed";
    return findings_.total > 0 ? "damaged" : "intact";
  }

  Json json() const;
  std::string summary() const;

 private:
  struct StoredFile {
    std::string name;
    const ClosedFile* line = nullptr;
    bool present = false;
  };

  bool stopped() const { return stop_.asked(); }
  std::string named(const std::string& file) const { return (fs::path(options_.target) / file).string(); }
  // Throws Unanswered.
  std::uint64_t size_of(const std::string& path) const {
    return run_->answer<std::uint64_t>(path + ": asking for its size",
                                       [path] { return fs::file_size(path); });
  }

  void add(FaultKind kind, const std::string& file, std::uint64_t offset, const std::string& detail) {
    findings_.add({kind, file, offset, std::nullopt, std::nullopt, detail}, 0);
  }

  void check_manifest() {
    for (const auto& [offset, text] : manifest_.bad_lines)
      add(FaultKind::corrupt, kManifestName, offset, "not a line of a manifest: " + text);
    if (!manifest_.end) {
      add(FaultKind::incomplete, kManifestName, size_of(named(kManifestName)),
          "no last line: the run was not closed");
    } else if (manifest_.seals && !manifest_.sealed && manifest_.bad_lines.empty()) {
      add(FaultKind::incomplete, kManifestName, size_of(named(kManifestName)),
          "no seal behind the line that ends the run: its lines cannot be trusted");
    }
    for (const ClosedFile& file : manifest_.files) {
      StoredFile& stored = files_[{file.stream, file.number}];
      if (stored.line) add(FaultKind::duplicated, kManifestName, 0, file.name + " is listed twice");
      if (file.run_id != manifest_.run.run_id)
        add(FaultKind::stale, kManifestName, 0,
            file.name + " is listed for run " + record_id_text(file.run_id));
      stored = {file.name, &file, false};
    }
  }

  void list_directory() {
    using Names = std::map<std::string, bool>;  // and whether it is a regular file
    const auto list = [directory = options_.target] {
      Names all;
      for (const auto& entry : fs::directory_iterator(directory))
        all[entry.path().filename().string()] = entry.is_regular_file();
      return all;
    };
    Names names = run_->answer<Names>(options_.target + ": listing it", list);
    names.erase(kManifestName);
    for (const auto& [name, regular] : names) {
      const auto key = regular ? stream_and_number(name) : std::nullopt;
      if (!key) {
        add(FaultKind::stale, name, 0, "not a file of this run");
        continue;
      }
      StoredFile& stored = files_[*key];
      stored.name = name;
      stored.present = true;
      stored.line ? ++counts_.intact : ++counts_.unlisted;
    }
    counts_.missing = manifest_.files.size() - counts_.intact;
    counts_.intact = 0;
  }

  using Key = std::pair<std::uint32_t, std::uint64_t>;

  std::optional<Key> stream_and_number(const std::string& name) const {
    const std::string beginning = manifest_.prefix + ".";
    if (!name.starts_with(beginning)) return std::nullopt;
    Key key;
    const char* const end = name.data() + name.size();
    const auto stream = std::from_chars(name.data() + beginning.size(), end, key.first);
    if (stream.ptr == end) return std::nullopt;
    std::from_chars(stream.ptr + 1, end, key.second);
    const bool same = stream_file_name(manifest_.prefix, key.first, key.second) == name;
    return same && key.first < manifest_.run.shares.size() ? std::optional(key) : std::nullopt;
  }

  void verify_stream(std::uint32_t stream) {
    StreamVerifier verifier(manifest_, stream, findings_);
    for (auto file = files_.lower_bound({stream, 0}); file != files_.end() && file->first.first == stream;
         ++file) {
      if (!file->second.present) continue;
      verifier.begin_file(file->second.name, file->second.line);
      read_through(named(file->second.name), verifier);
      if (stopped()) return;
      if (verifier.end_file()) ++counts_.intact;
    }
    verifier.finish();
  }

  void read_through(const std::string& path, StreamVerifier& verifier) {
    const int fd = run_->answer<int>(path + ": opening it", [path] { return open_for_direct_reading(path); });
    try {
      BlockReader::Config config = reads_of(options_, stop_, fd, path);
      config.end = size_of(path);
      BlockReader reader(config, room_);
      bool more = true;
      for (auto data = reader.next(); more && !data.empty(); data = more ? reader.next() : data) {
        bytes_read_ += data.size();
        if (monotonic_ns() >= next_report_ns_) report();
        more = verifier.feed(data) && !stopped();
      }
    } catch (...) {
      close(fd);
      throw;
    }
    close(fd);
  }

  // When the read-back will end is estimated by its pace.
  void report() {
    duration_ns_ = monotonic_ns() - start_ns_;
    next_report_ns_ += to_ns(options_.interval_s);
    std::uint64_t all = 0;
    for (const ClosedFile& file : manifest_.files) all += file.bytes;
    const double elapsed_s = seconds(duration_ns_);
    const double share = all > 0 ? static_cast<double>(bytes_read_) / static_cast<double>(all) : 1;
    if (!lines_) return;
    lines_->write("verify", {{"read_bytes", bytes_read_},
                             {"elapsed_s", elapsed_s},
                             {"total_s", share > 0 ? elapsed_s / std::min(share, 1.0) : elapsed_s}});
  }

  const std::shared_ptr<VerifyRun> run_;
  const VerifyOptions& options_;
  const StopClock& stop_;
  Manifest manifest_;
  std::unique_ptr<LineProtocol> lines_;
  std::shared_ptr<ReadRoom> room_;
  std::map<Key, StoredFile> files_;
  StreamFindings findings_;
  FileCounts counts_;
  std::uint64_t bytes_read_ = 0;
  std::int64_t start_ns_ = 0;
  std::int64_t next_report_ns_ = 0;
  std::int64_t duration_ns_ = 0;
  std::string error_;
};

Json ReadBack::json() const {
  Json faults = Json::array();
  for (const StreamFault& fault : findings_.faults) {
    faults.push_back({{"kind", fault_kind_name(fault.kind)},
                      {"file", fault.file},
                      {"offset_bytes", fault.offset_bytes},
                      {"stream", fault.stream ? Json(*fault.stream) : Json(nullptr)},
                      {"serial", fault.serial ? Json(*fault.serial) : Json(nullptr)},
                      {"detail", fault.detail}});
  }
  return {{"schema_version", 1},
          {"tool", "daqwriter"},
          {"command", "verify"},
          {"version", DAQWRITER_VERSION},
          {"status", status()},
          {"error", error_.empty() ? Json(nullptr) : Json(error_)},
          {"run_id", record_id_text(manifest_.run.run_id)},
          {"closed", manifest_.end.has_value()},
          {"sealed", manifest_.sealed},
          {"end_status", manifest_.end ? Json(manifest_.end->status) : Json(nullptr)},
          {"files",
           {{"listed", manifest_.files.size()},
            {"intact", counts_.intact},
            {"missing", counts_.missing},
            {"unlisted", counts_.unlisted}}},
          {"events", counts_json(findings_.events)},
          {"unvouched_events", findings_.unvouched_events},
          {"fault_count", findings_.total},
          {"faults", faults},
          {"bytes_read", bytes_read_},
          {"duration_s", seconds(duration_ns_)},
          {"read_bytes_per_s",
           duration_ns_ > 0 ? static_cast<double>(bytes_read_) / seconds(duration_ns_) : 0.0}};
}

std::string ReadBack::summary() const {
  std::string text = "verify " + status() + ": " + std::to_string(findings_.events.present) + " of " +
                     std::to_string(findings_.events.expected) + " events present once and intact in " +
                     std::to_string(manifest_.files.size()) + " closed files of " + options_.target +
                     ", run " + (manifest_.end ? "closed" : "not closed") +
                     (manifest_.seals ? "" : ", manifest not sealed (older format)") + "; read " +
                     format_gb(static_cast<double>(bytes_read_)) + " in " +
                     format_number(seconds(duration_ns_), 4) + " s\n";
  if (!error_.empty()) text += "error: " + error_ + "\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(findings_.faults.size(), 5); ++i) {
    const StreamFault& fault = findings_.faults[i];
    text += "  " + fault_kind_name(fault.kind) + " in " + fault.file + " at offset " +
            std::to_string(fault.offset_bytes) + ": " + fault.detail + "\n";
  }
  return text;
}

}  // namespace

ExitCode verify_streams(const std::shared_ptr<VerifyRun>& run) {
  auto read_back = std::make_shared<ReadBack>(run);
  try {
    read_back->open();
    run->watched([read_back] { read_back->run(); });
  } catch (const Unanswered& failure) {
    keep_until_exit(run);
    read_back = std::make_shared<ReadBack>(*read_back, failure.what());
  }
  write_json(run->options.json_path, read_back->json());
  std::cerr << read_back->summary();
  const std::string status = read_back->status();
  if (status == "failed") return ExitCode::failed;
  if (status == "interrupted") return ExitCode::interrupted;
  return status == "intact" ? ExitCode::complete : ExitCode::damaged;
}

}  // namespace daqwriter
