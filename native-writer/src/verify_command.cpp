#include "verify_command.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <memory>

#include "aio_engine.h"
#include "block_reader.h"
#include "cli.h"
#include "clock.h"
#include "memory.h"
#include "report_json.h"
#include "units.h"
#include "verifier.h"

namespace daqwriter {
namespace {

using Json = nlohmann::ordered_json;

struct Outcome {
  std::string status = "intact";
  std::string error;
  RecordHeader record;
  std::optional<RecordTrailer> trailer;
  VerifyCounts counts;
  std::vector<Fault> faults;
  std::uint64_t bytes_read = 0;
  std::int64_t duration_ns = 0;
};

// The record's file or device, opened for direct reading.
class Source {
 public:
  Source(const std::string& path, std::uint64_t base)
      : path_(path), base_(base), block_(kBlockAlignment, std::nullopt) {
    if (base % kBlockAlignment != 0)
      throw Refusal("--offset " + std::to_string(base) + ": give a multiple of 4096 bytes");
    fd_ = open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd_ < 0)
      throw Refusal("--target " + path + ": cannot be opened for direct reading: " + errno_text(errno));
    struct stat status {};
    const bool known = fstat(fd_, &status) == 0;
    if (known && S_ISREG(status.st_mode)) {
      bytes_ = static_cast<std::uint64_t>(status.st_size);
      regular_ = true;
    } else if (!known || !S_ISBLK(status.st_mode) || ioctl(fd_, BLKGETSIZE64, &bytes_) != 0) {
      close(fd_);
      throw Refusal("--target " + path + ": neither a file nor a block device");
    }
    bytes_ -= std::min(bytes_, base);
  }
  ~Source() { close(fd_); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  int fd() const { return fd_; }
  std::uint64_t base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }  // from the base on
  bool regular() const { return regular_; }

  // One aligned block; empty when it lies beyond the end.
  std::span<const std::byte> block(std::uint64_t offset) {
    if (offset + kBlockAlignment > bytes_) return {};
    const ssize_t got = pread(fd_, block_.data(), kBlockAlignment, static_cast<off_t>(base_ + offset));
    if (got == static_cast<ssize_t>(kBlockAlignment)) return {block_.data(), kBlockAlignment};
    throw Failure(path_ + ": read at offset " + std::to_string(offset) +
                  " failed: " + (got < 0 ? errno_text(errno) : "short"));
  }

