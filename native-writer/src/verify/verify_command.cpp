#include "verify/verify_command.h"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/clock.h"
#include "base/memory.h"
#include "base/units.h"
#include "base/worker_thread.h"
#include "format/option_bounds.h"
#include "io/aio_engine.h"
#include "io/block_reader.h"
#include "report/report_json.h"
#include "verify/block_walk.h"
#include "verify/verifier.h"

namespace daqwriter {
namespace {

using Json = nlohmann::ordered_json;

struct Outcome {
  std::string status = "intact";
  std::string error;
  RecordHeader record;
  std::optional<RecordTrailer> trailer;
  std::string no_trailer;  // why what looks like one is none
  VerifyCounts counts;
  std::vector<Fault> faults;
  std::uint64_t bytes_read = 0;
  std::int64_t duration_ns = 0;
};

// The record's file or device, opened for direct reading.
class Source {
 public:
  Source(const VerifyOptions& options, const StopClock& stop)
      : path_(options.target),
        base_(options.offset),
        stop_(stop),
        stall_ns_(to_ns(options.stall_limit_s)),
        fd_(open_for_direct_reading(path_)) {
    try {
      look();
    } catch (...) {
      close(fd_);
      throw;
    }
    bytes_ -= std::min(bytes_, base_);
  }
  ~Source() { close(fd_); }  // not while a call uses it: see Verification
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  int fd() const { return fd_; }
  std::uint64_t base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }  // from the base on
  bool regular() const { return regular_; }

  std::size_t alignment() const { return alignment_; }  // of every read

  // kBlockAlignment bytes; empty when they do not lie before the end. Throws Failure, Unanswered.
  std::span<const std::byte> block(std::uint64_t offset) {
    if (bytes_ < kBlockAlignment || offset > bytes_ - kBlockAlignment) return {};
    const std::uint64_t begin = (base_ + offset) / alignment_ * alignment_;
    const std::size_t before = base_ + offset - begin;
    const std::size_t wanted = before + kBlockAlignment;
    const std::string what = path_ + ": the read at offset " + std::to_string(offset);
    struct Answer {
      ssize_t bytes = 0;
      int error = 0;
    };
    const auto answer = std::make_shared<Answer>();
    const auto read = [answer, memory = block_, fd = fd_, bytes = round_up(wanted, alignment_), begin] {
      answer->bytes = pread(fd, memory->data(), bytes, static_cast<off_t>(begin));
      answer->error = errno;
    };
    try {
      call_within(stop_, StopClock::kAnswerNs, stall_ns_, what, read);
    } catch (const Unanswered&) {
      keep_until_exit(block_);
      throw;
    }
    if (answer->bytes >= static_cast<ssize_t>(wanted)) return {block_->data() + before, kBlockAlignment};
    throw Failure(what + " failed: " + (answer->bytes < 0 ? errno_text(answer->error) : "short"));
  }

  // The first byte of [begin, end) that is not zero.
  std::optional<std::uint64_t> first_not_zero(std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t at = begin; at < end;) {
      const std::uint64_t from = at / kBlockAlignment * kBlockAlignment;
      const auto bytes = block(from);
      if (bytes.empty()) return std::nullopt;
      for (; at < std::min(end, from + kBlockAlignment); ++at) {
        if (bytes[at - from] != std::byte{0}) return at;
      }
    }
    return std::nullopt;
  }

 private:
  void look() {
    struct stat status {};
    int sector = 0;
    regular_ = fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
    if (regular_) {
      bytes_ = static_cast<std::uint64_t>(status.st_size);
    } else if (!S_ISBLK(status.st_mode) || ioctl(fd_, BLKGETSIZE64, &bytes_) != 0 ||
               ioctl(fd_, BLKSSZGET, &sector) != 0) {
      throw Refusal("--target " + path_ + ": neither a file nor a block device");
    }
    alignment_ = std::max<std::size_t>(kBlockAlignment, static_cast<unsigned>(sector));
    if (base_ % alignment_ != 0)
      throw Refusal("--offset " + std::to_string(base_) + ": give a multiple of " +
                    std::to_string(alignment_) + " bytes");
    block_ = std::make_shared<Memory>(2 * alignment_, std::nullopt);
  }

