// Promise: follows the ordinals of one link as they lie in the record and tells apart what is missing,
// duplicated or out of order, blaming as few superchunks as possible: one look ahead decides whether an
// unexpected ordinal is a displaced superchunk (the old order goes on after it) or the end of a gap (the new
// order goes on).
#pragma once

#include <algorithm>
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
  bool observe(const Sighting& seen, const Tell& tell) {
    next_sequence_ = std::max(next_sequence_, seen.sequence + 1);
    if (outlier_) {
      const Sighting outlier = *outlier_;
      outlier_.reset();
      if (seen.ordinal > outlier.ordinal) {
        open_hole(expected_, outlier.ordinal, outlier.offset);
        expected_ = outlier.ordinal + 1;
        hole_sequence_ = outlier.sequence + 1;
      } else if (seen.ordinal == outlier.ordinal) {
        // The same one twice in a row, ahead of its time: keep the first as the outlier, this one is a copy.
        outlier_ = outlier;
        tell(FaultKind::duplicated, seen);
        return true;
      } else {
        early_.insert(outlier.ordinal);
        tell(FaultKind::out_of_order, outlier);
      }
    }
    return place(seen, tell);
  }

  // Ends the link. `stored`: how many there must be, when a trailer says so.
  std::vector<Hole> finish(std::optional<std::uint64_t> stored, std::uint64_t end_offset) {
    if (outlier_) {  // nothing came after it to say otherwise: it ended a gap
      open_hole(expected_, outlier_->ordinal, outlier_->offset);
      expected_ = outlier_->ordinal + 1;
      hole_sequence_ = outlier_->sequence + 1;
      outlier_.reset();
    }
    while (early_.erase(expected_) > 0) ++expected_;
    const std::uint64_t known = early_.empty() ? expected_ : *early_.rbegin() + 1;
    const std::uint64_t end = std::max({expected_, known, stored.value_or(0)});
    open_hole(expected_, end, end_offset);
    expected_ = end;
    std::vector<Hole> holes;
    for (const auto& [first, hole] : holes_) holes.push_back(hole);
    return holes;
  }

  std::uint64_t expected() const { return expected_; }  // the ordinal that should come next
  // ... or this one, if the last one ended a gap
  std::optional<std::uint64_t> after_outlier() const {
    if (!outlier_) return std::nullopt;
    return outlier_->ordinal + 1;
  }

  std::uint64_t sequences_seen() const { return next_sequence_; }  // highest sequence + 1

 private:
  bool place(const Sighting& seen, const Tell& tell) {
    while (early_.erase(expected_) > 0) {
      ++expected_;
      ++hole_sequence_;
    }
    const auto copy = [&] {
      tell(FaultKind::duplicated, seen);
      return true;
    };
    if (seen.ordinal == expected_) {
      ++expected_;
      hole_sequence_ = seen.sequence + 1;
      return false;
    }
    if (seen.ordinal > expected_) {
      if (early_.contains(seen.ordinal)) return copy();
      outlier_ = seen;
      return false;
    }
    auto hole = holes_.upper_bound(seen.ordinal);
    if (hole == holes_.begin() || (--hole)->second.last < seen.ordinal) return copy();
    tell(FaultKind::out_of_order, seen);
    const Hole whole = hole->second;
    holes_.erase(hole);
    if (whole.first < seen.ordinal) {
      holes_[whole.first] = {whole.first, seen.ordinal - 1, whole.sequence, whole.offset};
    }
    if (seen.ordinal < whole.last) {
      const std::uint64_t skipped = seen.ordinal + 1 - whole.first;
      holes_[seen.ordinal + 1] = {seen.ordinal + 1, whole.last, whole.sequence + skipped, whole.offset};
    }
    return false;
  }

  // Ordinals [from, to) are missing, except for those that came early.
  void open_hole(std::uint64_t from, std::uint64_t to, std::uint64_t offset) {
    const std::uint64_t origin = from;
    const auto add = [&](std::uint64_t first, std::uint64_t end) {
      if (first < end) holes_[first] = {first, end - 1, hole_sequence_ + (first - origin), offset};
    };
    while (!early_.empty() && *early_.begin() < to) {
      const std::uint64_t present = *early_.begin();
      early_.erase(early_.begin());
      add(from, present);
      from = std::max(from, present + 1);
    }
    add(from, to);
  }

  std::uint64_t expected_ = 0;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t hole_sequence_ = 0;      // sequence expected at expected_
  std::optional<Sighting> outlier_;      // ahead of expected_, not yet explained
  std::set<std::uint64_t> early_;        // displaced ones, ahead of expected_
  std::map<std::uint64_t, Hole> holes_;  // by first ordinal
};

}  // namespace daqwriter
