#include "base/memory.h"

#include <numa.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

#include "base/placement.h"
#include "base/status.h"
#include "base/units.h"

namespace daqwriter {

namespace {

namespace fs = std::filesystem;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kShare = std::size_t{64} << 20;  // less is not worth a thread
constexpr std::size_t kMostThreads = 16;

// Beginning at a huge page when it may hold one: the kernel gives none to the ends of what lies across.
std::byte* map(std::size_t bytes) {
  const std::size_t slack = bytes >= kHugePage ? kHugePage : 0;
  void* const mapped =
      mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw Failure("cannot map " + format_size(bytes) + ": " + errno_text(errno));
  auto* const first = static_cast<std::byte*>(mapped);
  if (slack == 0) return first;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(first) % kHugePage) % kHugePage;
  const std::size_t used = (bytes + page - 1) / page * page;
  const std::size_t whole = (bytes + slack + page - 1) / page * page;
  if (before > 0) munmap(first, before);
  if (before + used < whole) munmap(first + before + used, whole - before - used);
  return first + before;
}

// Returns an errno. The kernel fills the pages at once, or, before Linux 5.14, at our touch.
int touch(std::byte* data, std::size_t bytes) {
  if (madvise(data, bytes, MADV_POPULATE_WRITE) == 0) return 0;
  if (errno != EINVAL) return errno;
  std::memset(data, 0, bytes);
  return 0;
}

std::uint64_t system_available_bytes(const std::string& root) {
  std::ifstream meminfo(root + "/proc/meminfo");
  for (std::string name; meminfo >> name;) {
    std::uint64_t kib = 0;
    if (name == "MemAvailable:" && meminfo >> kib) return kib * 1024;
  }
  throw Failure("/proc/meminfo has no MemAvailable line");
}

struct CgroupFiles {
  std::string mounted, limit, used, reclaimable;  // `reclaimable`: a line of memory.stat
};
const CgroupFiles kVersion2{"/sys/fs/cgroup/", "memory.max", "memory.current", "inactive_file"};
const CgroupFiles kVersion1{"/sys/fs/cgroup/memory/", "memory.limit_in_bytes", "memory.usage_in_bytes",
                            "total_inactive_file"};

std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::uint64_t number = 0;
  std::ifstream in(file);
  return in >> number ? std::optional(number) : std::nullopt;
}

// Memory that a group may still take before the kernel ends one of its processes: the page cache goes first.
// Nothing without a limit.
std::optional<std::uint64_t> left_in_cgroup(const fs::path& group, const CgroupFiles& files) {
  const auto limit = number_in(group / files.limit);
  const auto used = number_in(group / files.used);
  if (!limit || !used) return std::nullopt;
  std::uint64_t reclaimable = 0, bytes = 0;
  std::ifstream stat(group / "memory.stat");
  for (std::string name; stat >> name >> bytes;) {
    if (name == files.reclaimable) reclaimable = bytes;
  }
  const std::uint64_t held = *used - std::min(reclaimable, *used);
  return *limit - std::min(held, *limit);
}

Feature feature(const char* name, const std::string& reason) {
  return {name, reason.empty(), reason};
}

// The kernel's account of the pages at [data, data + bytes).
std::size_t huge_bytes(const std::byte* data, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  std::ifstream maps("/proc/self/smaps");
  std::size_t sum = 0;
  bool ours = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    std::size_t kib = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &from, &to) == 2) {
      ours = from < begin + bytes && begin < to;
    } else if (ours && std::sscanf(line.c_str(), "AnonHugePages: %zu kB", &kib) == 1) {
      sum += kib * 1024;
    }
  }
  return std::min(sum, bytes);  // the kernel may have joined the neighbours' mappings with ours
}

