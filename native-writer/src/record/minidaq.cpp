#include "record/minidaq.h"

#include <algorithm>
#include <memory>

#include "io/run.h"
#include "record/application.h"

namespace daqwriter {
namespace {

// Fills in the sums over all applications and over those of each target.
void sum_up(MiniDaqResult& result, std::size_t targets) {
  result.targets.resize(targets);
  for (std::size_t i = 0; i < result.applications.size(); ++i) {
    result.add(result.applications[i]);
    result.targets[i * targets / result.applications.size()].add(result.applications[i]);
  }
}

// One running MiniDAQ: its applications, and what is observed while they run.
class Run {
 public:
  Run(const MiniDaqOptions& options, const MiniDaqPlan& plan, const std::atomic<int>& stop_signal)
      : options_(options), plan_(plan), control_{stop_signal} {
    applications_.resize(plan.applications.size());
    closed_ns_.resize(applications_.size());
    // Those of one target come one after the other: each touches its memory with several threads.
    run_at_once(options.target_count(), [&](std::size_t target) {
      for (std::uint32_t i = 0; i < options_.applications; ++i) {
        const auto number = static_cast<std::uint32_t>(target) * options_.applications + i;
        applications_[number] = std::make_unique<MiniDaqApplication>(options_, plan_, number, control_);
      }
    });
    open_targets();
    lines_ = std::make_unique<LineProtocol>(options.line_protocol_path, options.tags, "minidaq");
  }

  MiniDaqResult run(const EngineFactory& make_engine, std::int64_t prepared_since_ns) {
    result_.started_utc_ns = utc_ns();
    // All that can be refused comes before the first byte on any of them.
    for (std::size_t i = 0; i < applications_.size(); ++i) applications_[i]->open(targets_[i], make_engine);
    at_once([this](std::size_t i) { applications_[i]->write_header(result_.started_utc_ns); });
    if (options_.keep) {
      for (const auto& target : targets_) target->keep();
    }
    result_.engine = applications_.front()->engine().name();
    result_.engine_note = applications_.front()->engine().note();
    result_.prepare_ns = monotonic_ns() - prepared_since_ns;
    record();
    at_once([this](std::size_t i) {
      applications_[i]->close();
      closed_ns_[i] = since_start_ns();
    });
    result_.total_ns = *std::max_element(closed_ns_.begin(), closed_ns_.end());
    result_.cpu = process_cpu_use() - cpu_before_;
    at_once([this](std::size_t i) { applications_[i]->cut(); });
    collect();
    return std::move(result_);
  }

  bool unanswered() const {
    return std::any_of(applications_.begin(), applications_.end(),
                       [](const auto& application) { return application->unanswered(); });
  }

 private:
  std::int64_t since_start_ns() const {
    return std::max<std::int64_t>(0, monotonic_ns() - control_.start_ns);
  }

  // No application waits for another one, which a dead target may hold until its limit.
  void at_once(const std::function<void(std::size_t application)>& work) {
    run_at_once(applications_.size(), work);
  }

  // Applications that share a device share its one exclusive claim.
  void open_targets() {
    for (std::size_t i = 0; i < plan_.applications.size(); ++i) {
      const TargetPlan& mine = plan_.applications[i].target;
      const bool shared = i % options_.applications > 0 && mine.kind != TargetKind::scratch_file;
      targets_.push_back(shared ? targets_.back()
                                : open_target(mine, plan_.record_bytes, options_.preallocate,
                                              {options_.stall_limit_s, &control_.stop}));
    }
  }

  void record() {
    cpu_before_ = process_cpu_use();
    // The threads are up before the first superchunk is due: a millisecond for each writer and its source.
    control_.start_ns =
        monotonic_ns() + 1'000'000 * static_cast<std::int64_t>(applications_.size() * options_.writers);
    for (const auto& application : applications_) application->build();
    Crew crew(applications_.size());
    for (const auto& application : applications_) application->start(crew);
    crew.run_to_end(control_.start_ns, options_.interval_s, [this] { sample(); });
  }

  // Momentary sums over some applications.
  struct Counts {
    std::uint64_t accepted = 0;  // bytes
    std::uint64_t stored = 0;    // bytes
    std::uint64_t lost = 0;      // superchunks
    std::uint64_t busy = 0;
    bool finished = true;

    void add(const Counts& one) {
      accepted += one.accepted;
      stored += one.stored;
      lost += one.lost;
      busy += one.busy;
      finished = finished && one.finished;
    }
    std::uint64_t offered(std::uint64_t superchunk_bytes) const { return accepted + lost * superchunk_bytes; }
    std::uint64_t backlog() const { return accepted > stored ? accepted - stored : 0; }
  };

