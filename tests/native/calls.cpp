// Preloaded in front of the C library: counts the calls that change something under one folder, and lets the nth of
// them be the last one of the process, or fail. This is how every system call of a write gets to be the last one.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

namespace {

char folder[PATH_MAX];
std::atomic<int> count{0};
int nth = 0, fault = 0;
enum { BEFORE = -1, AFTER = -2, TORN = -3 };

template <class F>
F real(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

bool inside(const char* path) {
  size_t n = strlen(folder);
  return n && path && !strncmp(path, folder, n) && (path[n] == '/' || !path[n]);
}

bool inside(int fd) {
  if (!folder[0]) return false;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return false;
  path[n] = 0;
  return inside(path);
}

// Runs a call, unless it is the nth.
template <class Where, class Call>
long watch(Where where, Call call) {
  int kept = errno;
  bool ours = inside(where);
  errno = kept;
  if (!ours || ++count != nth) return call();
  if (fault == BEFORE || fault == TORN) die();
  if (fault == AFTER) {
    call();
    die();
  }
  errno = fault;
  return -1;
}

}  // namespace

extern "C" {

void evergait_arm(const char* path, int n, int what) {
  nth = n;
  fault = what;
  count = 0;
  snprintf(folder, sizeof folder, "%s", path);
}

int evergait_count() { return count; }

ssize_t write(int fd, const void* data, size_t n) {
  static auto next = real<ssize_t (*)(int, const void*, size_t)>("write");
  if (fault == TORN && n > 1 && inside(fd) && count + 1 == nth) {
    next(fd, data, n / 2);
    die();
  }
  return watch(fd, [&] { return long(next(fd, data, n)); });
}

int fsync(int fd) {
  static auto next = real<int (*)(int)>("fsync");
  return int(watch(fd, [&] { return long(next(fd)); }));
}

int rename(const char* from, const char* to) {
  static auto next = real<int (*)(const char*, const char*)>("rename");
  return int(watch(to, [&] { return long(next(from, to)); }));
}

int unlink(const char* path) {
  static auto next = real<int (*)(const char*)>("unlink");
  return int(watch(path, [&] { return long(next(path)); }));
}

int mkdir(const char* path, mode_t mode) {
  static auto next = real<int (*)(const char*, mode_t)>("mkdir");
  return int(watch(path, [&] { return long(next(path, mode)); }));
}

int chmod(const char* path, mode_t mode) {
  static auto next = real<int (*)(const char*, mode_t)>("chmod");
  return int(watch(path, [&] { return long(next(path, mode)); }));
}

int ftruncate64(int fd, off64_t n) {
  static auto next = real<int (*)(int, off64_t)>("ftruncate64");
  return int(watch(fd, [&] { return long(next(fd, n)); }));
}

int ftruncate(int fd, off_t n) { return ftruncate64(fd, n); }

int flock(int fd, int how) {
  static auto next = real<int (*)(int, int)>("flock");
  return int(watch(fd, [&] { return long(next(fd, how)); }));
}

// Only opening for writing counts: reading changes nothing.
int open64(const char* path, int flags, ...) {
  static auto next = real<int (*)(const char*, int, mode_t)>("open64");
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if ((flags & O_ACCMODE) == O_RDONLY) return next(path, flags, mode);
  return int(watch(path, [&] { return long(next(path, flags, mode)); }));
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open64(path, flags, mode);
}

}  // extern "C"
