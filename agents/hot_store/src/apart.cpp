#include "apart.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <new>
#include <optional>

#include "base/clock.h"
#include "base/stop_clock.h"
#include "cli/cli.h"

namespace hotstore {
namespace {

using daqwriter::errno_text;
using daqwriter::ExitCode;
using daqwriter::Failure;
using daqwriter::monotonic_ns;

constexpr int kLookMs = 100;
constexpr double kGrace_s = 4;  // between the signal and the end by force
constexpr std::array kStopSignals{SIGINT, SIGTERM, SIGHUP};

struct Unmap {
  void operator()(Watch* watch) const { munmap(watch, sizeof *watch); }
};
using SharedWatch = std::unique_ptr<Watch, Unmap>;

SharedWatch shared_watch() {
  void* room = mmap(nullptr, sizeof(Watch), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) throw Failure("mmap: " + errno_text(errno));
  return SharedWatch(new (room) Watch);
}

// The parent passes signals on through the watch, however many processes of the group they reach. The child
// ends with its parent: killing the command kills the work.
[[noreturn]] void be_child(pid_t parent, Watch& watch, const Work& work) {
  for (const int number : kStopSignals) signal(number, SIG_IGN);
  signal(SIGXFSZ, SIG_DFL);  // a store that may not grow any more is a death that is told
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(static_cast<int>(ExitCode::failed));
  const ExitCode code = daqwriter::reported("hotstore", [&] { return work(watch); });
  std::cout.flush();
  std::fflush(nullptr);
  _exit(static_cast<int>(code));
}

// Waits until the child is gone (its end of the pipe is closed) and for no longer than a look.
void look(int ends) {
  pollfd waiting{ends, POLLIN, 0};
  poll(&waiting, 1, kLookMs);
}

std::optional<Death> overdue(const Watch& watch, std::int64_t stopped_ns) {
  const std::int64_t now = monotonic_ns(), due = watch.due_ns.load();
  const bool at_once = (watch.stop_signal & daqwriter::kSecondSignal) != 0;
  if (stopped_ns != 0 && (at_once || now - stopped_ns > daqwriter::to_ns(kGrace_s)))
    return Death{"it did not end when it was asked to, and was ended by force", true};
  if (due != 0 && now > due) return Death{"it made no progress any more, and was ended by force"};
  return std::nullopt;
}

std::string words_of(int number) {
  const std::string name = std::string("SIG") + (sigabbrev_np(number) ? sigabbrev_np(number) : "?");
  switch (number) {
    case SIGBUS:
      return "it died of SIGBUS: a page of a file is not there (the file was cut, or its drive failed)";
    case SIGABRT:
      return "it died of SIGABRT: the database found a page that cannot be right";
    default:
      return "it died of " + name;
  }
}

ExitCode attend(pid_t child, int ends, Watch& watch, const std::atomic<int>& stop_signal,
                const Burial& burial) {
  std::optional<Death> death;
  std::int64_t stopped_ns = 0;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    watch.stop_signal = stop_signal.load();
    if (watch.stop_signal != 0 && stopped_ns == 0) stopped_ns = monotonic_ns();
    if (!death) {
      death = overdue(watch, stopped_ns);
      if (death) kill(child, SIGKILL);
    }
    look(ends);
  }
  if (WIFEXITED(status)) return static_cast<ExitCode>(WEXITSTATUS(status));
  return burial(death ? *death : Death{words_of(WTERMSIG(status))});
}

}  // namespace

void Watch::allow(double seconds) {
  due_ns = monotonic_ns() + daqwriter::to_ns(seconds);
}

ExitCode run_apart(const std::atomic<int>& stop_signal, const Work& work, const Burial& burial) {
  const SharedWatch watch = shared_watch();
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) throw Failure("pipe: " + errno_text(errno));
  std::cout.flush();
  std::fflush(nullptr);
  const pid_t parent = getpid(), child = fork();
  if (child == 0) be_child(parent, *watch, work);
  const int error = errno;
  close(pipe_ends[1]);
  if (child < 0) {
    close(pipe_ends[0]);
    throw Failure("fork: " + errno_text(error));
  }
  const ExitCode code = attend(child, pipe_ends[0], *watch, stop_signal, burial);
  close(pipe_ends[0]);
  return code;
}

}  // namespace hotstore
