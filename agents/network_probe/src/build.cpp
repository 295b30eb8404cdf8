// Promise: `netprobe build` is a builder unit: for each event it asks every source for its fragment at once,
// and the event is built when the last one has come, so that all sources answer into one port at the same
// time (incast). `--in-flight` events are asked for at a time. Result:
// inventory/schemas/netprobe-build.schema.json.
#include <poll.h>

#include <deque>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "commands.h"
#include "wire.h"

namespace netprobe {
namespace {

using daqwriter::ExitCode;
using daqwriter::monotonic_ns;

constexpr int kPeerLookMs = 100;
constexpr std::size_t kPeerReadBytes = 1 << 20;

struct BuildOptions {
  Timing timing;
  std::vector<std::string> sources;
  std::uint64_t fragment_bytes = 100'000;
  unsigned in_flight = 1;
};

// Answers come in the order of the requests, so that one place in one message is all that has to be
// remembered.
struct Source {
  Connection connection;
  Header header{};
  std::size_t have = 0;  // bytes of the present message
  std::uint64_t fragments = 0;
  std::uint64_t next_event = 0;
  daqwriter::Histogram fragment_ns;
};

struct Event {
  std::int64_t asked_ns = 0;
  std::size_t missing = 0;
};

class Builder {
 public:
  Builder(const BuildOptions& options, const std::atomic<int>& stop_signal)
      : options_(options), stop_(stop_signal) {
    for (const std::string& text : options.sources)
      sources_.push_back(std::make_unique<Source>(
          Connection::open(parse_endpoint("--source", text), options.timing.connect_s,
                           {&stop_signal, daqwriter::to_ns(options.timing.stall_limit_s)})));
  }

  // Builds events until `end`, and finishes those that were already asked for. Failure names the sources that
  // owe a fragment and are silent.
  void run(std::int64_t end) {
    silence_.restart(monotonic_ns());
    try {
      build(end);
    } catch (const Interrupted&) {
      return;
    }
  }

  void forget_warm_up() {
    events_ = 0;
    event_ns_ = {};
    for (auto& source : sources_) {
      source->fragments = 0;
      source->fragment_ns = {};
      again_before_.push_back(source->header.answer);
    }
  }

  void report(nlohmann::ordered_json& document) const {
    document["fragment_bytes"] = options_.fragment_bytes;
    document["in_flight"] = options_.in_flight;
    document["events"] = events_;
    document["event_us"] = daqwriter::latency_json(
        event_ns_, "from the request of an event's fragments to the whole of the last of them");
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (std::size_t at = 0; at < sources_.size(); ++at) {
      const Source& source = *sources_[at];
      rows.push_back({{"source", source.connection.peer()},
                      {"fragments", source.fragments},
                      {"segments_sent_again", source.header.answer - again_before_[at]},
                      {"fragment_us", daqwriter::latency_json(source.fragment_ns,
                                                              "from the request to the whole fragment")}});
    }
    document["sources"] = rows;
  }

 private:
  void build(std::int64_t end) {
    while (stop_.load() == 0) {
      const bool more = monotonic_ns() < end;
      while (more && pending_.size() < options_.in_flight) ask();
      if (pending_.empty()) return;
      wait();
    }
  }

  void ask() {
    Header request;
    request.size = sizeof request;
    request.answer = static_cast<std::uint32_t>(options_.fragment_bytes);
    request.event = first_ + pending_.size();
    pending_.push_back({monotonic_ns(), sources_.size()});
    for (auto& source : sources_) source->connection.send(request, {});
  }

  void wait() {
    std::vector<pollfd> waiting;
    for (const auto& source : sources_) waiting.push_back({source->connection.descriptor(), POLLIN, 0});
    if (poll(waiting.data(), waiting.size(), kPeerLookMs) <= 0) return require_answers();
    silence_.restart(monotonic_ns());
    for (std::size_t at = 0; at < sources_.size(); ++at)
      if (waiting[at].revents != 0) take(*sources_[at]);
  }

