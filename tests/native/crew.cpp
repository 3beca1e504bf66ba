// Calls of every size from a crew, for the thread sanitizer: each piece of work is done once, and before its call ends.
#include "core/threads.h"

using namespace evergait;

int main() {
  for (int n_threads : {1, 2, 3, 8}) {
    Crew crew(n_threads);
    for (int64_t n = 0; n < 200; n++) {
      std::vector<int64_t> done(size_t(n), 0);  // not atomic: two threads at one piece would be a race
      const Status status = crew.run(n, [&](int64_t i) {
        done[size_t(i)] += i + 1;
        return i == 150 ? kNoMemory : kDone;
      });
      if (status != (n > 150 ? kNoMemory : kDone)) return 1;
      for (int64_t i = 0; i < n; i++)
        if (done[size_t(i)] != i + 1) return 2;
    }
  }
  std::vector<int> covered(1000, 0);
  for (int64_t n : {0, 1, 7, 640, 1000})
    parallel(n, 64, 5, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) covered[size_t(i)]++;
      return kDone;
    });
  for (int64_t i = 0; i < 1000; i++)
    if (covered[size_t(i)] != (i < 1) + (i < 7) + (i < 640) + 1) return 3;
  return 0;
}
