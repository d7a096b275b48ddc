#pragma once

#include "recurra/kernels/namespace.h"

// exp, tanh and their kin for any value type V: a SIMD vector on the CPU, a scalar on a GPU. V brings fill, select,
// round_small and power_of_two. Polynomials are minimax fits of (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2.
namespace recurra {
inline namespace RECURRA_ISA {

template <class T>
struct Constants;

template <>
struct Constants<float> {
  static constexpr float log2_e = 1.44269504f;
  static constexpr float ln2_high = 0.693145752f;  // 16 bits: times a whole number below 2^8 it is exact
  static constexpr float ln2_low = 1.42860677e-6f;
  static constexpr float exp_lowest = -87.3f;  // results below are flushed to the smallest normal numbers
  static constexpr float exp_highest = 88.0f;
  static constexpr float tanh_flat = 10.0f;  // tanh is 1 to the last bit from here on
  static constexpr int terms = 6;
  static constexpr float polynomial[terms] = {0.000198929917630f, 0.00139354518438f, 0.00833330908652f,
                                              0.0416664483657f,   0.166666666835f,   0.500000001516f};
};

template <>
struct Constants<double> {
  static constexpr double log2_e = 1.4426950408889634;
  static constexpr double ln2_high = 0.693147180369123816490;  // 32 bits
  static constexpr double ln2_low = 1.90821492927058770002e-10;
  static constexpr double exp_lowest = -708.0;
  static constexpr double exp_highest = 709.0;
  static constexpr double tanh_flat = 20.0;
  static constexpr int terms = 12;
  static constexpr double polynomial[terms] = {1.6087737571667882e-10, 2.0919802534908384e-9, 2.5052068034668043e-8,
                                               2.7557258688623931e-7,  2.7557319250135433e-6, 2.4801587340818261e-5,
                                               1.9841269841262182e-4,  1.3888888888877398e-3, 8.3333333333333342e-3,
                                               4.1666666666666679e-2,  1.6666666666666667e-1, 0.5};
};

// e^x - 1 = scale * (tail + 1) - 1, where scale is a power of two and tail = e^r - 1 for the small rest r.
template <class V>
struct ExpParts {
  V scale, tail;
};

template <class V>
inline ExpParts<V> exp_parts(V x) {
  using C = Constants<typename Lane<V>::type>;
  // A NaN fails both comparisons and goes on as it is.
  x = select(x < fill<V>(C::exp_lowest), fill<V>(C::exp_lowest), x);
  x = select(x > fill<V>(C::exp_highest), fill<V>(C::exp_highest), x);
  const V n = round_small(x * C::log2_e);
  const V r = (x - n * C::ln2_high) - n * C::ln2_low;
  V q = fill<V>(C::polynomial[0]);
  for (int i = 1; i < C::terms; ++i) q = q * r + C::polynomial[i];
  return {power_of_two(n), r + r * r * q};
}

// Within 2 ULP; arguments outside the range of normal results give the nearest normal result.
template <class V>
inline V exp_of(V x) {
  const ExpParts<V> e = exp_parts(x);
  return e.scale + e.scale * e.tail;
}

template <class V>
inline V expm1_of(V x) {
  const ExpParts<V> e = exp_parts(x);
  return (e.scale - 1) + e.scale * e.tail;
}

template <class V>
inline V tanh_of(V x) {
  using C = Constants<typename Lane<V>::type>;
  V y = select(x < fill<V>(-C::tanh_flat), fill<V>(-C::tanh_flat), x);
  y = select(y > fill<V>(C::tanh_flat), fill<V>(C::tanh_flat), y);
  const V e = expm1_of(y + y);
  return e / (e + 2);
}

template <class V>
inline V sigmoid_of(V x) {
  return 1 / (1 + exp_of(-x));
}

}  // namespace RECURRA_ISA
}  // namespace recurra
