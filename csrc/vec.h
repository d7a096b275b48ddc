#pragma once

#include <cstdint>
#include <cstring>

#include "recurra/kernels/namespace.h"

// SIMD vectors by the compiler's own vector extension: one source for every instruction set. Their operators are those
// of scalars; comparisons give masks for select().
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

// The first n lanes; the others are 0 on loading and stay where they are in memory on storing. n may exceed the lanes.
template <class V, class T>
inline V load_part(const T* p, long n) {
  if (n >= lanes<T>) return load<V>(p);
  V v{};
  std::memcpy(&v, p, static_cast<std::size_t>(n) * sizeof(T));
  return v;
}

template <class V, class T>
inline void store_part(T* p, V v, long n) {
  if (n >= lanes<T>)
    store(p, v);
  else
    std::memcpy(p, &v, static_cast<std::size_t>(n) * sizeof(T));
}

// Lane by lane: yes where the mask holds, else no.
template <class M, class V>
inline V select(M mask, V yes, V no) {
  return mask ? yes : no;
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

inline float log1p_of(float x) { return __builtin_log1pf(x); }
inline double log1p_of(double x) { return __builtin_log1p(x); }
// Only softplus asks for it: lane by lane.
template <class V>
inline V log1p_of(V x) {
  for (long i = 0; i < lanes<typename Lane<V>::type>; ++i) x[i] = log1p_of(x[i]);
  return x;
}

}  // namespace RECURRA_ISA
}  // namespace recurra
