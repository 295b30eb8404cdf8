// Loaded before the C library by hang_test: one call of the program, on one path, never returns. The
// environment says which: HANG_CALL (the name of a function below), HANG_PATH (how the path ends) and
// HANG_AFTER (how many calls on a path return before); HANG_UNTIL names a file: while it is there, nothing
// hangs. Where a call hangs, <HANG_UNTIL>.begun and <HANG_UNTIL>.begun-NAME are made, NAME that of its file.
#include <dlfcn.h>
#include <fcntl.h>
#include <libaio.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace {

std::string_view setting(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

void hang_if(std::string_view call, std::string_view path) {
  static std::mutex mutex;
  static std::map<std::string, long, std::less<>> calls;
  if (setting("HANG_CALL") != call || !path.ends_with(setting("HANG_PATH"))) return;
  {
    const std::lock_guard lock(mutex);
    if (calls[std::string(path)]++ < std::atol(setting("HANG_AFTER").data())) return;
  }
  const std::string until(setting("HANG_UNTIL"));
  if (!until.empty()) {
    creat((until + ".begun").c_str(), 0600);
    creat((until + ".begun-" + std::string(path.substr(path.rfind('/') + 1))).c_str(), 0600);
  }
  while (until.empty() || access(until.c_str(), F_OK) != 0) usleep(1'000);
}

void hang_if(std::string_view call, int fd) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t bytes = readlink(link.c_str(), path, sizeof path);
  std::string_view name(path, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  const std::string_view removed = " (deleted)";
  if (name.ends_with(removed)) name.remove_suffix(removed.size());
  hang_if(call, name);
}

// The file that a context was given requests for.
int file_of(io_context_t context, int set = -1) {
  static std::mutex mutex;
  static std::map<io_context_t, int> files;
  const std::lock_guard lock(mutex);
  if (set >= 0) files[context] = set;
  return files.contains(context) ? files[context] : -1;
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
  file_of(context, blocks[0]->aio_fildes);
  hang_if("io_submit", blocks[0]->aio_fildes);
  return next<int(io_context_t, long, iocb**)>("io_submit")(context, count, blocks);
}

int io_getevents(io_context_t context, long least, long most, io_event* events, timespec* timeout) {
  hang_if("io_getevents", file_of(context));
  return next<int(io_context_t, long, long, io_event*, timespec*)>("io_getevents")(context, least, most,
                                                                                   events, timeout);
}

int fdatasync(int fd) {
  hang_if("fdatasync", fd);
  return next<int(int)>("fdatasync")(fd);
}

int ftruncate(int fd, off_t bytes) noexcept {
  hang_if("ftruncate", fd);
  return next<int(int, off_t)>("ftruncate")(fd, bytes);
}

int ftruncate64(int fd, off64_t bytes) noexcept {
  hang_if("ftruncate", fd);
  return next<int(int, off64_t)>("ftruncate64")(fd, bytes);
}

ssize_t pwrite(int fd, const void* data, std::size_t bytes, off_t offset) {
  hang_if("pwrite", fd);
  return next<ssize_t(int, const void*, std::size_t, off_t)>("pwrite")(fd, data, bytes, offset);
}

ssize_t pwrite64(int fd, const void* data, std::size_t bytes, off64_t offset) {
  hang_if("pwrite", fd);
  return next<ssize_t(int, const void*, std::size_t, off64_t)>("pwrite64")(fd, data, bytes, offset);
}

int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list more;
  va_start(more, request);
  void* const argument = va_arg(more, void*);
  va_end(more);
  if (request == BLKDISCARD) hang_if("discard", fd);
  return next<int(int, unsigned long, ...)>("ioctl")(fd, request, argument);
}

int close(int fd) {
  hang_if("close", fd);
  return next<int(int)>("close")(fd);
}

int stat(const char* path, struct stat* status) {
  hang_if("stat", path);
  return next<int(const char*, struct stat*)>("stat")(path, status);
}

int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  hang_if("fallocate", fd);
  return next<int(int, int, off_t, off_t)>("fallocate")(fd, mode, offset, bytes);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t bytes) {
  hang_if("fallocate", fd);
  return next<int(int, int, off64_t, off64_t)>("fallocate64")(fd, mode, offset, bytes);
}

int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  hang_if("mkdirat", path);
  return next<int(int, const char*, mode_t)>("mkdirat")(directory, path, mode);
}

int openat(int directory, const char* path, int flags, ...) {
  if ((flags & O_CREAT) != 0) hang_if("create", path);
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return next<int(int, const char*, int, ...)>("openat")(directory, path, flags, mode);
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
