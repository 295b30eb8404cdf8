#include "load.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "ack_log.h"
#include "base/status.h"
#include "base/units.h"
#include "format/payload.h"
#include "store_options.h"

namespace hotstore {
namespace {

using daqwriter::Failure;
using daqwriter::monotonic_ns;
using daqwriter::Refusal;

constexpr std::uint64_t kPoolBytes = 1 << 20;
constexpr auto kFullPause = std::chrono::microseconds(200);
constexpr auto kEmptyPause = std::chrono::microseconds(200);
constexpr int kSpins = 64;

enum class Phase { warm_up, measured, over };

// What one thread did in the measured time; the counter is read while it runs.
struct alignas(64) Tally {
  std::atomic<std::uint64_t> operations{0};
  std::atomic<std::uint64_t> events{0};  // since the start, never set back: how
                                         // far this producer or consumer is
  daqwriter::Histogram latency_ns;
  std::map<std::string, std::uint64_t> answers;
  std::int64_t waited_ns = 0;
  std::uint64_t corrupt = 0;
  std::uint64_t returned = 0;
  std::string error;
};

class Load {
 public:
  Load(HotStore& store, const LoadOptions& options)
      : store_(store),
        options_(options),
        pool_(options.value_bytes),
        producers_(options.producers),
        consumers_(options.consumers) {}

  LoadResult run(const std::atomic<int>& stop_signal);

 private:
  bool over() const { return phase_.load(std::memory_order_relaxed) == Phase::over; }
  Key key_of(std::uint64_t event, std::uint64_t detector) const { return {event, detector, 1}; }
  std::uint64_t event_of(unsigned producer, std::uint64_t index) const {
    return options_.first_event + (index * options_.producers + producer) * options_.stride;
  }
  void guarded(Tally& tally, const std::function<void()>& work);
  void count(Tally& tally, Answer answer) const { ++tally.answers[answer_name(answer)]; }
  void done(Tally& tally, std::int64_t started_ns);
  std::uint64_t backlog() const;
  bool wait_for_room(Tally& tally);
  void produce(unsigned producer, AckLog log);
  bool put_fragment(Tally& tally, std::uint64_t event, std::uint64_t detector, bool& certain);
  void consume_direct(unsigned consumer, AckLog log);
  void get_and_remove(Tally& tally, AckLog& log, std::uint64_t event);
  void consume_any(unsigned consumer, AckLog log);
  void finish_event(Tally& tally, AckLog& log, const Claim& claim);
  void check_value(Tally& tally, std::uint64_t event, std::uint64_t detector, View value) const;
  void hold() const;
  void sample(LoadResult& result, const std::atomic<int>& stop_signal);
  static std::uint64_t total(const std::vector<Tally>& tallies);
  static void gather(const std::vector<Tally>& tallies, SideResult& side, LoadResult& result);

