// Promise: a run of threads has one beginning and one end. A thread that cannot be started, throws or does
// not come back is told once; memory that the kernel may still use then is kept until the process ends.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/worker_thread.h"

namespace daqwriter {

// Calls back at every multiple of an interval until the work is finished, and not later than that; and looks
// after the work in between.
class Ticker {
 public:
  // By any thread, once; what it did before is visible to whoever returns from run().
  void finish() {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    wake_.notify_all();
  }

  // Blocks until finish(); `tick` and, every 50 ms, `look` run in this thread.
  void run(std::int64_t start_ns, double interval_s, const std::function<void()>& tick,
           const std::function<void()>& look) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kBetweenLooks{50};
    const std::chrono::nanoseconds interval(to_ns(interval_s));
    auto next = Clock::time_point(std::chrono::nanoseconds(start_ns)) + interval;
    std::unique_lock lock(mutex_);
    while (
        !wake_.wait_until(lock, std::min(next, Clock::now() + kBetweenLooks), [this] { return finished_; })) {
      lock.unlock();
      look();
      if (Clock::now() >= next) {
        tick();
        next += interval;
      }
      lock.lock();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool finished_ = false;
};

class Crew {
 public:
  // The run lasts until one_ended() has been called so many times.
  explicit Crew(std::size_t lasting) : running_(lasting) {}

  // `ended` is called when the work has ended, also when it could not be started. `note` is told why it
  // failed, by the thread that calls this and run_to_end(). `held` see WorkerThread. `lost`, asked time and
  // again while the run lasts, says that the thread is held in a call and will never do anything again: it
  // has then ended, as one that failed.
  void start(
      std::function<void()> work, const std::function<void(bool failed)>& ended,
      const std::function<void(const std::string&)>& note, std::function<bool()> held = [] { return false; },
      std::function<bool()> lost = [] { return false; }) {
    try {
      WorkerThread thread(std::move(work), ended, std::move(held));
      threads_.push_back({std::move(thread), ended, note, std::move(lost)});
    } catch (const std::exception& failure) {
      note(failure.what());
      ended(true);
    }
  }
  void one_ended() {
    if (running_.fetch_sub(1) == 1) ticker_.finish();
  }
  // Until the end of all; `tick` at every interval and once more behind it.
  void run_to_end(std::int64_t start_ns, double interval_s, const std::function<void()>& tick) {
    ticker_.run(start_ns, interval_s, tick, [this] { look(); });
    for (Member& each : threads_) {
      try {
        each.thread.join();
      } catch (const std::exception& failure) {
        each.note(std::string("a thread ended: ") + failure.what());
      }
    }
    tick();
  }

 private:
  struct Member {
    WorkerThread thread;
    std::function<void(bool failed)> ended;
    std::function<void(const std::string&)> note;
    std::function<bool()> lost;
  };

  void look() {
    for (Member& each : threads_) {
      if (!each.lost()) continue;
      each.thread.give_up();
      each.ended(true);
    }
  }

  std::atomic<std::size_t> running_;
  Ticker ticker_;
  std::vector<Member> threads_;
};

// Returns the result of `work`, which uses `load`. Keeps it when the kernel may still use what it has.
template <typename Load, typename Work>
auto run_and_keep(const std::shared_ptr<Load>& load, const Work& work) {
  struct Keeper {
    const std::shared_ptr<Load>& load;
    ~Keeper() {
      if (load->unanswered()) keep_until_exit(load);
    }
  } const keeper{load};
  return work(*load);
}

}  // namespace daqwriter
