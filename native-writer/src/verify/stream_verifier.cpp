#include "verify/stream_verifier.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "verify/damage.h"

namespace daqwriter {
namespace {

std::string stale_text(const EventHeader& header) {
  return "an event of run " + record_id_text(header.run_id);
}

}  // namespace

StreamVerifier::StreamVerifier(const Manifest& manifest, std::uint32_t stream, Findings& findings,
                               std::uint64_t& unvouched)
    : manifest_(manifest), plan_(manifest.run), stream_(stream), findings_(findings), unvouched_(unvouched) {
  for (const ClosedFile& file : manifest.files) {
    if (file.stream == stream) unseen_files_[file.first_serial] = &file;
  }
}

void StreamVerifier::begin_file(const std::string& name, const ClosedFile* line) {
  files_[base_] = name;
  line_ = line;
  if (line) unseen_files_.erase(line->first_serial);
  offset_ = 0;
  events_ = 0;
  window_.clear();
  checked_ = 0;
  scanned_ = 0;
  adler32_ = checksum_initial(ChecksumKind::adler32);
  faults_before_ = findings_.total;
  unlisted_kind_ = FaultKind::incomplete;
  done_ = false;
}

void StreamVerifier::feed(std::span<const std::byte> data) {
  if (line_ && line_->adler32) adler32_ = checksum_update(ChecksumKind::adler32, adler32_, data);
  window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(checked_));
  checked_ = 0;
  window_.insert(window_.end(), data.begin(), data.end());
  // Far enough to see the event behind a damaged one.
  check_events(2 * plan_.largest_bytes() + sizeof(EventHeader));
}

void StreamVerifier::check_events(std::size_t lookahead) {
  while (!done_ && window_.size() - checked_ >= lookahead) {
    const std::size_t bytes = check_event(std::span(window_).subspan(checked_));
    checked_ += bytes;
    offset_ += bytes;
  }
}

bool StreamVerifier::end_file() {
  check_events(1);
  if (!line_) {
    const std::string found = std::to_string(events_) + " intact events in it";
    const char* what = unlisted_kind_ == FaultKind::incomplete   ? "not in the manifest: it was not closed; "
                       : unlisted_kind_ == FaultKind::duplicated ? "not in the manifest, a copy of events; "
                                                                 : "not in the manifest, of another run; ";
    add(unlisted_kind_, 0, std::nullopt, what + found, 0);
  } else if (findings_.total == faults_before_) {
    // Only what the events do not explain already.
    const ClosedFile& line = *line_;
    const auto differs = [&](const std::string& name, const std::string& here, const std::string& listed) {
      if (here != listed && findings_.total == faults_before_)
        add(FaultKind::corrupt, std::min(offset_, line.bytes), std::nullopt,
            name + " " + here + ", in the manifest " + listed, 0);
    };
    // Events that a shorter file lacks are missing; if none is, the manifest names bytes that never were.
    if (offset_ >= line.bytes || events_ >= line.events)
      differs("bytes", std::to_string(offset_), std::to_string(line.bytes));
    if (offset_ == line.bytes && line.adler32)
      differs("adler32", adler_text(adler32_), adler_text(*line.adler32));
    if (offset_ == line.bytes) differs("events", std::to_string(events_), std::to_string(line.events));
  }
  base_ += offset_ + 1;  // so that no two files begin at the same place
  return line_ && findings_.total == faults_before_ && offset_ == line_->bytes;
}

// The header of an event of this stream.
std::optional<EventHeader> StreamVerifier::own_header(std::span<const std::byte> bytes) const {
  if (bytes.size() < sizeof(EventHeader)) return std::nullopt;
  const auto header = header_at<EventHeader>(bytes);
  const bool own = valid_header(header) && header.run_id == manifest_.run.run_id &&
                   header.seed == manifest_.run.seed && header.stream == stream_ &&
                   header.serial < kMaxCount && header.bytes == plan_.bytes_of(stream_, header.serial) &&
                   plan_.stream_of(header.event) == stream_;
  return own ? std::optional(header) : std::nullopt;
}

