#include "base/placement.h"

#include <numa.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "base/status.h"

namespace daqwriter {
namespace {

void require_allowed(const std::vector<int>& allowed, std::optional<int> cpu, const char* option) {
  if (!cpu || std::find(allowed.begin(), allowed.end(), *cpu) != allowed.end()) return;
  std::string list;
  for (const int each : allowed) list += " " + std::to_string(each);
  throw Refusal(std::string(option) + " " + std::to_string(*cpu) +
                ": not a CPU this process may use; they are" + list);
}

std::vector<int> common(const std::vector<int>& allowed, const std::vector<int>& near) {
  std::vector<int> both;
  std::copy_if(near.begin(), near.end(), std::back_inserter(both),
               [&](int cpu) { return std::find(allowed.begin(), allowed.end(), cpu) != allowed.end(); });
  return both;
}

}  // namespace

Placement choose_placement(const std::vector<int>& allowed, const std::vector<int>& near,
                           std::optional<int> numa_node, std::optional<int> asked_writer,
                           std::optional<int> asked_source, std::size_t application,
                           std::size_t applications) {
  require_allowed(allowed, asked_writer, "--writer-cpu");
  require_allowed(allowed, asked_source, "--source-cpu");
  if (allowed.size() < 2 && !asked_writer && !asked_source) {
    return {{}, {}, numa_node, "not pinned: only one CPU is available, source and writer share it"};
  }
  std::vector<int> candidates = common(allowed, near);
  const bool is_near = candidates.size() >= 2;
  if (!is_near) candidates = allowed;
  if (applications > 1 && 2 * applications > candidates.size() && !asked_writer && !asked_source)
    return {{}, {}, numa_node, "not pinned: fewer CPUs than two for each application"};
  // The writers take the last CPUs: the first ones see most of a machine's interrupts.
  std::reverse(candidates.begin(), candidates.end());
  const auto pick = [&](std::size_t from, std::optional<int> other) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const int cpu = candidates[(from + i) % candidates.size()];
      if (cpu != other) return cpu;
    }
    return candidates.front();
  };
  const int writer = asked_writer ? *asked_writer : pick(application, asked_source);
  const int source = asked_source ? *asked_source : pick(applications + application, writer);
  std::string note =
      is_near ? "pinned to the drive's NUMA node" : "pinned; the drive's NUMA node gives no choice";
  if (asked_writer || asked_source) note = "pinned as asked";
  if (writer == source) note += "; source and writer share one CPU";
  return {writer, source, numa_node, note};
}

namespace {

// CPUs that no thread was given yet; the last ones first, as above.
class FreeCpus {
 public:
  explicit FreeCpus(const std::vector<int>& allowed) : free_(allowed.rbegin(), allowed.rend()) {}

  std::optional<int> take(const std::vector<int>& wanted) {
    const auto found = std::find_if(free_.begin(), free_.end(), [&](int cpu) {
      return std::find(wanted.begin(), wanted.end(), cpu) != wanted.end();
    });
    if (found == free_.end()) return std::nullopt;
    const int cpu = *found;
    free_.erase(found);
    return cpu;
  }

 private:
  std::vector<int> free_;
};

std::string note_of(const Placement& placement, bool has_source) {
  const std::vector<int>& near = placement.node_cpus;
  const auto place = [&](std::optional<int> cpu) -> std::string {
    if (!cpu) return "not pinned, since no CPU is free";
    if (near.empty()) return "pinned; the drive's NUMA node is not known";
    const bool local = std::find(near.begin(), near.end(), *cpu) != near.end();
    return local ? "pinned to the drive's NUMA node" : "pinned to another node, where a CPU was free";
  };
  const std::string writer = place(placement.writer_cpu);
  if (!has_source) return writer;
  const std::string source = place(placement.source_cpu);
  return writer == source ? writer : "writer " + writer + "; source " + source;
}

}  // namespace

