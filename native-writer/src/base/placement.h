// Promise: chooses one CPU for the writer and another for the source, near the drive's NUMA node when it is
// known, from the CPUs this process may use; says so when it does not pin.
#pragma once

#include <pthread.h>

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
  // Where both may run when they are not pinned to a CPU each; empty: anywhere.
  std::vector<int> node_cpus = {};

  std::vector<int> writer_cpus() const { return writer_cpu ? std::vector<int>{*writer_cpu} : node_cpus; }
  std::vector<int> source_cpus() const { return source_cpu ? std::vector<int>{*source_cpu} : node_cpus; }
};

// Pure. Each of several applications gets CPUs of its own as far as they last, the writers first. `allowed`
// are this process's CPUs, `near` those of the drive's node (empty: unknown). Throws Refusal for an asked CPU
// that is not allowed.
Placement choose_placement(const std::vector<int>& allowed, const std::vector<int>& near,
                           std::optional<int> numa_node, std::optional<int> asked_writer,
                           std::optional<int> asked_source, std::size_t application = 0,
                           std::size_t applications = 1);

// A writer, and the source beside it, whose drive lies where it lies.
struct DriveOfWriter {
  std::vector<int> near;  // CPUs of the drive's node; empty: unknown
  std::optional<int> numa_node;
  std::optional<int> asked_writer;
  std::optional<int> asked_source;
  bool source = true;  // false: another writer of its application has the source beside it
};
// The same for writers with drives on different nodes, or for several writers of an application: CPUs are
// dealt out to the writers first, then to the sources, each on its drive's node as far as that one's last,
// then wherever one is free. A source for which none is left is bound to the node, and so are all threads
// when there are fewer CPUs than writers. Pure; throws Refusal as above.
std::vector<Placement> deal_placements(const std::vector<int>& allowed,
                                       const std::vector<DriveOfWriter>& drives);

// Where each of `threads` may run: on one of the asked CPUs in turn, else anywhere on the drive's node, else
// anywhere. One CPU is not chosen for them: which one serves the drive's interrupts best only the scheduler
// can learn. Pure; throws Refusal for an asked CPU that is not allowed.
struct ThreadPlacement {
  std::vector<std::vector<int>> cpus;  // of each thread; empty: not bound
  std::string note;
};
ThreadPlacement place_threads(const std::vector<int>& allowed, const std::vector<int>& near,
                              const std::vector<int>& asked, std::uint32_t threads);

// Throws Refusal, naming `option`, for an empty list, an asked CPU that is not allowed or one named twice.
void check_cpus(const std::vector<int>& allowed, const std::vector<int>& asked, const char* option);

std::vector<int> allowed_cpus();
std::optional<int> numa_node_of(const std::vector<int>& cpus);  // of the first; empty: unknown
std::vector<int> cpus_of_node(std::optional<int> numa_node);    // empty when unknown
// An errno; 0: done. The thread must be alive: glibc takes one that has ended, though not been joined, for
// the calling thread.
int pin_thread(pthread_t thread, const std::vector<int>& cpus);  // no CPUs: nothing
void pin_this_thread(const std::vector<int>& cpus);              // empty: nothing; throws Failure

}  // namespace daqwriter
