// Promise: chooses one CPU for the writer and another for the source, near the drive's NUMA node when it is
// known, from the CPUs this process may use; says so when it does not pin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace daqwriter {

struct Placement {
  std::optional<int> writer_cpu;
  std::optional<int> source_cpu;
  std::optional<int> numa_node;
  std::string note;  // why, in one sentence
};

// Pure: `allowed` are this process's CPUs, `near` those of the drive's node (empty: unknown). Throws Refusal
// for an asked CPU that is not allowed.
Placement choose_placement(const std::vector<int>& allowed, const std::vector<int>& near,
                           std::optional<int> numa_node, std::optional<int> asked_writer,
                           std::optional<int> asked_source);

// One CPU for each of `threads`: the asked ones in turn, else those of the drive's node, else all allowed
// ones. Pure; throws Refusal for an asked CPU that is not allowed.
struct ThreadPlacement {
  std::vector<std::optional<int>> cpus;
  std::string note;
};
ThreadPlacement place_threads(const std::vector<int>& allowed, const std::vector<int>& near,
                              const std::vector<int>& asked, std::uint32_t threads);

std::vector<int> allowed_cpus();
std::optional<int> numa_node_of_cpu(std::optional<int> cpu);
std::vector<int> cpus_of_node(std::optional<int> numa_node);  // empty when unknown
void pin_this_thread(std::optional<int> cpu);                 // throws Failure

}  // namespace daqwriter
