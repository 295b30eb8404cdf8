// Loaded before the C library by hang_test: one call of the program, on one path, never returns. The
// environment says which: HANG_CALL (io_submit, fopen, open or stat), HANG_PATH (how the path ends; not for
// io_submit) and HANG_AFTER (how many calls return before).
#include <dlfcn.h>
#include <fcntl.h>
#include <libaio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

std::string_view setting(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

void hang_if(std::string_view call, std::string_view path) {
  static std::atomic<long> calls{0};
  if (setting("HANG_CALL") != call || !path.ends_with(setting("HANG_PATH"))) return;
  if (calls++ < std::atol(setting("HANG_AFTER").data())) return;
  while (true) pause();
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int open_next(const char* name, const char* path, int flags, va_list more) {
  hang_if("open", path);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  return next<int(const char*, int, ...)>(name)(path, flags, mode);
}

}  // namespace

extern "C" {

int io_submit(io_context_t context, long count, iocb** blocks) {
  hang_if("io_submit", "");
  return next<int(io_context_t, long, iocb**)>("io_submit")(context, count, blocks);
}

int stat(const char* path, struct stat* status) {
  hang_if("stat", path);
  return next<int(const char*, struct stat*)>("stat")(path, status);
}

FILE* fopen(const char* path, const char* mode) {
  hang_if("fopen", path);
  return next<FILE*(const char*, const char*)>("fopen")(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  hang_if("fopen", path);
  return next<FILE*(const char*, const char*)>("fopen64")(path, mode);
}

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const int fd = open_next("open", path, flags, more);
  va_end(more);
  return fd;
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const int fd = open_next("open64", path, flags, more);
  va_end(more);
  return fd;
}
}
