// Promise: takes a framed record apart, fed with what follows its header block. A damaged block costs what it
// holds and nothing behind it, for the next frame says again where it is. Damage of frames and padding is
// told by place; superchunks that are whole in a block without a good frame are found all the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "verify/verifier.h"

namespace daqwriter {

class BlockWalk {
 public:
  // Both outlive this; the verifier judges the superchunks.
  BlockWalk(const RecordHeader& record, Verifier& verifier)
      : record_(record), verifier_(verifier), left_(record.alignment), offset_(record.alignment) {}

  void feed(std::span<const std::byte> data) {
    while (!data.empty() && !ended_) {
      const auto piece = data.first(std::min<std::uint64_t>(data.size(), left_));
      take(piece);
      data = data.subspan(piece.size());
      offset_ += piece.size();
      left_ -= piece.size();
      if (left_ == 0) leave();
    }
  }

  bool at_end() const { return ended_; }
  // Nothing follows.
  void finish() {
    if (part_ == Part::superchunks) close_superchunks();  // cut off
    tell_stretch();
    ended_ = true;
  }

  // Tells what is wrong with a block that looks like the record's trailer but is not.
  const std::string& no_trailer() const { return no_trailer_; }

 private:
  enum class Part { frame, superchunks, padding, rest };

  void take(std::span<const std::byte> piece) {
    if (part_ == Part::frame) frame_.insert(frame_.end(), piece.begin(), piece.end());
    if (part_ == Part::superchunks) verifier_.feed(piece);
    if (part_ == Part::padding)
      require_zero(piece, offset_, "the padding behind the block's last superchunk");
  }

  void enter(Part part, std::uint64_t bytes) {
    part_ = part;
    left_ = bytes;
    if (left_ == 0) leave();
  }

  // The present part has come to its end.
  void leave() {
    const std::uint64_t bytes = inside_ * record_.superchunk_bytes;
    switch (part_) {
      case Part::frame:
        return open_block();
      case Part::superchunks:
        close_superchunks();
        return enter(Part::padding, vouched_ ? round_up(bytes, record_.alignment) - bytes : 0);
      case Part::padding:  // behind it nothing was written
        return enter(Part::rest, record_.block_offset(number_ + 1) - offset_);
      case Part::rest:
        ++number_;
        frame_.clear();
        return enter(Part::frame, record_.alignment);
    }
  }

  void open_block() {
    if (closes_here()) return;
    if (number_ == record_.most_blocks) {
      ended_ = true;
      return;
    }
    BlockFrame frame;
    std::string why;
    const BlockCheck check = decode_frame(frame_, frame, &why);
    if (check == BlockCheck::valid) why = frame_mismatch(record_, frame, number_).value_or("");
    if (check == BlockCheck::foreign) why = "nothing of it is recognisable";
    vouched_ = why.empty();
    told_ = false;
    const std::uint64_t offset = record_.block_offset(number_);
    if (vouched_) {
      end_stretch();
      require_zero(std::span(frame_).subspan(kBlockAlignment), offset + kBlockAlignment,
                   "the rest of the block's frame");
    } else {
      add_to_stretch(why);
    }
    // The blocks of an earlier record with the same id look like this one's, but for the frame.
    const bool earlier = check == BlockCheck::valid && frame.record_id == record_.record_id &&
                         frame.header_crc != record_.block_crc;
    inside_ = vouched_ ? frame.superchunks : earlier ? 0 : record_.superchunks_per_block();
    before_ = recognised();
    verifier_.begin_block(offset_);
    enter(Part::superchunks, inside_ * record_.superchunk_bytes);
  }

  void close_superchunks() {
    verifier_.end_block(vouched_);
    if (!vouched_ && recognised() > before_) confirm_stretch();  // the record goes on here
  }

  // Whether the record's trailer stands where the next frame would.
  bool closes_here() {
    RecordTrailer trailer;
    std::string fault;
    const BlockCheck check = decode_trailer(frame_, trailer, &fault);
    if (check == BlockCheck::foreign) return false;
    const std::uint64_t offset = record_.block_offset(number_);
    if (check == BlockCheck::valid) fault = trailer_mismatch(record_, trailer, offset).value_or("");
    if (!fault.empty()) {
      no_trailer_ =
          "; what stands at offset " + std::to_string(offset) + " is no trailer of this record: " + fault;
      return false;
    }
    end_stretch();
    verifier_.end_blocks(std::move(trailer));
    ended_ = true;
    return true;
  }

  void require_zero(std::span<const std::byte> piece, std::uint64_t offset, const char* what) {
    const auto wrong =
        std::find_if(piece.begin(), piece.end(), [](std::byte b) { return b != std::byte{0}; });
    if (wrong == piece.end() || std::exchange(told_, true)) return;
    verifier_.note(FaultKind::corrupt, offset + static_cast<std::uint64_t>(wrong - piece.begin()),
                   std::string(what) + " of block " + std::to_string(number_) + " must be zero and is not");
  }

  void add_to_stretch(const std::string& why) {
    if (!stretch_) stretch_ = Stretch{.first = number_, .end = number_, .confirmed = number_, .why = why};
    stretch_->same = stretch_->same && why == stretch_->why;
    stretch_->end = number_ + 1;
  }

  // Everything before here belongs to the record.
  void confirm_stretch() {
    if (stretch_) stretch_->confirmed = stretch_->end;
  }

  // The record goes on behind it: it is told, once, however many blocks it has.
  void end_stretch() {
    confirm_stretch();
    tell_stretch();
  }

  void tell_stretch() {
    if (!stretch_) return;
    const Stretch stretch = *std::exchange(stretch_, std::nullopt);
    const std::uint64_t blocks = stretch.confirmed - stretch.first;
    if (blocks == 0) return;
    const std::uint64_t from = record_.block_offset(stretch.first);
    std::string text = "the frame of block " + std::to_string(stretch.first) + ": " + stretch.why;
    if (blocks > 1)
      text = "the frames of the " + std::to_string(blocks) + " blocks " + std::to_string(stretch.first) +
             " to " + std::to_string(stretch.confirmed - 1) + ", bytes " + std::to_string(from) + " to " +
             std::to_string(record_.block_offset(stretch.confirmed)) + ": " + stretch.why +
             (stretch.same ? "" : "; not of all for the same reason");
    verifier_.note(FaultKind::corrupt, from, text);
  }

  // Superchunks of this record, whole or not.
  std::uint64_t recognised() const {
    const VerifyCounts& counts = verifier_.findings().counts;
    return counts.present + counts.duplicated + counts.out_of_order + counts.corrupt + counts.torn;
  }

  const RecordHeader& record_;
  Verifier& verifier_;
  Part part_ = Part::frame;
  std::uint64_t left_;        // bytes of the present part
  std::uint64_t offset_;      // of the next byte, from the record's beginning
  std::uint64_t number_ = 0;  // of the present block
  std::uint64_t inside_ = 0;  // superchunks in it
  std::uint64_t before_ = 0;  // superchunks recognised before it
  bool vouched_ = false;      // its frame is good
  bool told_ = false;         // that something of it is not zero
  std::vector<std::byte> frame_;
  // Blocks without a good frame, one behind the other.
  struct Stretch {
    std::uint64_t first = 0;
    std::uint64_t end = 0;        // behind the last one
    std::uint64_t confirmed = 0;  // what lies from here on may lie behind the record's end
    std::string why;              // of the first
    bool same = true;             // it is that of all
  };
  std::optional<Stretch> stretch_;
  std::string no_trailer_;
  bool ended_ = false;
};

}  // namespace daqwriter
