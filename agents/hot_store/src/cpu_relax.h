// Promise: tells the CPU that a thread waits by reading, so that the other one
// of its core gets on.
#pragma once

namespace hotstore {

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace hotstore
