#include "record/minidaq.h"

#include <algorithm>
#include <memory>

#include "base/ticker.h"
#include "base/worker_thread.h"
#include "record/application.h"

namespace daqwriter {
namespace {

// One running MiniDAQ: its applications, and what is observed while they run.
class Run {
 public:
  Run(const MiniDaqOptions& options, const MiniDaqPlan& plan, const std::atomic<int>& stop_signal)
      : options_(options), buffer_bytes_(plan.buffer_bytes), control_{stop_signal} {
    for (std::uint32_t i = 0; i < options.applications; ++i)
      applications_.push_back(std::make_unique<Application>(options, plan, i, control_));
    open_targets(plan);
    lines_ = std::make_unique<LineProtocol>(options.line_protocol_path, options.tags, "minidaq");
  }

  MiniDaqResult run(const EngineFactory& make_engine, std::int64_t prepared_since_ns) {
    result_.started_utc_ns = utc_ns();
    for (std::size_t i = 0; i < applications_.size(); ++i)
      applications_[i]->open(targets_[i], make_engine, result_.started_utc_ns);
    if (options_.keep) {
      for (const auto& target : targets_) target->keep();
    }
    result_.engine = applications_.front()->engine().name();
    result_.engine_note = applications_.front()->engine().note();
    result_.prepare_ns = monotonic_ns() - prepared_since_ns;
    record();
    for (const auto& application : applications_) application->close();
    result_.total_ns = std::max<std::int64_t>(0, monotonic_ns() - control_.start_ns);
    result_.cpu = process_cpu_use() - cpu_before_;
    for (const auto& application : applications_) application->cut();
    collect();
    return std::move(result_);
  }

  bool unanswered() const {
    return std::any_of(applications_.begin(), applications_.end(),
                       [](const auto& application) { return application->unanswered(); });
  }

 private:
  // Applications that share a device share its one exclusive claim.
  void open_targets(const MiniDaqPlan& plan) {
    for (const ApplicationPlan& each : plan.applications) {
      const bool shared = !targets_.empty() && each.target.path == plan.target().path;
      targets_.push_back(
          shared ? targets_.front()
                 : std::make_shared<Target>(each.target, plan.record_bytes, options_.preallocate));
    }
  }

  void record() {
    cpu_before_ = process_cpu_use();
    control_.start_ns = monotonic_ns() + 1'000'000;  // the threads are up before the first superchunk is due
    std::atomic<std::size_t> running{applications_.size()};
    Ticker ticker;
    for (const auto& application : applications_) application->build();
    for (const auto& application : applications_) {
      application->start([&] {
        if (running.fetch_sub(1) == 1) ticker.finish();
      });
    }
    ticker.run(control_.start_ns, options_.interval_s, [this] { sample(); });
    for (const auto& application : applications_) application->join();
    sample();
  }

  void sample() {
    const std::uint64_t size = options_.superchunk_bytes;
    const double t = seconds(monotonic_ns() - control_.start_ns);
    std::uint64_t offered = 0, stored = 0, accepted = 0, lost = 0, busy = 0;
    bool finished = true;
    for (const auto& application : applications_) {
      const ReadoutEmulator& source = application->source();
      accepted += source.accepted() * size;
      lost += source.lost();
      busy += source.busy_count();
      stored += application->durable_bytes();
      finished = finished && source.finished();
    }
    offered = accepted + lost * size;
    const std::uint64_t backlog = accepted > stored ? accepted - stored : 0;
    Series& series = result_.series;
    series.t_s.push_back(t);
    series.offered_bytes.push_back(offered - seen_offered_);
    series.stored_bytes.push_back(stored - seen_stored_);
    series.backlog_bytes.push_back(backlog);
    seen_offered_ = offered;
    seen_stored_ = stored;
    lines_->write(finished ? "drain" : "record", {{"offered_bytes", offered},
                                                  {"stored_bytes", stored},
                                                  {"backlog_bytes", backlog},
                                                  {"busy_count", busy},
                                                  {"lost_superchunks", lost},
                                                  {"elapsed_s", t},
                                                  {"total_s", options_.duration_s},
                                                  {"buffer_bytes", buffer_bytes_}});
  }

