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

#include "base/memory.h"
#include "base/worker_thread.h"
#include "report/report_json.h"
#include "verify/block_walk.h"
#include "verify/read_back.h"
#include "verify/verifier.h"

namespace daqwriter {
namespace {

using Json = nlohmann::ordered_json;

struct RecordOutcome : Outcome {
  RecordHeader record;
  std::optional<RecordTrailer> trailer;
  std::string no_trailer;             // why a look-alike is no trailer
  std::optional<RecordHeader> other;  // the record that stands where another one was sought
};

// The record's file or device, opened for direct reading.
class Source {
 public:
  Source(const VerifyOptions& options, const CallLimits& limits)
      : path_(options.target), base_(options.offset), limits_(limits), fd_(open_for_direct_reading(path_)) {
    look();
    bytes_ -= std::min(bytes_, base_);
  }
  int fd() const { return fd_; }  // not closed while a call uses it: see Verification
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
    const auto read = [answer, memory = block_, fd = int{fd_}, bytes = round_up(wanted, alignment_), begin] {
      answer->bytes = pread(fd, memory->data(), bytes, static_cast<off_t>(begin));
      answer->error = errno;
    };
    limits_.within(what, read);
    if (answer->bytes >= static_cast<ssize_t>(wanted)) return {block_->data() + before, kBlockAlignment};
    if (answer->bytes >= 0) throw Failure(what + " failed: short");
    throw Failure(what + " failed: " + errno_text(answer->error), answer->error);
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
  const CallLimits& limits_;
  OpenFile fd_;
  std::shared_ptr<Memory> block_;
  std::size_t alignment_ = kBlockAlignment;
  std::uint64_t bytes_ = 0;
  bool regular_ = false;
};

// A trailer of this record at exactly that offset; `why` says what is wrong with a look-alike.
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

template <typename Judge>
void read_record(Source& source, VerifyRun& run, LineProtocol& lines, Judge& judge, RecordOutcome& outcome) {
  const std::uint64_t begin = outcome.record.alignment;
  const std::uint64_t end = std::max(begin, data_end(source, outcome.record, outcome.trailer));
  BlockReader::Config config = run.reads_of(source.fd(), run.options.target);
  config.begin = source.base() + begin;
  config.end = source.base() + end;
  config.alignment = source.alignment();
  BlockReader reader(config, run.read_room());
  Progress progress(run.options, lines, end - begin, outcome);
  read_through(reader, run.stop, progress, judge);
  progress.speak();
}

void check_zero(Source& source, std::uint64_t begin, std::uint64_t end, const char* what,
                RecordOutcome& outcome) {
  if (const auto at = source.first_not_zero(begin, end))
    outcome.add(FaultKind::corrupt, *at,
                std::string(what) + ", bytes " + std::to_string(begin) + " to " + std::to_string(end) +
                    ", must be zero and is not");
}

// Checks the space around the superchunks and their two blocks: zeros, and in a file nothing behind them.
void check_surroundings(Source& source, RecordOutcome& outcome) {
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
  outcome.add(FaultKind::corrupt, std::min(end, source.bytes()),
              source.bytes() > end
                  ? std::to_string(source.bytes() - end) + " bytes behind the trailer, which ends a file"
                  : "the trailer's block is cut off");
}

void check_closed(RecordOutcome& outcome) {
  const RecordHeader& record = outcome.record;
  const VerifyCounts& counts = outcome.findings.counts;
  const std::uint64_t superchunks = counts.expected + counts.duplicated;
  if (!outcome.trailer) {
    const std::uint64_t seen = record.framed() ? outcome.bytes_read : superchunks * record.superchunk_bytes;
    outcome.add(FaultKind::incomplete, record.alignment + seen,
                "no valid trailer: the record was not closed" + outcome.no_trailer);
  } else if (superchunks == 0) {
    outcome.add(FaultKind::incomplete, record.alignment,
                "the record holds no superchunk: there is nothing to verify");
  }
}

// A record without trailer ends behind what is recognisable: the writer knows how much that should be.
void hold_against_writer(const Sought& sought, RecordOutcome& outcome) {
  const VerifyCounts& counts = outcome.findings.counts;
  const std::uint64_t told = sought.superchunks.value_or(counts.expected);
  if (outcome.trailer && outcome.trailer->superchunks != told)
    throw Refusal("--superchunks " + std::to_string(told) + ": the record's own trailer counts " +
                  std::to_string(outcome.trailer->superchunks) + "; give what its writer said it stored");
  outcome.add_lost(sought, outcome.record.alignment + counts.expected * outcome.record.superchunk_bytes,
                   "nothing behind this place is recognisable");
}

void verify_record(Source& source, VerifyRun& run, LineProtocol& lines, RecordOutcome& outcome) {
  const RecordHeader& record = outcome.record;
  Verifier::TrailerProbe probe;
  if (!record.framed()) {
    outcome.trailer = expected_trailer(source, record, outcome.no_trailer);
    probe = [&](std::uint64_t offset) { return trailer_at(source, record, offset, outcome.no_trailer); };
  }
  Verifier verifier(record, room_for(source, record), outcome.trailer, probe);
  if (record.framed()) {
    BlockWalk walk(record, verifier);
    read_record(source, run, lines, walk, outcome);
    walk.finish();
    outcome.no_trailer = walk.no_trailer();
  } else {
    read_record(source, run, lines, verifier, outcome);
  }
  outcome.interrupted = run.stop.asked();
  if (!outcome.interrupted) verifier.finish();
  outcome.trailer = verifier.trailer();
  outcome.findings = verifier.findings();
  if (outcome.interrupted) return;
  check_surroundings(source, outcome);
  check_closed(outcome);
  if (run.options.sought) hold_against_writer(*run.options.sought, outcome);
}

// The first block does not hold the header of the record that was sought: what stands there, and all of it
// is lost.
void lose_record(const Sought& sought, BlockCheck header, const std::string& why, Source& source,
                 RecordOutcome& outcome) {
  if (header == BlockCheck::damaged) {
    outcome.add(FaultKind::corrupt, 0, "the record header: " + why + "; nothing behind it can be trusted");
  } else if (header == BlockCheck::foreign) {
    const bool ends = source.bytes() < kBlockAlignment;
    const bool zeros = !ends && !source.first_not_zero(0, kBlockAlignment);
    outcome.add(FaultKind::incomplete, 0,
                std::string("no record header: ") + (ends    ? "the target ends before it"
                                                     : zeros ? "zeros stand there"
                                                             : "other data stand there"));
  } else {
    const RecordHeader found = outcome.record;
    outcome.other = found;
    outcome.add(
        FaultKind::stale, 0,
        "the record header is of record " + record_id_text(found.record_id) + ", begun " +
            iso8601_utc(found.started_utc_ns) + ", and not of record " + record_id_text(sought.id) +
            ", which the target lost or never had: make sure that --record-id names what was written here");
  }
  outcome.record = {};
  outcome.record.record_id = sought.id;
  outcome.add_lost(sought, 0, "without the record's header they cannot be told from other data");
}

void verify_target(Source& source, VerifyRun& run, RecordOutcome& outcome) {
  const VerifyOptions& options = run.options;
  if (options.sought) outcome.record.record_id = options.sought->id;  // also where the read fails
  const auto first = source.block(0);
  std::string why;
  const BlockCheck header =
      first.empty() ? BlockCheck::foreign : decode_record_header(first, outcome.record, &why);
  if (options.sought && (header != BlockCheck::valid || outcome.record.record_id != options.sought->id))
    return lose_record(*options.sought, header, why, source, outcome);
  if (header == BlockCheck::foreign)
    throw Refusal("--target " + options.target + ": does not begin with a daqwriter record");
  if (header == BlockCheck::damaged) {
    outcome.add(FaultKind::corrupt, 0, "the record header: " + why + "; nothing behind it can be trusted");
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
  RecordOutcome outcome;
};

RecordOutcome verify_file(const std::shared_ptr<VerifyRun>& run) {
  const auto room = std::make_shared<Verification>();
  run->limits.within(run->options.target + ": opening it",
                     [room, run] { room->source = std::make_unique<Source>(run->options, run->limits); });
  run->watched([room, run] {
    try {
      verify_target(*room->source, *run, room->outcome);
    } catch (const Failure& failure) {
      room->outcome.fail(*run, failure.what(), failure.target_errno());
    }
  });
  return std::move(room->outcome);
}

// Whoever says which record was written wants to know what became of it, also where it cannot be opened.
RecordOutcome unopened(const VerifyRun& run, const CommandError& why) {
  RecordOutcome outcome;
  if (run.options.sought) outcome.record.record_id = run.options.sought->id;
  outcome.fail(run, why.what(), why.target_errno());
  return outcome;
}

Json other_json(const std::optional<RecordHeader>& other) {
  if (!other) return nullptr;
  return {{"record_id", record_id_text(other->record_id)},
          {"started_utc", iso8601_utc(other->started_utc_ns)}};
}

Json record_json(const RecordOutcome& o) {
  std::uint64_t lost = 0;
  if (o.trailer) {
    for (const LinkAccount& link : o.trailer->links) lost += link.lost;
  }
  const char* closed =
      o.trailer && o.trailer->status == TrailerStatus::interrupted ? "interrupted" : "complete";
  return result_json(o,
                     {{"record_id", record_id_text(o.record.record_id)},
                      {"complete_trailer", o.trailer.has_value()},
                      {"trailer_status", o.trailer ? Json(closed) : Json(nullptr)},
                      {"trailer_bound", o.trailer ? Json(o.trailer->header_crc.has_value()) : Json(nullptr)},
                      {"lost_at_source", o.trailer ? Json(lost) : Json(nullptr)},
                      {"other_record", other_json(o.other)},
                      {"superchunks", counts_json(o.findings.counts)}},
                     {.origin = "link", .number = "sequence", .file = false});
}

std::string record_summary(const RecordOutcome& o, const std::string& target) {
  return summary(
      o, "superchunks present once and intact in " + target + ", " + (o.trailer ? "closed" : "not closed") +
             (o.trailer && !o.trailer->header_crc ? ", trailer not bound to its header (older format)" : ""));
}

}  // namespace

ExitCode run_verify(const VerifyOptions& options, const std::atomic<int>& stop_signal) {
  const auto run = std::make_shared<VerifyRun>(options, stop_signal);
  check_reporting(options, {options.target}, run->limits);
  RecordOutcome outcome;
  try {
    const auto look = [target = options.target, sought = options.sought.has_value()] {
      std::error_code unknown;  // of what is sought, opening it tells why it cannot be looked at
      return sought ? std::filesystem::is_directory(target, unknown) : std::filesystem::is_directory(target);
    };
    if (run->limits.answer<bool>(options.target + ": looking at it", look)) return verify_streams(run);
    outcome = verify_file(run);
  } catch (const Failure& failure) {
    if (dynamic_cast<const Unanswered*>(&failure)) keep_until_exit(run);
    outcome = unopened(*run, failure);
  } catch (const Refusal& refusal) {
    if (!options.sought || refusal.target_errno() == 0) throw;
    outcome = unopened(*run, refusal);
  }
  write_json(options.json_path, record_json(outcome));
  std::cerr << record_summary(outcome, options.target);
  return outcome.exit_code();
}

}  // namespace daqwriter