// Returns how far it goes.
std::size_t StreamVerifier::check_event(std::span<const std::byte> rest) {
  const auto header = own_header(rest);
  if (!line_ && header && events_ == 0 && header->serial < order_.expected()) {
    unlisted_kind_ = FaultKind::duplicated;
    done_ = true;
    return 0;
  }
  bool intact = false;
  if (header && header->bytes <= rest.size()) {
    const std::size_t body = header->bytes - sizeof *header;
    plan_.fill_body(expected(body), stream_, header->serial % plan_.slots());
    intact = std::memcmp(rest.data() + sizeof *header, expected_.data(), body) == 0;
  }
  if (intact) {
    ++events_;
    if (!is_copy(header->serial)) ++(line_ ? findings_.counts.present : unvouched_);
    return header->bytes;
  }
  const auto raw = header_at<EventHeader>(rest);
  const bool foreign = !header && valid_header(raw);
  if (!line_) {  // what is not vouched for ends where it is not recognisable
    if (events_ == 0 && foreign && raw.run_id != manifest_.run.run_id) unlisted_kind_ = FaultKind::stale;
    done_ = true;
    return 0;
  }
  ++events_;
  if (offset_ >= line_->bytes) {
    add(FaultKind::corrupt, offset_, std::nullopt, "bytes behind the end that the manifest names", 0);
    done_ = true;
    return rest.size();
  }
  if (foreign) return check_foreign(rest, raw);
  const Place place = header ? Place{header->serial, std::min<std::size_t>(header->bytes, rest.size()), true}
                             : place_of_damaged(rest);
  if (place.known) {
    check_damaged(rest.first(place.bytes), place.serial);
  } else {
    add(FaultKind::corrupt, offset_, std::nullopt,
        std::to_string(place.bytes) + " bytes in which no event is recognisable", 0);
  }
  return place.bytes;
}

// A whole header, but not one that belongs here.
std::size_t StreamVerifier::check_foreign(std::span<const std::byte> rest, const EventHeader& header) {
  const Place place = place_of_damaged(rest);
  // An event that something overwrote keeps its place; one that was put in between has its own size.
  const std::size_t own = std::clamp<std::size_t>(header.bytes, sizeof header, rest.size());
  const bool in_between = own == rest.size() || own_header(rest.subspan(own));
  const std::size_t bytes = !place.known && in_between ? own : place.bytes;
  if (header.run_id == manifest_.run.run_id) {
    add(FaultKind::out_of_order, offset_, std::nullopt,
        "an event of stream " + std::to_string(header.stream) + ", serial " + std::to_string(header.serial));
  } else if (!place.known) {
    add(FaultKind::stale, offset_, std::nullopt, "in between, " + stale_text(header), 0);
  } else if (!is_copy(place.serial)) {
    add(FaultKind::stale, offset_, place.serial, stale_text(header));
  }
  return bytes;
}

std::span<std::byte> StreamVerifier::expected(std::size_t bytes) {
  if (expected_.size() < bytes) expected_.resize(bytes);
  return std::span(expected_).first(bytes);
}

// Returns where in `rest`, behind its beginning, the next recognisable event begins. It looks at each byte
// once: a file full of damage is read through once.
std::optional<std::size_t> StreamVerifier::next_own(std::span<const std::byte> rest) {
  const std::array<std::uint32_t, 1> magic = {kEventMagic};
  const auto pattern = std::as_bytes(std::span(magic));
  for (std::size_t next = std::max(scanned_, offset_ + 1) - offset_; next < rest.size(); ++next) {
    const auto from = rest.begin() + static_cast<std::ptrdiff_t>(next);
    next = static_cast<std::size_t>(std::search(from, rest.end(), pattern.begin(), pattern.end()) -
                                    rest.begin());
    if (next >= rest.size() || !own_header(rest.subspan(next))) continue;
    scanned_ = offset_ + next;
    return next;
  }
  // The beginning of a header may stand at the very end.
  if (rest.size() >= sizeof(EventHeader))
    scanned_ = std::max(scanned_, offset_ + rest.size() - sizeof(EventHeader) + 1);
  return std::nullopt;
}

