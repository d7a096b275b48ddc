#pragma once

#include "recurra/kernels/namespace.h"

// exp, tanh and their kin for any value type V: a SIMD vector on the CPU, a scalar on a GPU. V brings Lane, fill,
// select and power_of_two. Where a compiler or a machine knows better, V also brings its own power_of_shifted,
// at_least, at_most, magnitude or with_sign, declared before this file: they are taken instead of the templates below.
//
// The bounds stand in units of the last place (ULP) of the exact result, for float and double: the worst that sweeps of
// every instruction set found (tests/native/test_math.py), rounded up. A NaN stays one: it fails every comparison.
namespace recurra {
inline namespace RECURRA_ISA {

// The fits are minimax in relative error of the function that they serve; their lowest power stands first.
template <class T>
struct Constants;

template <>
struct Constants<float> {
  static constexpr float log2_e = 1.44269504f;
  static constexpr float ln2_high = 0.693145752f;  // 16 bits: times a whole number below 2^8 it is exact
  static constexpr float ln2_low = 1.42860677e-6f;
  static constexpr float exp_limit = 87.3365402f;  // e^-limit is the smallest normal number, but for 5e-6 of it
  // Added to a number below 2^22, it drops the fraction and leaves the whole number plus 127 in the lowest bits.
  static constexpr float shift = 12582912.0f + 127;
  // (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2, to 2^-28
  static constexpr float exp_fit[] = {0.499999934493f, 0.166665206293f, 0.0416683877652f, 0.00836871711386f,
                                      0.00138146120383f};
  static constexpr float tanh_flat = 10.0f;  // tanh is 1 to the last bit from here on
  static constexpr float tanh_small = 0.625f;
  // (tanh(y) / y - 1) / z = over(z) / (1 + z under(z)) for z = y^2 and y <= tanh_small, to 2^-27
  static constexpr float tanh_over[] = {-0.3333330801f, -0.001541567762f};
  static constexpr float tanh_under[] = {0.4046122661f};
  // (2 atanh(s) - 2 s) / s^3 in s^2 for s <= 1/3, to 2^-27
  static constexpr float log_fit[] = {0.666664162709f, 0.400215280846f, 0.280017922729f, 0.280120465835f};
};

template <>
struct Constants<double> {
  static constexpr double log2_e = 1.4426950408889634;
  static constexpr double ln2_high = 0.693147180369123816490;  // 32 bits
  static constexpr double ln2_low = 1.90821492927058770002e-10;
  static constexpr double exp_limit = 708.39641853226408;
  static constexpr double shift = 6755399441055744.0 + 1023;
  static constexpr double exp_fit[] = {0.500000000000001062,   0.166666666666664129,   0.0416666666665302572,
                                       0.00833333333349427429, 0.00138888889436003111, 0.000198412695069186247,
                                       2.48014931331107677e-5, 2.75575861330445303e-6, 2.76302351502392281e-7,
                                       2.50001171348536192e-8};  // to 2^-57
  static constexpr double tanh_flat = 20.0;
  static constexpr double tanh_small = 0.625;
  static constexpr double tanh_over[] = {-0.333333333333333235, -0.0204967858570062409,
                                         -0.00019908889870804858};  // to 2^-60
  static constexpr double tanh_under[] = {0.461490357571003646, 0.0232886478200226521, 0.000206438270531024175};
  static constexpr double log_fit[] = {0.666666666666663096, 0.400000000001551288, 0.285714285481168447,
                                       0.222222239537012998, 0.181817444775619918, 0.153865484183929476,
                                       0.133011211052012437, 0.121049466878419502, 0.0834496499837141512,
                                       0.17009766800684653};  // to 2^-59
};

// 2^n, given n + shift.
template <class V>
inline V power_of_shifted(V sum) {
  return power_of_two(sum - Constants<typename Lane<V>::type>::shift);
}
template <class V>
inline V at_least(V x, V bound) {
  return select(x < bound, bound, x);
}
template <class V>
inline V at_most(V x, V bound) {
  return select(x > bound, bound, x);
}
template <class V>
inline V magnitude(V x) {
  return select(x < V{}, -x, x);
}
// y >= 0 with the sign of x.
template <class V>
inline V with_sign(V y, V x) {
  return select(x < V{}, -y, y);
}

// fit[0] + fit[1] x + fit[2] x^2 ...
template <class V, class T, int terms>
inline V polynomial(const T (&fit)[terms], V x) {
  V sum = fill<V>(fit[terms - 1]);
  for (int i = terms - 2; i >= 0; --i) sum = sum * x + fit[i];
  return sum;
}

// e^x = scale * (1 + tail), where scale is a power of two and tail = e^r - 1 for the small rest r. |x| <= exp_limit.
template <class V>
struct ExpParts {
  V scale, tail;
};

template <class V>
inline ExpParts<V> exp_parts(V x) {
  using C = Constants<typename Lane<V>::type>;
  const V sum = x * C::log2_e + C::shift, n = sum - C::shift;
  const V r = (x - n * C::ln2_high) - n * C::ln2_low;
  return {power_of_shifted(sum), r + r * r * polynomial(C::exp_fit, r)};
}

// e^x for |x| <= exp_limit: 1 ULP.
template <class V>
inline V exp_inside(V x) {
  const ExpParts<V> e = exp_parts(x);
  return e.scale + e.scale * e.tail;
}

// 1 ULP. Arguments beyond the limit count as the limit: neither an infinity nor a subnormal number comes out.
template <class V>
inline V exp_of(V x) {
  using C = Constants<typename Lane<V>::type>;
  return exp_inside(at_most(at_least(x, fill<V>(-C::exp_limit)), fill<V>(C::exp_limit)));
}

// e^x - 1 for x <= 0: 1 ULP.
template <class V>
inline V expm1_of(V x) {
  using C = Constants<typename Lane<V>::type>;
  const ExpParts<V> e = exp_parts(at_least(x, fill<V>(-C::exp_limit)));
  return (e.scale - 1) + e.scale * e.tail;
}

// log(1 + x) for 0 <= x <= 1: 1.5 ULP. With s = x / (2 + x) it is 2 atanh(s) = 2 s + s^3 fit(s^2), and 2 s = x - s x.
template <class V>
inline V log_one_plus(V x) {
  using C = Constants<typename Lane<V>::type>;
  const V s = x / (2 + x), z = s * s;
  return x - s * (x - z * polynomial(C::log_fit, z));
}

// 1.5 ULP. Near 0 it is y + y z over / (1 + z under), from tanh_small on 1 - 2 / (1 + e^2y): one division serves both.
template <class V>
inline V tanh_of(V x) {
  using C = Constants<typename Lane<V>::type>;
  const V one = fill<V>(1), y = at_most(magnitude(x), fill<V>(C::tanh_flat)), z = y * y;
  const auto is_small = y < fill<V>(C::tanh_small);
  const V over = select(is_small, y * z * polynomial(C::tanh_over, z), fill<V>(-2));
  const V under = one + select(is_small, z * polynomial(C::tanh_under, z), exp_inside(y + y));
  return with_sign(select(is_small, y, one) + over / under, x);
}

// 2 ULP, 2.5 for double. Nothing below the smallest normal number comes out, but for 5e-6 of it. Of the three terms of
// 1 + e^-x the greatest is added last, so that only that sum rounds at its size.
template <class V>
inline V sigmoid_of(V x) {
  using C = Constants<typename Lane<V>::type>;
  const V one = fill<V>(1);
  const ExpParts<V> e = exp_parts(at_most(at_least(-x, fill<V>(-C::exp_limit)), fill<V>(C::exp_limit)));
  return one / (at_least(e.scale, one) + (e.scale * e.tail + at_most(e.scale, one)));
}

}  // namespace RECURRA_ISA
}  // namespace recurra
