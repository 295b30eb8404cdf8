#include "cli/signals.h"

#include <signal.h>
#include <unistd.h>

#include "base/status.h"
#include "base/stop_clock.h"

namespace daqwriter {
namespace {

// Written by the signal handler: lock-free, so that it is safe there.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int number) {
  int seen = 0;
  if (received_signal.compare_exchange_strong(seen, number, std::memory_order_relaxed)) return;
  if ((seen & kSecondSignal) != 0) _exit(static_cast<int>(ExitCode::interrupted));
  received_signal.fetch_or(kSecondSignal, std::memory_order_relaxed);
}

}  // namespace

const std::atomic<int>& stop_on_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigfillset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    // A user of nohup wants a closed terminal to change nothing.
    if (number != SIGHUP || before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  return received_signal;
}

}  // namespace daqwriter
