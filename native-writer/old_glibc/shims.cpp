// Functions that glibc has only since a version newer than the oldest one that the programs for candidates
// run on (old_glibc.cmake), made of what the older one has. Linked into those programs alone; each stands in
// for glibc's own there, on a newer glibc too.
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {

// Start (2.34). The start-up code of a newer glibc leaves the constructors to __libc_start_main, which in an
// older one expects a function for them; a newer one takes that function too.
using Main = int (*)(int, char**, char**);
using Start = void (*)(int, char**, char**);
extern void (*__init_array_start[])(int, char**, char**) __attribute__((visibility("hidden")));
extern void (*__init_array_end[])(int, char**, char**) __attribute__((visibility("hidden")));
extern void _init();
extern int __real___libc_start_main(Main main, int count, char** words, Start init, void (*fini)(),
                                    void (*loader_fini)(), void* stack_end);
int __wrap___libc_start_main(Main main, int count, char** words, Start init, void (*fini)(),
                             void (*loader_fini)(), void* stack_end);

static void run_constructors(int count, char** words, char** environment) {
  _init();
  for (Start* one = __init_array_start; one != __init_array_end; ++one) (*one)(count, words, environment);
}

int __wrap___libc_start_main(Main main, int count, char** words, Start init, void (*fini)(),
                             void (*loader_fini)(), void* stack_end) {
  return __real___libc_start_main(main, count, words, init ? init : run_constructors, fini, loader_fini,
                                  stack_end);
}

// Whether there is but one thread (2.32): never said, so that shared pointers count atomically.
char __libc_single_threaded = 0;

// Files (2.33; before, they were a header's inline functions). 64-bit Linux has one layout of struct stat for
// all of them.
static int stat_of(int folder, const char* path, void* facts, int flags) {
  return static_cast<int>(syscall(SYS_newfstatat, folder, path, facts, flags));
}
#define SHIM_STAT(suffix)                                                                             \
  int stat##suffix(const char* path, struct stat##suffix* facts) noexcept {                           \
    return stat_of(AT_FDCWD, path, facts, 0);                                                         \
  }                                                                                                   \
  int lstat##suffix(const char* path, struct stat##suffix* facts) noexcept {                          \
    return stat_of(AT_FDCWD, path, facts, AT_SYMLINK_NOFOLLOW);                                       \
  }                                                                                                   \
  int fstat##suffix(int file, struct stat##suffix* facts) noexcept {                                  \
    return static_cast<int>(syscall(SYS_fstat, file, facts));                                         \
  }                                                                                                   \
  int fstatat##suffix(int folder, const char* path, struct stat##suffix* facts, int flags) noexcept { \
    return stat_of(folder, path, facts, flags);                                                       \
  }
SHIM_STAT()
SHIM_STAT(64)

// Random numbers (2.36), of which libstdc++'s random_device makes use.
void arc4random_buf(void* buffer, size_t size) noexcept {
  auto* place = static_cast<std::uint8_t*>(buffer);
  while (size > 0) {
    const ssize_t got = getrandom(place, size, 0);
    if (got < 0 && errno != EINTR)
      std::abort();  // glibc's own does so too: it has no way to say that there is none
    if (got <= 0) continue;
    place += got;
    size -= static_cast<size_t>(got);
  }
}
std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  arc4random_buf(&value, sizeof value);
  return value;
}

// Names of errors and signals (2.32): stubs.sh makes the tables from the system's headers.
const char* strerrorname_np(int number) noexcept {
  switch (number) {
    case 0:
      return "0";
#include "error_names.inc"
    default:
      return nullptr;
  }
}
const char* strerrordesc_np(int number) noexcept {
  static thread_local char text[128];
  return number == 0 || strerrorname_np(number) ? strerror_r(number, text, sizeof text) : nullptr;
}
static const char* signal_name(int number) {
  switch (number) {
#include "signal_names.inc"
    default:
      return nullptr;
  }
}
const char* sigabbrev_np(int number) noexcept {
  const char* name = signal_name(number);
  return name ? name + 3 : nullptr;  // without SIG
}

// Numbers in text (2.38): the headers lead to these, which read 0b1 too, where C++ lets them. Nothing of ours
// is written so.
#define SHIM_NUMBER(type, name)                                    \
  extern type old_##name(const char*, char**, int) __asm__(#name); \
  type __isoc23_##name(const char* text, char** end, int base);    \
  type __isoc23_##name(const char* text, char** end, int base) {   \
    return old_##name(text, end, base);                            \
  }
SHIM_NUMBER(std::intmax_t, strtoimax)
SHIM_NUMBER(std::uintmax_t, strtoumax)
SHIM_NUMBER(long, strtol)
SHIM_NUMBER(long long, strtoll)
SHIM_NUMBER(unsigned long, strtoul)
SHIM_NUMBER(unsigned long long, strtoull)
extern int __isoc99_vsscanf(const char*, const char*, std::va_list);
extern int __isoc99_vfscanf(std::FILE*, const char*, std::va_list);
int __isoc23_vsscanf(const char* text, const char* format, std::va_list values);
int __isoc23_vsscanf(const char* text, const char* format, std::va_list values) {
  return __isoc99_vsscanf(text, format, values);
}
int __isoc23_vfscanf(std::FILE* file, const char* format, std::va_list values);
int __isoc23_vfscanf(std::FILE* file, const char* format, std::va_list values) {
  return __isoc99_vfscanf(file, format, values);
}
int __isoc23_sscanf(const char* text, const char* format, ...);
int __isoc23_sscanf(const char* text, const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  const int count = __isoc99_vsscanf(text, format, values);
  va_end(values);
  return count;
}
int __isoc23_fscanf(std::FILE* file, const char* format, ...);
int __isoc23_fscanf(std::FILE* file, const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  const int count = __isoc99_vfscanf(file, format, values);
  va_end(values);
  return count;
}
}
