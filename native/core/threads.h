// Splits rows over threads; the caller's own thread does its share.
#pragma once

#include <cstdint>
#include <thread>
#include <vector>

namespace evergait {

// Calls work(begin, end) on disjoint ranges that cover [0, n), each a multiple of `grain` long but the last.
template <class Work>
void parallel(int64_t n, int64_t grain, int n_threads, Work work) {
  const int64_t n_grains = (n + grain - 1) / grain;
  if (n_threads > n_grains) n_threads = int(n_grains);
  auto edge = [&](int t) { return t == n_threads ? n : n_grains * t / n_threads * grain; };
  std::vector<std::thread> threads;
  for (int t = 1; t < n_threads; t++) threads.emplace_back([=] { work(edge(t), edge(t + 1)); });
  if (n > 0) work(int64_t(0), edge(1));
  for (std::thread& thread : threads) thread.join();
}

}  // namespace evergait
