// Promise: takes a framed record apart, fed with what follows its header block. A damaged block costs what it
// holds and nothing behind it, for the next frame says again where it is. Damage of frames and padding is
// told by place; superchunks that are whole in a block without a good frame are found all the same.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "verify/verifier.h"

namespace daqwriter {

class BlockWalk {
 public:
  // Both outlive this; the verifier judges the superchunks.
  BlockWalk(const RecordHeader& record, Verifier& verifier);

  void feed(std::span<const std::byte> data);
  bool at_end() const { return ended_; }
  // Nothing follows.
  void finish();

  // Tells what is wrong with a block that looks like the record's trailer but is not.
  const std::string& no_trailer() const { return no_trailer_; }

 private:
  enum class Part { frame, superchunks, padding, rest };

  void take(std::span<const std::byte> piece);
  void enter(Part part, std::uint64_t bytes);
  void leave();
  void open_block();
  void close_superchunks();
  bool closes_here();
  void require_zero(std::span<const std::byte> piece, std::uint64_t offset, const char* what);
  void add_to_stretch(const std::string& why);
  // Everything before here belongs to the record.
  void confirm_stretch();
  void end_stretch();
  void tell_stretch();
  std::uint64_t recognised() const;

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