  std::string path_;
  std::uint64_t base_;
  const StopClock& stop_;
  std::int64_t stall_ns_;
  int fd_;
  std::shared_ptr<Memory> block_;
  std::size_t alignment_ = kBlockAlignment;
  std::uint64_t bytes_ = 0;
  bool regular_ = false;
};

// A trailer of this record at exactly that offset; of what looks like one, `why` says what is wrong.
std::optional<RecordTrailer> trailer_at(Source& source, const RecordHeader& record, std::uint64_t offset,
                                        std::string& why) {
  const auto block = source.block(offset);
  RecordTrailer trailer;
  std::string fault;
  const BlockCheck check = block.empty() ? BlockCheck::foreign : decode_trailer(block, trailer, &fault);
  if (check == BlockCheck::foreign) return std::nullopt;
  if (check == BlockCheck::valid) fault = trailer_mismatch(record, trailer, offset).value_or("");
  if (fault.empty()) return trailer;
  why = "; what stands at offset " + std::to_string(offset) + " is no trailer of this record: " + fault;
  return std::nullopt;
}

// At the end of a file; on a device where it stands if nothing was lost. Elsewhere the Verifier comes across
// it.
std::optional<RecordTrailer> expected_trailer(Source& source, const RecordHeader& record, std::string& why) {
  if (source.regular()) {
    const bool room = source.bytes() >= 2 * record.alignment && source.bytes() % kBlockAlignment == 0;
    return room ? trailer_at(source, record, source.bytes() - record.alignment, why) : std::nullopt;
  }
  const std::uint64_t whole =
      record_bytes(record.intended_superchunks, record.superchunk_bytes, record.alignment);
  return trailer_at(source, record, whole - record.alignment, why);
}

// Superchunks for which there is room between the header and the end of the target.
std::uint64_t room_for(const Source& source, const RecordHeader& record) {
  const std::uint64_t room = source.bytes() - std::min<std::uint64_t>(source.bytes(), record.alignment);
  if (record.framed())
    return std::min(record.intended_superchunks,
                    (room / record.block_bytes + 1) * record.superchunks_per_block());
  return std::min(record.intended_superchunks, room / record.superchunk_bytes);
}

// To where the record may reach. A framed one's trailer stands where a block would, and is come across.
std::uint64_t data_end(const Source& source, const RecordHeader& record,
                       const std::optional<RecordTrailer>& trailer) {
  const std::uint64_t superchunks = trailer ? trailer->superchunks : record.intended_superchunks;
  const std::uint64_t wanted =
      record.framed() ? record.block_offset(record.most_blocks) + record.alignment
                      : record.alignment + round_up(superchunks * record.superchunk_bytes, record.alignment);
  return std::min(wanted, source.bytes() / kBlockAlignment * kBlockAlignment);
}

// `judge`: a Verifier or a BlockWalk.
template <typename Judge>
void read_through(Source& source, VerifyRun& run, LineProtocol& lines, Judge& judge, Outcome& outcome) {
  const VerifyOptions& options = run.options;
  const StopClock& stop = run.stop;
  const std::uint64_t begin = outcome.record.alignment;
  const std::uint64_t end = std::max(begin, data_end(source, outcome.record, outcome.trailer));
  BlockReader::Config config = reads_of(options, stop, source.fd(), options.target);
  config.begin = source.base() + begin;
  config.end = source.base() + end;
  config.alignment = source.alignment();
  BlockReader reader(config, read_room(run.watch));
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
  for (std::int64_t next = start + interval_ns; !judge.at_end();) {
    const auto data = reader.next();
    if (data.empty() || stop.asked()) break;
    outcome.bytes_read += data.size();
    judge.feed(data);
    if (monotonic_ns() < next) continue;
    report();
    next += interval_ns;
  }
  report();
}

