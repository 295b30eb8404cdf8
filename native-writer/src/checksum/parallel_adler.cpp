#include "checksum/parallel_adler.h"

#include <pthread.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/placement.h"
#include "base/status.h"
#include "base/units.h"
#include "checksum/checksum.h"

namespace daqwriter {
namespace {

using Cpus = std::vector<int>;

// A slave without a place of its own inherits its creator's, and even where that is wide the scheduler likes
// to wake it on the very CPU on which the master works.
Cpus cpu_of(const Cpus& cpus, std::size_t slave) {
  return cpus.empty() ? Cpus() : Cpus{cpus[slave % cpus.size()]};
}

void cpu_relax() {
#ifdef __SSE2__
  __builtin_ia32_pause();
#endif
}

struct AdlerChunk {
  std::byte* destination = nullptr;  // null: no copy
  std::span<const std::byte> source;
};

std::uint32_t adler_by_zlib(std::uint32_t running, const AdlerChunk& chunk) {
  const auto* bytes = reinterpret_cast<const Bytef*>(chunk.source.data());
  // zlib takes a null pointer, which an empty span may have, as the request for the initial value.
  if (!chunk.source.empty())
    running = static_cast<std::uint32_t>(adler32_z(running, bytes, chunk.source.size()));
  if (chunk.destination) stream_copy(chunk.destination, chunk.source.data(), chunk.source.size());
  return running;
}

// In a thread other than the master: from the initial value, with its copy published.
std::uint32_t adler_in_slave(const AdlerChunk& chunk) {
  const std::uint32_t result = adler_by_zlib(checksum_initial(ChecksumKind::adler32), chunk);
  publish_streamed();
  return result;
}

// A standing thread that is handed one chunk after the other. Master and slave do not share cache lines with
// anybody else: the master polls one of them.
class alignas(64) AdlerSlave {
 public:
  AdlerSlave(bool busy_wait, const Cpus& cpu) : busy_wait_(busy_wait), thread_([this] { loop(); }) {
    if (pin_thread(thread_.native_handle(), cpu) == 0) return;
    stop();
    throw Failure("cannot pin a checksum thread to CPU " + std::to_string(cpu.front()));
  }
  ~AdlerSlave() { stop(); }
  AdlerSlave(const AdlerSlave&) = delete;
  AdlerSlave& operator=(const AdlerSlave&) = delete;

  // In turns: each chunk handed out is followed by one result().
  void hand_out(const AdlerChunk& chunk) {
    {
      const std::lock_guard lock(mutex_);
      chunk_ = chunk;
      work_ = true;
      // Relaxed: only the slave sets it again, after it has taken this lock.
      done_.store(false, std::memory_order_relaxed);
    }
    wake_.notify_one();
  }

