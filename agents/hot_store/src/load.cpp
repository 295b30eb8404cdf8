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
#include "io/run.h"
#include "store_options.h"

namespace hotstore {
namespace {

using daqwriter::Failure;
using daqwriter::monotonic_ns;
using daqwriter::Refusal;

constexpr std::uint64_t kPoolBytes = 1 << 20;
// A thread that waits for room or for an event sleeps: spinning would take the CPU from the server that is
// measured.
constexpr auto kWaitPause = std::chrono::microseconds(100);
constexpr auto kFullPause = std::chrono::microseconds(200);
constexpr auto kEmptyPause = std::chrono::microseconds(200);

enum class Phase { warm_up, measured, over };

// The work of one thread in the measured time; the counter is read while it runs.
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
  Load(Subject& subject, const LoadOptions& options)
      : subject_(subject),
        options_(options),
        pool_(options.value_bytes),
        producers_(options.producers),
        consumers_(options.consumers) {}

  LoadResult run(const std::atomic<int>& stop_signal) {
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
    daqwriter::Crew crew(running_);
    const auto start = [&](Tally& tally, bool produces, unsigned i, AckLog& own) {
      crew.start(
          [this, &tally, produces, i, &own] { guarded(tally, [&] { work(i, produces, std::move(own)); }); },
          [this, &crew](bool failed) {
            if (failed) phase_ = Phase::over;  // the others end too
            --running_;
            crew.one_ended();
          },
          [&tally](const std::string& why) { tally.error = why; });
    };
    for (unsigned i = 0; i < options_.producers; ++i) start(producers_[i], true, i, put_logs[i]);
    for (unsigned i = 0; i < options_.consumers; ++i) start(consumers_[i], false, i, consume_logs[i]);
    try {
      sample(result, stop_signal);
    } catch (const Failure& failure) {
      phase_ = Phase::over;
      result.error = failure.what();
    }
    crew.run_to_end(monotonic_ns(), options_.interval_s, [] {});
    gather(producers_, result.put, result);
    gather(consumers_, result.consume, result);
    return result;
  }

 private:
  bool over() const { return phase_.load(std::memory_order_relaxed) == Phase::over; }
  Key key_of(std::uint64_t event, std::uint64_t detector) const { return {event, detector, 1}; }
  std::uint64_t event_of(unsigned producer, std::uint64_t index) const {
    return options_.first_event + (index * options_.producers + producer) * options_.stride;
  }
  void guarded(Tally& tally, const std::function<void()>& work) {
    try {
      work();
    } catch (const std::exception& failure) {
      tally.error = failure.what();
      phase_ = Phase::over;
    }
  }

  void count(Tally& tally, Answer answer) const { ++tally.answers[answer_name(answer)]; }
  void done(Tally& tally, std::int64_t started_ns) {
    if (phase_.load(std::memory_order_relaxed) != Phase::measured) return;
    tally.latency_ns.record(monotonic_ns() - started_ns);
    tally.operations.fetch_add(1, std::memory_order_relaxed);
  }

  std::uint64_t backlog() const {
    std::uint64_t put = 0, removed = 0;
    for (const Tally& tally : producers_) put += tally.events.load(std::memory_order_relaxed);
    for (const Tally& tally : consumers_) removed += tally.events.load(std::memory_order_relaxed);
    return put > removed ? (put - removed) * options_.fragments * options_.value_bytes : 0;
  }

  // False when the load is over before it is ready.
  template <typename Ready>
  bool wait_until(const Ready& ready, Tally& tally) {
    if (ready()) return !over();
    const std::int64_t started = monotonic_ns();
    while (!over() && !ready()) std::this_thread::sleep_for(kWaitPause);
    tally.waited_ns += monotonic_ns() - started;
    return !over();
  }

  // Without consumers in this process the store itself says when it is full.
  bool wait_for_room(Tally& tally) {
    return wait_until([&] { return options_.consumers == 0 || backlog() < options_.backlog_bytes; }, tally);
  }

  bool below_floor() const {
    return options_.backlog_floor_bytes > 0 && backlog() < options_.backlog_floor_bytes;
  }
  unsigned sharers_of(unsigned producer) const {
    return (options_.consumers - producer + options_.producers - 1) / options_.producers;
  }
  void produce(unsigned producer, AckLog log) {
    Tally& tally = producers_[producer];
    const std::unique_ptr<Session> session = subject_.session();
    for (std::uint64_t index = 0; options_.events == 0 || index < options_.events; ++index) {
      if (!wait_for_room(tally)) return;
      const std::uint64_t event = event_of(producer, index);
      bool certain = true;
      for (unsigned detector = 0; detector < options_.fragments; ++detector) {
        if (!put_fragment(*session, tally, event, detector, certain)) return;
      }
      log.write(certain ? Ack::put : Ack::uncertain, event);
      tally.events.store(index + 1, std::memory_order_release);
    }
  }