  HotStore& store_;
  const LoadOptions& options_;
  ValuePool pool_;
  std::vector<Tally> producers_;
  std::vector<Tally> consumers_;
  std::atomic<Phase> phase_{Phase::warm_up};
  std::atomic<unsigned> running_{0};
};

void Load::guarded(Tally& tally, const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& failure) {
    tally.error = failure.what();
    phase_ = Phase::over;
  }
  --running_;
}

void Load::done(Tally& tally, std::int64_t started_ns) {
  if (phase_.load(std::memory_order_relaxed) != Phase::measured) return;
  tally.latency_ns.record(monotonic_ns() - started_ns);
  tally.operations.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t Load::backlog() const {
  std::uint64_t put = 0, removed = 0;
  for (const Tally& tally : producers_) put += tally.events.load(std::memory_order_relaxed);
  for (const Tally& tally : consumers_) removed += tally.events.load(std::memory_order_relaxed);
  return put > removed ? (put - removed) * options_.fragments * options_.value_bytes : 0;
}

// False when the load is over meanwhile. Without consumers in this process the
// store itself says when it is full.
bool Load::wait_for_room(Tally& tally) {
  if (options_.consumers == 0 || backlog() < options_.backlog_bytes) return !over();
  const std::int64_t started = monotonic_ns();
  while (!over() && backlog() >= options_.backlog_bytes) std::this_thread::yield();
  tally.waited_ns += monotonic_ns() - started;
  return !over();
}

bool Load::put_fragment(Tally& tally, std::uint64_t event, std::uint64_t detector, bool& certain) {
  const Level level = options_.level == 1 ? Level::fast : Level::large;
  for (;;) {
    const std::int64_t started = monotonic_ns();
    const Answer answer = store_.put(key_of(event, detector), pool_.of(event, detector), level);
    if (answer == Answer::ok) {
      done(tally, started);
      return true;
    }
    count(tally, answer);
    if (answer == Answer::unconfirmed) {
      certain = false;
      return true;
    }
    if (answer != Answer::full)
      throw Failure("put of event " + std::to_string(event) + ": " + answer_name(answer) +
                    "; give --first-event another range or use an empty store");
    std::this_thread::sleep_for(kFullPause);
    tally.waited_ns += monotonic_ns() - started;
    if (over()) return false;
  }
}

void Load::produce(unsigned producer, AckLog log) {
  Tally& tally = producers_[producer];
  for (std::uint64_t index = 0; options_.events == 0 || index < options_.events; ++index) {
    if (!wait_for_room(tally)) return;
    const std::uint64_t event = event_of(producer, index);
    bool certain = true;
    for (unsigned detector = 0; detector < options_.fragments; ++detector) {
      if (!put_fragment(tally, event, detector, certain)) return;
    }
    log.write(certain ? Ack::put : Ack::uncertain, event);
    tally.events.store(index + 1, std::memory_order_release);
  }
}

void Load::check_value(Tally& tally, std::uint64_t event, std::uint64_t detector, View value) const {
  if (value != pool_.of(event, detector)) ++tally.corrupt;
}

void Load::hold() const {
  if (options_.hold_s == 0) return;
  constexpr std::int64_t kStep_ns = 20'000'000;
  const std::int64_t until_ns = monotonic_ns() + daqwriter::to_ns(options_.hold_s);
  for (std::int64_t now = monotonic_ns(); now < until_ns && !over(); now = monotonic_ns())
    daqwriter::sleep_until_monotonic_ns(std::min(until_ns, now + kStep_ns));
}

void Load::get_and_remove(Tally& tally, AckLog& log, std::uint64_t event) {
  thread_local Bytes value;
  log.write(Ack::begun, event);
  bool removed = true;
  for (unsigned detector = 0; detector < options_.fragments; ++detector) {
    const std::int64_t started = monotonic_ns();
    const Key key = key_of(event, detector);
    const Answer got = store_.get(key, value);
    if (got != Answer::ok)
      throw Failure("event " + std::to_string(event) + " was put and is not there: " + answer_name(got));
    check_value(tally, event, detector, value);
    hold();
    const Answer answer = store_.remove(key);
    if (answer == Answer::ok) {
      done(tally, started);
      continue;
    }
    count(tally, answer);
    removed = false;
  }
  if (removed) log.write(Ack::removed, event);
}

// Consumers share the producers; each takes its own part of one producer's
// events, in their order.
void Load::consume_direct(unsigned consumer, AckLog log) {
  Tally& tally = consumers_[consumer];
  const unsigned producer = consumer % options_.producers;
  const unsigned sharers = (options_.consumers - producer + options_.producers - 1) / options_.producers;
  const std::atomic<std::uint64_t>& put = producers_[producer].events;
  for (std::uint64_t index = consumer / options_.producers; options_.events == 0 || index < options_.events;
       index += sharers) {
    if (put.load(std::memory_order_acquire) <= index) {
      const std::int64_t started = monotonic_ns();
      for (int spin = 0; put.load(std::memory_order_acquire) <= index; ++spin) {
        if (over()) return;
        if (spin > kSpins) std::this_thread::yield();
      }
      tally.waited_ns += monotonic_ns() - started;
    }
    if (over()) return;
    get_and_remove(tally, log, event_of(producer, index));
    tally.events.fetch_add(1, std::memory_order_relaxed);
  }
}

void Load::finish_event(Tally& tally, AckLog& log, const Claim& claim) {
  for (const Item& item : store_.event(claim.primary))
    check_value(tally, item.key[0], item.key[1], item.value);
  hold();
  log.write(Ack::begun, claim.primary);
  const Answer answer = store_.complete(claim);
  if (answer == Answer::ok) {
    log.write(Ack::removed, claim.primary);
    return;
  }
  count(tally, answer);
  if (answer == Answer::lease_lost) log.write(Ack::given_up, claim.primary);
  // It would be claimed again and again.
  if (answer == Answer::not_found)
    throw Damage("event " + std::to_string(claim.primary) + " was claimed and has no fragment");
}

void Load::consume_any(unsigned consumer, AckLog log) {
  Tally& tally = consumers_[consumer];
  const std::string owner = options_.owner + "-" + std::to_string(consumer);
  std::int64_t empty_since = 0;
  while (!over()) {
    const std::int64_t started = monotonic_ns();
    const std::optional<Claim> claim = store_.get_any(owner, options_.lease_s);
    if (!claim) {
      if (empty_since == 0) empty_since = started;
      if (options_.until_empty_s > 0 && started - empty_since > daqwriter::to_ns(options_.until_empty_s))
        return;
      std::this_thread::sleep_for(kEmptyPause);
      tally.waited_ns += monotonic_ns() - started;
      continue;
    }
    empty_since = 0;
    tally.returned += claim->returned;
    finish_event(tally, log, *claim);
    done(tally, started);
    tally.events.fetch_add(1, std::memory_order_relaxed);
  }
}

std::uint64_t Load::total(const std::vector<Tally>& tallies) {
  std::uint64_t sum = 0;
  for (const Tally& tally : tallies) sum += tally.operations.load(std::memory_order_relaxed);
  return sum;
}

// Absolute ticks; each rate is over the time that really went by.
void Load::sample(LoadResult& result, const std::atomic<int>& stop_signal) {
  const auto ended = [&] {
    return over() || running_.load() == 0 || stop_signal.load(std::memory_order_relaxed) != 0;
  };
  const auto sleep_until = [&](std::int64_t deadline_ns) {
    constexpr std::int64_t kStep = 20'000'000;
    for (std::int64_t now = monotonic_ns(); now < deadline_ns && !ended(); now = monotonic_ns())
      daqwriter::sleep_until_monotonic_ns(std::min(deadline_ns, now + kStep));
  };
  sleep_until(monotonic_ns() + daqwriter::to_ns(options_.warm_up_s));
  Phase expected = Phase::warm_up;
  phase_.compare_exchange_strong(expected, Phase::measured);
  result.started_utc_ns = daqwriter::utc_ns();
  const daqwriter::CpuUse before = daqwriter::process_cpu_use();
  const std::int64_t started = monotonic_ns();
  std::int64_t last = started;
  std::uint64_t put = total(producers_), consumed = total(consumers_);
  std::optional<std::uint64_t> commits = store_.engine().commits();
  for (int tick = 1;
       !ended() && daqwriter::seconds(last - started) < options_.seconds - options_.interval_s / 2; ++tick) {
    sleep_until(started + daqwriter::to_ns(tick * options_.interval_s));
    const std::int64_t now = monotonic_ns();
    const double length_s = daqwriter::seconds(now - last);
    const std::uint64_t put_now = total(producers_), consumed_now = total(consumers_);
    const std::optional<std::uint64_t> commits_now = store_.engine().commits();
    if (length_s >= options_.interval_s / 2) {
      result.put.per_s.push_back(static_cast<double>(put_now - put) / length_s);
      result.consume.per_s.push_back(static_cast<double>(consumed_now - consumed) / length_s);
      result.backlog_bytes.push_back(backlog());
      if (commits) result.commits_per_s.push_back(static_cast<double>(*commits_now - *commits) / length_s);
    }
    commits = commits_now;
    put = put_now;
    consumed = consumed_now;
    last = now;
  }
  phase_ = Phase::over;
  result.seconds = daqwriter::seconds(monotonic_ns() - started);
  result.cpu = daqwriter::process_cpu_use() - before;
  result.interrupted = stop_signal.load(std::memory_order_relaxed) != 0;
}

void Load::gather(const std::vector<Tally>& tallies, SideResult& side, LoadResult& result) {
  for (const Tally& tally : tallies) {
    side.operations += tally.operations.load();
    side.latency_ns.add(tally.latency_ns);
    side.waited_s += daqwriter::seconds(tally.waited_ns);
    for (const auto& [name, number] : tally.answers) result.answers[name] += number;
    result.corrupt += tally.corrupt;
    result.returned_events += tally.returned;
    if (result.error.empty()) result.error = tally.error;
  }
}

LoadResult Load::run(const std::atomic<int>& stop_signal) {
  LoadResult result;
  if (!options_.ack_log.empty()) std::filesystem::create_directory(options_.ack_log);
  const auto log = [&](const std::string& name) {
    return options_.ack_log.empty() ? AckLog() : AckLog(options_.ack_log, name);
  };
  std::vector<AckLog> put_logs, consume_logs;
  for (unsigned i = 0; i < options_.producers; ++i)
    put_logs.push_back(log("put-" + options_.owner + "-" + std::to_string(i)));
  for (unsigned i = 0; i < options_.consumers; ++i)
    consume_logs.push_back(log("consume-" + options_.owner + "-" + std::to_string(i)));
  running_ = options_.producers + options_.consumers;
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < options_.producers; ++i)
    threads.emplace_back([&, i] { guarded(producers_[i], [&] { produce(i, std::move(put_logs[i])); }); });
  for (unsigned i = 0; i < options_.consumers; ++i)
    threads.emplace_back([&, i] {
      guarded(consumers_[i], [&] {
        options_.consume == "direct" ? consume_direct(i, std::move(consume_logs[i]))
                                     : consume_any(i, std::move(consume_logs[i]));
      });
    });
  sample(result, stop_signal);
  threads.clear();  // joined
  gather(producers_, result.put, result);
  gather(consumers_, result.consume, result);
  return result;
}

}  // namespace

