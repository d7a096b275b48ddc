#pragma once

#include <type_traits>

#include "buffer.h"
#include "vec.h"

// The packed product, for what is batched over time: projections and weight gradients.
namespace recurra {
inline namespace RECURRA_ISA {

// A matrix somewhere: element (i, j) stands at data[i * row + j * column].
template <class T>
struct View {
  const T* data;
  long row, column;
};

constexpr long panel_vectors = 2;  // columns of a panel, in vectors
constexpr long tile_rows = 6;      // 12 accumulators: enough for the latency of FMA, few enough for 16 registers
constexpr long depth = 512;        // of the inner dimension at a time, so that a panel stays in the first cache

template <class T>
constexpr long panel_columns = panel_vectors * lanes<T>;

// acc[r][v] += sum over k of a[r][k * step] * panel[k][v], in the order of k whatever the number of rows.
template <int rows, int vectors, class T>
inline void accumulate(Vec<T> (&acc)[rows][vectors], const T* const* a, long step, const T* panel, long K) {
  using V = Vec<T>;
  for (long k = 0; k < K; ++k) {
    V b[vectors];
    for (int v = 0; v < vectors; ++v) b[v] = load<V>(panel + (k * vectors + v) * lanes<T>);
    for (int r = 0; r < rows; ++r) {
      const V x = fill<V>(a[r][k * step]);
      for (int v = 0; v < vectors; ++v) acc[r][v] += x * b[v];
    }
  }
}

// Columns [column, column + panel_columns) of rows [k0, k1) of B, zeros beyond N.
template <class T>
void pack_panel(View<T> B, long N, long column, long k0, long k1, T* panel) {
  const long width = least(panel_columns<T>, N - column);
  for (long k = k0; k < k1; ++k) {
    T* to = panel + (k - k0) * panel_columns<T>;
    const T* from = B.data + k * B.row + column * B.column;
    for (long j = 0; j < width; ++j) to[j] = from[j * B.column];
    for (long j = width; j < panel_columns<T>; ++j) to[j] = 0;
  }
}

template <int rows, class T>
void product_tile(const T* const* a, long step, const T* panel, long K, T* const* c, long width, bool add) {
  using V = Vec<T>;
  V acc[rows][panel_vectors] = {};
  accumulate<rows, panel_vectors, T>(acc, a, step, panel, K);
  for (int r = 0; r < rows; ++r)
    for (long v = 0; v < panel_vectors; ++v) {
      const long left = width - v * lanes<T>;
      if (left <= 0) continue;
      T* to = c[r] + v * lanes<T>;
      store_part(to, add ? acc[r][v] + load_part<V>(to, left) : acc[r][v], left);
    }
}

// Calls f with the number of rows as a compile-time constant.
template <class F>
inline void with_rows(long n, F f) {
  switch (n) {
    case 6:
      return f(std::integral_constant<int, 6>{});
    case 5:
      return f(std::integral_constant<int, 5>{});
    case 4:
      return f(std::integral_constant<int, 4>{});
    case 3:
      return f(std::integral_constant<int, 3>{});
    case 2:
      return f(std::integral_constant<int, 2>{});
    default:
      return f(std::integral_constant<int, 1>{});
  }
}

// C[M, N] = A[M, K] B[K, N], added to C if add. Rows of C are c_row apart. scratch holds scratch_of(N) elements.
// Every thread of the OpenMP team is used; the result does not depend on how many there are, since the sum over k is
// never split between threads.
template <class T>
long product_scratch(long N) {
  return (N + panel_columns<T> - 1) / panel_columns<T> * panel_columns<T> * depth;
}

template <class T>
void product(long M, long N, long K, View<T> A, View<T> B, T* C, long c_row, bool add, T* scratch, int threads) {
  const long panels = (N + panel_columns<T> - 1) / panel_columns<T>;
  const long tiles = (M + tile_rows - 1) / tile_rows;
  if (K == 0 && !add)
    for (long i = 0; i < M; ++i) clear(C + i * c_row, N);
#pragma omp parallel num_threads(threads) if (threads > 1)
  for (long k0 = 0; k0 < K; k0 += depth) {
    const long k1 = least(K, k0 + depth);
#pragma omp for schedule(static)
    for (long p = 0; p < panels; ++p)
      pack_panel(B, N, p * panel_columns<T>, k0, k1, scratch + p * panel_columns<T> * depth);
#pragma omp for schedule(static)
    for (long t = 0; t < tiles; ++t) {
      const long i0 = t * tile_rows, n = least(tile_rows, M - i0);
      for (long p = 0; p < panels; ++p) {
        const T* a[tile_rows];
        T* c[tile_rows];
        for (long r = 0; r < n; ++r) {
          a[r] = A.data + (i0 + r) * A.row + k0 * A.column;
          c[r] = C + (i0 + r) * c_row + p * panel_columns<T>;
        }
        with_rows(n, [&](auto rows) {
          product_tile<rows.value, T>(a, A.column, scratch + p * panel_columns<T> * depth, k1 - k0, c,
                                      N - p * panel_columns<T>, add || k0 > 0);
        });
      }
    }
  }
}

}  // namespace RECURRA_ISA
}  // namespace recurra
