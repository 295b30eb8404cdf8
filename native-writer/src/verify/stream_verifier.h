// Promise: judges the events of one stream from the bytes of its files: each is present once and intact, in
// order, or is a fault of exactly one kind with its place. A file that no line of the manifest vouches for is
// followed as far as its events are intact. Fed with the files in the order of their numbers; does no I/O.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/stream_manifest.h"
#include "verify/findings.h"
#include "verify/link_order.h"

namespace daqwriter {

class StreamVerifier {
 public:
  // Sums up all streams: `findings`, and the number of events that are `unvouched`, intact in files that the
  // manifest does not list.
  StreamVerifier(const Manifest& manifest, std::uint32_t stream, Findings& findings,
                 std::uint64_t& unvouched);

  // `line`: what the manifest says about the file; null if it does not list it.
  void begin_file(const std::string& name, const ClosedFile* line);
  void feed(std::span<const std::byte> data);
  bool at_end() const { return done_; }  // nothing more of this file is wanted
  // True if the file is as listed.
  bool end_file();
  // After the last file.
  void finish();

 private:
  struct Place {
    std::uint64_t serial;
    std::size_t bytes;
    bool known;  // an event of this stream has its place here
  };

  void check_events(std::size_t lookahead);
  std::size_t check_event(std::span<const std::byte> rest);
  std::size_t check_foreign(std::span<const std::byte> rest, const EventHeader& header);
  void check_damaged(std::span<const std::byte> actual, std::uint64_t serial);
  std::optional<EventHeader> own_header(std::span<const std::byte> bytes) const;
  std::span<std::byte> expected(std::size_t bytes);
  std::optional<std::size_t> next_own(std::span<const std::byte> rest);
  Place place_of_damaged(std::span<const std::byte> rest);
  bool is_copy(std::uint64_t serial);
  void add(FaultKind kind, std::uint64_t offset, std::optional<std::uint64_t> serial,
           const std::string& detail, std::uint64_t events = 1);
  void add_missing(const Hole& hole);

  const Manifest& manifest_;
  EventPlan plan_;
  std::uint32_t stream_;
  Findings& findings_;
  std::uint64_t& unvouched_;
  LinkOrder order_;
  std::map<std::uint64_t, std::string> files_;               // by where each begins in the whole stream
  std::map<std::uint64_t, const ClosedFile*> unseen_files_;  // listed, by first serial
  std::vector<std::byte> expected_;  // grows with what is there, not with what the manifest says

  // The present file.
  const ClosedFile* line_ = nullptr;
  std::uint64_t base_ = 0;    // where it begins in the whole stream
  std::uint64_t offset_ = 0;  // of what was not checked yet, in the file
  std::vector<std::byte> window_;
  std::size_t checked_ = 0;    // bytes of the window
  std::uint64_t scanned_ = 0;  // where damage was: no event's header begins before here, in the file
  std::uint64_t events_ = 0;
  std::uint32_t adler32_ = 0;
  std::uint64_t faults_before_ = 0;
  FaultKind unlisted_kind_ = FaultKind::incomplete;
  bool done_ = false;
};

}  // namespace daqwriter
