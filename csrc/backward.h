#pragma once

#include "rows.h"
#include "split.h"
#include "sums.h"
#include "team.h"

// The backward time loop over any cell, one direction. Only the carry goes step by step; the gradients of source and
// weights are products over a chunk of steps at a time, while the chunk is still in the cache.
namespace recurra {
inline namespace RECURRA_ISA {

template <class Cell, class S>
class Backward {
  using T = Compute<S>;
  using V = Column<S>;
  using W = Word<S>;
  using Rows = ChunkRows<Cell, S>;

 public:
  // Takes all the memory, for a team of at most `threads`.
  Backward(const Cell& cell, const GradientCall<S>& g, long direction, int threads)
      : cell_(cell),
        g_(g),
        q_(g.forward),
        d_{g.forward, direction, Cell::gates},
        steps_(greatest(1, least(q_.steps, chunk_rows / greatest(1, q_.batch)))),
        rows_(cell, g, direction, steps_, scratch_),
        sums_(cell, g, rows_, direction, steps_, scratch_) {
    const long H = q_.hidden, vectors = unit_vectors<S>(H);
    stride_ = vectors * L<S>;
    const long states = q_.batch * stride_;
    for (int p = 0; p < Cell::phases; ++p) packed_[p] = scratch_.get<W>(vectors * L<S> * carry_words(p));
    direct_ = scratch_.zeros<T>(states);
    if (Cell::states > 1) dc_ = scratch_.zeros<T>(states);
    if (Cell::phases > 1) dh_ = scratch_.get<T>(states);
    if (q_.input_weight != nullptr) {
      input_panels_ = ceiling(q_.inputs, panel_vectors * L<S>);
      packed_input_ = scratch_.get<W>(input_panels_ * panel_vectors * L<S> * Cell::gates * words<S>(H));
    }
    if (recomputes_product) {
      products_ = scratch_.get<T>(steps_ * q_.batch * stride_);
      packed_candidate_ = scratch_.get<W>(ceiling(vectors, panel_vectors) * panel_vectors * L<S> * words<S>(H));
    }
    team_.place(scratch_.zeros<Meeting::Flag>(threads), threads);
    part_.place(scratch_.zeros<Meeting::Flag>(threads), threads);
  }

  // What a step costs, for choosing a split and a number of threads.
  static StepCost cost(const ForwardCall<S>& q) {
    const long units = unit_vectors<S>(q.hidden);
    return {q.batch, units, Cell::gates * words<S>(q.hidden), vector_bytes, Cell::gates * 3.0, units, Cell::phases};
  }

  // A member's whole work.
  void work(int rank, int size) {
    const Part part = part_of(split_of(cost(q_), size), rank, size, q_.batch, unit_vectors<S>(q_.hidden));
    pack(part);
    start(part);
    Steps now{0, 0};
    for (long done = q_.steps; done > 0; done -= now.count) {  // visited steps that are still to be undone
      const Steps later = now;
      now.count = least(steps_, done);
      now.lowest = d_.backwards() ? q_.steps - done : done - now.count;
      rows_.begin(now, later, rank, size);
      team_.meet(rank, 0, size);
      if constexpr (recomputes_product) {
        find_products(now, rank, size);
        team_.meet(rank, 0, size);
      }
      for (long i = done - 1; i >= done - now.count; --i) {
        phase<Cell::phases - 1>(now, i, part);
        part_.meet(rank, part.first, part.count);
        if constexpr (Cell::phases > 1) {
          phase<0>(now, i, part);
          part_.meet(rank, part.first, part.count);
        }
      }
      team_.meet(rank, 0, size);
      if (q_.input_weight != nullptr)
        source_gradient(now, rank, size);
      else
        put_gradients(now, rank, size);
      sums_.add(now, done == q_.steps, team_, rank, size);
      team_.meet(rank, 0, size);
    }
    initial_gradients(now, part);
    sums_.finish(rank, size);
  }

 private:
  // GRU with reset after: the reset gate sees a product that the training state does not hold.
  static constexpr bool recomputes_product = Rows::recomputes_product;
  static constexpr long chunk_rows = 512;

  // ---- the weights

  // The gates whose gradients are multiplied by R on the way back through phase p, in the order of a chunk's row.
  static constexpr int carry_gate(int p, int k) { return recomputes_product ? (k + 2) % 3 : Cell::first(p) + k; }
  long carry_words(int p) const { return Cell::count(p) * words<S>(q_.hidden); }

  void pack(const Part& part) {
    const long H = q_.hidden, vectors = unit_vectors<S>(H);
    for (int p = 0; p < Cell::phases; ++p)
      over_panels(part, [&](long v0, long number) {
        W* const to = packed_[p] + v0 * L<S> * carry_words(p);
        for (int k = 0; k < Cell::count(p); ++k)
          for (long v = 0; v < number; ++v) {
            const long u = (v0 + v) * L<S>;
            pack_columns(d_.recurrent(carry_gate(p, k)) + u, H, H - u, H, to + (k * words<S>(H) * number + v) * L<S>,
                         number * L<S>);
          }
      });
    const Share mine = share(input_panels_, part.rank, part.size);
    for (long p = mine.begin; p < mine.end; ++p)
      for (int gate = 0; gate < Cell::gates; ++gate)
        for (long v = 0; v < panel_vectors; ++v) {
          const long j = (p * panel_vectors + v) * L<S>, left = greatest(0, q_.inputs - j);
          pack_columns(d_.input(gate) + (left > 0 ? j : 0), q_.inputs, left, H,
                       packed_input_ + ((p * Cell::gates + gate) * words<S>(H) * panel_vectors + v) * L<S>,
                       panel_vectors * L<S>);
        }
    if (recomputes_product) {
      const Share some = share(ceiling(vectors, panel_vectors) * panel_vectors, part.rank, part.size);
      for (long v = some.begin; v < some.end; ++v) {
        const long u = v * L<S>, count = greatest(0L, least(L<S>, H - u));
        pack_rows(d_.recurrent(Cell::gates - 1) + (count > 0 ? u * H : 0), H, count, H,
                  packed_candidate_ + (v / panel_vectors * words<S>(H) * panel_vectors + v % panel_vectors) * L<S>,
                  panel_vectors * L<S>);
      }
    }
  }

  // The panels of all unit groups, shared by the whole team: f(first vector, vectors).
  template <class F>
  void over_panels(const Part& part, F f) const {
    const long groups = part.count, vectors = unit_vectors<S>(q_.hidden);
    long at = 0;
    for (long group = 0; group < groups; ++group) {
      const Share units = share(vectors, static_cast<int>(group), static_cast<int>(groups));
      const Pieces panels(units.end - units.begin, panel_vectors);
      for (long p = 0; p < panels.number; ++p, ++at)
        if (at % part.size == part.rank) f(units.begin + panels.begin(p), panels.size(p));
    }
  }

  // ---- around the steps

  void start(const Part& part) {
    over_states(part, [&](long n, long u, long left, long at) {
      const S *s = d_.state_at(g_.state_gradient, n), *k = d_.state_at(g_.cell_gradient, n);
      store(direct_ + at, load_or_zero<V>(s == nullptr ? nullptr : s + u, left));
      if (Cell::states > 1) store(dc_ + at, load_or_zero<V>(k == nullptr ? nullptr : k + u, left));
    });
  }

  template <class F>
  void over_states(const Part& part, F f) {
    for (long n = part.row0; n < part.row1; ++n)
      for (long v = part.unit0; v < part.unit1; ++v) f(n, v * L<S>, q_.hidden - v * L<S>, n * stride_ + v * L<S>);
  }

  void initial_gradients(const Steps& now, const Part& part) {
    if (g_.init_state != nullptr) phase<-1>(now, -1, part);
    over_states(part, [&](long n, long u, long left, long at) {
      S *h = d_.state_at(g_.init_state, n), *c = d_.state_at(g_.init_cell, n);
      if (h != nullptr) store_part(h + u, load<V>(direct_ + at), left);
      if (Cell::states > 1 && c != nullptr) store_part(c + u, load<V>(dc_ + at), left);
    });
  }

  // What the reset gate multiplied, for a chunk: masked h times R of the candidate, and the secondary bias.
  void find_products(const Steps& now, int rank, int size) {
    const long H = q_.hidden, panels = ceiling(unit_vectors<S>(H), panel_vectors);
    const Pieces tiles(now.count * q_.batch, tile_rows);
    const Share mine = share(tiles.number, rank, size);
    const S* bias = d_.param(q_.params, 0, 1);
    for (long p = 0; p < panels; ++p)
      for (long k = mine.begin; k < mine.end; ++k) {
        const long begin = tiles.begin(k), rows = tiles.size(k);
        const S* a[tile_rows] = {};
        for (long r = 0; r < rows; ++r) a[r] = rows_.masked(begin + r);
        alignas(64) T sums[tile_rows * panel_vectors * L<S>];
        multiply_of<S>(rows, panel_vectors)(a, per_word<S>, packed_candidate_ + p * words<S>(H) * panel_vectors * L<S>,
                                            panel_vectors * L<S>, words<S>(H), tail_of<S>(H), nullptr, sums,
                                            {reinterpret_cast<const char*>(a[0]), 0});
        for (long r = 0; r < rows; ++r)
          for (long v = 0; v < panel_vectors; ++v) {
            const long u = (p * panel_vectors + v) * L<S>;
            if (u >= H) continue;
            V sum = load<V>(sums + (r * panel_vectors + v) * L<S>);
            if (bias != nullptr) sum += load_part<V>(bias + u, H - u);
            store(products_ + (begin + r) * stride_ + u, sum);
          }
      }
  }

  // The gradient of the source, for a chunk: that of the pre-activations times W.
  void source_gradient(const Steps& now, int rank, int size) {
    const long I = q_.inputs, K = Cell::gates * words<S>(q_.hidden);
    // A panel's part that the tiles go through again and again stays in the second cache. Sums of half precision are
    // not put down in between.
    const long depth = std::is_same_v<S, T> ? 512 : K;
    const Pieces tiles(now.count * q_.batch, tile_rows);
    const Share mine = share(tiles.number, rank, size);
    for (long k0 = 0; k0 < K; k0 += depth)
      for (long p = 0; p < input_panels_; ++p) {
        const long vectors = least(panel_vectors, ceiling(I - p * panel_vectors * L<S>, L<S>));
        const W* const next =
            p + 1 < input_panels_ ? packed_input_ + ((p + 1) * K + k0) * panel_vectors * L<S> : nullptr;
        for (long k = mine.begin; k < mine.end; ++k) {
          const long begin = tiles.begin(k), rows = tiles.size(k);
          const S* a[tile_rows] = {};
          S* c[tile_rows] = {};
          for (long r = 0; r < rows; ++r) {
            a[r] = rows_.row(begin + r) + Rows::shift * rows_.width() + k0 * per_word<S>;
            c[r] = g_.source + (now.lowest * q_.batch + begin + r) * I + p * panel_vectors * L<S>;
            prefetch_to_write(c[r], vectors);
          }
          alignas(64) T sums[tile_rows * panel_vectors * L<S>];
          multiply_of<S>(rows, vectors)(
              a, per_word<S>, packed_input_ + (p * K + k0) * panel_vectors * L<S>, panel_vectors * L<S>,
              least(depth, K - k0), 0, nullptr, sums,
              ahead_of(next, k - mine.begin, mine.end - mine.begin, least(depth, K - k0), panel_vectors, a[0]));
          put_tile(sums, rows, vectors, c, I - p * panel_vectors * L<S>, k0 > 0 || d_.index > 0);
        }
      }
  }

  // The same without W: the gradient of the pre-activations as it is.
  void put_gradients(const Steps& now, int rank, int size) {
    const Share mine = share(now.count * q_.batch, rank, size);
    for (long k = mine.begin; k < mine.end; ++k)
      for (int gate = 0; gate < Cell::gates; ++gate)
        copy_of(rows_.row(k) + (Rows::shift + gate) * rows_.width(), q_.hidden,
                d_.gates_at(g_.source, now.lowest, k) + q_.slot[gate] * q_.hidden);
  }

  // ---- one phase of a step

  template <int P>
  void phase(const Steps& now, long i, const Part& part) {
    // The first phase of a step multiplies what the step after it left; the others what the phase before left.
    constexpr bool starts = P == Cell::phases - 1 || P == -1;
    constexpr int source = starts ? 0 : P + 1;
    const bool has_product = !starts || i + 1 < q_.steps;
    const long K = has_product ? carry_words(source) : 0, t = P < 0 ? 0 : d_.step(i);
    const long from = !has_product ? greatest(t, now.lowest) : starts ? d_.step(i + 1) : t;
    const Pieces panels(part.unit1 - part.unit0, panel_vectors), tiles(part.rows(), tile_rows);
    for (long j = 0; j < panels.number; ++j) {
      const long p = i & 1 ? panels.number - 1 - j : j;
      const long v0 = part.unit0 + panels.begin(p), vectors = panels.size(p);
      const long after = i & 1 ? p - 1 : p + 1;
      const W* const next = j + 1 < panels.number && has_product
                                ? packed_[source] + (part.unit0 + panels.begin(after)) * L<S> * carry_words(source)
                                : nullptr;
      for (long k = 0; k < tiles.number; ++k) {
        const long n = part.row0 + tiles.begin(k), rows = tiles.size(k);
        const S* a[tile_rows] = {};
        for (long r = 0; r < rows; ++r)
          a[r] = rows_.row(now, from, n + r) + (starts ? 0 : Cell::first(source) * rows_.width());
        alignas(64) T sums[tile_rows * panel_vectors * L<S>];
        multiply_of<S>(rows, vectors)(a, per_word<S>, packed_[source] + v0 * L<S> * carry_words(source), vectors * L<S>,
                                      K, 0, nullptr, sums, ahead_of(next, k, tiles.number, K, vectors, a[0]));
        for (long v = 0; v < vectors; ++v)
          units<P>(now, i, t, n, rows, (v0 + v) * L<S>, sums + v * L<S>, vectors * L<S>);
      }
    }
  }

  // The cell's gradient on a vector of units of some rows; not inlined, so that there is one order of its operations,
  // whatever the tile. Row r of the products stands at products + r * apart.
  template <int P>
  RECURRA_NOINLINE void units(const Steps& now, long i, long t, long n0, long rows, long u, const T* products,
                              long apart) {
    constexpr bool starts = P == Cell::phases - 1 || P == -1;
    const long H = q_.hidden, left = H - u;
    V params[Cell::params > 0 ? Cell::params : 1];
    for (int k = 0; k < Cell::params; ++k) {
      const S* param = d_.param(q_.params, k, Cell::params);
      params[k] = load_or_zero<V>(param == nullptr ? nullptr : param + u, left);
    }
    for (long r = 0; r < rows; ++r, products += apart) {
      const long n = n0 + r, at = n * stride_ + u;
      const V product = load<V>(products);
      V ds[2] = {};
      if constexpr (starts) ds[0] = arrived(i, n, u, left, at, product);
      if constexpr (P == -1) {
        store(direct_ + at, ds[0]);
      } else if (!d_.valid(t, n)) {
        if (starts) store(direct_ + at, ds[0]);
        const V zeros[Cell::gates] = {};
        rows_.template put<P>(rows_.row(now, t, n), u, left, zeros, zeros);
      } else {
        step<P>(now, t, n, u, left, at, ds, product, params);
      }
    }
  }

  // The gradient of h that comes from the step visited after i.
  V arrived(long i, long n, long u, long left, long at, V product) const {
    const V direct = load<V>(direct_ + at);
    if (i + 1 >= q_.steps) return direct;
    const long after = d_.step(i + 1);
    if (!d_.valid(after, n) || !d_.keeps(after, n)) return direct;
    const S* mask = d_.mask_at(after, n);
    return direct + (mask == nullptr ? product : product * load_part<V>(mask + u, left));
  }

  template <int P>
  void step(const Steps& now, long t, long n, long u, long left, long at, V* ds, V product, const V* params) {
    const long H = q_.hidden;
    if constexpr (P == Cell::phases - 1) {
      if (g_.source_gradient != nullptr) ds[0] += load_part<V>(d_.hidden_at(g_.source_gradient, t, n) + u, left);
      if constexpr (Cell::phases > 1) store(dh_ + at, ds[0]);
    } else {
      ds[0] = load<V>(dh_ + at);
    }
    V kept[Cell::gates], dx[Cell::gates], dr[Cell::gates];
    const S* z = d_.gates_at(q_.z, t, n);
    for (int k = 0; k < Cell::gates; ++k) kept[k] = load_part<V>(z + q_.slot[k] * H + u, left);
    const S* mask = d_.mask_at(t, n);
    StepValues<V> seen{V{}, V{}, V{}, mask == nullptr ? fill<V>(1) : load_part<V>(mask + u, left), V{}};
    if constexpr (Cell::gates == 3) seen.h_old = load_or_zero<V>(rows_.old_h(t, n, u), left);
    if constexpr (recomputes_product)
      seen.product = load<V>(products_ + Rows::local(now, q_.batch, t, n) * stride_ + u);
    if constexpr (Cell::states > 1) {
      seen.c_new = load_part<V>(d_.hidden_at(q_.c, t, n) + u, left);
      seen.c_old = load_or_zero<V>(rows_.old_c(t, n, u), left);
      ds[1] = load<V>(dc_ + at);
      if (g_.cell_sequence_gradient != nullptr)
        ds[1] += load_part<V>(d_.hidden_at(g_.cell_sequence_gradient, t, n) + u, left);
    }
    cell_.template grad<P>(kept, params, seen, ds, product, dx, dr);
    rows_.template put<P>(rows_.row(now, t, n), u, left, dx, dr);
    if constexpr (P == 0) {
      const bool keeps = d_.keeps(t, n);
      store(direct_ + at, keeps ? ds[0] : V{});
      if constexpr (Cell::states > 1) store(dc_ + at, keeps ? ds[1] : V{});
    }
  }

  const Cell& cell_;
  const GradientCall<S>& g_;
  const ForwardCall<S>& q_;
  Direction<S> d_;
  long steps_;
  Scratch scratch_;
  Rows rows_;
  Sums<Cell, S> sums_;
  long stride_ = 0, input_panels_ = 0;
  W *packed_[2] = {}, *packed_input_ = nullptr, *packed_candidate_ = nullptr;
  // direct_ and dc_: the carries that do not pass R. products_: [chunk rows, stride_].
  T *direct_ = nullptr, *dc_ = nullptr, *dh_ = nullptr, *products_ = nullptr;
  Meeting team_, part_;
};

}  // namespace RECURRA_ISA
}  // namespace recurra
