// Promise: memory that is page-aligned, touched before use and, where the limits allow, locked, so that no
// page fault happens while a record is running; released on destruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace daqwriter {

class Memory {
 public:
  // Touches every page. A known NUMA node becomes the preferred one for these pages.
  Memory(std::size_t bytes, std::optional<int> numa_node);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  bool locked() const { return locked_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool locked_ = false;
};

// MemAvailable of /proc/meminfo.
std::uint64_t available_memory_bytes();

// Throws Refusal with the arithmetic when `bytes` for `purpose` exceed what is available; `remedy`:
// the options to make smaller.
void require_memory(std::uint64_t bytes, const char* purpose,
                    const char* remedy = "--ring-size, --block-size or --links");

}  // namespace daqwriter
