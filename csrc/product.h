#pragma once

#include <type_traits>

#include "bf16.h"
#include "buffer.h"
#include "vec_math.h"

// The one product under everything: a few rows times a panel of a few vectors of columns.
namespace recurra {
inline namespace RECURRA_ISA {

#if defined(_MSC_VER)
#define RECURRA_NOINLINE __declspec(noinline)
#else
#define RECURRA_NOINLINE __attribute__((noinline))
#endif

// Rows of a tile, and vectors of a panel: as many accumulators as there are registers beside the operands. On 16
// registers 3 rows of 4 vectors are 12 sums, enough for the latency of FMA; on 32 registers 6 rows make 24.
constexpr int panel_vectors = 4;
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int tile_rows = 6;
#else
constexpr int tile_rows = 3;
#endif

// Storage S computes in vectors of Compute<S>; a panel has, for each word of the inner dimension, one vector of words
// for each of its vectors of columns.
template <class S>
using Column = Vec<Compute<S>>;
template <class S>
constexpr long L = lanes<Compute<S>>;

// Memory that will be read next, asked for while something else is computed, a line for each word of the inner
// dimension: a panel that comes from the third cache or from further away would hold up the first tile that reads it.
// Where nothing is to come, one line that is at hand is asked for again and again.
struct Ahead {
  const char* at;
  long step;
};

// For the k-th of the tiles that read a panel of K words and so many vectors: its share of the next such panel. A lone
// tile waits for its own panel, and asks for nothing more.
template <class W>
inline Ahead ahead_of(const W* next, long k, long tiles, long K, long vectors, const void* at_hand) {
  if (next == nullptr || tiles == 1 || k >= vectors) return {static_cast<const char*>(at_hand), 0};
  return {reinterpret_cast<const char*>(next) + k * K * vector_bytes, vector_bytes};
}

// sums[r][v] = first + sum over k of a[r][k] * panel[k][v], in the order of k whatever the number of rows: an element's
// value does not depend on which others are computed beside it.
//
//   a       rows of words; row r, word k stands at a[r] + k * step elements of S
//   panel   `vectors` vectors of words for each k, `stride` words apart
//   tail    elements of the last word that exist, when the rows end inside of one (0: all); then step is per_word
//   first   `vectors` vectors to start from, for every row; null: zeros
//   sums    [rows][vectors][lane]
//   ahead   what to ask for meanwhile
template <class S, int rows, int vectors>
RECURRA_NOINLINE void multiply(const S* const* a, long step, const Word<S>* panel, long stride, long K, long tail,
                               const Compute<S>* first, Compute<S>* sums, Ahead ahead) {
  using V = Column<S>;
  V acc[rows][vectors];
  const S* at[rows];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    at[r] = a[r];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) acc[r][v] = first == nullptr ? V{} : load<V>(first + v * L<S>);
  }
  const long whole = tail > 0 ? K - 1 : K;
#pragma GCC unroll 2
  for (long k = 0; k < whole; ++k) {
    V b[vectors];
    __builtin_prefetch(ahead.at, 0, 2);
    ahead.at += ahead.step;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) b[v] = load<V>(panel + k * stride + v * L<S>);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      Word<S> x;
      std::memcpy(&x, at[r] + k * step, sizeof x);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) acc[r][v] = multiply_add(acc[r][v], x, b[v]);
    }
  }
  if (tail > 0)
    for (int v = 0; v < vectors; ++v) {
      const V b = load<V>(panel + whole * stride + v * L<S>);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) acc[r][v] = multiply_add(acc[r][v], word_at(at[r] + whole * step, tail), b);
    }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) store(sums + (r * vectors + v) * L<S>, acc[r][v]);
}

template <class S>
using Multiply = void (*)(const S* const*, long, const Word<S>*, long, long, long, const Compute<S>*, Compute<S>*,
                          Ahead);

// multiply for a number of rows, 1 to tile_rows, and of vectors, 1 to panel_vectors.
template <class S>
inline Multiply<S> multiply_of(long rows, long vectors) {
#define RECURRA_ROW(r)                                                         \
  {                                                                            \
    multiply<S, r, 1>, multiply<S, r, 2>, multiply<S, r, 3>, multiply<S, r, 4> \
  }
  static constexpr Multiply<S> table[tile_rows][panel_vectors] = {
      RECURRA_ROW(1), RECURRA_ROW(2), RECURRA_ROW(3),
#if defined(__AVX512F__) || defined(__aarch64__)
      RECURRA_ROW(4), RECURRA_ROW(5), RECURRA_ROW(6),
#endif
  };
#undef RECURRA_ROW
  return table[rows - 1][vectors - 1];
}

// A tile of sums, [rows][vectors][lane], to rows c of `columns` columns (or more than the tile has), or added to them.
template <class T, class D>
inline void put_tile(const T* sums, long rows, long vectors, D* const* c, long columns, bool add) {
  using V = Vec<T>;
  for (long r = 0; r < rows; ++r)
    for (long v = 0; v < vectors; ++v) {
      const long left = columns - v * lanes<T>;
      if (left <= 0) break;
      V value = load<V>(sums + (r * vectors + v) * lanes<T>);
      D* const to = c[r] + v * lanes<T>;
      if (add) value += load_part<V>(to, left);
      store_part(to, value, left);
    }
}

// Asks for the cache lines that a tile will write to.
template <class D>
inline void prefetch_to_write(const D* row, long vectors) {
  for (long v = 0; v < vectors; ++v) __builtin_prefetch(row + v * (vector_bytes / static_cast<long>(sizeof(D))), 1, 3);
}

// The elements of the last word that exist; 0 when it is whole.
template <class S>
constexpr long tail_of(long K) {
  return K % per_word<S>;
}

// `count` things in pieces of nearly equal size, at most `most` each.
struct Pieces {
  long count, number;
  Pieces(long count_, long most) : count(count_), number(ceiling(count_, most)) {}
  long begin(long i) const { return count * i / number; }
  long size(long i) const { return begin(i + 1) - begin(i); }
};

}  // namespace RECURRA_ISA
}  // namespace recurra
