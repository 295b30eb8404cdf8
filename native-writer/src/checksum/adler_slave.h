// Promise: one chunk's adler32 by zlib, in the calling thread or in a standing slave thread that is handed
// one chunk after the other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

namespace daqwriter {

struct AdlerChunk {
  std::byte* destination = nullptr;  // null: no copy
  std::span<const std::byte> source;
};

std::uint32_t adler_by_zlib(std::uint32_t running, const AdlerChunk& chunk);
// In a thread other than the master: from the initial value, with its copy published.
std::uint32_t adler_in_slave(const AdlerChunk& chunk);
// False when the system does not allow it. A thread without a place of its own inherits its creator's, and
// even where that is wide the scheduler likes to wake it on the very CPU on which the master works.
// The thread must be alive: glibc takes one that has ended, though not been joined, for the calling thread.
bool place_thread(std::thread::native_handle_type thread, std::optional<int> cpu);

// Master and slave do not share cache lines with anybody else: the master polls one of them.
class alignas(64) AdlerSlave {
 public:
  AdlerSlave(bool busy_wait, std::optional<int> cpu);  // throws Failure, std::system_error
  ~AdlerSlave();
  AdlerSlave(const AdlerSlave&) = delete;
  AdlerSlave& operator=(const AdlerSlave&) = delete;

  // In turns: each chunk handed out is followed by one result().
  void hand_out(const AdlerChunk& chunk);
  std::uint32_t result();

 private:
  void loop();
  void stop();

  const bool busy_wait_;  // of the master for the result
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable ready_;
  AdlerChunk chunk_;
  bool work_ = false;
  bool stop_ = false;
  std::uint32_t result_ = 0;
  alignas(64) std::atomic<bool> done_{false};
  std::thread thread_;  // last: it uses all the others
};

}  // namespace daqwriter
