#pragma once

#include "product.h"

// Operands in the order in which products read them.
namespace recurra {
inline namespace RECURRA_ISA {

// One vector of columns of a panel from as many rows: to[k * stride + j] = word k of row j, zeros where j >= rows.
// The rows are `apart` elements apart and have K elements.
template <class S>
void pack_rows(const S* from, long apart, long rows, long K, Word<S>* to, long stride) {
  using W = Vec<Word<S>>;
  constexpr long n = lanes<Word<S>>;
  const long whole = K / per_word<S>;
  long k = 0;
  for (; rows > 0 && k + n <= whole; k += n) {
    W square[n];
    for (long j = 0; j < n; ++j)
      square[j] = j < rows ? load<W>(reinterpret_cast<const Word<S>*>(from + j * apart + k * per_word<S>)) : W{};
    transpose(square);
    for (long j = 0; j < n; ++j) store(to + (k + j) * stride, square[j]);
  }
  for (; k < words<S>(K); ++k)
    for (long j = 0; j < n; ++j)
      to[k * stride + j] = j < rows ? word_at(from + j * apart + k * per_word<S>, K - k * per_word<S>) : Word<S>{};
}

// Elements (0, j) and (1, j) of a matrix as one word.
template <class S>
inline Word<S> pair_of(const S* from, long apart, long j, long columns, long rows) {
  Word<S> w{};
  if (j >= columns) return w;
  S pair[per_word<S>] = {};
  pair[0] = from[j];
  if (rows > 1) pair[per_word<S> - 1] = from[apart + j];
  std::memcpy(&w, pair, sizeof w);
  return w;
}

// One vector of columns of a panel from columns that already stand side by side: to[k * stride + j] = word k of column
// j, zeros where j >= columns. The K rows are `apart` elements apart.
template <class S>
void pack_columns(const S* from, long apart, long columns, long K, Word<S>* to, long stride) {
  if constexpr (per_word<S> == 1) {
    using W = Vec<S>;
    if (columns <= 0)
      for (long k = 0; k < K; ++k) store(to + k * stride, W{});
    else
      for (long k = 0; k < K; ++k) store(to + k * stride, load_part<W>(from + k * apart, columns));
  } else {
    for (long k = 0; k < words<S>(K); ++k)
      for (long j = 0; j < L<S>; ++j) to[k * stride + j] = pair_of(from + 2 * k * apart, apart, j, columns, K - 2 * k);
  }
}

// tile_rows columns of a matrix as rows of a product's left operand: word k of column r at to[k * tile_rows + r].
// `from` may be read, and `to` written, by a vector's width beyond the end.
template <class S>
void pack_sliver(const S* from, long apart, long K, Word<S>* to) {
  if constexpr (per_word<S> == 1) {
    constexpr std::size_t wide = tile_rows > 4 ? 8 * sizeof(S) : 4 * sizeof(S);  // one or two moves
    for (long k = 0; k < K; ++k) std::memcpy(to + k * tile_rows, from + k * apart, wide);
  } else {
    for (long k = 0; k < words<S>(K); ++k)
      for (long r = 0; r < tile_rows; ++r)
        to[k * tile_rows + r] = pair_of(from + 2 * k * apart, apart, r, tile_rows, K - 2 * k);
  }
}

}  // namespace RECURRA_ISA
}  // namespace recurra
