#include "block_reader.h"

#include <algorithm>
#include <cerrno>

#include "clock.h"
#include "record_format.h"
#include "status.h"

namespace daqwriter {

BlockReader::BlockReader(const Config& config, IoEngine& engine, std::byte* memory)
    : config_(config),
      engine_(engine),
      buffers_(config.depth),
      completions_(config.depth),
      next_offset_(config.begin) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i].data = memory + i * config.block_bytes;
}

std::span<const std::byte> BlockReader::next() {
  if (!started_) {
    for (std::size_t i = 0; i < buffers_.size(); ++i) request(i);
    started_ = true;
  } else {
    request(turn_);  // the block handed out last has been consumed
    turn_ = (turn_ + 1) % buffers_.size();
  }
  const Buffer& buffer = buffers_[turn_];
  wait_for(buffer);
  return {buffer.data, buffer.wanted};
}

void BlockReader::request(std::size_t index) {
  Buffer& buffer = buffers_[index];
  buffer.offset = next_offset_;
  buffer.wanted =
      static_cast<std::size_t>(std::min<std::uint64_t>(config_.block_bytes, config_.end - next_offset_));
  buffer.have = 0;
  next_offset_ += buffer.wanted;
  if (buffer.wanted > 0) submit(index);
}

void BlockReader::submit(std::size_t index) {
  constexpr int kMostTries = 5000;  // of one millisecond each
  const Buffer& buffer = buffers_[index];
  for (int i = 0; i < kMostTries; ++i) {
    // Direct reads have an aligned length; at the end of a file they return what there is.
    const iovec piece{buffer.data + buffer.have, round_up(buffer.wanted, kBlockAlignment) - buffer.have};
    const IoRequest request{config_.fd, IoDirection::read, {&piece, 1}, buffer.offset + buffer.have, index};
    const int result = engine_.submit({&request, 1});
    if (result == 1) return;
    if (result != -EAGAIN && result != -EINTR)
      throw Failure(config_.target + ": read at offset " + std::to_string(buffer.offset) +
                    " not accepted: " + errno_text(-result));
    sleep_until_monotonic_ns(monotonic_ns() + 1'000'000);
  }
  throw Failure(config_.target + ": reads are refused for lack of resources: " + errno_text(EAGAIN));
}

void BlockReader::wait_for(const Buffer& wanted) {
  constexpr std::size_t kAlignment = 512;  // the rest of a short read starts on a sector
  while (wanted.have < wanted.wanted) {
    const int count = engine_.reap(completions_, 1, 10'000'000);
    if (count < 0) throw Failure(config_.target + ": waiting for reads failed: " + errno_text(-count));
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      Buffer& buffer = buffers_[completions_[i].tag];
      const std::int64_t result = completions_[i].result;
      const std::string place =
          config_.target + ": read at offset " + std::to_string(buffer.offset + buffer.have);
      if (result < 0 && result != -EAGAIN && result != -EINTR)
        throw Failure(place + " failed: " + errno_text(static_cast<int>(-result)));
      if (result == 0) throw Failure(place + ": unexpected end of the data");
      if (result > 0) buffer.have += static_cast<std::size_t>(result);
      if (buffer.have >= buffer.wanted) continue;
      buffer.have -= buffer.have % kAlignment;
      submit(completions_[i].tag);
    }
  }
}

}  // namespace daqwriter