std::string why_not_huge(const std::byte* data, std::size_t bytes, int advice_error) {
  if (bytes < kHugePage) return "smaller than a huge page";
  if (advice_error != 0) return "the kernel refused the advice: " + errno_text(advice_error);
  const std::size_t huge = huge_bytes(data, bytes);
  if (huge >= bytes / 2) return "";
  return "the kernel gave " + std::to_string(huge) + " of " + std::to_string(bytes) +
         " B in huge pages; see /sys/kernel/mm/transparent_hugepage/enabled";
}

// Touches it by several threads. Returns an errno, and in `reason` why it was one thread alone.
int touch_in_parallel(std::byte* data, std::size_t bytes, std::optional<int> node, std::string& reason) {
  const std::vector<int> cpus = place_threads(allowed_cpus(), cpus_of_node(node), {}, 1)
                                    .cpus.front();  // empty: all of the allowed ones
  const std::size_t most = cpus.empty() ? allowed_cpus().size() : cpus.size();
  const std::size_t threads = std::min({bytes / kShare, most, kMostThreads});
  if (threads < 2) {
    reason = most < 2 ? "there is one CPU" : "too small to be worth it";
    return touch(data, bytes);
  }
  const std::size_t share = (bytes / threads + kHugePage - 1) / kHugePage * kHugePage;
  std::atomic<int> error{0};
  std::size_t begin = 0;
  {
    std::vector<std::jthread> running;
    const auto work = [&](std::size_t from, std::size_t to) {
      try {
        pin_this_thread(cpus);
      } catch (const Failure&) {
        // It touches the same pages from elsewhere.
      }
      if (const int mine = touch(data + from, to - from); mine != 0) error = mine;
    };
    try {
      for (; begin + share < bytes; begin += share) running.emplace_back(work, begin, begin + share);
    } catch (const std::system_error& failure) {
      reason = std::string("the system gives no more threads: ") + failure.what();
    }
    if (const int mine = touch(data + begin, bytes - begin); mine != 0) error = mine;
  }
  return error;
}

}  // namespace

Memory::Memory(std::size_t bytes, std::optional<int> numa_node) : data_(map(bytes)), bytes_(bytes) {
  const int advice_error = madvise(data_, bytes, MADV_HUGEPAGE) == 0 ? 0 : errno;
  if (numa_node && numa_available() >= 0) numa_tonode_memory(data_, bytes, *numa_node);
  std::string alone;
  if (const int error = touch_in_parallel(data_, bytes, numa_node, alone); error != 0) {
    munmap(data_, bytes);
    throw Failure("cannot have " + format_size(bytes) + " of memory: " + errno_text(error));
  }
  huge_pages_ = feature("huge pages", why_not_huge(data_, bytes, advice_error));
  parallel_touch_ = feature("touched in parallel", alone);
  locked_ = mlock(data_, bytes) == 0;
}

Memory::~Memory() {
  if (data_) munmap(data_, bytes_);
}

AvailableMemory available_memory(const std::string& root) {
  AvailableMemory least{system_available_bytes(root), "MemAvailable"};
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "0::/path" of version 2, "4:cpu,memory:/path" of version 1.
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const CgroupFiles* const files = controllers == ",,"                                 ? &kVersion2
                                     : controllers.find(",memory,") != std::string::npos ? &kVersion1
                                                                                         : nullptr;
    if (!files) continue;
    // A limit of a group above holds for all below it.
    for (fs::path group = line.substr(second + 1);; group = group.parent_path()) {
      const std::string folder = root + files->mounted + group.relative_path().string();
      const auto left = left_in_cgroup(folder, *files);
      if (left && *left < least.bytes) least = {*left, "the limit of the memory cgroup " + group.string()};
      if (!group.has_relative_path()) break;
    }
  }
  return least;
}

void require_memory(std::uint64_t bytes, const char* purpose, const char* remedy) {
  const AvailableMemory available = available_memory();
  if (bytes <= available.bytes) return;
  throw Refusal(std::string(purpose) + " need " + format_gb(bytes) + " (" + std::to_string(bytes) +
                " B) of memory; " + format_gb(available.bytes) + " are available (" + available.source +
                "); use a smaller " + remedy);
}

}  // namespace daqwriter