  Counts count(std::size_t target) const {
    Counts counts;
    for (std::size_t i = 0; i < options_.applications; ++i) {
      const MiniDaqApplication& application = *applications_[target * options_.applications + i];
      const ReadoutEmulator& source = application.source();
      counts.add({source.accepted() * options_.superchunk_bytes, application.durable_bytes(), source.lost(),
                  source.busy_count(), source.finished()});
    }
    return counts;
  }

  void write_lines(const Counts& counts, double t, std::uint64_t buffer_bytes, const Tags& more) {
    lines_->write(counts.finished ? "drain" : "record",
                  {{"offered_bytes", counts.offered(options_.superchunk_bytes)},
                   {"stored_bytes", counts.stored},
                   {"backlog_bytes", counts.backlog()},
                   {"busy_count", counts.busy},
                   {"lost_superchunks", counts.lost},
                   {"elapsed_s", t},
                   {"total_s", options_.duration_s},
                   {"buffer_bytes", buffer_bytes}},
                  more);
  }

  // The sum comes last: who reads the last line has it.
  void sample() {
    const double t = seconds(since_start_ns());
    const std::vector<std::string> names = options_.targets();
    Counts all;
    for (std::size_t target = 0; target < names.size(); ++target) {
      const Counts one = count(target);
      if (names.size() > 1)
        write_lines(one, t, plan_.buffer_bytes / names.size(), {{kTargetTag, names[target]}});
      all.add(one);
    }
    result_.series.add(t, all.offered(options_.superchunk_bytes), all.stored, all.backlog());
    write_lines(all, t, plan_.buffer_bytes, {});
  }

  void collect() {
    for (const auto& application : applications_) result_.applications.push_back(application->result());
    sum_up(result_, options_.target_count());
    for (std::size_t target = 0; target < options_.target_count(); ++target) {
      TargetResult& its = result_.targets[target];
      const auto first = closed_ns_.begin() + static_cast<std::ptrdiff_t>(target * options_.applications);
      its.total_ns = *std::max_element(first, first + options_.applications);
      its.joint_buffer = joint_buffer(target * options_.applications, options_.applications);
    }
    result_.joint_buffer = joint_buffer(0, applications_.size());
    result_.failed_line_records = lines_->failed_records();
    result_.engine_features = applications_.front()->engine().features();  // its thread is done
  }

  // Returns the joint buffer of `count` applications from `first` on.
  JointBuffer joint_buffer(std::size_t first, std::size_t count) const {
    if (count == 1 && options_.writers == 1) {
      const ServiceCurve& curve = result_.applications[first].service_curve;
      return {curve.needed_bytes(), curve.needed_at_ns(), true};
    }
    std::vector<const ServiceHistory*> histories;
    for (std::size_t i = first; i < first + count; ++i) {
      for (const auto& writer : applications_[i]->writers()) histories.push_back(writer->ledger().history());
    }
    // The links' schedule tells what had arrived at any moment, unless the record ended before its time.
    const bool as_scheduled =
        !options_.unpaced && !options_.triggered() && result_.status == RunStatus::complete;
    std::function<std::uint64_t(std::int64_t)> arrived;
    if (as_scheduled) {
      arrived = [&](std::int64_t t_ns) {
        return count * applications_[first]->schedule().due_by(t_ns) * options_.superchunk_bytes;
      };
    }
    const JointServiceCurve curve(histories, arrived);
    return {curve.needed_bytes(), curve.needed_at_ns(), curve.exact()};
  }

  // Its own: a thread that a call holds may come back after the caller's are gone.
  const MiniDaqOptions options_;
  const MiniDaqPlan plan_;
  RunControl control_;
  MiniDaqResult result_;
  std::vector<std::shared_ptr<Target>> targets_;
  std::vector<std::unique_ptr<MiniDaqApplication>> applications_;
  std::vector<std::int64_t> closed_ns_;  // of each application, after the start
  std::unique_ptr<LineProtocol> lines_;
  CpuUse cpu_before_;
};

}  // namespace

// The worst status counts; times are those of the last one to end; buffers add up, as each has its own.
void ApplicationResult::add(const ApplicationResult& one) {
  add_end(*this, one);
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
  frame_bytes += one.frame_bytes;
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
  latency_over_time.add(one.latency_over_time);
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
  result.engine = engine_name(options.used_engine());
  result.applications.resize(options.all_applications());
  for (ApplicationResult& one : result.applications) {
    one.status = RunStatus::failed;
    one.error = error;
    one.writers.resize(options.writers);
  }
  sum_up(result, options.target_count());
  result.started_utc_ns = utc_ns();
  return result;
}

MiniDaqResult run_minidaq(const MiniDaqOptions& options, const MiniDaqPlan& plan,
                          const EngineFactory& make_engine, const std::atomic<int>& stop_signal) {
  const std::int64_t since = monotonic_ns();
  const auto run = std::make_shared<Run>(options, plan, stop_signal);
  return run_and_keep(run, [&](Run& running) { return running.run(make_engine, since); });
}

}  // namespace daqwriter
