#include "io/call_watch.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/units.h"
#include "base/worker_thread.h"

namespace daqwriter {
namespace {

// A call that an interruption finds is given as long: most of them are about to return.
constexpr std::int64_t kAboutToReturnNs = 200'000'000;

class Inside {
 public:
  explicit Inside(CallMark& mark) : mark_(mark) { turn(); }
  ~Inside() { turn(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  // One thread calls an engine, so that a store does for an increment. Relaxed: the marks say when, and order
  // nothing.
  void turn() {
    mark_.turns.store(mark_.turns.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  CallMark& mark_;
};

class WatchedEngine : public IoEngine {
 public:
  WatchedEngine(std::unique_ptr<IoEngine> engine, std::shared_ptr<CallMark> mark)
      : engine_(std::move(engine)), mark_(std::move(mark)) {}
  std::string_view name() const override { return engine_->name(); }
  std::string note() const override { return engine_->note(); }
  std::vector<Feature> features() const override { return engine_->features(); }
  void register_memory(std::span<const iovec> regions) override { engine_->register_memory(regions); }
  void register_file(int fd) override { engine_->register_file(fd); }
  int submit(std::span<const IoRequest> requests) override {
    const Inside inside(noted(requests));
    return engine_->submit(requests);
  }
  int accept(std::span<const IoRequest> requests) override {
    const Inside inside(noted(requests));
    return engine_->accept(requests);
  }
  std::vector<std::uint64_t> unsubmitted() const override { return engine_->unsubmitted(); }
  int reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) override {
    const Inside inside(*mark_);
    return engine_->reap(out, min_count, timeout_ns);
  }

 private:
  CallMark& noted(std::span<const IoRequest> requests) {
    if (!requests.empty()) mark_->fd.store(requests.front().fd, std::memory_order_relaxed);
    return *mark_;
  }

  std::unique_ptr<IoEngine> engine_;
  std::shared_ptr<CallMark> mark_;
};

// The link is the kernel's own memory: reading it waits for no drive.
std::string name_of(int fd) {
  std::error_code unknown;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), unknown);
  return unknown ? "the target" : path.string();
}

}  // namespace

EngineFactory CallWatch::watched(EngineFactory make) {
  return [this, inner = std::move(make)](unsigned depth) { return watched(inner(depth)); };
}

std::unique_ptr<IoEngine> CallWatch::watched(std::unique_ptr<IoEngine> engine) {
  auto mark = std::make_shared<CallMark>();
  const std::lock_guard lock(mutex_);
  all_.push_back({mark, 0, {}});
  return std::make_unique<WatchedEngine>(std::move(engine), std::move(mark));
}

void CallWatch::run(const StopClock& stop, std::int64_t stall_ns, std::function<void()> work) {
  call_until([&] { return held(stop, stall_ns); }, std::move(work));
}

// Returns the error text for a call that does not return; empty while all do.
std::string CallWatch::held(const StopClock& stop, std::int64_t stall_ns) {
  const std::int64_t now = monotonic_ns();
  const bool interrupted = stop.expired(StopClock::kAnswerNs);
  const std::lock_guard lock(mutex_);
  for (Watched& each : all_) {
    const std::uint64_t turns = each.mark->turns.load(std::memory_order_relaxed);
    if (turns % 2 == 0 || turns != std::exchange(each.seen, turns)) {
      each.inside.end(now);
      continue;
    }
    if (!each.inside.exceeds(interrupted ? std::min(kAboutToReturnNs, stall_ns) : stall_ns, now)) continue;
    return name_of(each.mark->fd.load(std::memory_order_relaxed)) +
           ": the system has not returned from the call that hands it requests " +
           (interrupted ? "in the time that an interruption leaves"
                        : "for " + format_number(seconds(stall_ns)) +
                              " s; look at the drive and the kernel's log (a frozen file system?), or raise "
                              "--stall-limit") +
           "; what it was given last may be done or not";
  }
  return "";
}

}  // namespace daqwriter
