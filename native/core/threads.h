// Threads that share work. The caller's own thread does its share too. Not for kernel files (see isa.h).
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
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

// Threads that sleep between calls. A call ends with its work: it waits for no thread that has not woken by then.
class Crew {
 public:
  // The caller is one of n_threads. Throws NoThread, with none left, where one could not be started.
  explicit Crew(int n_threads) : size_(n_threads), inner_(std::make_unique<Inner>()) {
    try {
      for (int t = 1; t < n_threads; t++) inner_->threads.emplace_back(&Inner::serve, inner_.get());
    } catch (const std::system_error& error) {
      const size_t missing = inner_->threads.size() + 2;
      inner_->end();
      throw NoThread("threads: there is no thread " + std::to_string(missing) + " of " + std::to_string(n_threads) +
                     " (" + error.what() + "); use fewer");
    }
  }

  ~Crew() {
    if (is_here())
      inner_->end();
    else
      (void)inner_.release();  // a fork has the memory of a crew and none of its threads: there is nobody to wait for
  }

  // Whether it has so many threads, in this process.
  bool serves(int n_threads) const { return n_threads <= size_ && is_here(); }

  // Calls work(i) once for every i of [0, n), and returns the first status that is not kDone.
  template <class Work>
  Status run(int64_t n, Work work) {
    std::atomic<int64_t> next{0};
    std::atomic<int> worst{kDone};
    const std::function<void()> share = [&] {
      for (int64_t i; (i = next.fetch_add(1)) < n;)
        if (const Status status = work(i); status != kDone) worst = status;
    };
    inner_->open(share, int(std::min<int64_t>(n, size_)) - 1);
    share();
    inner_->close();
    return Status(worst.load());
  }

 private:
  struct Inner {
    std::mutex mutex;
    std::condition_variable asleep, busy;
    const std::function<void()>* share = nullptr;  // while there may be work left
    uint64_t n_calls = 0;
    int n_inside = 0;
    bool over = false;
    std::vector<std::thread> threads;

    void serve() {
      std::unique_lock<std::mutex> lock(mutex);
      for (uint64_t served = 0;;) {
        asleep.wait(lock, [&] { return over || (share && served != n_calls); });
        if (over) return;
        served = n_calls, n_inside++;
        const std::function<void()>& mine = *share;
        lock.unlock();
        mine();
        lock.lock();
        if (--n_inside == 0) busy.notify_one();
      }
    }

    void open(const std::function<void()>& work, int n_helpers) {
      {
        std::lock_guard<std::mutex> lock(mutex);
        share = &work, n_calls++;
      }
      for (int i = 0; i < n_helpers; i++) asleep.notify_one();
    }

    void close() {
      std::unique_lock<std::mutex> lock(mutex);
      share = nullptr;
      busy.wait(lock, [&] { return n_inside == 0; });
    }

    void end() {
      {
        std::lock_guard<std::mutex> lock(mutex);
        over = true;
      }
      asleep.notify_all();
      for (std::thread& thread : threads) thread.join();
    }
  };

  bool is_here() const { return getpid() == process_; }

  int size_;
  pid_t process_ = getpid();
  std::unique_ptr<Inner> inner_;
};

// Calls work(begin, end) on disjoint ranges that cover [0, n), each a multiple of `grain` long but the last.
template <class Work>
Status parallel(int64_t n, int64_t grain, int n_threads, Work work) {
  if (n <= 0) return kDone;
  const int64_t n_grains = (n + grain - 1) / grain;
  const int n_ranges = int(std::min<int64_t>(n_threads, n_grains));
  auto edge = [&](int64_t t) { return t == n_ranges ? n : n_grains * t / n_ranges * grain; };
  return Crew(n_ranges).run(n_ranges, [&](int64_t t) { return work(edge(t), edge(t + 1)); });
}

}  // namespace evergait
