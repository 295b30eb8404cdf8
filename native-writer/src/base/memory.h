// Promise: memory that is page-aligned, touched before use and, where the limits allow, locked, so that no
// page fault happens while a record is running; in huge pages where the system gives them; released on
// destruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/feature.h"

namespace daqwriter {

class Memory {
 public:
  // Zeros. Touches every page, of large memory by several threads on the node's CPUs. A known NUMA node
  // becomes the preferred one for these pages. Throws Failure when the system does not give that much.
  Memory(std::size_t bytes, std::optional<int> numa_node);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  bool locked() const { return locked_; }
  // Huge pages and parallel touching: in use or not, and why not.
  std::vector<Feature> features() const { return {huge_pages_, parallel_touch_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Feature huge_pages_;
  Feature parallel_touch_;
  bool locked_ = false;
};

struct AvailableMemory {
  std::uint64_t bytes = 0;
  std::string source;  // "MemAvailable", or "the limit of the memory cgroup /jobs"
};

// The least of what the system has left and what the limits of our memory cgroups do, both versions. `root`:
// a tree with /proc and /sys.
AvailableMemory available_memory(const std::string& root = "");

// Throws Refusal with the arithmetic when `bytes` for `purpose` exceed what is available; `remedy`:
// the options to make smaller.
void require_memory(std::uint64_t bytes, const char* purpose,
                    const char* remedy = "--ring-size, --block-size or --links");

}  // namespace daqwriter
