#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 finds its own intrinsics guilty (bug 105593)
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

#include "recurra/kernels/namespace.h"

// SIMD vectors by the compiler's own vector extension: one source for every instruction set. Their operators are those
// of scalars; comparisons give masks for select(). Intrinsics stand only where the extension has no word: masks.
namespace recurra {
inline namespace RECURRA_ISA {

#if defined(__AVX512F__)
constexpr long vector_bytes = 64;
#elif defined(__AVX__)
constexpr long vector_bytes = 32;
#else
constexpr long vector_bytes = 16;
#endif

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(vector_bytes)));
};
template <class T>
using Vec = typename VectorOf<T>::type;

// Lanes of a vector of T; and T itself, for code that serves both vectors and scalars.
template <class T>
constexpr long lanes = vector_bytes / static_cast<long>(sizeof(T));

template <class V>
struct Lane;
template <>
struct Lane<Vec<float>> {
  using type = float;
  using integers = Vec<std::int32_t>;
};
template <>
struct Lane<Vec<double>> {
  using type = double;
  using integers = Vec<std::int64_t>;
};
template <>
struct Lane<Vec<std::uint32_t>> {
  using type = std::uint32_t;
};

template <class V, class T>
inline V fill(T x) {
  return static_cast<typename Lane<V>::type>(x) - V{};  // minus 0, unlike plus 0, is no operation to the compiler
}

template <class V, class T>
inline V load(const T* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <class V, class T>
inline void store(T* p, V v) {
  std::memcpy(p, &v, sizeof v);
}

// The first n lanes of a vector, 0 < n < lanes: memory beyond them is neither read nor written.
template <class T>
struct Tail {
  static Vec<T> load(const T* p, long n) {
    Vec<T> v{};
    std::memcpy(&v, p, static_cast<std::size_t>(n) * sizeof(T));
    return v;
  }
  static void store(T* p, Vec<T> v, long n) { std::memcpy(p, &v, static_cast<std::size_t>(n) * sizeof(T)); }
};

#if defined(__AVX512F__)
template <>
struct Tail<float> {
  static __mmask16 mask(long n) { return static_cast<__mmask16>((1u << n) - 1); }
  static Vec<float> load(const float* p, long n) { return (Vec<float>)_mm512_maskz_loadu_ps(mask(n), p); }
  static void store(float* p, Vec<float> v, long n) { _mm512_mask_storeu_ps(p, mask(n), (__m512)v); }
};
template <>
struct Tail<double> {
  static __mmask8 mask(long n) { return static_cast<__mmask8>((1u << n) - 1); }
  static Vec<double> load(const double* p, long n) { return (Vec<double>)_mm512_maskz_loadu_pd(mask(n), p); }
  static void store(double* p, Vec<double> v, long n) { _mm512_mask_storeu_pd(p, mask(n), (__m512d)v); }
};
#elif defined(__AVX2__)
template <>
struct Tail<float> {
  static __m256i mask(long n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Vec<float> load(const float* p, long n) { return (Vec<float>)_mm256_maskload_ps(p, mask(n)); }
  static void store(float* p, Vec<float> v, long n) { _mm256_maskstore_ps(p, mask(n), (__m256)v); }
};
template <>
struct Tail<double> {
  static __m256i mask(long n) { return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3)); }
  static Vec<double> load(const double* p, long n) { return (Vec<double>)_mm256_maskload_pd(p, mask(n)); }
  static void store(double* p, Vec<double> v, long n) { _mm256_maskstore_pd(p, mask(n), (__m256d)v); }
};
#endif

// The first n lanes; the others are 0 on loading and stay where they are in memory on storing. n may exceed the lanes.
template <class V, class T>
inline V load_part(const T* p, long n) {
  return n >= lanes<T> ? load<V>(p) : Tail<T>::load(p, n);
}

template <class V, class T>
inline void store_part(T* p, V v, long n) {
  if (n >= lanes<T>)
    store(p, v);
  else
    Tail<T>::store(p, v, n);
}

// Lane by lane: yes where the mask holds, else no.
template <class M, class V>
inline V select(M mask, V yes, V no) {
  return mask ? yes : no;
}

// a0 b0 a1 b1 … of the low halves of a and b, and of the high halves.
template <class V, std::size_t... i>
inline V interleaved(V a, V b, long from, std::index_sequence<i...>) {
  constexpr long n = sizeof...(i);
#if defined(__clang__) || __GNUC__ >= 12
  if (from == 0) return __builtin_shufflevector(a, b, (i % 2 == 0 ? i / 2 : n + i / 2)...);
  return __builtin_shufflevector(a, b, (i % 2 == 0 ? n / 2 + i / 2 : n + n / 2 + i / 2)...);
#else
  V v{};
  for (long j = 0; j < n; ++j) v[j] = (j % 2 == 0 ? a : b)[(from == 0 ? 0 : n / 2) + j / 2];
  return v;
#endif
}
template <class V>
inline V interleave_low(V a, V b) {
  return interleaved(a, b, 0, std::make_index_sequence<lanes<typename Lane<V>::type>>{});
}
template <class V>
inline V interleave_high(V a, V b) {
  return interleaved(a, b, 1, std::make_index_sequence<lanes<typename Lane<V>::type>>{});
}

// The square of as many vectors as they have lanes, transposed: log2(lanes) perfect shuffles.
template <class V>
inline void transpose(V* rows) {
  constexpr long n = lanes<typename Lane<V>::type>;
  V other[n];
  for (long done = 1; done < n; done *= 2) {
#pragma GCC unroll 16
    for (long i = 0; i < n / 2; ++i) {
      other[2 * i] = interleave_low(rows[i], rows[i + n / 2]);
      other[2 * i + 1] = interleave_high(rows[i], rows[i + n / 2]);
    }
#pragma GCC unroll 16
    for (long i = 0; i < n; ++i) rows[i] = other[i];
  }
}

// The sums over the lanes of as many vectors as they have lanes, as one vector.
template <class V>
inline V lane_sums(V* rows) {
  constexpr long n = lanes<typename Lane<V>::type>;
#pragma GCC unroll 4
  for (long half = n / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (long i = 0; i < half; ++i)
      rows[i] = interleave_low(rows[i], rows[i + half]) + interleave_high(rows[i], rows[i + half]);
  return rows[0];
}

// x rounded to whole numbers, for |x| below 2^22 (2^51 for double): the sum with the magic number drops the fraction.
inline Vec<float> round_small(Vec<float> x) {
  const Vec<float> magic = fill<Vec<float>>(12582912.0f);
  return (x + magic) - magic;
}
inline Vec<double> round_small(Vec<double> x) {
  const Vec<double> magic = fill<Vec<double>>(6755399441055744.0);
  return (x + magic) - magic;
}

// 2^n for whole n in the range of normal numbers.
inline Vec<float> power_of_two(Vec<float> n) {
  const Vec<std::int32_t> bits = (__builtin_convertvector(n, Vec<std::int32_t>) + 127) << 23;
  return reinterpret_cast<Vec<float>>(bits);
}
inline Vec<double> power_of_two(Vec<double> n) {
  const Vec<std::int64_t> bits = (__builtin_convertvector(n, Vec<std::int64_t>) + 1023) << 52;
  return reinterpret_cast<Vec<double>>(bits);
}

}  // namespace RECURRA_ISA
}  // namespace recurra