 private:
  std::string path_;
  std::uint64_t base_;
  Memory block_;
  int fd_ = -1;
  std::uint64_t bytes_ = 0;
  bool regular_ = false;
};

std::optional<RecordTrailer> trailer_at(Source& source, const RecordHeader& record, std::uint64_t offset) {
  const auto block = source.block(offset);
  RecordTrailer trailer;
  if (block.empty() || decode_trailer(block, trailer) != BlockCheck::valid) return std::nullopt;
  const bool ours = trailer.record_id == record.record_id && trailer.links.size() == record.links &&
                    trailer.data_bytes == trailer.superchunks * record.superchunk_bytes &&
                    record.alignment + round_up(trailer.data_bytes, record.alignment) == offset;
  return ours ? std::optional(trailer) : std::nullopt;
}

// At the end of a file; on a device where it stands if nothing was lost. Elsewhere the Verifier comes across
// it.
std::optional<RecordTrailer> expected_trailer(Source& source, const RecordHeader& record) {
  if (source.regular()) {
    const bool room = source.bytes() >= 2 * record.alignment && source.bytes() % kBlockAlignment == 0;
    return room ? trailer_at(source, record, source.bytes() - record.alignment) : std::nullopt;
  }
  const std::uint64_t whole =
      record_bytes(record.intended_superchunks, record.superchunk_bytes, record.alignment);
  return trailer_at(source, record, whole - record.alignment);
}

std::uint64_t data_end(const Source& source, const RecordHeader& record,
                       const std::optional<RecordTrailer>& trailer) {
  const std::uint64_t superchunks = trailer ? trailer->superchunks : record.intended_superchunks;
  const std::uint64_t wanted =
      record.alignment + round_up(superchunks * record.superchunk_bytes, record.alignment);
  return std::min(wanted, source.bytes() / kBlockAlignment * kBlockAlignment);
}

void read_through(Source& source, const VerifyOptions& options, const std::atomic<int>& stop,
                  LineProtocol& lines, Verifier& verifier, Outcome& outcome) {
  const std::uint64_t begin = outcome.record.alignment;
  const std::uint64_t end = std::max(begin, data_end(source, outcome.record, outcome.trailer));
  const BlockReader::Config config{source.fd(), options.target, source.base() + begin, source.base() + end};
  const Memory memory(config.depth * config.block_bytes, std::nullopt);
  AioEngine engine(config.depth);  // destroyed first: it waits for reads into `memory`
  BlockReader reader(config, engine, memory.data());
  const std::int64_t start = monotonic_ns();
  const auto report = [&] {
    outcome.duration_ns = monotonic_ns() - start;
    // When the read-back will end is estimated by its pace.
    const double share =
        static_cast<double>(outcome.bytes_read) / static_cast<double>(config.end - config.begin);
    const double elapsed_s = seconds(outcome.duration_ns);
    lines.write("verify", {{"read_bytes", outcome.bytes_read},
                           {"elapsed_s", elapsed_s},
                           {"total_s", share > 0 ? elapsed_s / share : elapsed_s}});
  };
  const auto interval_ns = static_cast<std::int64_t>(options.interval_s * 1e9);
  for (std::int64_t next = start + interval_ns; !verifier.at_end();) {
    const auto data = reader.next();
    if (data.empty() || stop.load(std::memory_order_relaxed) != 0) break;
    outcome.bytes_read += data.size();
    verifier.feed(data);
    if (monotonic_ns() < next) continue;
    report();
    next += interval_ns;
  }
  report();
}

void verify_record(Source& source, const VerifyOptions& options, const std::atomic<int>& stop,
                   LineProtocol& lines, Outcome& outcome) {
  outcome.trailer = expected_trailer(source, outcome.record);
  Verifier verifier(outcome.record, outcome.trailer,
                    [&](std::uint64_t offset) { return trailer_at(source, outcome.record, offset); });
  read_through(source, options, stop, lines, verifier, outcome);
  const bool interrupted = stop.load(std::memory_order_relaxed) != 0;
  if (!interrupted) verifier.finish();
  outcome.trailer = verifier.trailer();
  outcome.counts = verifier.counts();
  outcome.faults = verifier.faults();
  if (interrupted) {
    outcome.status = "interrupted";
    return;
  }
  if (!outcome.trailer && outcome.faults.size() < Verifier::kMaxFaults) {
    const std::uint64_t end =
        outcome.record.alignment +
        (outcome.counts.expected + outcome.counts.duplicated) * outcome.record.superchunk_bytes;
    outcome.faults.push_back({FaultKind::incomplete, end, std::nullopt, std::nullopt,
                              "no valid trailer: the record was not closed"});
  }
  if (!outcome.trailer || outcome.counts.faults() > 0) outcome.status = "damaged";
}

Json outcome_json(const Outcome& o) {
  Json faults = Json::array();
  for (const Fault& fault : o.faults) {
    faults.push_back({{"kind", fault_kind_name(fault.kind)},
                      {"offset_bytes", fault.offset_bytes},
                      {"link", fault.link ? Json(*fault.link) : Json(nullptr)},
                      {"sequence", fault.sequence ? Json(*fault.sequence) : Json(nullptr)},
                      {"detail", fault.detail}});
  }
  std::uint64_t lost = 0;
  if (o.trailer) {
    for (const LinkAccount& link : o.trailer->links) lost += link.lost;
  }
  const char* closed =
      o.trailer && o.trailer->status == TrailerStatus::interrupted ? "interrupted" : "complete";
  return {{"schema_version", 1},
          {"tool", "daqwriter"},
          {"command", "verify"},
          {"version", DAQWRITER_VERSION},
          {"status", o.status},
          {"error", o.error.empty() ? Json(nullptr) : Json(o.error)},
          {"record_id", record_id_text(o.record.record_id)},
          {"complete_trailer", o.trailer.has_value()},
          {"trailer_status", o.trailer ? Json(closed) : Json(nullptr)},
          {"lost_at_source", o.trailer ? Json(lost) : Json(nullptr)},
          {"superchunks", counts_json(o.counts)},
          {"faults", faults},
          {"bytes_read", o.bytes_read},
          {"duration_s", seconds(o.duration_ns)},
          {"read_bytes_per_s",
           o.duration_ns > 0 ? static_cast<double>(o.bytes_read) / seconds(o.duration_ns) : 0.0}};
}

void print_summary(const Outcome& o, const std::string& target) {
  std::cerr << "verify " << o.status << ": " << o.counts.present << " of " << o.counts.expected
            << " superchunks present once and intact in " << target << ", "
            << (o.trailer ? "closed" : "not closed") << "; read "
            << format_gb(static_cast<double>(o.bytes_read)) << " in "
            << format_number(seconds(o.duration_ns), 4) << " s\n";
  if (!o.error.empty()) std::cerr << "error: " << o.error << "\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(o.faults.size(), 5); ++i) {
    std::cerr << "  " << fault_kind_name(o.faults[i].kind) << " at offset " << o.faults[i].offset_bytes
              << ": " << o.faults[i].detail << "\n";
  }
}

}  // namespace

