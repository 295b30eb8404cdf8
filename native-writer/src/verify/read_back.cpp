#include "verify/read_back.h"

#include <algorithm>

#include "base/units.h"
#include "io/aio_engine.h"
#include "report/report_json.h"

namespace daqwriter {

using Json = nlohmann::ordered_json;

void VerifyRun::watched(std::function<void()> work) {
  const auto given_up = [this] {
    const Requests* requests = watch.held(stop, to_ns(options.stall_limit_s));
    return requests ? requests->error().text : std::string();
  };
  call_until(given_up, std::move(work));
}

BlockReader::Config VerifyRun::reads_of(int fd, const std::string& target) {
  BlockReader::Config config;
  config.fd = fd;
  config.target = target;
  config.stall_ns = to_ns(options.stall_limit_s);
  config.stop = &stop;
  config.watch = &watch;
  return config;
}

std::shared_ptr<ReadRoom> VerifyRun::read_room() {
  const BlockReader::Config usual;
  return std::make_shared<ReadRoom>(usual.depth, usual.block_bytes, std::make_unique<AioEngine>(usual.depth));
}

void Outcome::add(FaultKind kind, std::uint64_t offset, const std::string& detail, const std::string& file) {
  findings.add({kind, offset, std::nullopt, std::nullopt, detail, file}, 0);
}

void Outcome::add_lost(const Sought& sought, std::uint64_t offset, const std::string& why,
                       const std::string& file) {
  VerifyCounts& counts = findings.counts;
  const std::uint64_t stored = sought.superchunks.value_or(0);
  if (counts.expected >= stored) return;
  const std::uint64_t lost = stored - counts.expected;
  findings.add(
      {FaultKind::missing, offset, std::nullopt, std::nullopt,
       std::to_string(lost) + " of the " + std::to_string(stored) + " that the writer stored: " + why, file},
      lost);
  counts.sum_up();
}

void Outcome::fail(const VerifyRun& run, const std::string& why, int errno_of_target) {
  interrupted = run.stop.asked();
  error = why;
  target_errno = errno_of_target;
}

const char* Outcome::status() const {
  if (interrupted) return "interrupted";
  if (!error.empty()) return "failed";
  return findings.total > 0 ? "damaged" : "intact";
}

ExitCode Outcome::exit_code() const {
  if (interrupted) return ExitCode::interrupted;
  if (!error.empty()) return ExitCode::failed;
  return findings.total > 0 ? ExitCode::damaged : ExitCode::complete;
}

Progress::Progress(const VerifyOptions& options, LineProtocol& lines, std::uint64_t all, Outcome& outcome)
    : lines_(lines),
      all_(all),
      outcome_(outcome),
      interval_ns_(to_ns(options.interval_s)),
      next_ns_(start_ns_ + interval_ns_) {}

void Progress::read(std::uint64_t bytes) {
  outcome_.bytes_read += bytes;
  if (monotonic_ns() < next_ns_) return;
  speak();
  next_ns_ += interval_ns_;
}

void Progress::speak() {
  outcome_.duration_ns = monotonic_ns() - start_ns_;
  const double elapsed_s = seconds(outcome_.duration_ns);
  const double share = all_ > 0 ? static_cast<double>(outcome_.bytes_read) / static_cast<double>(all_) : 1;
  lines_.write("verify", {{"read_bytes", outcome_.bytes_read},
                          {"elapsed_s", elapsed_s},
                          {"total_s", share > 0 ? elapsed_s / std::min(share, 1.0) : elapsed_s}});
}

Json counts_json(const VerifyCounts& counts) {
  return {{"expected", counts.expected},
          {"present", counts.present},
          {"missing", counts.missing},
          {"duplicated", counts.duplicated},
          {"out_of_order", counts.out_of_order},
          {"corrupt", counts.corrupt},
          {"torn", counts.torn},
          {"stale", counts.stale}};
}

Json result_json(const Outcome& o, const Json& own, const FaultNames& names) {
  Json faults = Json::array();
  for (const Fault& fault : o.findings.faults) {
    Json one = {{"kind", fault_kind_name(fault.kind)}};
    if (names.file) one["file"] = fault.file;
    one["offset_bytes"] = fault.offset_bytes;
    one[names.origin] = or_null(fault.origin);
    one[names.number] = or_null(fault.number);
    one["detail"] = fault.detail;
    faults.push_back(std::move(one));
  }
  Json all = document_json("daqwriter", "verify", DAQWRITER_VERSION);
  all.update({{"status", o.status()}, {"error", or_null(o.error)}, {"errno", errno_json(o.target_errno)}});
  all.update(own);
  all.update({{"faults", std::move(faults)},
              {"bytes_read", o.bytes_read},
              {"duration_s", seconds(o.duration_ns)},
              {"read_bytes_per_s",
               o.duration_ns > 0 ? static_cast<double>(o.bytes_read) / seconds(o.duration_ns) : 0.0}});
  return all;
}

std::string summary(const Outcome& o, const std::string& subject) {
  constexpr std::size_t kMostFaults = 5;
  const VerifyCounts& counts = o.findings.counts;
  std::string text = std::string("verify ") + o.status() + ": " + std::to_string(counts.present) + " of " +
                     std::to_string(counts.expected) + " " + subject + "; read " + format_gb(o.bytes_read) +
                     " in " + format_number(seconds(o.duration_ns), 4) + " s\n";
  if (!o.error.empty()) text += "error: " + o.error + "\n";
  for (std::size_t i = 0; i < std::min(o.findings.faults.size(), kMostFaults); ++i) {
    const Fault& fault = o.findings.faults[i];
    text += "  " + fault_kind_name(fault.kind) + (fault.file.empty() ? "" : " in " + fault.file) +
            " at offset " + std::to_string(fault.offset_bytes) + ": " + fault.detail + "\n";
  }
  return text;
}

}  // namespace daqwriter
