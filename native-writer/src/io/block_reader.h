// Promise: hands out the bytes of [begin, end) in order, in large direct reads with several in flight. Never
// returns a short block without an error, and waits for no drive for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_identity.h"
#include "base/memory.h"
#include "base/stop_clock.h"
#include "format/record_format.h"
#include "io/requests.h"

namespace daqwriter {

// A file or block device, without waiting for anybody and without waking a device of another kind. Throws
// Refusal.
OpenFile open_for_direct_reading(const std::string& path);

// The memory that the kernel uses while reads are in flight.
struct ReadRoom {
  ReadRoom(unsigned depth, std::size_t block_bytes, std::unique_ptr<IoEngine> with)
      : memory(depth * block_bytes, std::nullopt), engine(std::move(with)) {}
  Memory memory;
  std::unique_ptr<IoEngine> engine;  // destroyed first: it waits for reads into the memory
};

class BlockReader {
 public:
  struct Config : Requests::Rules {  // `alignment`: of every read
    Config() {
      direction = IoDirection::read;
      depth = 4;
    }
    std::uint64_t begin = 0;  // aligned
    std::uint64_t end = 0;    // aligned, or the end of the file
    std::size_t block_bytes = 4u << 20;
  };
  // `room` is for this depth and block size, and used by no other reader at the same time.
  BlockReader(const Config& config, std::shared_ptr<ReadRoom> room);
  // Waits for the reads that nobody wants any more, as long as next() would. Reads that are still owed then
  // keep the room until the process ends (keep_until_exit()).
  ~BlockReader();
  BlockReader(const BlockReader&) = delete;
  BlockReader& operator=(const BlockReader&) = delete;

  // The next block, valid until the next call; empty at the end. Throws Failure; Unanswered when the target
  // owes answers and gives none, or gave none in the time that an interruption leaves.
  std::span<const std::byte> next();

 private:
  struct Buffer {
    std::byte* data = nullptr;
    iovec piece{};  // of the request
    std::size_t wanted = 0;
    bool there = false;
  };

  void request(std::size_t index);  // starts a buffer on the next unread range
  void reap();

  Config config_;
  std::shared_ptr<ReadRoom> room_;
  std::vector<Buffer> buffers_;
  Requests requests_;
  std::uint64_t next_offset_;
  std::size_t turn_ = 0;
  bool started_ = false;
};

}  // namespace daqwriter