void add_fault(Outcome& outcome, FaultKind kind, std::uint64_t offset, const std::string& detail) {
  outcome.status = "damaged";
  if (outcome.faults.size() < Verifier::kMaxFaults)
    outcome.faults.push_back({kind, offset, std::nullopt, std::nullopt, detail});
}

void check_zero(Source& source, std::uint64_t begin, std::uint64_t end, const char* what, Outcome& outcome) {
  if (const auto at = source.first_not_zero(begin, end))
    add_fault(outcome, FaultKind::corrupt, *at,
              std::string(what) + ", bytes " + std::to_string(begin) + " to " + std::to_string(end) +
                  ", must be zero and is not");
}

// Checks the space around the superchunks and their two blocks: zeros, and in a file nothing behind them.
void check_surroundings(Source& source, Outcome& outcome) {
  const RecordHeader& record = outcome.record;
  check_zero(source, kBlockAlignment, record.alignment, "the rest of the record header's block", outcome);
  if (!outcome.trailer) return;
  std::uint64_t trailer = 0;
  if (record.framed()) {  // the walk has looked at the blocks' own padding
    trailer = record.block_offset(*outcome.trailer->blocks);
  } else {
    const std::uint64_t data_end = record.alignment + outcome.trailer->data_bytes;
    trailer = round_up(data_end, record.alignment);
    check_zero(source, data_end, trailer, "the padding behind the last superchunk", outcome);
  }
  const std::uint64_t end = trailer + record.alignment;
  check_zero(source, trailer + kBlockAlignment, end, "the rest of the trailer's block", outcome);
  if (!source.regular() || source.bytes() == end) return;
  add_fault(outcome, FaultKind::corrupt, std::min(end, source.bytes()),
            source.bytes() > end
                ? std::to_string(source.bytes() - end) + " bytes behind the trailer, which ends a file"
                : "the trailer's block is cut off");
}

void check_closed(Outcome& outcome) {
  const RecordHeader& record = outcome.record;
  const VerifyCounts& counts = outcome.counts;
  const std::uint64_t superchunks = counts.expected + counts.duplicated;
  if (!outcome.trailer) {
    const std::uint64_t seen = record.framed() ? outcome.bytes_read : superchunks * record.superchunk_bytes;
    add_fault(outcome, FaultKind::incomplete, record.alignment + seen,
              "no valid trailer: the record was not closed" + outcome.no_trailer);
  } else if (superchunks == 0) {
    add_fault(outcome, FaultKind::incomplete, record.alignment,
              "the record holds no superchunk: there is nothing to verify");
  }
}

void verify_record(Source& source, VerifyRun& run, LineProtocol& lines, Outcome& outcome) {
  const RecordHeader& record = outcome.record;
  Verifier::TrailerProbe probe;
  if (!record.framed()) {
    outcome.trailer = expected_trailer(source, record, outcome.no_trailer);
    probe = [&](std::uint64_t offset) { return trailer_at(source, record, offset, outcome.no_trailer); };
  }
  Verifier verifier(record, room_for(source, record), outcome.trailer, probe);
  if (record.framed()) {
    BlockWalk walk(record, verifier);
    read_through(source, run, lines, walk, outcome);
    walk.finish();
    outcome.no_trailer = walk.no_trailer();
  } else {
    read_through(source, run, lines, verifier, outcome);
  }
  const bool interrupted = run.stop.asked();
  if (!interrupted) verifier.finish();
  outcome.trailer = verifier.trailer();
  outcome.counts = verifier.counts();
  outcome.faults = verifier.faults();
  if (interrupted) {
    outcome.status = "interrupted";
    return;
  }
  if (!outcome.faults.empty()) outcome.status = "damaged";
  check_surroundings(source, outcome);
  check_closed(outcome);
}