  void collect() {
    for (const auto& application : applications_) {
      result_.applications.push_back(application->result());
      result_.add(result_.applications.back());
    }
    result_.failed_line_records = lines_->failed_records();
    result_.engine_features = applications_.front()->engine().features();  // its thread has ended
  }

  const MiniDaqOptions& options_;
  const std::uint64_t buffer_bytes_;
  RunControl control_;
  MiniDaqResult result_;
  std::vector<std::shared_ptr<Target>> targets_;
  std::vector<std::unique_ptr<Application>> applications_;
  std::unique_ptr<LineProtocol> lines_;
  CpuUse cpu_before_;
  std::uint64_t seen_offered_ = 0;
  std::uint64_t seen_stored_ = 0;
};

}  // namespace

// The worst status counts; times are those of the last one to end; buffers add up, as each has its own.
void ApplicationResult::add(const ApplicationResult& one) {
  status = std::max(status, one.status);
  if (error.empty()) error = one.error;
  record_id = one.record_id;
  emitted += one.emitted;
  in_time += one.in_time;
  due += one.due;
  offered += one.offered;
  stored += one.stored;
  lost_per_link.insert(lost_per_link.end(), one.lost_per_link.begin(), one.lost_per_link.end());
  decisions += one.decisions;
  vetoed += one.vetoed;
  unbuffered += one.unbuffered;
  payload_bytes += one.payload_bytes;
  written_bytes += one.written_bytes;
  padding_bytes += one.padding_bytes;
  unanswered_bytes += one.unanswered_bytes;
  copied_bytes += one.copied_bytes;
  record_ns = std::max(record_ns, one.record_ns);
  drained_ns = std::max(drained_ns, one.drained_ns);
  worst_lateness_ns = std::max(worst_lateness_ns, one.worst_lateness_ns);
  late_superchunks += one.late_superchunks;
  busy.add(one.busy);
  held.add(one.held);
  service_curve.add(one.service_curve);
  latency_ns.add(one.latency_ns);
  write_latency_ns.add(one.write_latency_ns);
  writer_cpu = writer_cpu + one.writer_cpu;
  source_cpu = source_cpu + one.source_cpu;
  copy_ns += one.copy_ns;
  memory_locked = one.memory_locked;
  if (memory_features.empty()) memory_features = one.memory_features;
}

double ApplicationResult::achieved_fraction() const {
  return due > 0 ? static_cast<double>(in_time) / static_cast<double>(due) : 0;
}

MiniDaqResult failed_minidaq(const MiniDaqOptions& options, const std::string& error) {
  MiniDaqResult result;
  result.engine = options.null_sink ? "null" : options.engine;
  result.applications.resize(options.applications);
  for (ApplicationResult& one : result.applications) {
    one.status = RunStatus::failed;
    one.error = error;
    result.add(one);
  }
  result.started_utc_ns = utc_ns();
  return result;
}

MiniDaqResult run_minidaq(const MiniDaqOptions& options, const MiniDaqPlan& plan,
                          const EngineFactory& make_engine, const std::atomic<int>& stop_signal) {
  const std::int64_t since = monotonic_ns();
  const auto run = std::make_shared<Run>(options, plan, stop_signal);
  try {
    MiniDaqResult result = run->run(make_engine, since);
    if (run->unanswered()) keep_until_exit(run);
    return result;
  } catch (const Unanswered& failure) {
    keep_until_exit(run);
    if (stop_signal.load(std::memory_order_relaxed) == 0) throw;
    MiniDaqResult result = failed_minidaq(options, failure.what());
    result.status = result.applications.front().status = RunStatus::interrupted;
    return result;
  }
}

}  // namespace daqwriter
