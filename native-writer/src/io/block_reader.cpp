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
    throw Refusal("--target " + path + ": cannot be opened for direct reading: " + errno_text(errno), errno);
  if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))
    throw Refusal("--target " + path + ": neither a file nor a block device");
}

}  // namespace

OpenFile open_for_direct_reading(const std::string& path) {
  struct stat status {};
  require_file_or_device(stat(path.c_str(), &status) == 0, status, path);
  OpenFile fd = open(path.c_str(), O_RDONLY | O_DIRECT | O_NONBLOCK | O_CLOEXEC);
  require_file_or_device(fd >= 0, status, path);
  require_file_or_device(fstat(fd, &status) == 0 && fcntl(fd, F_SETFL, O_DIRECT) == 0, status, path);
  return fd;
}

BlockReader::BlockReader(const Config& config, std::shared_ptr<ReadRoom> room)
    : config_(config),
      room_(std::move(room)),
      buffers_(config.depth),
      requests_(config, config.depth, *room_->engine),
      next_offset_(config.begin) {
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    buffers_[i].data = room_->memory.data() + i * config.block_bytes;
}

BlockReader::~BlockReader() {
  requests_.drop_waiting();
  while (requests_.in_flight() > 0 && !requests_.given_up()) reap();
  if (requests_.in_flight() > 0) keep_until_exit(room_);  // whoever wanted the data was told
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
  while (!buffer.there && !requests_.failed()) reap();
  if (requests_.interrupted() || requests_.silent()) throw Unanswered(requests_.error().text);
  if (requests_.failed()) throw Failure(requests_.error().text, requests_.error().target_errno);
  return {buffer.data, buffer.wanted};
}

void BlockReader::request(std::size_t index) {
  Buffer& buffer = buffers_[index];
  const std::uint64_t offset = next_offset_;
  buffer.wanted =
      static_cast<std::size_t>(std::min<std::uint64_t>(config_.block_bytes, config_.end - offset));
  buffer.there = buffer.wanted == 0;
  next_offset_ += buffer.wanted;
  if (buffer.there) return;
  // Direct reads have an aligned length; at the end of a file they return what there is.
  buffer.piece = {buffer.data, round_up(buffer.wanted, config_.alignment)};
  requests_.ask(index, {&buffer.piece, 1}, offset, buffer.wanted);
  requests_.submit();
}

void BlockReader::reap() {
  constexpr std::int64_t kWaitNs = 10'000'000;
  requests_.reap(1, kWaitNs, [this](std::size_t index) { buffers_[index].there = true; });
}

}  // namespace daqwriter
