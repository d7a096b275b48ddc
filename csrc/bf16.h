#pragma once

#include "call.h"
#include "vec.h"

// What the kernels need to know of a dtype: how it stands in memory, and the words that a product takes at a time.
namespace recurra {
inline namespace RECURRA_ISA {

// Compute: what everything but the operands of the big products is computed in.
// Word: what one step of a product takes of a row: an element, or a pair of them for the dot product of bfloat16.
template <class S>
struct Storage {
  using Compute = S;
  using Word = S;
  static constexpr long per_word = 1;
};

template <class S>
using Compute = typename Storage<S>::Compute;
template <class S>
using Word = typename Storage<S>::Word;
template <class S>
constexpr long per_word = Storage<S>::per_word;

// Words that hold K elements.
template <class S>
constexpr long words(long K) {
  return (K + per_word<S> - 1) / per_word<S>;
}

template <class V, class W>
inline V multiply_add(V sum, W x, V y) {
  return sum + fill<V>(x) * y;
}

#if defined(__AVX512BF16__)
template <>
struct Storage<Bf16> {
  using Compute = float;
  using Word = std::uint32_t;
  static constexpr long per_word = 2;
};

// By the compiler's extension: GCC 12 warns of its own header for the intrinsics that do the same.
inline Vec<float> widen(__m256i halves) {
  typedef std::uint16_t Halves __attribute__((vector_size(32)));
  return (Vec<float>)(__builtin_convertvector((Halves)halves, Vec<std::uint32_t>) << 16);
}
inline __m256i narrow(Vec<float> v) { return (__m256i)_mm512_cvtneps_pbh((__m512)v); }

template <>
inline Vec<float> load_part<Vec<float>, Bf16>(const Bf16* p, long n) {
  if (n >= 16) return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return widen(_mm256_maskz_loadu_epi16(Tail<float>::mask(n), p));
}
template <>
inline void store_part<Vec<float>, Bf16>(Bf16* p, Vec<float> v, long n) {
  if (n >= 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(v));
  else
    _mm256_mask_storeu_epi16(p, Tail<float>::mask(n), narrow(v));
}

// Two products of bfloat16 pairs at once, added in float32.
inline Vec<float> multiply_add(Vec<float> sum, std::uint32_t x, Vec<float> y) {
  return (Vec<float>)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(static_cast<int>(x)), (__m512bh)y);
}
#endif

// The word at element k of a row, of which `left` elements exist: what is missing of a pair is 0.
template <class S>
inline Word<S> word_at(const S* row, long left) {
  Word<S> w{};
  std::memcpy(&w, row, static_cast<std::size_t>(left < per_word<S> ? left : per_word<S>) * sizeof(S));
  return w;
}

}  // namespace RECURRA_ISA
}  // namespace recurra
