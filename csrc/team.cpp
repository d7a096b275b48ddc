#include "team.h"

#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdlib>

#if defined(_OPENMP)
#include <omp.h>
#else
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>
#endif

namespace recurra {
namespace {

std::atomic<bool> is_forked{false};

// In nanoseconds of the steady clock; 0 before the first crowd.
std::atomic<std::int64_t> crowded_until{0}, crowded_for{0};

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

#if !defined(_OPENMP)
// Workers that sleep between calls. One call at a time has them; another that comes meanwhile, or from the inside of
// the first, runs alone.
class Pool {
 public:
  void run(int threads, void (*body)(void*, int, int), void* context) {
    if (in_use_.exchange(true, std::memory_order_acquire)) return body(context, 0, 1);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      threads = grow_to(threads);
      body_ = body;
      context_ = context;
      size_ = threads;
      left_ = threads - 1;
      ++round_;
    }
    wake_.notify_all();
    body(context, 0, threads);
    {
      std::unique_lock<std::mutex> lock(mutex_);
      done_.wait(lock, [this] { return left_ == 0; });
    }
    in_use_.store(false, std::memory_order_release);
  }

 private:
  // The size of the team that there is then: a system that has no further thread to give leaves it as it was.
  int grow_to(int threads) {
    try {
      while (static_cast<int>(workers_.size()) < threads - 1)
        workers_.emplace_back([this, rank = static_cast<int>(workers_.size()) + 1] { work(rank); });
    } catch (const std::system_error&) {
      threads = static_cast<int>(workers_.size()) + 1;
    }
    return threads;
  }

  void work(int rank) {
    unsigned long seen = 0;
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [&] { return round_ != seen; });
      seen = round_;
      if (rank >= size_) continue;
      const auto body = body_;
      void* const context = context_;
      const int size = size_;
      lock.unlock();
      body(context, rank, size);
      lock.lock();
      if (--left_ == 0) done_.notify_one();
    }
  }

  std::atomic<bool> in_use_{false};
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> workers_;
  void (*body_)(void*, int, int) = nullptr;
  void* context_ = nullptr;
  int size_ = 0, left_ = 0;
  unsigned long round_ = 0;
};

// Never destroyed: its workers sleep until the process ends.
Pool& pool() {
  static Pool* const one = new Pool;
  return *one;
}
#endif

// A team's work took so many nanoseconds and should have taken `expected`.
void note_time(double taken, double expected) {
  constexpr double turn = 1e6;  // less than the shortest turn of a core that a scheduler gives
  constexpr std::int64_t shortest = 50'000'000, longest = 2'000'000'000;
  if (taken < turn || taken < 8 * expected) return;
  // Again, soon after the last crowd: it has not gone.
  const std::int64_t time = now(), last = crowded_for.load(std::memory_order_relaxed);
  const bool again = time < crowded_until.load(std::memory_order_relaxed) + last;
  const std::int64_t length = !again ? shortest : 2 * last > longest ? longest : 2 * last;
  crowded_for.store(length, std::memory_order_relaxed);
  crowded_until.store(time + length, std::memory_order_relaxed);
}

}  // namespace

void run_team(const Team& team, void (*body)(void*, int, int), void* context) {
  if (team.threads <= 1 || is_forked.load(std::memory_order_relaxed)) return body(context, 0, 1);
  const std::int64_t begin = now();
#if defined(_OPENMP)
#pragma omp parallel num_threads(team.threads)
  body(context, omp_get_thread_num(), omp_get_num_threads());
#else
  pool().run(team.threads, body, context);
#endif
  if (team.expected > 0) note_time(static_cast<double>(now() - begin), team.expected);
}

bool is_crowded() {
  const std::int64_t until = crowded_until.load(std::memory_order_relaxed);
  return until != 0 && now() < until;
}

int default_threads() {
  const char* const wanted = std::getenv("RECURRA_NUM_THREADS");
  if (wanted != nullptr && *wanted != 0) {
    char* end = nullptr;
    const long count = std::strtol(wanted, &end, 10);
    return std::isdigit(static_cast<unsigned char>(*wanted)) && *end == 0 && count >= 1 && count <= 100000
               ? static_cast<int>(count)
               : -1;
  }
#if defined(_OPENMP)
  return omp_get_max_threads();
#else
  const unsigned n = std::thread::hardware_concurrency();
  return n == 0 ? 1 : static_cast<int>(n);
#endif
}

void forget_team() { is_forked.store(true, std::memory_order_relaxed); }

}  // namespace recurra