void verify_target(Source& source, VerifyRun& run, Outcome& outcome) {
  const VerifyOptions& options = run.options;
  const auto first = source.block(0);
  std::string why;
  const BlockCheck header =
      first.empty() ? BlockCheck::foreign : decode_record_header(first, outcome.record, &why);
  if (header == BlockCheck::foreign)
    throw Refusal("--target " + options.target + ": does not begin with a daqwriter record");
  if (header == BlockCheck::damaged) {
    add_fault(outcome, FaultKind::corrupt, 0,
              "the record header: " + why + "; nothing behind it can be trusted");
    return;
  }
  require_memory(ExpectedPayload::bytes(outcome.record, room_for(source, outcome.record)),
                 "recomputed payloads");
  LineProtocol lines(options.line_protocol_path, options.tags, "verify");
  verify_record(source, run, lines, outcome);
}

// The memory that a call which does not return still uses.
struct Verification {
  std::unique_ptr<Source> source;
  Outcome outcome;
};

void fail(const VerifyRun& run, const Failure& failure, Outcome& outcome) {
  outcome.status = run.stop.asked() ? "interrupted" : "failed";
  outcome.error = failure.what();
}

Outcome verify_file(const std::shared_ptr<VerifyRun>& run) {
  const auto room = std::make_shared<Verification>();
  run->within(run->options.target + ": opening it",
              [room, run] { room->source = std::make_unique<Source>(run->options, run->stop); });
  run->watched([room, run] {
    try {
      verify_target(*room->source, *run, room->outcome);
    } catch (const Failure& failure) {
      fail(*run, failure, room->outcome);
    }
  });
  return std::move(room->outcome);
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
          {"trailer_bound", o.trailer ? Json(o.trailer->header_crc.has_value()) : Json(nullptr)},
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
            << (o.trailer ? "closed" : "not closed")
            << (o.trailer && !o.trailer->header_crc ? ", trailer not bound to its header (older format)" : "")
            << "; read " << format_gb(static_cast<double>(o.bytes_read)) << " in "
            << format_number(seconds(o.duration_ns), 4) << " s\n";
  if (!o.error.empty()) std::cerr << "error: " << o.error << "\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(o.faults.size(), 5); ++i) {
    std::cerr << "  " << fault_kind_name(o.faults[i].kind) << " at offset " << o.faults[i].offset_bytes
              << ": " << o.faults[i].detail << "\n";
  }
}

}  // namespace

ExitCode run_verify(const VerifyOptions& options, const std::atomic<int>& stop_signal) {
  require_within(bounds::kStallLimit, options.stall_limit_s);
  const auto run = std::make_shared<VerifyRun>(options, stop_signal);
  try {
    check_reporting(options, {options.target}, options.stall_limit_s, &run->stop);
  } catch (const Unanswered& failure) {  // no JSON: it might lie where the record does
    std::cerr << "daqwriter: " << failure.what() << "\n";
    return run->stop.asked() ? ExitCode::interrupted : ExitCode::failed;
  }
  Outcome outcome;
  try {
    const auto look = [target = options.target] { return std::filesystem::is_directory(target); };
    if (run->answer<bool>(options.target + ": looking at it", look)) return verify_streams(run);
    outcome = verify_file(run);
  } catch (const Failure& failure) {
    if (dynamic_cast<const Unanswered*>(&failure)) keep_until_exit(run);
    fail(*run, failure, outcome);
  }
  write_json(options.json_path, outcome_json(outcome));
  print_summary(outcome, options.target);
  if (outcome.status == "failed") return ExitCode::failed;
  if (outcome.status == "interrupted") return ExitCode::interrupted;
  return outcome.status == "intact" ? ExitCode::complete : ExitCode::damaged;
}

void VerifyRun::within(const std::string& what, std::function<void()> call) const {
  call_within(stop, StopClock::kAnswerNs, to_ns(options.stall_limit_s), what, std::move(call));
}

BlockReader::Config reads_of(const VerifyOptions& options, const StopClock& stop, int fd,
                             const std::string& target) {
  return {.fd = fd, .target = target, .stall_ns = to_ns(options.stall_limit_s), .stop = &stop};
}

std::shared_ptr<ReadRoom> read_room(CallWatch& watch) {
  const BlockReader::Config usual;
  return std::make_shared<ReadRoom>(usual.depth, usual.block_bytes,
                                    watch.watched(std::make_unique<AioEngine>(usual.depth)));
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
