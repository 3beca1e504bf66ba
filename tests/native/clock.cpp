// Preloaded in front of the C library: the clock on the wall jumps by hours, forwards and backwards, at every reading;
// with EVERGAIT_PAUSE set, the steady clock too jumps ahead, as after a pause of a virtual machine.
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

namespace {

long jump() {
  static long n = 0;
  static const long hours[] = {0, 9000, -20000, 3, -700000, 100000};
  return 3600 * hours[n++ % 6];
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, struct timespec* now) {
  static auto next = reinterpret_cast<int (*)(clockid_t, struct timespec*)>(dlsym(RTLD_NEXT, "clock_gettime"));
  static bool pauses = getenv("EVERGAIT_PAUSE") != nullptr;
  static long ahead = 0;
  int code = next(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += jump();
  if (clock == CLOCK_MONOTONIC && pauses) now->tv_sec += ahead += 7;
  return code;
}

time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval* now, void*) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

}  // extern "C"