  void require_answers() {
    const double limit_s = options_.timing.stall_limit_s;
    if (!silence_.exceeds(daqwriter::to_ns(limit_s), monotonic_ns())) return;
    std::string owing;
    for (const auto& source : sources_)
      if (source->next_event < first_ + pending_.size()) owing += " " + source->connection.peer();
    throw daqwriter::Failure("silent for " + daqwriter::format_number(limit_s) +
                             " s, and fragments are owed by" + owing +
                             "; look at the sources and the network, or raise --stall-limit");
  }

  void take(Source& source) {
    const std::size_t whole = options_.fragment_bytes;
    while (true) {
      const bool in_header = source.have < sizeof(Header);
      const std::span<std::byte> header = std::as_writable_bytes(std::span(&source.header, 1));
      const std::span<std::byte> room =
          in_header ? header.subspan(source.have)
                    : std::span(buffer_).first(std::min(buffer_.size(), whole - source.have));
      const std::size_t got = source.connection.receive_some(room);
      if (got == 0) return;
      source.have += got;
      if (in_header && source.have >= sizeof(Header)) check(source);
      if (source.have < whole) continue;
      source.have = 0;
      done(source);
      if (pending_.empty()) return;
    }
  }

  void check(const Source& source) const {
    const Header& header = source.header;
    if (header.magic != kMagic || header.size != options_.fragment_bytes || header.event != source.next_event)
      throw daqwriter::Failure(source.connection.peer() + ": answered something else than was asked");
  }

  void done(Source& source) {
    Event& event = pending_[static_cast<std::size_t>(source.next_event - first_)];
    ++source.next_event;
    const std::int64_t took = monotonic_ns() - event.asked_ns;
    ++source.fragments;
    source.fragment_ns.record(took);
    if (--event.missing != 0) return;
    event_ns_.record(took);
    ++events_;
    // Each source answers in order, so no event is whole before an earlier one: only the front is looked at,
    // and removed when it is whole.
    while (!pending_.empty() && pending_.front().missing == 0) {
      pending_.pop_front();
      ++first_;
    }
  }

  const BuildOptions& options_;
  const std::atomic<int>& stop_;
  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kPeerReadBytes);
  std::deque<Event> pending_;
  std::uint64_t first_ = 0;  // event at the front of pending_
  std::uint64_t events_ = 0;
  daqwriter::Silence silence_;
  daqwriter::Histogram event_ns_;
  std::vector<std::uint32_t> again_before_;
};

ExitCode run_build(const BuildOptions& options, const std::atomic<int>& stop_signal) {
  const Timing& timing = options.timing;
  check_output(timing, "--fragment-size", options.fragment_bytes, stop_signal);
  Builder builder(options, stop_signal);
  builder.run(monotonic_ns() + daqwriter::to_ns(timing.warm_up_s));
  builder.forget_warm_up();
  const std::int64_t started_utc = daqwriter::utc_ns();
  const std::int64_t started = monotonic_ns();
  const daqwriter::CpuUse before = daqwriter::process_cpu_use();
  builder.run(started + daqwriter::to_ns(timing.seconds));
  const double measured_s = daqwriter::seconds(monotonic_ns() - started);
  const daqwriter::CpuUse cpu = daqwriter::process_cpu_use() - before;
  const bool interrupted = stop_signal.load() != 0;
  nlohmann::ordered_json document = head_json("build", timing, interrupted, started_utc, measured_s, cpu);
  builder.report(document);
  daqwriter::write_json(timing.json_path, document);
  return interrupted ? ExitCode::interrupted : ExitCode::complete;
}

}  // namespace

daqwriter::ParsedCommand add_build(CLI::App& parent) {
  auto options = std::make_shared<BuildOptions>();
  CLI::App* app = parent.add_subcommand("build", "Build events: a fragment of every source for each");
  app->add_option("--source", options->sources, "HOST:PORT of a `netprobe serve`; once for each source")
      ->required()
      ->take_all();
  daqwriter::add_number(*app, {"--fragment-size", 0, UINT64_MAX, ""}, options->fragment_bytes,
                        "Bytes of each fragment, its header of 24 B included");
  daqwriter::add_number(*app, {"--in-flight", 1, 1024, "events"}, options->in_flight,
                        "Events that are asked for at a time");
  add_timing(*app, options->timing);
  return {app, [options](const std::atomic<int>& stop_signal) { return run_build(*options, stop_signal); }};
}

}  // namespace netprobe
