#include "base/memory.h"

#include <numa.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "base/status.h"
#include "base/units.h"

namespace daqwriter {

Memory::Memory(std::size_t bytes, std::optional<int> numa_node) : bytes_(bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw Failure("cannot map " + format_size(bytes) + ": " + errno_text(errno));
  data_ = static_cast<std::byte*>(mapped);
  madvise(mapped, bytes, MADV_HUGEPAGE);  // only advice: fewer TLB misses while copying
  if (numa_node && numa_available() >= 0) numa_tonode_memory(mapped, bytes, *numa_node);
  std::memset(mapped, 0, bytes);
  locked_ = mlock(mapped, bytes) == 0;
}

Memory::~Memory() {
  if (data_) munmap(data_, bytes_);
}

std::uint64_t available_memory_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  for (std::string name; meminfo >> name;) {
    std::uint64_t kib = 0;
    if (name == "MemAvailable:" && meminfo >> kib) return kib * 1024;
  }
  throw Failure("/proc/meminfo has no MemAvailable line");
}

void require_memory(std::uint64_t bytes, const char* purpose, const char* remedy) {
  const std::uint64_t available = available_memory_bytes();
  if (bytes <= available) return;
  throw Refusal(std::string(purpose) + " need " + format_gb(static_cast<double>(bytes)) + " (" +
                std::to_string(bytes) + " B) of memory; " + format_gb(static_cast<double>(available)) +
                " are available (MemAvailable); use a smaller " + remedy);
}

}  // namespace daqwriter
