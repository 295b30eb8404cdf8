#include "verify/verifier.h"

#include <algorithm>
#include <cstring>

#include "format/payload.h"

namespace daqwriter {
namespace {

constexpr std::size_t kHeaderBytes = sizeof(SuperchunkHeader);
// So many unrecognisable superchunks in a row end a gapless record without trailer; a block has its own end.
constexpr std::size_t kMaxTail = 100'000;

std::uint64_t most_per_link(const RecordHeader& record) {
  return record.intended_superchunks / record.links + 1;
}

// Slots of each link whose payload the record can hold.
std::uint64_t used_slots(const RecordHeader& record) {
  if (record.mode == RecordMode::triggered) return record.slots_per_link;
  return std::min(record.slots_per_link, most_per_link(record));
}

// Payloads to keep; the header's bounds keep the product from wrapping. One at least: a header that intends
// no superchunk may stand before some.
std::uint64_t kept_payloads(const RecordHeader& record, std::uint64_t held) {
  const std::uint64_t all = record.links * used_slots(record);
  return all <= held ? all : 1;
}

}  // namespace

std::uint64_t ExpectedPayload::bytes(const RecordHeader& record, std::uint64_t held) {
  return kept_payloads(record, held) * (record.superchunk_bytes - kHeaderBytes + sizeof(std::uint32_t));
}

ExpectedPayload::ExpectedPayload(const RecordHeader& record, std::uint64_t held)
    : payload_bytes_(record.superchunk_bytes - kHeaderBytes),
      slots_(record.slots_per_link),
      used_slots_(used_slots(record)),
      all_(record.links * used_slots_ <= held),
      kind_(record.checksum),
      key_(payload_key(record.seed, record.record_id, record.run_key)),
      memory_(kept_payloads(record, held) * payload_bytes_, std::nullopt),
      checksums_(kept_payloads(record, held)) {
  for (std::uint32_t link = 0; all_ && link < record.links; ++link) {
    for (std::uint64_t slot = 0; slot < used_slots_; ++slot) compute(link * used_slots_ + slot, link, slot);
  }
}

void ExpectedPayload::compute(std::size_t index, std::uint32_t link, std::uint64_t slot) const {
  const std::span payload(memory_.data() + index * payload_bytes_, payload_bytes_);
  fill_payload(payload, key_, link, slot);
  checksums_[index] = daqwriter::checksum(kind_, payload);
}

std::size_t ExpectedPayload::index(std::uint32_t link, std::uint64_t position) const {
  // A position beyond what the record can hold is wrong anyway; the last slot serves to say so.
  const std::uint64_t slot = std::min(position % slots_, used_slots_ - 1);
  if (all_) return link * used_slots_ + slot;
  if (computed_ != std::pair(link, slot)) compute(0, link, slot);
  computed_ = {link, slot};
  return 0;
}

std::span<const std::byte> ExpectedPayload::payload(std::uint32_t link, std::uint64_t position) const {
  return {memory_.data() + index(link, position) * payload_bytes_, payload_bytes_};
}

std::uint32_t ExpectedPayload::checksum(std::uint32_t link, std::uint64_t position) const {
  return checksums_[index(link, position)];
}

Verifier::Verifier(const RecordHeader& record, std::uint64_t held, std::optional<RecordTrailer> trailer,
                   TrailerProbe find_trailer)
    : record_(record),
      trailer_(std::move(trailer)),
      find_trailer_(std::move(find_trailer)),
      expected_(record, held),
      orders_(record.links),
      ends_(record.links),
      offset_(record.alignment) {
  ended_ = at_trailer();
}

void Verifier::feed(std::span<const std::byte> data) {
  const std::size_t size = record_.superchunk_bytes;
  while (!data.empty() && !ended_) {
    if (carry_.empty() && data.size() >= size) {
      check(data.first(size));
      data = data.subspan(size);
      continue;
    }
    const std::size_t part = std::min(size - carry_.size(), data.size());
    carry_.insert(carry_.end(), data.begin(), data.begin() + static_cast<std::ptrdiff_t>(part));
    data = data.subspan(part);
    if (carry_.size() < size) return;
    check(carry_);
    carry_.clear();
  }
}

void Verifier::check(std::span<const std::byte> superchunk) {
  const auto header = header_at<SuperchunkHeader>(superchunk);
  const bool header_valid = valid_header(header);
  if (!header_valid && !trailer_ && find_trailer_) {
    // Perhaps this is the end: superchunks stop anywhere, the trailer stands on the next aligned offset.
    trailer_ = find_trailer_(round_up(offset_, record_.alignment));
    if (trailer_) confirm_tail();
    ended_ = at_trailer();
    if (ended_) return;
  }
  if (!header_valid || !check_intact(superchunk, header)) check_damaged(superchunk, header, header_valid);
  offset_ += record_.superchunk_bytes;
  ended_ = ended_ || at_trailer();
}

// All that the trailer counts has been seen.
bool Verifier::at_trailer() const {
  return trailer_ && !record_.framed() && offset_ - record_.alignment >= trailer_->data_bytes;
}

bool Verifier::check_intact(std::span<const std::byte> superchunk, const SuperchunkHeader& header) {
  const auto payload = superchunk.subspan(kHeaderBytes);
  if (header.record_id != record_.record_id || header.link >= record_.links ||
      header.ordinal >= most_per_link(record_) || header.payload_bytes != payload.size() ||
      header.checksum_kind != static_cast<std::uint32_t>(record_.checksum) ||
      header.sequence < header.ordinal || header.sequence >= kMaxCount) {
    return false;
  }
  const std::uint64_t at = position(header.ordinal, header.sequence);
  const auto expected = expected_.payload(header.link, at);
  if (header.payload_checksum != expected_.checksum(header.link, at)) return false;
  if (std::memcmp(payload.data(), expected.data(), expected.size()) != 0) return false;
  if (!place(header.link, {header.ordinal, header.sequence, offset_})) ++findings_.counts.present;
  Ends& ends = ends_[header.link];
  if (header.ordinal == 0) ends.first = header.sequence;
  if (header.ordinal >= ends.ordinals) {
    ends.ordinals = header.ordinal + 1;
    ends.last = header.sequence;
  }
  return true;
}

void Verifier::check_damaged(std::span<const std::byte> superchunk, const SuperchunkHeader& header,
                             bool header_valid) {
  const bool ours = header_valid && header.record_id == record_.record_id && header.link < record_.links &&
                    header.ordinal < most_per_link(record_) && header.sequence < kMaxCount;
  const auto identity =
      ours ? std::optional<Identity>({header.link, header.ordinal, position(header.ordinal, header.sequence)})
           : identify(superchunk.subspan(kHeaderBytes));
  if (!identity && header_valid && header.record_id != record_.record_id) {
    return unidentified(header.record_id);
  }
  if (!identity) return unidentified(std::nullopt);
  const auto expected = expected_superchunk(header, *identity);
  const Damage damage = compare_superchunk(superchunk, expected, offset_);
  const FaultKind kind = damage.torn ? FaultKind::torn : FaultKind::corrupt;
  const bool no_difference = damage.first_offset == damage.end_offset;
  const std::string detail = no_difference ? "the header's own checksum is wrong" : damage.text();
  const auto sequence = header_valid ? std::optional(header.sequence) : std::nullopt;
  // Without a readable sequence, assume that nothing was lost since the last one: only the ordinal counts
  // here.
  const std::uint64_t assumed = sequence.value_or(orders_[identity->link].sequences_seen());
  if (place(identity->link, {identity->ordinal, assumed, offset_})) return;  // a copy: counted as duplicated
  findings_.add({kind, damage.first_offset, identity->link, sequence, detail});
}

// Identifies a superchunk by the rest of its payload. Tries only those that could come next.
std::optional<Verifier::Identity> Verifier::identify(std::span<const std::byte> payload) const {
  constexpr std::size_t kPiece = 64;  // bytes that cannot agree by chance
  std::optional<Identity> best;
  std::size_t most = 0;
  const auto attempt = [&](std::uint32_t link, std::uint64_t ordinal) {
    // Within a window sequence numbers go on one by one.
    const std::uint64_t at = position(ordinal, orders_[link].sequences_seen());
    const auto expected = expected_.payload(link, at);
    std::size_t agreeing = 0;
    for (std::size_t i = 0; i < payload.size(); i += kPiece) {
      const std::size_t size = std::min(kPiece, payload.size() - i);
      if (size >= sizeof(std::uint64_t) && std::memcmp(payload.data() + i, expected.data() + i, size) == 0)
        ++agreeing;
    }
    if (agreeing <= most) return;
    most = agreeing;
    best = Identity{link, ordinal, at};
  };
  for (std::uint32_t link = 0; link < orders_.size(); ++link) {
    attempt(link, orders_[link].expected());
    if (const auto other = orders_[link].after_outlier()) attempt(link, *other);
  }
  return best;
}

// Returns the superchunk that must be there. Fields that cannot be recomputed are taken from the data.
std::vector<std::byte> Verifier::expected_superchunk(const SuperchunkHeader& actual,
                                                     const Identity& identity) const {
  SuperchunkHeader header = actual;
  header.magic = kSuperchunkMagic;
  header.record_id = record_.record_id;
  header.link = identity.link;
  header.ordinal = identity.ordinal;
  header.payload_bytes = static_cast<std::uint32_t>(record_.superchunk_bytes - kHeaderBytes);
  header.payload_checksum = expected_.checksum(identity.link, identity.position);
  header.checksum_kind = static_cast<std::uint32_t>(record_.checksum);
  std::vector<std::byte> whole(record_.superchunk_bytes);
  std::memcpy(whole.data(), &header, kHeaderBytes);
  const auto payload = expected_.payload(identity.link, identity.position);
  std::copy(payload.begin(), payload.end(), whole.begin() + kHeaderBytes);
  return whole;
}

void Verifier::unidentified(std::optional<RecordId> other) {
  tail_.push_back({offset_, other});
  if (trailer_) confirm_tail();
  if (!record_.framed() && tail_.size() > kMaxTail) ended_ = true;
}

// A superchunk of this record lies here: what was unrecognisable before it was inside the record, not behind
// it. True if the superchunk is a copy of one that was there already.
bool Verifier::place(std::uint32_t link, const Sighting& seen) {
  confirm_tail();
  return orders_[link].observe(seen, [this, link](FaultKind kind, const Sighting& where) {
    findings_.add({kind, where.offset, link, where.sequence,
                   kind == FaultKind::duplicated
                       ? "present once already"
                       : "stands behind a later one of its link, or before earlier ones"});
  });
}

void Verifier::confirm_tail() {
  for (const auto& [offset, other] : tail_) {
    unidentified_offsets_.push_back(offset);
    findings_.add({other ? FaultKind::stale : FaultKind::corrupt, offset, std::nullopt, std::nullopt,
                   other ? "a superchunk of record " + record_id_text(*other)
                         : "nothing of a superchunk of this record is recognisable"});
  }
  tail_.clear();
}

void Verifier::begin_block(std::uint64_t offset) {
  offset_ = offset;
  carry_.clear();
  ended_ = false;
}

void Verifier::end_block(bool vouched) {
  if (vouched) confirm_tail();
  tail_.clear();
}

void Verifier::end_blocks(RecordTrailer trailer) {
  trailer_ = std::move(trailer);
  ended_ = true;
}

void Verifier::note(FaultKind kind, std::uint64_t offset, const std::string& detail) {
  findings_.add({kind, offset, std::nullopt, std::nullopt, detail}, 0);
}

void Verifier::finish() {
  if (!trailer_ && find_trailer_) trailer_ = find_trailer_(round_up(offset_, record_.alignment));
  if (trailer_) confirm_tail();  // everything before the trailer belongs to the record
  tail_.clear();
  if (at_trailer() && offset_ - record_.alignment > trailer_->data_bytes) {
    findings_.add(
        {FaultKind::corrupt, record_.alignment + trailer_->data_bytes, std::nullopt, std::nullopt,
         "superchunks behind the " + std::to_string(trailer_->superchunks) + " that the trailer counts"},
        0);
  }
  add_missing();
  if (trailer_) compare_ends();
  findings_.counts.sum_up();
  std::stable_sort(findings_.faults.begin(), findings_.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.offset_bytes < b.offset_bytes; });
}

