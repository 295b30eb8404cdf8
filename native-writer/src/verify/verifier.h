// Promise: judges the superchunks of one record from its bytes alone: each is present once and intact, in
// order per link, or is a fault of exactly one kind with its place. Fed with the data area in order; does no
// I/O. expected = present + missing + corrupt + torn + stale.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "format/record_format.h"
#include "verify/damage.h"
#include "verify/link_order.h"

namespace daqwriter {

enum class FaultKind { missing, duplicated, out_of_order, corrupt, torn, stale, incomplete };
std::string fault_kind_name(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::corrupt;
  std::uint64_t offset_bytes = 0;
  std::optional<std::uint32_t> link;
  std::optional<std::uint64_t> sequence;
  std::string detail;
};

struct VerifyCounts {
  std::uint64_t expected = 0;
  std::uint64_t present = 0;
  std::uint64_t missing = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t out_of_order = 0;
  std::uint64_t corrupt = 0;
  std::uint64_t torn = 0;
  std::uint64_t stale = 0;
  std::uint64_t faults() const { return missing + duplicated + out_of_order + corrupt + torn + stale; }
  void count(FaultKind kind, std::uint64_t concerned);
  void sum_up() { expected = present + missing + corrupt + torn + stale; }
};

// Recomputed payload and checksum of every slot: all at once where the record can hold as many superchunks as
// there are slots, else each when it is asked for. So a header cannot ask for more than its record's size.
class ExpectedPayload {
 public:
  // `held`: superchunks for which the record's place has room.
  ExpectedPayload(const RecordHeader& record, std::uint64_t held);
  // The bytes that all of it takes, for the check before and for the allocation.
  static std::uint64_t bytes(const RecordHeader& record, std::uint64_t held);

  // `position`: of the superchunk in its ring, see Verifier::position(). Valid until the next question.
  std::span<const std::byte> payload(std::uint32_t link, std::uint64_t position) const;
  std::uint32_t checksum(std::uint32_t link, std::uint64_t position) const;

 private:
  std::size_t index(std::uint32_t link, std::uint64_t position) const;
  void compute(std::size_t index, std::uint32_t link, std::uint64_t slot) const;

  std::size_t payload_bytes_;
  std::uint64_t slots_;       // of the ring
  std::uint64_t used_slots_;  // of each link
  bool all_;                  // computed at once
  ChecksumKind kind_;
  std::uint64_t key_;
  Memory memory_;
  mutable std::vector<std::uint32_t> checksums_;
  mutable std::optional<std::pair<std::uint32_t, std::uint64_t>> computed_;  // link and slot, if not all
};

class Verifier {
 public:
  static constexpr std::size_t kMaxFaults = 100;  // kept in detail; all are counted

  // `find_trailer(offset)`: a valid trailer of this record at exactly that offset, if there is one; asked
  // where the data could have ended.
  using TrailerProbe = std::function<std::optional<RecordTrailer>(std::uint64_t offset)>;
  // `held`: superchunks for which the record's place has room.
  Verifier(const RecordHeader& record, std::uint64_t held, std::optional<RecordTrailer> trailer,
           TrailerProbe find_trailer);

  void feed(std::span<const std::byte> data);
  bool at_end() const { return ended_; }
  void finish();

  // For a framed record, whose blocks BlockWalk takes apart: the next superchunks lie from `offset` on.
  void begin_block(std::uint64_t offset);
  // Nothing of the block follows. `vouched`: its frame said how many superchunks it has, so that what was not
  // recognised is damage; otherwise it may be room that was not used.
  void end_block(bool vouched);
  // The trailer that closes the blocks.
  void end_blocks(RecordTrailer trailer);
  // Something besides the superchunks is wrong.
  void note(FaultKind kind, std::uint64_t offset, const std::string& detail);

  const VerifyCounts& counts() const { return counts_; }
  const std::vector<Fault>& faults() const { return faults_; }
  const std::optional<RecordTrailer>& trailer() const { return trailer_; }

 private:
  struct Identity {
    std::uint32_t link;
    std::uint64_t ordinal;
    std::uint64_t position;
  };

  // Where the superchunk lay in its ring, which its payload depends on.
  std::uint64_t position(std::uint64_t ordinal, std::uint64_t sequence) const {
    return record_.mode == RecordMode::triggered ? sequence : ordinal;
  }

  // The first and last of a link's intact superchunks.
  struct Ends {
    std::optional<std::uint64_t> first;  // sequence of ordinal 0
    std::uint64_t ordinals = 0;          // highest ordinal + 1
    std::uint64_t last = 0;              // its sequence
  };

  bool at_trailer() const;
  void check(std::span<const std::byte> superchunk);
  bool check_intact(std::span<const std::byte> superchunk, const SuperchunkHeader& header);
  void check_damaged(std::span<const std::byte> superchunk, const SuperchunkHeader& header,
                     bool header_valid);
  std::optional<Identity> identify(std::span<const std::byte> payload) const;
  std::vector<std::byte> expected_superchunk(const SuperchunkHeader& actual, const Identity& identity) const;
  void unidentified(std::optional<RecordId> other);
  bool place(std::uint32_t link, const Sighting& seen);
  void confirm_tail();
  void add_missing();
  void compare_ends();
  void add(const Fault& fault, std::uint64_t count = 1);

  RecordHeader record_;
  std::optional<RecordTrailer> trailer_;
  TrailerProbe find_trailer_;
  ExpectedPayload expected_;
  std::vector<LinkOrder> orders_;
  std::vector<Ends> ends_;
  VerifyCounts counts_;
  std::vector<Fault> faults_;
  struct Unidentified {
    std::uint64_t offset = 0;
    std::optional<RecordId> other;  // a superchunk of that record
  };
  std::vector<Unidentified> tail_;  // perhaps behind the end of a record without trailer
  std::vector<std::uint64_t> unidentified_offsets_;
  std::vector<std::byte> carry_;
  std::vector<OrderFinding> findings_;
  std::uint64_t offset_;  // of the next superchunk in the target
  bool ended_ = false;
};

}  // namespace daqwriter
