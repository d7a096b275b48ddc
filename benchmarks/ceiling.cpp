// What this machine can do at most: multiply-adds a second, and bytes read a second from each level of memory.
//
//   ceiling THREADS NAME BYTES …    prints {"fma": …, "NAME": …}: flops and bytes a second, all threads together
//
// Each BYTES is what one thread reads over and over. Compiled for the machine that runs it (-march=native).
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr int width = 64, accumulators = 24;
#elif defined(__AVX__)
constexpr int width = 32, accumulators = 12;
#elif defined(__aarch64__)
constexpr int width = 16, accumulators = 24;
#else
constexpr int width = 16, accumulators = 12;
#endif
typedef float Vec __attribute__((vector_size(width)));
constexpr int lanes = width / 4;
volatile float sink;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void keep(Vec v) {
  float sum = 0;
  for (int i = 0; i < lanes; ++i) sum += v[i];
  sink = sum;
}

// Independent chains, enough of them to hide the latency of a multiply-add. Returns flops.
double multiply_add(long rounds) {
  Vec acc[accumulators];
  Vec a, b;
  for (int i = 0; i < lanes; ++i) a[i] = 0.999f, b[i] = 1e-3f;
  for (int k = 0; k < accumulators; ++k) acc[k] = b * float(k);
  for (long r = 0; r < rounds; ++r) {
#pragma GCC unroll 24
    for (int k = 0; k < accumulators; ++k) acc[k] = acc[k] * a + b;
  }
  Vec sum = acc[0];
  for (int k = 1; k < accumulators; ++k) sum += acc[k];
  keep(sum);
  return 2.0 * lanes * accumulators * rounds;
}

#if defined(__AVX512BF16__)
double multiply_add_bf16(long rounds) {
  __m512 acc[accumulators];
  __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1e-3f), _mm512_set1_ps(1e-3f));
  for (int k = 0; k < accumulators; ++k) acc[k] = _mm512_setzero_ps();
  for (long r = 0; r < rounds; ++r) {
#pragma GCC unroll 24
    for (int k = 0; k < accumulators; ++k) acc[k] = _mm512_dpbf16_ps(acc[k], a, a);
  }
  __m512 sum = acc[0];
  for (int k = 1; k < accumulators; ++k) sum = _mm512_add_ps(sum, acc[k]);
  keep(reinterpret_cast<Vec>(sum));
  return 2.0 * 2 * lanes * accumulators * rounds;
}
#endif

// Reads a buffer from end to end, `rounds` times. Returns bytes.
double read(const Vec* data, long count, long rounds) {
  Vec sums[8] = {};
  for (long r = 0; r < rounds; ++r) {
    // The compiler may not remember the last round.
    asm volatile("" : : "r"(data) : "memory");
    for (long i = 0; i + 8 <= count; i += 8) {
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) sums[k] += data[i + k];
    }
  }
  for (int k = 1; k < 8; ++k) sums[0] += sums[k];
  keep(sums[0]);
  return double(count) * width * rounds;
}

// The best of fifteen runs of about 20 ms: work a second, all threads together.
double best(int threads, const std::function<double(int, long)>& work) {
  long rounds = 1;
  for (double begin = now(), spent = 0; spent < 0.01; begin = now()) {
    rounds *= 2;
    work(0, rounds);
    spent = now() - begin;
  }
  rounds *= 2;
  double found = 0;
  for (int repeat = 0; repeat < 15; ++repeat) {
    std::atomic<int> ready{0};
    std::vector<double> done(threads), begin(threads), end(threads);
    std::vector<std::thread> team;
    for (int t = 0; t < threads; ++t) {
      team.emplace_back([&, t] {
        ++ready;
        while (ready < threads) std::this_thread::yield();
        begin[t] = now();
        done[t] = work(t, rounds);
        end[t] = now();
      });
    }
    for (std::thread& t : team) t.join();
    double first = begin[0], last = end[0], sum = 0;
    for (int t = 0; t < threads; ++t) {
      first = begin[t] < first ? begin[t] : first;
      last = end[t] > last ? end[t] : last;
      sum += done[t];
    }
    found = sum / (last - first) > found ? sum / (last - first) : found;
  }
  return found;
}

}  // namespace

int main(int count, char** given) {
  const int threads = std::atoi(given[1]);
  std::printf("{\"fma\": %.6g", best(threads, [](int, long rounds) { return multiply_add(1000 * rounds); }));
#if defined(__AVX512BF16__)
  std::printf(", \"fma_bfloat16\": %.6g",
              best(threads, [](int, long rounds) { return multiply_add_bf16(1000 * rounds); }));
#endif
  for (int i = 2; i + 1 < count; i += 2) {
    const size_t bytes = size_t(std::atol(given[i + 1])) / 512 * 512;
    std::vector<Vec*> buffers;
    for (int t = 0; t < threads; ++t) {
      buffers.push_back(static_cast<Vec*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)));
      std::memset(static_cast<void*>(buffers[t]), 0, bytes);
    }
    std::printf(", \"%s\": %.6g", given[i],
                best(threads, [&](int t, long rounds) { return read(buffers[t], bytes / width, rounds); }));
    for (Vec* b : buffers) std::free(b);
  }
  std::printf("}\n");
}