std::vector<Placement> deal_placements(const std::vector<int>& allowed,
                                       const std::vector<DriveOfWriter>& drives) {
  std::vector<Placement> all;
  std::size_t asked = 0;
  for (const DriveOfWriter& drive : drives) {
    require_allowed(allowed, drive.asked_writer, "--writer-cpu");
    require_allowed(allowed, drive.asked_source, "--source-cpu");
    asked += (drive.asked_writer ? 1 : 0) + (drive.asked_source ? 1 : 0);
    all.push_back({drive.asked_writer, drive.asked_source, drive.numa_node, "pinned as asked"});
  }
  if (asked == 0 && drives.size() > allowed.size()) {
    for (std::size_t i = 0; i < drives.size(); ++i) {
      all[i].node_cpus = common(allowed, drives[i].near);
      all[i].note = std::string("not pinned: fewer CPUs than writers") +
                    (all[i].node_cpus.empty() ? "" : "; bound to the drive's NUMA node");
    }
    return all;
  }
  FreeCpus free(allowed);
  for (const Placement& placement : all) {
    for (const auto& cpu : {placement.writer_cpu, placement.source_cpu}) {
      if (cpu) free.take({*cpu});
    }
  }
  // First the CPUs near the drives, so that nobody's node is filled by those who find no room on theirs.
  for (const auto cpu : {&Placement::writer_cpu, &Placement::source_cpu}) {
    for (const bool near : {true, false}) {
      for (std::size_t i = 0; i < drives.size(); ++i) {
        const bool wanted = cpu == &Placement::writer_cpu || drives[i].source;
        if (wanted && !(all[i].*cpu)) all[i].*cpu = free.take(near ? drives[i].near : allowed);
      }
    }
  }
  for (std::size_t i = 0; i < drives.size(); ++i) {
    all[i].node_cpus = common(allowed, drives[i].near);
    if (asked == 0) all[i].note = note_of(all[i], drives[i].source);
  }
  return all;
}

ThreadPlacement place_threads(const std::vector<int>& allowed, const std::vector<int>& near,
                              const std::vector<int>& asked, std::uint32_t threads) {
  for (const int cpu : asked) require_allowed(allowed, cpu, "--cpus");
  const std::vector<int> local = common(allowed, near);
  if (asked.empty()) {
    return {
        std::vector<std::vector<int>>(threads, local),
        local.empty() ? "not bound: the drive's NUMA node is not known" : "bound to the drive's NUMA node"};
  }
  ThreadPlacement placement{{}, "pinned as asked"};
  if (threads > asked.size()) placement.note += "; several threads share a CPU";
  for (std::uint32_t i = 0; i < threads; ++i) placement.cpus.push_back({asked[i % asked.size()]});
  return placement;
}

void check_cpus(const std::vector<int>& allowed, const std::vector<int>& asked, const char* option) {
  if (asked.empty()) throw Refusal(std::string(option) + ": name at least one CPU, e.g. 0,2");
  for (const int cpu : asked) {
    require_allowed(allowed, cpu, option);
    if (std::count(asked.begin(), asked.end(), cpu) > 1)
      throw Refusal(std::string(option) + ": CPU " + std::to_string(cpu) + " is named twice");
  }
}

std::optional<int> numa_node_of(const std::vector<int>& cpus) {
  if (cpus.empty() || numa_available() < 0) return std::nullopt;
  const int node = numa_node_of_cpu(cpus.front());
  return node < 0 ? std::nullopt : std::optional(node);
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) throw Failure("sched_getaffinity: " + errno_text(errno));
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<int> cpus_of_node(std::optional<int> numa_node) {
  std::vector<int> cpus;
  if (!numa_node || numa_available() < 0) return cpus;
  bitmask* mask = numa_allocate_cpumask();
  if (numa_node_to_cpus(*numa_node, mask) == 0) {
    for (unsigned cpu = 0; cpu < mask->size; ++cpu) {
      if (numa_bitmask_isbitset(mask, cpu)) cpus.push_back(static_cast<int>(cpu));
    }
  }
  numa_free_cpumask(mask);
  return cpus;
}

int pin_thread(pthread_t thread, const std::vector<int>& cpus) {
  if (cpus.empty()) return 0;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &set);
  return pthread_setaffinity_np(thread, sizeof set, &set);
}

void pin_this_thread(const std::vector<int>& cpus) {
  if (const int error = pin_thread(pthread_self(), cpus); error != 0)
    throw Failure("cannot pin a thread to CPU " + std::to_string(cpus.front()) + ": " + errno_text(error));
}

}  // namespace daqwriter
