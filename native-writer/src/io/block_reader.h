// Promise: hands out the bytes of [begin, end) in order, in large direct reads with several in flight. Never
// returns a short block without an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/record_format.h"
#include "io/io_engine.h"

namespace daqwriter {

// A file or block device, without waiting for anybody and without waking a device of another kind. Throws
// Refusal.
int open_for_direct_reading(const std::string& path);

class BlockReader {
 public:
  struct Config {
    int fd = -1;
    std::string target;
    std::uint64_t begin = 0;  // aligned
    std::uint64_t end = 0;    // aligned, or the end of the file
    std::size_t block_bytes = 4u << 20;
    unsigned depth = 4;
    std::size_t alignment = kBlockAlignment;  // of every read
  };
  // `memory` holds depth * block_bytes, aligned.
  BlockReader(const Config& config, IoEngine& engine, std::byte* memory);

  // The next block, valid until the next call; empty at the end. Throws Failure.
  std::span<const std::byte> next();

 private:
  struct Buffer {
    std::byte* data = nullptr;
    std::uint64_t offset = 0;
    std::size_t wanted = 0;
    std::size_t have = 0;
    std::size_t asked_from = 0;  // what it had when it was asked for last
  };

  void request(std::size_t index);  // starts a buffer on the next unread range
  void submit(std::size_t index);   // asks for what the buffer still lacks
  void wait_for(const Buffer& buffer);

  Config config_;
  IoEngine& engine_;
  std::vector<Buffer> buffers_;
  std::vector<IoCompletion> completions_;
  std::uint64_t next_offset_;
  std::size_t turn_ = 0;
  bool started_ = false;
};

}  // namespace daqwriter
