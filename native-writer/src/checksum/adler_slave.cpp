#include "checksum/adler_slave.h"

#include <pthread.h>
#include <sched.h>
#include <zlib.h>

#include "base/status.h"
#include "checksum/checksum.h"

namespace daqwriter {
namespace {

void cpu_relax() {
#ifdef __SSE2__
  __builtin_ia32_pause();
#endif
}

}  // namespace

std::uint32_t adler_by_zlib(std::uint32_t running, const AdlerChunk& chunk) {
  const auto* bytes = reinterpret_cast<const Bytef*>(chunk.source.data());
  // zlib takes a null pointer, which an empty span may have, as the request for the initial value.
  if (!chunk.source.empty())
    running = static_cast<std::uint32_t>(adler32_z(running, bytes, chunk.source.size()));
  if (chunk.destination) stream_copy(chunk.destination, chunk.source.data(), chunk.source.size());
  return running;
}

std::uint32_t adler_in_slave(const AdlerChunk& chunk) {
  const std::uint32_t result = adler_by_zlib(checksum_initial(ChecksumKind::adler32), chunk);
  publish_streamed();
  return result;
}

bool place_thread(std::thread::native_handle_type thread, std::optional<int> cpu) {
  if (!cpu) return true;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(*cpu), &set);
  return pthread_setaffinity_np(thread, sizeof set, &set) == 0;
}

AdlerSlave::AdlerSlave(bool busy_wait, std::optional<int> cpu)
    : busy_wait_(busy_wait), thread_([this] { loop(); }) {
  if (place_thread(thread_.native_handle(), cpu)) return;
  stop();
  throw Failure("cannot pin a checksum thread to CPU " + std::to_string(*cpu));
}

AdlerSlave::~AdlerSlave() {
  stop();
}

void AdlerSlave::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void AdlerSlave::hand_out(const AdlerChunk& chunk) {
  {
    const std::lock_guard lock(mutex_);
    chunk_ = chunk;
    work_ = true;
    // Relaxed: only the slave sets it again, after it has taken this lock.
    done_.store(false, std::memory_order_relaxed);
  }
  wake_.notify_one();
}

std::uint32_t AdlerSlave::result() {
  if (busy_wait_) {
    constexpr unsigned kPatience = 4096;  // the slave may have to share this very CPU
    // Acquire, with the slave's release: the result, and the bytes it copied, are seen with the flag.
    for (unsigned turn = 1; !done_.load(std::memory_order_acquire); ++turn) {
      if (turn % kPatience == 0) std::this_thread::yield();
      cpu_relax();
    }
    return result_;
  }
  std::unique_lock lock(mutex_);
  // Relaxed here and in loop(): in this way of waiting the mutex orders everything.
  ready_.wait(lock, [&] { return done_.load(std::memory_order_relaxed); });
  return result_;
}

void AdlerSlave::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return work_ || stop_; });
    if (stop_) return;
    work_ = false;
    const AdlerChunk chunk = chunk_;
    lock.unlock();
    result_ = adler_in_slave(chunk);
    if (busy_wait_) done_.store(true, std::memory_order_release);
    lock.lock();
    if (busy_wait_) continue;
    done_.store(true, std::memory_order_relaxed);
    ready_.notify_one();
  }
}

}  // namespace daqwriter
