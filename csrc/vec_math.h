#pragma once

#include "vec.h"

// What recurra/kernels/math.h computes by comparisons and conversions, by bits and by the minimum and maximum of the
// machine, which GCC does not find by itself. On AVX-512 with GCC 12, in ns per 16 floats: exp 2.2 -> 1.7, sigmoid
// 2.6 -> 2.0, tanh 4.2 -> 3.0. Included before math.h, whose templates yield to these.
namespace recurra {
inline namespace RECURRA_ISA {

template <class V>
inline typename Lane<V>::integers bits_of(V x) {
  return reinterpret_cast<typename Lane<V>::integers>(x);
}

// The whole number stands in the lowest bits of the sum, with the exponent's bias.
inline Vec<float> power_of_shifted(Vec<float> sum) { return reinterpret_cast<Vec<float>>(bits_of(sum) << 23); }
inline Vec<double> power_of_shifted(Vec<double> sum) { return reinterpret_cast<Vec<double>>(bits_of(sum) << 52); }

inline Vec<float> magnitude(Vec<float> x) { return reinterpret_cast<Vec<float>>(bits_of(x) & INT32_MAX); }
inline Vec<double> magnitude(Vec<double> x) { return reinterpret_cast<Vec<double>>(bits_of(x) & INT64_MAX); }

inline Vec<float> with_sign(Vec<float> y, Vec<float> x) {
  return reinterpret_cast<Vec<float>>(bits_of(y) | (bits_of(x) & INT32_MIN));
}
inline Vec<double> with_sign(Vec<double> y, Vec<double> x) {
  return reinterpret_cast<Vec<double>>(bits_of(y) | (bits_of(x) & INT64_MIN));
}

// The x86 instructions give their second operand when one is a NaN: the bound stands first, so that a NaN stays.
#if defined(__AVX512F__)
inline Vec<float> at_least(Vec<float> x, Vec<float> bound) {
  return (Vec<float>)_mm512_max_ps((__m512)bound, (__m512)x);
}
inline Vec<float> at_most(Vec<float> x, Vec<float> bound) {
  return (Vec<float>)_mm512_min_ps((__m512)bound, (__m512)x);
}
inline Vec<double> at_least(Vec<double> x, Vec<double> bound) {
  return (Vec<double>)_mm512_max_pd((__m512d)bound, (__m512d)x);
}
inline Vec<double> at_most(Vec<double> x, Vec<double> bound) {
  return (Vec<double>)_mm512_min_pd((__m512d)bound, (__m512d)x);
}
#elif defined(__AVX__)
inline Vec<float> at_least(Vec<float> x, Vec<float> bound) {
  return (Vec<float>)_mm256_max_ps((__m256)bound, (__m256)x);
}
inline Vec<float> at_most(Vec<float> x, Vec<float> bound) {
  return (Vec<float>)_mm256_min_ps((__m256)bound, (__m256)x);
}
inline Vec<double> at_least(Vec<double> x, Vec<double> bound) {
  return (Vec<double>)_mm256_max_pd((__m256d)bound, (__m256d)x);
}
inline Vec<double> at_most(Vec<double> x, Vec<double> bound) {
  return (Vec<double>)_mm256_min_pd((__m256d)bound, (__m256d)x);
}
#elif defined(__SSE2__)
inline Vec<float> at_least(Vec<float> x, Vec<float> bound) { return (Vec<float>)_mm_max_ps((__m128)bound, (__m128)x); }
inline Vec<float> at_most(Vec<float> x, Vec<float> bound) { return (Vec<float>)_mm_min_ps((__m128)bound, (__m128)x); }
inline Vec<double> at_least(Vec<double> x, Vec<double> bound) {
  return (Vec<double>)_mm_max_pd((__m128d)bound, (__m128d)x);
}
inline Vec<double> at_most(Vec<double> x, Vec<double> bound) {
  return (Vec<double>)_mm_min_pd((__m128d)bound, (__m128d)x);
}
#endif

}  // namespace RECURRA_ISA
}  // namespace recurra
