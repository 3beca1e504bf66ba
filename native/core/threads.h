// Splits rows over threads; the caller's own thread does its share. Not for kernel files (see isa.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "kernels.h"

namespace evergait {

struct NoThread : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Calls work(begin, end) on disjoint ranges that cover [0, n), each a multiple of `grain` long but the last; returns
// the first status that is not kDone. Throws NoThread, after the work has ended, where a thread could not be started.
template <class Work>
Status parallel(int64_t n, int64_t grain, int n_threads, Work work) {
  if (n <= 0) return kDone;
  const int64_t n_grains = (n + grain - 1) / grain;
  if (n_threads > n_grains) n_threads = int(n_grains);
  auto edge = [&](int t) { return t == n_threads ? n : n_grains * t / n_threads * grain; };
  std::atomic<int> worst{kDone};
  auto share = [&](int t) {
    const Status status = work(edge(t), edge(t + 1));
    if (status != kDone) worst = status;
  };
  std::vector<std::thread> threads;
  threads.reserve(size_t(n_threads));
  std::string missing;
  try {
    for (int t = 1; t < n_threads; t++) threads.emplace_back(share, t);
  } catch (const std::system_error& error) {
    missing = std::to_string(threads.size() + 2) + " of " + std::to_string(n_threads) + " (" + error.what() + ")";
  }
  if (missing.empty()) share(0);
  for (std::thread& thread : threads) thread.join();
  if (!missing.empty()) throw NoThread("threads: there is no thread " + missing + "; use fewer");
  return Status(worst.load());
}

}  // namespace evergait
