// Promise: no exception leaves a thread and none is lost: it is kept and thrown again where the thread is
// joined. Nothing that the kernel may still use is freed, and nobody waits for a call that does not return.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "base/status.h"
#include "base/stop_clock.h"

namespace daqwriter {

class WorkerThread {
 public:
  // `at_end` is called in the thread whatever way `work` ends, told whether by an exception; it must not
  // throw. Throws Failure when the system gives no thread.
  // `held`, asked when the work has ended: the kernel owes the thread answers, and may not let it end
  // (io_uring waits for them at a thread's exit). It is then not waited for, and what it used must be kept.
  WorkerThread(std::function<void()> work, std::function<void(bool failed)> at_end,
               std::function<bool()> held);

  // Throws what left `work`.
  void join();
  // It is held in a call, and never does anything again: it is not waited for.
  void give_up() { thread_.detach(); }

 private:
  struct End {
    std::exception_ptr failure;
    std::atomic<bool> there{false};
  };
  std::shared_ptr<End> end_;
  std::function<bool()> held_;
  std::jthread thread_;
};

// A call or a write that did not come back: what it uses must stay as it is until the process ends.
class Unanswered : public Failure {
  using Failure::Failure;
};

// The limits of calls that may wait for a drive and are not asked again.
struct CallLimits {
  double stall_limit_s = kDefaultStallLimitS;
  const StopClock* stop = nullptr;               // null: nobody interrupts
  std::int64_t after_ns = StopClock::kAnswerNs;  // of an interruption

  // Runs `call` and throws what it throws; Unanswered when it has not returned within one of them. Then it
  // still runs: what it uses must be kept (keep_until_exit(), or its own), and the process ends by leave().
  void within(const std::string& what, std::function<void()> call) const;
  template <typename Answer>
  Answer answer(const std::string& what, std::function<Answer()> call) const {
    const auto room = std::make_shared<Answer>();
    within(what, [room, call = std::move(call)] { *room = call(); });
    return std::move(*room);
  }
};

// The same without limits: Unanswered with what `given_up` says, which is asked every 50 ms, as
// soon as it says anything.
void call_until(const std::function<std::string()>& given_up, std::function<void()> call);

// Runs work(0) ... work(count - 1), each in a thread of its own, a single one in the caller's. When all have
// ended, throws what left the first of them that threw.
void run_at_once(std::size_t count, const std::function<void(std::size_t)>& work);

// Never destroyed. Whoever ends the process must leave by _exit() when anything was kept.
void keep_until_exit(std::shared_ptr<void> used_by_the_kernel);
bool anything_kept();
// Ends the process at once with this code when anything was kept; before what it uses goes out of scope.
ExitCode leave(ExitCode code);

// Returns the result of `load`; if that throws, the result of `failed` for the error's message. A Refusal
// passes through, and so does an Unanswered after a signal: the interruption did not wait for the target's
// making.
template <typename Load, typename Failed>
auto or_failed(const Load& load, const Failed& failed, const std::atomic<int>& stop_signal)
    -> decltype(load()) {
  try {
    return load();
  } catch (const Refusal&) {
    throw;
  } catch (const Unanswered& failure) {
    if (stop_signal != 0) throw;
    return failed(failure.what());
  } catch (const std::bad_alloc&) {
    return failed("the system gives no more memory; raise its limit (ulimit -v) or use smaller buffers");
  } catch (const std::exception& failure) {
    return failed(failure.what());
  }
}

}  // namespace daqwriter