  bool put_fragment(Session& session, Tally& tally, std::uint64_t event, std::uint64_t detector,
                    bool& certain) {
    const Level level = options_.level == 1 ? Level::fast : Level::large;
    for (;;) {
      const std::int64_t started = monotonic_ns();
      const Answer answer = session.put(key_of(event, detector), pool_.of(event, detector), level);
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

  // One fragment for each event. Until the floor is reached nothing is measured, and batches are large.
  void produce_piped(unsigned producer, Pipe& pipe) {
    constexpr std::uint64_t kFillBatch = 64;
    Tally& tally = producers_[producer];
    std::vector<Request> batch;
    std::vector<Answer> answers;
    for (std::uint64_t index = 0; options_.events == 0 || index < options_.events; index += batch.size()) {
      if (!wait_for_room(tally)) return;
      std::uint64_t number = options_.pipeline;
      if (!filled_.load(std::memory_order_relaxed)) number = std::max(number, kFillBatch);
      if (options_.events != 0) number = std::min(number, options_.events - index);
      batch.clear();
      for (std::uint64_t i = 0; i < number; ++i) {
        const std::uint64_t event = event_of(producer, index + i);
        batch.push_back({key_of(event, 0), pool_.of(event, 0)});
      }
      answers.resize(batch.size());
      const std::int64_t started = monotonic_ns();
      pipe.put(batch, answers);
      for (const Answer answer : answers) {
        if (answer != Answer::ok)
          throw Failure(std::string("a put of a batch: ") + answer_name(answer) +
                        (answer == Answer::full
                             ? "; give --backlog less, or the server more memory"
                             : "; give --first-event another range or use an empty server"));
        done(tally, started);
      }
      tally.events.store(index + batch.size(), std::memory_order_release);
    }
  }

  // Until the event is put and the backlog has reached its floor.
  bool wait_for_event(Tally& tally, const std::atomic<std::uint64_t>& put, std::uint64_t index) {
    return wait_until([&] { return put.load(std::memory_order_acquire) > index && !below_floor(); }, tally);
  }

  // Consumers share the producers; each takes its own part of one producer's
  // events, in their order.
  void consume_direct(unsigned consumer, AckLog log) {
    Tally& tally = consumers_[consumer];
    const unsigned producer = consumer % options_.producers;
    const unsigned sharers = sharers_of(producer);
    const std::unique_ptr<Session> session = subject_.session();
    const std::atomic<std::uint64_t>& put = producers_[producer].events;
    for (std::uint64_t index = consumer / options_.producers; options_.events == 0 || index < options_.events;
         index += sharers) {
      if (!wait_for_event(tally, put, index)) return;
      get_and_remove(*session, tally, log, event_of(producer, index));
      tally.events.fetch_add(1, std::memory_order_relaxed);
    }
  }

  void get_and_remove(Session& session, Tally& tally, AckLog& log, std::uint64_t event) {
    thread_local Bytes value;
    log.write(Ack::begun, event);
    bool removed = true;
    for (unsigned detector = 0; detector < options_.fragments; ++detector) {
      const std::int64_t started = monotonic_ns();
      const Key key = key_of(event, detector);
      const Answer got = session.get(key, value);
      if (got != Answer::ok)
        throw Failure("event " + std::to_string(event) + " was put and is not there: " + answer_name(got));
      check_value(tally, event, detector, value);
      hold();
      const Answer answer = session.remove(key);
      if (answer == Answer::ok) {
        done(tally, started);
        continue;
      }
      count(tally, answer);
      removed = false;
    }
    if (removed) log.write(Ack::removed, event);
  }

  // Like consume_direct, with the events of its part that are there, a pipeline's length at most, in two
  // round trips: it gets and compares all before it removes the first.
  void consume_piped(unsigned consumer, Pipe& pipe) {
    Tally& tally = consumers_[consumer];
    const unsigned producer = consumer % options_.producers;
    const unsigned sharers = sharers_of(producer);
    const std::atomic<std::uint64_t>& put = producers_[producer].events;
    std::vector<Request> batch;
    std::vector<std::uint64_t> events;
    std::vector<Bytes> values(options_.pipeline);
    std::vector<Answer> answers;
    std::uint64_t index = consumer / options_.producers;
    while (options_.events == 0 || index < options_.events) {
      if (!wait_for_event(tally, put, index)) return;
      const std::uint64_t there = put.load(std::memory_order_acquire);
      batch.clear();
      events.clear();
      for (; index < there && batch.size() < options_.pipeline; index += sharers) {
        events.push_back(event_of(producer, index));
        batch.push_back({key_of(events.back(), 0), {}});
      }
      answers.resize(batch.size());
      const std::int64_t started = monotonic_ns();
      pipe.get(batch, std::span(values).first(batch.size()), answers);
      for (std::size_t i = 0; i < batch.size(); ++i) {
        if (answers[i] != Answer::ok)
          throw Failure("event " + std::to_string(events[i]) +
                        " was put and is not there: " + answer_name(answers[i]));
        check_value(tally, events[i], 0, values[i]);
      }
      hold();
      pipe.remove(batch, answers);
      for (const Answer answer : answers) answer == Answer::ok ? done(tally, started) : count(tally, answer);
      tally.events.fetch_add(batch.size(), std::memory_order_relaxed);
    }
  }

  void work(unsigned thread, bool produces, AckLog log) {
    if (const std::unique_ptr<Pipe> pipe = subject_.pipe())
      produces ? produce_piped(thread, *pipe) : consume_piped(thread, *pipe);
    else if (produces)
      produce(thread, std::move(log));
    else
      options_.consume == "direct" ? consume_direct(thread, std::move(log))
                                   : consume_any(thread, std::move(log));
  }

  void consume_any(unsigned consumer, AckLog log) {
    Tally& tally = consumers_[consumer];
    const std::string owner = options_.owner + "-" + std::to_string(consumer);
    std::int64_t empty_since = 0;
    while (!over()) {
      const std::int64_t started = monotonic_ns();
      const std::optional<Claim> claim = subject_.store()->get_any(owner, options_.lease_s);
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

  void finish_event(Tally& tally, AckLog& log, const Claim& claim) {
    for (const Item& item : subject_.store()->event(claim.primary))
      check_value(tally, item.key[0], item.key[1], item.value);
    hold();
    log.write(Ack::begun, claim.primary);
    const Answer answer = subject_.store()->complete(claim);
    if (answer == Answer::ok) {
      log.write(Ack::removed, claim.primary);
      return;
    }
    count(tally, answer);
    if (answer == Answer::lease_lost) log.write(Ack::given_up, claim.primary);
    // Otherwise it would be claimed again and again.
    if (answer == Answer::not_found)
      throw Damage("event " + std::to_string(claim.primary) + " was claimed and has no fragment");
  }

  void check_value(Tally& tally, std::uint64_t event, std::uint64_t detector, View value) const {
    if (value != pool_.of(event, detector)) ++tally.corrupt;
  }

  void hold() const {
    if (options_.hold_s > 0)
      sleep_until(monotonic_ns() + daqwriter::to_ns(options_.hold_s), [this] { return over(); });
  }

  static constexpr std::int64_t kStep_ns = 20'000'000;
  template <typename Ended>
  static void sleep_until(std::int64_t deadline_ns, const Ended& ended) {
    for (std::int64_t now = monotonic_ns(); now < deadline_ns && !ended(); now = monotonic_ns())
      daqwriter::sleep_until_monotonic_ns(std::min(deadline_ns, now + kStep_ns));
  }

  // The backlog is there before the warm-up begins.
  void fill(const std::atomic<int>& stop_signal) {
    const std::int64_t deadline = monotonic_ns() + daqwriter::to_ns(fill_s(options_));
    while (below_floor() && !over() && stop_signal.load(std::memory_order_relaxed) == 0) {
      if (monotonic_ns() > deadline) {
        throw Failure("the backlog did not reach --backlog-floor " +
                      daqwriter::format_size(options_.backlog_floor_bytes) + " within " +
                      daqwriter::format_number(fill_s(options_)) + " s: it is " +
                      daqwriter::format_size(backlog()) + "; give less, or larger values");
      }
      daqwriter::sleep_until_monotonic_ns(monotonic_ns() + kStep_ns);
    }
    filled_ = true;
  }

  // Absolute ticks; each rate is over the time that really went by.
  void sample(LoadResult& result, const std::atomic<int>& stop_signal) {
    const auto ended = [&] {
      return over() || running_.load() == 0 || stop_signal.load(std::memory_order_relaxed) != 0;
    };
    fill(stop_signal);
    sleep_until(monotonic_ns() + daqwriter::to_ns(options_.warm_up_s), ended);
    Phase expected = Phase::warm_up;
    phase_.compare_exchange_strong(expected, Phase::measured);
    result.started_utc_ns = daqwriter::utc_ns();
    const daqwriter::CpuUse before = daqwriter::process_cpu_use();
    const std::int64_t started = monotonic_ns();
    std::int64_t last = started;
    std::uint64_t put = total(producers_), consumed = total(consumers_);
    std::optional<std::uint64_t> commits = subject_.commits();
    for (int tick = 1;
         !ended() && daqwriter::seconds(last - started) < options_.seconds - options_.interval_s / 2;
         ++tick) {
      sleep_until(started + daqwriter::to_ns(tick * options_.interval_s), ended);
      const std::int64_t now = monotonic_ns();
      const double length_s = daqwriter::seconds(now - last);
      const std::uint64_t put_now = total(producers_), consumed_now = total(consumers_);
      const std::optional<std::uint64_t> commits_now = subject_.commits();
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

  static std::uint64_t total(const std::vector<Tally>& tallies) {
    std::uint64_t sum = 0;
    for (const Tally& tally : tallies) sum += tally.operations.load(std::memory_order_relaxed);
    return sum;
  }

  static void gather(const std::vector<Tally>& tallies, SideResult& side, LoadResult& result) {
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

  Subject& subject_;
  const LoadOptions& options_;
  ValuePool pool_;
  std::vector<Tally> producers_;
  std::vector<Tally> consumers_;
  std::atomic<Phase> phase_{Phase::warm_up};
  std::atomic<bool> filled_{false};  // up to the floor
  std::atomic<unsigned> running_{0};
};

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

// The last event still has a number of its own. Without --events no run lasts until then.
static void check_events(const LoadOptions& o, std::uint64_t highest) {
  require_number("--first-event", o.first_event, 0, highest);
  if (o.events == 0 || o.producers == 0) return;
  const std::uint64_t most = (highest - o.first_event) / o.stride / o.producers;
  require_number("--events", o.events, 0, std::max<std::uint64_t>(most, 1));
}

void check_load(const LoadOptions& o, const KeySchema& schema) {
  if (schema.sub_keys().size() != 3 || schema.primary() != 0)
    throw Refusal(
        "--key: the load needs three sub-keys, the primary one "
        "first: event, detector, run");
  daqwriter::require(o.backlog_floor_bytes <= o.backlog_bytes,
                     "--backlog-floor " + daqwriter::format_size(o.backlog_floor_bytes) + ": give 0B to " +
                         daqwriter::format_size(o.backlog_bytes));
  if (o.backlog_floor_bytes > 0 &&
      (o.events > 0 || o.consume != "direct" || o.producers == 0 || o.consumers == 0))
    throw Refusal("--backlog-floor " + daqwriter::format_size(o.backlog_floor_bytes) +
                  ": is for producers beside consumers by key: leave out --events, --consume getany, "
                  "--producers 0 and --consumers 0");
  if (o.interval_s > o.seconds)
    throw Refusal("--interval " + daqwriter::format_number(o.interval_s) + ": give no more than --seconds, " +
                  daqwriter::format_number(o.seconds));
  if (o.producers + o.consumers == 0)
    throw Refusal("--producers 0, --consumers 0: give up to 1024 of each, and one of either at least");
  if (o.consumers > 0 && o.producers == 0 && o.consume == "direct")
    throw Refusal(
        "--consume direct: follows the producers of the same "
        "process, and --producers is 0; use getany");
  check_events(o, schema.sub_keys().front().highest());
}

// The lowest rate of a drive, or of a server that runs a script for each put.
double fill_s(const LoadOptions& options) {
  constexpr double kStart_s = 30, kSlowest_bytes_per_s = 5e6;
  return options.backlog_floor_bytes == 0
             ? 0
             : kStart_s + static_cast<double>(options.backlog_floor_bytes) / kSlowest_bytes_per_s;
}

LoadResult run_load(Subject& subject, const LoadOptions& options, const std::atomic<int>& stop_signal) {
  return Load(subject, options).run(stop_signal);
}

}  // namespace hotstore
