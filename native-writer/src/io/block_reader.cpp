#include "io/block_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/status.h"
#include "base/worker_thread.h"

namespace daqwriter {
namespace {

void require_file_or_device(bool known, const struct stat& status, const std::string& path) {
  if (!known)
    throw Refusal("--target " + path + ": cannot be opened for direct reading: " + errno_text(errno));
  if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))
    throw Refusal("--target " + path + ": neither a file nor a block device");
}

}  // namespace

int open_for_direct_reading(const std::string& path) {
  struct stat status {};
  require_file_or_device(stat(path.c_str(), &status) == 0, status, path);
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECT | O_NONBLOCK | O_CLOEXEC);
  require_file_or_device(fd >= 0, status, path);
  try {
    require_file_or_device(fstat(fd, &status) == 0 && fcntl(fd, F_SETFL, O_DIRECT) == 0, status, path);
  } catch (...) {
    close(fd);
    throw;
  }
  return fd;
}

BlockReader::BlockReader(const Config& config, std::shared_ptr<ReadRoom> room)
    : config_(config),
      room_(std::move(room)),
      buffers_(config.depth),
      requests_(config.depth),
      completions_(config.depth),
      next_offset_(config.begin) {
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    buffers_[i].data = room_->memory.data() + i * config.block_bytes;
}

BlockReader::~BlockReader() {
  try {
    while (requests_.count() > 0) {
      for (const IoCompletion& completion : reap()) requests_.settle(completion, monotonic_ns());
    }
  } catch (const Failure&) {  // whoever wanted the data was told
    keep_until_exit(room_);
  }
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
  Buffer& buffer = buffers_[index];
  buffer.asked_from = buffer.have;
  for (int i = 0; i < kMostTries; ++i) {
    // Direct reads have an aligned length; at the end of a file they return what there is.
    buffer.piece = {buffer.data + buffer.have, round_up(buffer.wanted, config_.alignment) - buffer.have};
    const IoRequest request{
        config_.fd, IoDirection::read, {&buffer.piece, 1}, buffer.offset + buffer.have, requests_.tag(index)};
    const int result = room_->engine->submit({&request, 1});
    if (result == 1) return requests_.taken(index, buffer.piece.iov_len, monotonic_ns());
    if (result != -EAGAIN && result != -EINTR)
      throw Failure(config_.target + ": read at offset " + std::to_string(buffer.offset) +
                    " not accepted: " + errno_text(-result));
    sleep_until_monotonic_ns(monotonic_ns() + 1'000'000);
  }
  throw Failure(config_.target + ": reads are refused for lack of resources: " + errno_text(EAGAIN));
}

void BlockReader::wait_for(const Buffer& wanted) {
  while (wanted.have < wanted.wanted) {
    for (const IoCompletion& completion : reap()) take(completion);
  }
}

std::span<const IoCompletion> BlockReader::reap() {
  constexpr std::int64_t kWaitNs = 10'000'000;
  const int count = room_->engine->reap(completions_, 1, kWaitNs);
  if (count < 0) throw Failure(config_.target + ": waiting for reads failed: " + errno_text(-count));
  if (count > 0) return {completions_.data(), static_cast<std::size_t>(count)};
  const bool interrupted = config_.stop && config_.stop->expired(StopClock::kAnswerNs);
  if (!interrupted && !requests_.silent_for(config_.stall_ns, monotonic_ns())) return {};
  std::uint64_t first = next_offset_;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (requests_.holds(i)) first = std::min(first, buffers_[i].offset + buffers_[i].have);
  }
  throw Unanswered(unanswered_text(config_.target, "reads", requests_, first, interrupted, config_.stall_ns));
}

void BlockReader::take(const IoCompletion& completion) {
  const std::optional<std::size_t> index = requests_.settle(completion, monotonic_ns());
  if (!index) throw Failure(false_answer_text(config_.target, completion));
  Buffer& buffer = buffers_[*index];
  const std::int64_t result = completion.result;
  const std::string place =
      config_.target + ": read at offset " + std::to_string(buffer.offset + buffer.have);
  if (result < 0 && result != -EAGAIN && result != -EINTR)
    throw Failure(place + " failed: " + errno_text(static_cast<int>(-result)));
  if (result == 0) throw Failure(place + ": unexpected end of the data");
  if (result > 0) buffer.have += static_cast<std::size_t>(result);
  if (buffer.have >= buffer.wanted) return;
  buffer.have -= buffer.have % config_.alignment;  // the rest of a short read starts on a sector
  // Less than a sector each time: the same bytes would come for ever.
  if (result > 0 && buffer.have <= buffer.asked_from) throw Failure(place + ": unexpected end of the data");
  submit(*index);
}

}  // namespace daqwriter
