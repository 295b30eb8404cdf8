#include "verify/link_order.h"

#include <algorithm>

namespace daqwriter {

std::optional<std::uint64_t> LinkOrder::after_outlier() const {
  if (!outlier_) return std::nullopt;
  return outlier_->ordinal + 1;
}

bool LinkOrder::observe(const Sighting& seen, const Tell& tell) {
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

bool LinkOrder::place(const Sighting& seen, const Tell& tell) {
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
void LinkOrder::open_hole(std::uint64_t from, std::uint64_t to, std::uint64_t offset) {
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

std::vector<Hole> LinkOrder::finish(std::optional<std::uint64_t> stored, std::uint64_t end_offset) {
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

}  // namespace daqwriter