// Returns the event of this stream that belongs at a place where nothing can be trusted: one that comes
// next, if its size, and those of the ones behind it, lead to the next recognisable event.
StreamVerifier::Place StreamVerifier::place_of_damaged(std::span<const std::byte> rest) {
  constexpr std::size_t kMostEvents = 256;  // between here and there
  const std::uint64_t coming = order_.expected();
  const auto next = next_own(rest.first(std::min(rest.size(), kMostEvents * plan_.largest_bytes())));
  if (!next) return {coming, std::min<std::size_t>(plan_.bytes_of(stream_, coming), rest.size()), true};
  const auto header = own_header(rest.subspan(*next));
  for (const std::uint64_t candidate : {coming, order_.after_outlier().value_or(coming)}) {
    std::size_t end = 0;
    std::uint64_t serial = candidate;
    while (end < *next) end += plan_.bytes_of(stream_, serial++);
    if (end == *next && serial == header->serial)
      return {candidate, plan_.bytes_of(stream_, candidate), true};
  }
  return {coming, *next, false};
}

void StreamVerifier::check_damaged(std::span<const std::byte> actual, std::uint64_t serial) {
  const auto raw = header_at<EventHeader>(actual);
  // Fields that cannot be recomputed are taken from the data.
  const EventHeader header = plan_.header(stream_, serial, raw.event, raw.arrival_ns);
  const auto whole = expected(std::max(actual.size(), sizeof header));
  std::memcpy(whole.data(), &header, sizeof header);
  plan_.fill_body(whole.subspan(sizeof header), stream_, serial % plan_.slots());
  const Damage damage = compare_superchunk(actual, whole.first(actual.size()), offset_);
  const bool clean = damage.first_offset == damage.end_offset;
  const bool cut = actual.size() < header.bytes;
  if (is_copy(serial)) return;  // counted as duplicated
  add(damage.torn || (clean && cut) ? FaultKind::torn : FaultKind::corrupt,
      clean ? offset_ + actual.size() : damage.first_offset, serial,
      cut && clean ? "cut off by the end of the file" : damage.text());
}

// Notes that the event stands here; true if it stood somewhere before.
bool StreamVerifier::is_copy(std::uint64_t serial) {
  return order_.observe({serial, serial, base_ + offset_}, [this](FaultKind kind, const Sighting& where) {
    const auto file = std::prev(files_.upper_bound(where.offset));
    findings_.add({kind, where.offset - file->first, stream_, where.ordinal,
                   kind == FaultKind::duplicated ? "present once already"
                                                 : "stands behind a later one, or before earlier ones",
                   file->second});
  });
}

void StreamVerifier::add(FaultKind kind, std::uint64_t offset, std::optional<std::uint64_t> serial,
                         const std::string& detail, std::uint64_t events) {
  findings_.add({kind, offset, stream_, serial, detail, files_[base_]}, events);
}

void StreamVerifier::finish() {
  std::uint64_t stored = manifest_.end ? manifest_.end->events[stream_] : 0;
  for (const ClosedFile& file : manifest_.files) {
    if (file.stream == stream_) stored = std::max(stored, file.last_serial + 1);
  }
  files_.try_emplace(0, stream_file_name(manifest_.prefix, stream_, 0));
  for (const Hole& hole : order_.finish(stored, std::max<std::uint64_t>(base_, 1) - 1)) add_missing(hole);
  for (const auto& [serial, file] : unseen_files_)
    findings_.add({FaultKind::missing, 0, stream_, serial, "the file is missing", file->name}, 0);
}

// Events of a missing file are missing there; the others where the gap was noticed.
void StreamVerifier::add_missing(const Hole& hole) {
  for (std::uint64_t first = hole.first; first <= hole.last;) {
    std::uint64_t last = hole.last;
    auto file = std::prev(files_.upper_bound(hole.offset));
    Fault fault{FaultKind::missing, hole.offset - file->first, stream_, first, "", file->second};
    const auto unseen = unseen_files_.find(first);
    const auto next_unseen = unseen_files_.upper_bound(first);
    if (next_unseen != unseen_files_.end()) last = std::min(last, next_unseen->first - 1);
    if (unseen != unseen_files_.end()) {
      last = std::min(last, unseen->second->last_serial);
      fault.file = unseen->second->name;
      fault.offset_bytes = 0;
      fault.detail = "the file is missing: ";
      unseen_files_.erase(unseen);
    }
    fault.detail += "serials " + std::to_string(first) + " to " + std::to_string(last);
    findings_.add(fault, last - first + 1);
    first = last + 1;
  }
}

}  // namespace daqwriter