ExitCode run_verify(const VerifyOptions& options, const std::atomic<int>& stop_signal) {
  check_reporting(options);
  if (std::filesystem::is_directory(options.target)) return verify_streams(options, stop_signal);
  Source source(options.target, options.offset);
  Outcome outcome;
  const auto first = source.block(0);
  const BlockCheck header = first.empty() ? BlockCheck::foreign : decode_record_header(first, outcome.record);
  if (header == BlockCheck::foreign)
    throw Refusal("--target " + options.target + ": does not begin with a daqwriter record");
  LineProtocol lines(options.line_protocol_path, options.tags, "verify");
  if (header == BlockCheck::damaged) {
    outcome.status = "damaged";
    outcome.faults.push_back({FaultKind::corrupt, 0, std::nullopt, std::nullopt,
                              "the record header's own checksum is wrong; nothing behind it can be trusted"});
  } else {
    const RecordHeader& record = outcome.record;
    const std::uint64_t slots =
        std::min(record.slots_per_link, record.intended_superchunks / record.links + 1);
    require_memory(record.links * slots * record.superchunk_bytes, "recomputed payloads");
    try {
      verify_record(source, options, stop_signal, lines, outcome);
    } catch (const Failure& failure) {
      outcome.status = "failed";
      outcome.error = failure.what();
    }
  }
  write_json(options.json_path, outcome_json(outcome));
  print_summary(outcome, options.target);
  if (outcome.status == "failed") return ExitCode::failed;
  if (outcome.status == "interrupted") return ExitCode::interrupted;
  return outcome.status == "intact" ? ExitCode::complete : ExitCode::damaged;
}

ParsedCommand add_verify(CLI::App& parent) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App* app = parent.add_subcommand(
      "verify", "Read a record or a streams run back and prove it present once, in order, intact");
  app->add_option("--target", options->target,
                  "File or block device that holds the record, or directory of a streams run")
      ->required();
  add_size(*app, "--offset", options->offset,
           "Where the record begins, if not at the start (several applications on one device)");
  add_reporting(*app, *options);
  return {app, [options](const std::atomic<int>& stop_signal) { return run_verify(*options, stop_signal); }};
}

}  // namespace daqwriter
