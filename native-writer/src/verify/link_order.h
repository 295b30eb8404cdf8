// Promise: follows the ordinals of one link as they lie in the record and tells apart what is missing,
// duplicated or out of order, blaming as few superchunks as possible: one look ahead decides whether an
// unexpected ordinal is a displaced superchunk (the old order goes on after it) or the end of a gap (the new
// order goes on).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "verify/findings.h"

namespace daqwriter {

struct Sighting {
  std::uint64_t ordinal = 0;
  std::uint64_t sequence = 0;
  std::uint64_t offset = 0;  // of the superchunk in the target, bytes
};

struct Hole {
  std::uint64_t first = 0;  // ordinals first ... last are nowhere
  std::uint64_t last = 0;
  std::uint64_t sequence = 0;  // of `first` if nothing was lost at that point
  std::uint64_t offset = 0;    // where the gap was noticed, bytes
  std::uint64_t count() const { return last - first + 1; }
};

class LinkOrder {
 public:
  // Told what is duplicated or out of order, and where.
  using Tell = std::function<void(FaultKind kind, const Sighting& where)>;

  // A superchunk of this link was found; `tell` is called for what is wrong with its place, or turns out to
  // be with that of an earlier one. True if there was a copy.
  bool observe(const Sighting& seen, const Tell& tell);
  // Ends the link. `stored`: how many there must be, when a trailer says so.
  std::vector<Hole> finish(std::optional<std::uint64_t> stored, std::uint64_t end_offset);

  std::uint64_t expected() const { return expected_; }  // the ordinal that should come next
  std::optional<std::uint64_t> after_outlier() const;   // ... or this one, if the last one ended a gap
  std::uint64_t sequences_seen() const { return next_sequence_; }  // highest sequence + 1

 private:
  bool place(const Sighting& seen, const Tell& tell);
  void open_hole(std::uint64_t from, std::uint64_t to, std::uint64_t offset);

  std::uint64_t expected_ = 0;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t hole_sequence_ = 0;      // sequence expected at expected_
  std::optional<Sighting> outlier_;      // ahead of expected_, not yet explained
  std::set<std::uint64_t> early_;        // displaced ones, ahead of expected_
  std::map<std::uint64_t, Hole> holes_;  // by first ordinal
};

}  // namespace daqwriter