  std::uint32_t result() {
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

 private:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  void loop() {
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

// Off, or vectorised and fused with the copy: the calling thread is enough.
class Alone : public AdlerEngine {
 public:
  explicit Alone(ChecksumKind kind) : kind_(kind) {}

 private:
  std::uint32_t run(std::uint32_t running, std::byte* destination,
                    std::span<const std::byte> source) override {
    if (!destination) return checksum_update(kind_, running, source);
    return copy_checksum(kind_, running, destination, source.data(), source.size());
  }

  ChecksumKind kind_;
};

// Splits, lets the derived class compute all chunks but the first, computes that one, combines.
class Parallel : public AdlerEngine {
 public:
  Parallel(unsigned threads, std::size_t smallest)
      : threads_(threads), smallest_(threads == 1 ? SIZE_MAX : smallest), chunks_(threads) {}

 protected:
  virtual void hand_out(std::size_t slave, const AdlerChunk& chunk) = 0;
  virtual std::uint32_t result(std::size_t slave) = 0;

 private:
  std::uint32_t run(std::uint32_t running, std::byte* destination,
                    std::span<const std::byte> source) override {
    if (source.size() < smallest_ || source.empty()) return adler_by_zlib(running, {destination, source});
    // Whole cache lines, so that no two threads write to the same one.
    constexpr std::size_t kSplitAt = 64;  // whole lines of a cache
    const std::size_t share = (source.size() / threads_ / kSplitAt + 1) * kSplitAt;
    std::size_t count = 0;
    for (std::size_t begin = 0; begin < source.size(); begin += share) {
      const auto part = source.subspan(begin, std::min(share, source.size() - begin));
      chunks_[count] = {destination ? destination + begin : nullptr, part};
      if (count > 0) hand_out(count - 1, chunks_[count]);
      ++count;
    }
    running = adler_by_zlib(running, chunks_[0]);
    for (std::size_t i = 1; i < count; ++i) {
      running = static_cast<std::uint32_t>(
          adler32_combine(running, result(i - 1), static_cast<z_off_t>(chunks_[i].source.size())));
    }
    return running;
  }

  unsigned threads_;
  std::size_t smallest_;
  std::vector<AdlerChunk> chunks_;
};

class ThreadPerChunk : public Parallel {
 public:
  ThreadPerChunk(unsigned threads, std::size_t smallest, Cpus cpus)
      : Parallel(threads, smallest), cpus_(std::move(cpus)), slaves_(threads - 1), results_(threads - 1) {}

 private:
  void hand_out(std::size_t slave, const AdlerChunk& chunk) override {
    try {
      slaves_[slave] = std::thread([this, slave, chunk] {
        pin_thread(pthread_self(), cpu_of(cpus_, slave));  // if refused: slower, but right
        results_[slave] = adler_in_slave(chunk);
      });
    } catch (const std::exception&) {
      results_[slave] = adler_in_slave(chunk);  // no thread to be had: the same
    }
  }
  std::uint32_t result(std::size_t slave) override {
    if (slaves_[slave].joinable()) slaves_[slave].join();
    return results_[slave];
  }

  Cpus cpus_;
  std::vector<std::thread> slaves_;
  std::vector<std::uint32_t> results_;
};

class Pool : public Parallel {
 public:
  Pool(unsigned threads, std::size_t smallest, bool busy_wait, const Cpus& cpus)
      : Parallel(threads, smallest) {
    for (std::size_t slave = 0; slave + 1 < threads; ++slave)
      slaves_.push_back(std::make_unique<AdlerSlave>(busy_wait, cpu_of(cpus, slave)));
  }

 private:
  void hand_out(std::size_t slave, const AdlerChunk& chunk) override { slaves_[slave]->hand_out(chunk); }
  std::uint32_t result(std::size_t slave) override { return slaves_[slave]->result(); }

  std::vector<std::unique_ptr<AdlerSlave>> slaves_;
};

}  // namespace

AdlerVariant parse_adler_variant(std::string_view name) {
  const auto found = std::find(kAdlerVariantNames.begin(), kAdlerVariantNames.end(), name);
  if (found != kAdlerVariantNames.end()) return static_cast<AdlerVariant>(found - kAdlerVariantNames.begin());
  throw Refusal("checksum variant '" + std::string(name) + "': use one of " +
                joined({kAdlerVariantNames.begin(), kAdlerVariantNames.end()}));
}

std::string adler_variant_name(AdlerVariant variant) {
  return std::string(kAdlerVariantNames.at(static_cast<std::size_t>(variant)));
}

bool uses_threads(AdlerVariant variant) {
  return variant == AdlerVariant::thread_per_chunk || variant == AdlerVariant::pool_cv ||
         variant == AdlerVariant::pool_busy;
}

std::size_t default_smallest_parallel_bytes(AdlerVariant variant) {
  constexpr std::size_t kMiB = 1 << 20;
  switch (variant) {
    case AdlerVariant::thread_per_chunk:
      return 4 * kMiB;
    case AdlerVariant::pool_busy:
      return kMiB / 2;
    default:
      return kMiB;
  }
}

std::unique_ptr<AdlerEngine> make_adler_engine(AdlerVariant variant, unsigned threads,
                                               std::optional<std::size_t> smallest_parallel_bytes,
                                               const std::vector<int>& slave_cpus) {
  if (threads == 0) throw Refusal("0 checksum threads: the calling thread is one of them, give at least 1");
  const std::size_t smallest = smallest_parallel_bytes.value_or(default_smallest_parallel_bytes(variant));
  try {
    switch (variant) {
      case AdlerVariant::off:
        return std::make_unique<Alone>(ChecksumKind::off);
      case AdlerVariant::fused:
        return std::make_unique<Alone>(ChecksumKind::adler32);
      case AdlerVariant::thread_per_chunk:
        return std::make_unique<ThreadPerChunk>(threads, smallest, slave_cpus);
      case AdlerVariant::pool_cv:
      case AdlerVariant::pool_busy:
        return std::make_unique<Pool>(threads, smallest, variant == AdlerVariant::pool_busy, slave_cpus);
      case AdlerVariant::zlib:
        break;
    }
    return std::make_unique<ThreadPerChunk>(1, 0, slave_cpus);  // which with one thread is zlib in the master
  } catch (const std::system_error& error) {
    throw Failure(std::to_string(threads) + " checksum threads for " + adler_variant_name(variant) + ": " +
                  error.what() + "; ask for fewer");
  }
}

}  // namespace daqwriter
