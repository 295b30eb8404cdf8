// Promise: judges the superchunks of one record from its bytes alone: each is present once and intact, in
// order per link, or is a fault of exactly one kind with its place. Fed with the data area in order; does no
// I/O.
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
#include "verify/findings.h"
#include "verify/link_order.h"

namespace daqwriter {

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

  const Findings& findings() const { return findings_; }
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

  RecordHeader record_;
  std::optional<RecordTrailer> trailer_;
  TrailerProbe find_trailer_;
  ExpectedPayload expected_;
  std::vector<LinkOrder> orders_;
  std::vector<Ends> ends_;
  Findings findings_;
  struct Unidentified {
    std::uint64_t offset = 0;
    std::optional<RecordId> other;  // a superchunk of that record
  };
  std::vector<Unidentified> tail_;  // perhaps behind the end of a record without trailer
  std::vector<std::uint64_t> unidentified_offsets_;
  std::vector<std::byte> carry_;
  std::uint64_t offset_;  // of the next superchunk in the target
  bool ended_ = false;
};

}  // namespace daqwriter
