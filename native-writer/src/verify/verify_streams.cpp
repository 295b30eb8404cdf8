// Promise: reads the files of a streams run back with direct I/O and reports what the StreamVerifiers found.
// Writes nothing to the directory.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <memory>

#include "report/report_json.h"
#include "verify/read_back.h"
#include "verify/stream_verifier.h"

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
  explicit ReadBack(const std::shared_ptr<VerifyRun>& run) : run_(run) {}
  // The report when `given_up` is held in a call: its thread may still change all but the manifest.
  ReadBack(const ReadBack& given_up, const std::string& why)
      : run_(given_up.run_), manifest_(given_up.manifest_) {
    outcome_.fail(*run_, why);
  }

  // Throws Refusal when there is no run, Unanswered.
  void open() {
    const std::string directory = run_->options.target;
    const auto& sought = run_->options.sought;
    try {
      manifest_ = run_->limits.answer<Manifest>(named(kManifestName) + ": reading it",
                                                [directory] { return read_manifest(directory); });
    } catch (const Refusal& refusal) {
      if (!sought) throw;
      lose_run(*sought, FaultKind::incomplete, refusal.what());
      return;
    }
    if (!sought || manifest_.run.run_id == sought->id) return;
    lose_run(
        *sought, FaultKind::stale,
        "it is of run " + record_id_text(manifest_.run.run_id) + ", and not of run " +
            record_id_text(sought->id) +
            ", which the target lost or never had: make sure that --record-id names what was written here");
  }

  void run() {
    if (lost_) return;
    const VerifyOptions& options = run_->options;
    std::uint64_t all = 0;
    for (const ClosedFile& file : manifest_.files) all += file.bytes;
    try {
      lines_ = std::make_unique<LineProtocol>(options.line_protocol_path, options.tags, "verify");
      progress_ = std::make_unique<Progress>(options, *lines_, all, outcome_);
      room_ = run_->read_room();
      check_manifest();
      list_directory();
      for (std::uint32_t stream = 0; stream < manifest_.run.shares.size() && !stopped(); ++stream)
        verify_stream(stream);
    } catch (const std::exception& error) {
      if (dynamic_cast<const Unanswered*>(&error)) keep_until_exit(run_);
      outcome_.error = error.what();
    }
    if (progress_) progress_->speak();
    outcome_.interrupted = stopped();
    outcome_.findings.counts.sum_up();
    if (run_->options.sought && !manifest_.end && outcome_.error.empty() && !outcome_.interrupted)
      outcome_.add_lost(*run_->options.sought, 0, "no line of the manifest lists them", kManifestName);
    if (outcome_.findings.counts.expected == 0 && outcome_.findings.total == 0 && !outcome_.interrupted)
      outcome_.add(FaultKind::incomplete, 0, "the run holds no event: there is nothing to verify",
                   kManifestName);
  }

  const Outcome& outcome() const { return outcome_; }
  Json json() const;
  std::string text() const;

 private:
  struct StoredFile {
    std::string name;
    const ClosedFile* line = nullptr;
    bool present = false;
  };

  // The manifest does not tell what was sought, so that nothing beside it can be told from other data.
  void lose_run(const Sought& sought, FaultKind kind, const std::string& why) {
    lost_ = true;
    manifest_ = {};
    manifest_.run.run_id = sought.id;
    add(kind, kManifestName, 0, why);
    outcome_.add_lost(sought, 0, "without the run's manifest they cannot be told from other data",
                      kManifestName);
  }

  bool stopped() const { return run_->stop.asked(); }
  std::string named(const std::string& file) const {
    return (fs::path(run_->options.target) / file).string();
  }
  // Throws Unanswered.
  std::uint64_t size_of(const std::string& path) const {
    return run_->limits.answer<std::uint64_t>(path + ": asking for its size",
                                              [path] { return fs::file_size(path); });
  }

  void add(FaultKind kind, const std::string& file, std::uint64_t offset, const std::string& detail) {
    outcome_.add(kind, offset, detail, file);
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
    const auto list = [directory = run_->options.target] {
      Names all;
      for (const auto& entry : fs::directory_iterator(directory))
        all[entry.path().filename().string()] = entry.is_regular_file();
      return all;
    };
    Names names = run_->limits.answer<Names>(run_->options.target + ": listing it", list);
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
    StreamVerifier verifier(manifest_, stream, outcome_.findings, unvouched_);
    for (auto file = files_.lower_bound({stream, 0}); file != files_.end() && file->first.first == stream;
         ++file) {
      if (!file->second.present) continue;
      verifier.begin_file(file->second.name, file->second.line);
      read_file(named(file->second.name), verifier);
      if (stopped()) return;
      if (verifier.end_file()) ++counts_.intact;
    }
    verifier.finish();
  }

  void read_file(const std::string& path, StreamVerifier& verifier) {
    const OpenFile fd = run_->limits.answer<OpenFile>(path + ": opening it",
                                                      [path] { return open_for_direct_reading(path); });
    BlockReader::Config config = run_->reads_of(fd, path);
    config.end = size_of(path);
    BlockReader reader(config, room_);
    read_through(reader, run_->stop, *progress_, verifier);
  }

  const std::shared_ptr<VerifyRun> run_;
  Manifest manifest_;
  std::unique_ptr<LineProtocol> lines_;
  std::unique_ptr<Progress> progress_;
  std::shared_ptr<ReadRoom> room_;
  std::map<Key, StoredFile> files_;
  FileCounts counts_;
  bool lost_ = false;            // there is no manifest of the run that was sought
  std::uint64_t unvouched_ = 0;  // events
  Outcome outcome_;
};

Json ReadBack::json() const {
  return result_json(outcome_,
                     {{"run_id", record_id_text(manifest_.run.run_id)},
                      {"closed", manifest_.end.has_value()},
                      {"sealed", manifest_.sealed},
                      {"end_status", manifest_.end ? Json(manifest_.end->status) : Json(nullptr)},
                      {"files",
                       {{"listed", manifest_.files.size()},
                        {"intact", counts_.intact},
                        {"missing", counts_.missing},
                        {"unlisted", counts_.unlisted}}},
                      {"events", counts_json(outcome_.findings.counts)},
                      {"unvouched_events", unvouched_},
                      {"fault_count", outcome_.findings.total}},
                     {.origin = "stream", .number = "serial", .file = true});
}

std::string ReadBack::text() const {
  return summary(outcome_, "events present once and intact in " + std::to_string(manifest_.files.size()) +
                               " closed files of " + run_->options.target + ", run " +
                               (manifest_.end ? "closed" : "not closed") +
                               (manifest_.seals ? "" : ", manifest not sealed (older format)"));
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
  std::cerr << read_back->text();
  return read_back->outcome().exit_code();
}

}  // namespace daqwriter