void Verifier::add_missing() {
  struct Gap {
    std::uint32_t link;
    Hole hole;
    std::uint64_t explained = 0;
  };
  std::vector<Gap> gaps;
  for (std::uint32_t link = 0; link < orders_.size(); ++link) {
    const auto stored = trailer_ ? std::optional(trailer_->links[link].stored) : std::nullopt;
    for (const Hole& hole : orders_[link].finish(stored, offset_)) gaps.push_back({link, hole, 0});
    if (!trailer_ || record_.mode == RecordMode::triggered) continue;
    // Sequence numbers that were skipped must have been lost at the source, and counted there.
    const LinkOrder& order = orders_[link];
    const std::uint64_t skipped = std::max(order.sequences_seen(), order.expected()) - order.expected();
    const std::uint64_t lost = trailer_->links[link].lost;
    if (skipped > lost) {
      findings_.add({FaultKind::missing, offset_, link, std::nullopt,
                     "sequence numbers skipped and not counted as lost"},
                    skipped - lost);
    }
  }
  std::stable_sort(gaps.begin(), gaps.end(),
                   [](const Gap& a, const Gap& b) { return a.hole.offset < b.hole.offset; });
  // A superchunk at an unrecognisable place is not missing as well: each such place explains one of the next
  // gap. Both are in the order of their offsets.
  auto gap = gaps.begin();
  for (const std::uint64_t offset : unidentified_offsets_) {
    while (gap != gaps.end() && (gap->hole.offset < offset || gap->explained == gap->hole.count())) ++gap;
    if (gap == gaps.end()) break;
    ++gap->explained;
  }
  for (const auto& [link, hole, explained] : gaps) {
    const std::uint64_t count = hole.count() - explained;
    if (count == 0) continue;
    findings_.add({FaultKind::missing, hole.offset, link, hole.sequence,
                   std::to_string(count) + " missing among ordinals " + std::to_string(hole.first) + " to " +
                       std::to_string(hole.last)},
                  count);
  }
}

// The trailer's sequences against those of the superchunks that they name, where these are intact.
void Verifier::compare_ends() {
  for (std::uint32_t link = 0; link < ends_.size(); ++link) {
    const LinkAccount& told = trailer_->links[link];
    const Ends& seen = ends_[link];
    const auto compare = [&](const char* which, std::uint64_t says, std::uint64_t is) {
      if (says == is) return;
      findings_.add({FaultKind::corrupt, offset_, link, is,
                     std::string("the trailer says that the link's ") + which + " stored sequence is " +
                         std::to_string(says) + ", and the superchunk has " + std::to_string(is)},
                    0);
    };
    if (seen.first) compare("first", told.first_sequence, *seen.first);
    if (seen.ordinals > 0 && seen.ordinals == told.stored) compare("last", told.last_sequence, seen.last);
  }
}

}  // namespace daqwriter