ValuePool::ValuePool(std::uint64_t value_bytes) : value_bytes_(value_bytes) {
  pool_.resize(kPoolBytes + value_bytes);
  for (std::size_t i = 0; i < pool_.size(); ++i)
    pool_[i] = static_cast<char>(daqwriter::scramble(i / 8) >> (8 * (i % 8)));
}

View ValuePool::of(std::uint64_t event, std::uint64_t detector) const {
  const std::uint64_t offset = daqwriter::scramble(event * 65'537 + detector) % kPoolBytes;
  return View(pool_).substr(offset, value_bytes_);
}

// The last event that is put still has a number of its own. Without --events nobody lives to see it.
static void check_events(const LoadOptions& o, std::uint64_t highest) {
  constexpr std::uint64_t kMostStride = 1ull << 32;
  require_number("--stride", o.stride, 1, kMostStride);
  require_number("--first-event", o.first_event, 0, highest);
  if (o.events == 0 || o.producers == 0) return;
  const std::uint64_t most = (highest - o.first_event) / o.stride / o.producers;
  require_number("--events", o.events, 0, std::max<std::uint64_t>(most, 1));
}

void check_load(const LoadOptions& o, const KeySchema& schema) {
  constexpr double kLeast_s = 0.001, kLeastInterval_s = 0.05;
  constexpr unsigned kMostThreads = 1024;
  constexpr std::uint64_t kMostValue = 64ull << 20;
  if (schema.sub_keys().size() != 3 || schema.primary() != 0)
    throw Refusal(
        "--key: the load needs three sub-keys, the primary one "
        "first: event, detector, run");
  require_bytes("--value-size", o.value_bytes, 1, kMostValue);
  require_bytes("--backlog", o.backlog_bytes, 1, kMostCapacity);
  require_seconds("--seconds", o.seconds, kLeast_s);
  require_seconds("--interval", o.interval_s, kLeastInterval_s);
  if (o.interval_s > o.seconds)
    throw Refusal("--interval " + daqwriter::format_number(o.interval_s) + ": give no more than --seconds, " +
                  daqwriter::format_number(o.seconds));
  require_seconds("--warm-up", o.warm_up_s, 0);
  require_seconds("--lease", o.lease_s, kLeast_s);
  require_seconds("--hold", o.hold_s, 0);
  require_seconds("--until-empty", o.until_empty_s, 0);
  require_number("--producers", o.producers, 0, kMostThreads);
  require_number("--consumers", o.consumers, 0, kMostThreads);
  if (o.producers + o.consumers == 0)
    throw Refusal("--producers 0, --consumers 0: give up to 1024 of each, and one of either at least");
  require_number("--fragments", o.fragments, 1, 65'536);
  if (o.consumers > 0 && o.producers == 0 && o.consume == "direct")
    throw Refusal(
        "--consume direct: follows the producers of the same "
        "process, and --producers is 0; use getany");
  require_number("--level", static_cast<std::uint64_t>(o.level), 1, 2);
  check_events(o, schema.sub_keys().front().highest());
}

LoadResult run_load(HotStore& store, const LoadOptions& options, const std::atomic<int>& stop_signal) {
  return Load(store, options).run(stop_signal);
}

}  // namespace hotstore
