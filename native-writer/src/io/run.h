// Promise: a run of threads has one beginning and one end. A thread that cannot be started, throws or does
// not come back is told once; memory that the kernel may still use then is kept until the process ends.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/ticker.h"
#include "base/worker_thread.h"
#include "io/call_watch.h"

namespace daqwriter {

class Crew {
 public:
  // The run lasts until one_ended() has been called so many times.
  explicit Crew(std::size_t lasting) : running_(lasting) {}

  // `ended` is called when the work has ended, also when it could not be started; `held` see WorkerThread.
  // `note` is told why it failed, by the thread that calls this and last().
  void start(
      std::function<void()> work, const std::function<void(bool failed)>& ended,
      std::function<void(const std::string&)> note, std::function<bool()> held = [] { return false; }) {
    try {
      threads_.emplace_back(WorkerThread(std::move(work), ended, std::move(held)), note);
    } catch (const std::exception& failure) {
      note(failure.what());
      ended(true);
    }
  }
  void one_ended() {
    if (running_.fetch_sub(1) == 1) ticker_.finish();
  }
  // Until the end of all; `tick` at every interval and once more behind it.
  void last(std::int64_t start_ns, double interval_s, const std::function<void()>& tick) {
    ticker_.run(start_ns, interval_s, tick);
    for (auto& [thread, note] : threads_) {
      try {
        thread.join();
      } catch (const std::exception& failure) {
        note(std::string("a thread ended: ") + failure.what());
      }
    }
    tick();
  }

 private:
  std::atomic<std::size_t> running_;
  Ticker ticker_;
  std::vector<std::pair<WorkerThread, std::function<void(const std::string&)>>> threads_;
};

// Returns the result of `work`, or that of `given_up` for a call that held it. Both use `load`; it has
// watch(), stop() and unanswered().
template <typename Load, typename Work, typename GivenUp>
auto run_watched(const std::shared_ptr<Load>& load, double stall_limit_s, const Work& work,
                 const GivenUp& given_up) {
  const auto result = std::make_shared<decltype(work(*load))>();
  try {
    load->watch().run(load->stop(), to_ns(stall_limit_s), [=] { *result = work(*load); });
  } catch (const Unanswered& failure) {
    keep_until_exit(load);
    return given_up(failure);
  } catch (...) {
    if (load->unanswered()) keep_until_exit(load);  // another call than the one that failed
    throw;
  }
  if (load->unanswered()) keep_until_exit(load);
  return std::move(*result);
}

}  // namespace daqwriter
