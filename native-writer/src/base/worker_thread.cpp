#include "base/worker_thread.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace daqwriter {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{50};  // the end of a call wakes the caller at once

struct Call {
  std::function<void()> work;
  std::mutex mutex;
  std::condition_variable wake;
  bool done = false;
  std::exception_ptr failure;

  void run() {
    std::exception_ptr thrown;
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    failure = thrown;
    done = true;
    wake.notify_all();
  }
};

struct Kept {
  std::mutex mutex;
  std::vector<std::shared_ptr<void>> all;
};

// Never destroyed: the kernel may write into what it holds until the very end.
Kept& kept() {
  static Kept* const instance = new Kept;
  return *instance;
}

}  // namespace

WorkerThread::WorkerThread(std::function<void()> work, std::function<void(bool)> at_end,
                           std::function<bool()> held)
    : end_(std::make_shared<End>()), held_(std::move(held)) {
  const auto body = [end = end_, work = std::move(work), at_end = std::move(at_end)] {
    try {
      work();
    } catch (...) {
      end->failure = std::current_exception();
    }
    at_end(end->failure != nullptr);
    // Release: whoever sees it also sees what the work did.
    end->there.store(true, std::memory_order_release);
    end->there.notify_all();
  };
  try {
    thread_ = std::jthread(body);
  } catch (const std::system_error& error) {
    throw Failure(std::string("the system gives no more threads: ") + error.what() +
                  "; raise the limits of processes (ulimit -u) and memory (ulimit -v)");
  }
}

void WorkerThread::join() {
  if (thread_.joinable()) {
    end_->there.wait(false, std::memory_order_acquire);
    held_() ? thread_.detach() : thread_.join();
  }
  if (end_ && end_->failure) std::rethrow_exception(std::exchange(end_->failure, nullptr));
}

void call_until(const std::function<std::string()>& given_up, std::function<void()> work) {
  const auto call = std::make_shared<Call>();
  call->work = std::move(work);
  std::thread thread;
  try {
    thread = std::thread([call] { call->run(); });
  } catch (const std::system_error&) {
    call->run();  // better without a bound than not at all
    if (call->failure) std::rethrow_exception(call->failure);
    return;
  }
  std::unique_lock lock(call->mutex);
  while (!call->wake.wait_for(lock, kBetweenLooks, [&] { return call->done; })) {
    const std::string reason = given_up();
    if (reason.empty()) continue;
    thread.detach();
    throw Unanswered(reason);
  }
  lock.unlock();
  thread.join();
  if (call->failure) std::rethrow_exception(call->failure);
}

void CallLimits::within(const std::string& what, std::function<void()> call) const {
  const std::int64_t stall_ns = to_ns(stall_limit_s);
  Silence silence;
  silence.restart(monotonic_ns());
  const auto given_up = [&]() -> std::string {
    const bool interrupted = stop && stop->expired(after_ns);
    if (!interrupted && !silence.exceeds(stall_ns, monotonic_ns())) return "";
    return what + " has not returned " + without_answer(interrupted, stall_ns);
  };
  try {
    call_until(given_up, std::move(call));
  } catch (const Unanswered&) {
    keep_until_exit({});  // its thread must find the process as it is
    throw;
  }
}

void run_at_once(std::size_t count, const std::function<void(std::size_t)>& work) {
  if (count == 1) return work(0);
  std::vector<std::exception_ptr> thrown(count);
  const auto guarded = [&](std::size_t i) {
    try {
      work(i);
    } catch (...) {
      thrown[i] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) {
      try {
        threads.emplace_back(guarded, i);
      } catch (const std::system_error&) {
        guarded(i);  // better one after the other than not at all
      }
    }
  }
  for (const std::exception_ptr& each : thrown) {
    if (each) std::rethrow_exception(each);
  }
}

void keep_until_exit(std::shared_ptr<void> used_by_the_kernel) {
  const std::lock_guard lock(kept().mutex);
  kept().all.push_back(std::move(used_by_the_kernel));
}

ExitCode leave(ExitCode code) {
  if (anything_kept()) _exit(static_cast<int>(code));
  return code;
}

bool anything_kept() {
  const std::lock_guard lock(kept().mutex);
  return !kept().all.empty();
}

}  // namespace daqwriter
