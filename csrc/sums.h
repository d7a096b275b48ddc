#pragma once

#include "rows.h"

// The sums over all steps and rows of one direction: the gradients of weights, bias, peepholes and secondary bias:
// contract 4.1 to 4.4, the lines with dR, dW, db, dp and db2. Each sum is taken by one thread, row after row.
namespace recurra {
inline namespace RECURRA_ISA {

template <class Cell, class S>
class Sums {
  using T = Compute<S>;
  using V = Column<S>;
  using W = Word<S>;
  using Rows = ChunkRows<Cell, S>;
  // In half precision the sums stand in memory of their own until they are complete.
  static constexpr bool converts = !std::is_same_v<S, T>;
  static constexpr int shift = Rows::shift, blocks = Rows::blocks;
  static constexpr long deepest = 512;  // words of the inner dimension at a time

 public:
  Sums(const Cell& cell, const GradientCall<S>& g, const Rows& rows, long direction, long steps, Scratch& scratch)
      : cell_(cell), g_(g), q_(g.forward), d_{g.forward, direction, Cell::gates}, rows_(rows) {
    const long H = q_.hidden;
    stride_ = unit_vectors<S>(H) * L<S>;
    columns_ = scratch.zeros<T>(stride_ * (blocks + 4));
    depth_ = greatest(1, least(words<S>(steps * q_.batch), deepest));
    tile_words_ = tile_rows * depth_ + 8;  // a sliver is written in moves of eight
    slivers_ = scratch.get<W>(tiles() * tile_words_);
    operands_ = scratch.get<W>((input_panels() + (Cell::phases > 1 ? 2 : 1) * hidden_panels()) * panel_words());
    dR_ = sum_in(g.recurrent_weight, Cell::gates * H * H, scratch);
    dW_ = sum_in(g.input_weight, Cell::gates * H * q_.inputs, scratch);
  }

  // Adds the rows of a chunk, the first of all or a further one. The team meets before and after.
  void add(const Steps& now, bool is_first, Meeting& team, int rank, int size) {
    add_columns(now, rank, size);
    const long rows = now.count * q_.batch, all = words<S>(rows);
    for (long k0 = 0; k0 < all; k0 += depth_) {
      if (k0 > 0) team.meet(rank, 0, size);
      const long depth = least(depth_, all - k0), from = k0 * per_word<S>;
      const long count = least(rows - from, depth * per_word<S>);
      pack_operands(now, from, count, rank, size);
      pack_slivers(from, count, rank, size);
      team.meet(rank, 0, size);
      multiply_tiles(depth, is_first && k0 == 0, rank, size);
    }
  }

  // Writes what is not in its place yet. The team meets before.
  void finish(int rank, int size) {
    put_columns(rank, size);
    const long H = q_.hidden;
    settle(dR_, g_.recurrent_weight, Cell::gates * H * H, rank, size);
    settle(dW_, g_.input_weight, Cell::gates * H * q_.inputs, rank, size);
  }

 private:
  // ---- bias, peepholes and secondary bias: sums of columns

  void add_columns(const Steps& now, int rank, int size) {
    if (g_.bias == nullptr && g_.params == nullptr) return;
    const Share mine = share(unit_vectors<S>(q_.hidden), rank, size);
    for (long k = 0; k < now.count * q_.batch; ++k) {
      const S* const row = rows_.row(k);
      for (int b = 0; b < blocks; ++b)
        for (long v = mine.begin; v < mine.end; ++v) {
          const long u = v * L<S>;
          T* const sum = columns_ + b * stride_ + u;
          store(sum, load<V>(sum) + load_part<V>(row + b * rows_.width() + u, q_.hidden - u));
        }
      if constexpr (Cell::params == 4)
        if (g_.params != nullptr) add_peepholes(row, now.lowest + k / q_.batch, k % q_.batch, mine);
    }
  }

  void add_peepholes(const S* row, long t, long n, const Share& mine) {
    if (!d_.valid(t, n)) return;
    for (long v = mine.begin; v < mine.end; ++v) {
      const long u = v * L<S>, left = q_.hidden - u;
      const V old = load_or_zero<V>(rows_.old_c(t, n, u), left);
      for (int k = 0; k < 4; ++k) {
        const bool sees_new = k == 3 && cell_.output_sees_new;
        T* const sum = columns_ + (blocks + k) * stride_ + u;
        const V c = sees_new ? load_part<V>(d_.hidden_at(q_.c, t, n) + u, left) : old;
        store(sum, load<V>(sum) + c * load_part<V>(row + k * rows_.width() + u, left));
      }
    }
  }

  void put_columns(int rank, int size) {
    const Share mine = share(unit_vectors<S>(q_.hidden), rank, size);
    for (long v = mine.begin; v < mine.end; ++v) {
      const long u = v * L<S>, left = q_.hidden - u;
      for (int gate = 0; g_.bias != nullptr && gate < Cell::gates; ++gate)
        store_part(g_.bias + (d_.index * Cell::gates + q_.slot[gate]) * q_.hidden + u,
                   load<V>(columns_ + (shift + gate) * stride_ + u), left);
      for (int k = 0; g_.params != nullptr && k < Cell::params; ++k)
        store_part(d_.param(g_.params, k, Cell::params) + u,
                   load<V>(columns_ + (Cell::params == 4 ? blocks + k : 0) * stride_ + u), left);
    }
  }

  // ---- weights: products over the rows of a chunk

  // Tiles of the sums: some rows of one block.
  Pieces block_tiles() const { return Pieces(q_.hidden, tile_rows); }
  long tiles() const { return block_tiles().number * blocks; }
  long input_panels() const { return q_.input_weight == nullptr ? 0 : ceiling(q_.inputs, panel_vectors * L<S>); }
  long hidden_panels() const { return ceiling(q_.hidden, panel_vectors * L<S>); }
  long panel_words() const { return depth_ * panel_vectors * L<S>; }

  // The right-hand sides, all the team's: panels of the source, of what R multiplied, and of the candidate's own.
  void pack_operands(const Steps& now, long from, long count, int rank, int size) {
    const S* const source = q_.source + (now.lowest * q_.batch + from) * q_.inputs;
    const long X = input_panels(), H = hidden_panels();
    const Share mine = share((X + (Cell::phases > 1 ? 2 : 1) * H) * panel_vectors, rank, size);
    for (long k = mine.begin; k < mine.end; ++k) {
      const long panel = k / panel_vectors, v = k % panel_vectors;
      W* const to = operands_ + panel * panel_words() + v * L<S>;
      if (panel < X) {
        pack_operand(source, q_.inputs, q_.inputs, panel, v, count, to);
        if (q_.lengths != nullptr) clear_padding(now, from, count, to);
      } else if (panel < X + H)
        pack_operand(rows_.masked(from), rows_.width(), q_.hidden, panel - X, v, count, to);
      else
        pack_operand(rows_.factor(from), rows_.width(), q_.hidden, panel - X - H, v, count, to);
    }
  }
  static void pack_operand(const S* from, long apart, long columns, long panel, long v, long count, W* to) {
    const long j = (panel * panel_vectors + v) * L<S>, left = columns - j;
    pack_columns(from + (left > 0 ? j : 0), apart, left, count, to, panel_vectors * L<S>);
  }

  // The source at steps that rows do not have: its gradient is 0, but 0 times NaN is not.
  void clear_padding(const Steps& now, long from, long count, W* to) const {
    for (long k = 0; k < count; ++k) {
      if (d_.valid(now.lowest + (from + k) / q_.batch, (from + k) % q_.batch)) continue;
      S* const word = reinterpret_cast<S*>(to + k / per_word<S> * panel_vectors * L<S>) + k % per_word<S>;
      for (long j = 0; j < L<S>; ++j) word[j * per_word<S>] = S{};
    }
  }

  // The left-hand sides, a member's own.
  void pack_slivers(long from, long count, int rank, int size) {
    const Share mine = share(tiles(), rank, size);
    const Pieces in = block_tiles();
    for (long k = mine.begin; k < mine.end; ++k)
      pack_sliver(rows_.row(from) + k / in.number * rows_.width() + in.begin(k % in.number), rows_.row_size(), count,
                  slivers_ + k * tile_words_);
  }

  void multiply_tiles(long depth, bool is_first, int rank, int size) {
    const Share mine = share(tiles(), rank, size);
    const long X = input_panels(), H = hidden_panels();
    for (long p = 0; p < X; ++p)
      for (long k = mine.begin; k < mine.end; ++k) {
        const int gate = static_cast<int>(k / block_tiles().number) - shift;
        if (gate >= 0) multiply_tile(k, gate, p, depth, dW_, q_.inputs, p, !is_first);
      }
    for (long p = 0; p < H; ++p)
      for (long k = mine.begin; k < mine.end; ++k) {
        const int block = static_cast<int>(k / block_tiles().number);
        // In a row of GRU with reset after, the first block goes to the candidate's R, and the last one to none.
        const int gate = shift == 0 ? block : block == 0 ? Cell::gates - 1 : block < Cell::gates ? block - 1 : -1;
        const bool own_factor = Cell::phases > 1 && gate == Cell::gates - 1;
        if (gate >= 0) multiply_tile(k, gate, X + p + (own_factor ? H : 0), depth, dR_, q_.hidden, p, !is_first);
      }
  }

  // Tile k times an operand's panel, to the panel's columns of the gate's sums.
  void multiply_tile(long k, int gate, long operand, long depth, T* sums, long columns, long panel, bool add) {
    // The left-hand side of the next tile is asked for meanwhile.
    const Ahead ahead{reinterpret_cast<const char*>(slivers_ + (k + 1) * tile_words_),
                      tile_rows * static_cast<long>(sizeof(W))};
    const Pieces in = block_tiles();
    const long rows = in.size(k % in.number), u = in.begin(k % in.number), j = panel * panel_vectors * L<S>;
    const long vectors = least(panel_vectors, ceiling(columns - j, L<S>));
    const S* a[tile_rows] = {};
    T* c[tile_rows] = {};
    for (long r = 0; r < rows; ++r) {
      a[r] = reinterpret_cast<const S*>(slivers_ + k * tile_words_ + r);
      c[r] = sums + (q_.slot[gate] * q_.hidden + u + r) * columns + j;
      prefetch_to_write(c[r], vectors);
    }
    alignas(64) T tile[tile_rows * panel_vectors * L<S>];
    multiply_of<S>(rows, vectors)(a, tile_rows * per_word<S>, operands_ + operand * panel_words(), panel_vectors * L<S>,
                                  depth, 0, nullptr, tile, ahead);
    put_tile(tile, rows, vectors, c, columns - j, add);
  }

  // ---- where the sums stand

  T* sum_in(S* result, long count, Scratch& scratch) {
    if (result == nullptr) return nullptr;
    if constexpr (converts)
      return scratch.get<T>(count);
    else
      return result + d_.index * count;
  }

  void settle(const T* sum, S* result, long count, int rank, int size) {
    if (result == nullptr) return;
    const Share mine = share(count, rank, size);
    S* const to = result + d_.index * count;
    if (q_.steps * q_.batch == 0)
      clear(to + mine.begin, mine.end - mine.begin);
    else if constexpr (converts)
      for (long k = mine.begin; k < mine.end; k += L<S>) store_part(to + k, load<V>(sum + k), mine.end - k);
  }

  const Cell& cell_;
  const GradientCall<S>& g_;
  const ForwardCall<S>& q_;
  Direction<S> d_;
  const Rows& rows_;
  long stride_ = 0, depth_ = 0, tile_words_ = 0;
  W *slivers_ = nullptr, *operands_ = nullptr;
  T *columns_ = nullptr, *dR_ = nullptr, *dW_ = nullptr;
};

}  // namespace RECURRA_ISA
}  // namespace recurra
