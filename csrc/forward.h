#pragma once

#include "split.h"
#include "team.h"
#include "weights.h"

// The forward time loop over any cell, one direction. Per step: 2 N G H^2 multiplications, the weights read once from
// the caches, one meeting of the threads that share rows.
namespace recurra {
inline namespace RECURRA_ISA {

template <class Cell, class S>
class Forward {
  using T = Compute<S>;
  using V = Column<S>;
  // The operand of the recurrent product is the state itself, unless something stands between them.
  static constexpr bool converts = !std::is_same_v<S, T>;

 public:
  // Takes all the memory, for a team of at most `threads`. `resumes`: the states will be taken up again and again.
  Forward(const Cell& cell, const ForwardCall<S>& q, long direction, int threads, bool resumes = false)
      : cell_(cell), q_(q), d_{q, direction, Cell::gates}, weights_(q, direction) {
    stride_ = weights_.blocks() * block_vectors<Cell>() * L<S>;
    const long states = q.batch * stride_;
    in_place_ = reads_in_place(q);
    if (!in_place_) {
      const long size = weights_.size();
      owns_packed_ = q.packed == nullptr;
      const Word<S>* given = static_cast<const Word<S>*>(q.packed);
      weights_.place(owns_packed_ ? scratch_.get<Word<S>>(size) : const_cast<Word<S>*>(given) + direction * size);
    }
    h_[0] = scratch_.zeros<T>(states);
    h_[1] = scratch_.zeros<T>(states);
    if (Cell::states > 1) c_ = scratch_.zeros<T>(states);
    stands_between_ = converts || q.mask != nullptr || q.resets != nullptr || resumes;
    for (int k = 0; k < 2; ++k)
      if (stands_between_)
        operand_[k] = scratch_.zeros<S>(states);
      else if constexpr (!converts)
        operand_[k] = h_[k];
    if (Cell::phases > 1) {
      carry_ = scratch_.zeros<S>(states);
      kept_ = scratch_.zeros<T>(states * Cell::gates);
    }
    bias_ = scratch_.get<T>(stride_ * Cell::gates);
    team_.place(scratch_.zeros<Meeting::Flag>(threads), threads);
    part_.place(scratch_.zeros<Meeting::Flag>(threads), threads);
    if (q.input_weight != nullptr) {
      for (int size = 1; size <= threads; ++size) {
        const Split split = split_of(cost(q), size);
        const long need = ceiling(q.batch, split.row_groups) * ceiling(weights_.blocks(), split.unit_groups) *
                          block_vectors<Cell>() * L<S> * Cell::gates;
        room_ = greatest(room_, size * greatest(need, least(chunk_elements, need * q.steps)));
      }
      x_ = scratch_.get<T>(room_);
    }
  }

  // What a step costs, for choosing a split and a number of threads.
  static StepCost cost(const ForwardCall<S>& q) {
    const long units = unit_vectors<S>(q.hidden);
    return {q.batch, units * Cell::gates, words<S>(q.hidden), vector_bytes, Cell::gates * 3.5, units, Cell::phases};
  }

  static bool reads_in_place(const ForwardCall<S>& q) {
    return !converts && q.packed == nullptr && q.steps * q.batch <= rows_in_place;
  }

  // The team that a call gets.
  static Team team(const ForwardCall<S>& q) {
    const long I = q.input_weight == nullptr ? 0 : q.inputs, columns = Cell::gates * q.hidden;
    const double packing =
        q.packed != nullptr || reads_in_place(q) ? 0 : 0.3 * static_cast<double>(columns * (I + q.hidden));
    // A step alone reads the input weights for itself.
    return team_for(cost(q), q.steps, product_cost<S>(q.steps * q.batch, columns, I) + packing, q.threads,
                    q.steps == 1 ? words<S>(I) : 0);
  }

  // A member's whole work.
  void work(int rank, int size) {
    const Part part = part_for(rank, size);
    if (owns_packed_) weights_.pack(rank, size);
    pack_biases(rank, size);
    start(part);
    team_.meet(rank, 0, size);
    steps(part);
    finish(part);
  }

  // The work in pieces, for streams: once begin(), by one thread; then for each call go_on() by every member of its
  // team, and turn() by one.
  void begin() {
    pack_biases(0, 1);
    start(part_for(0, 1));
  }
  void go_on(int rank, int size) {
    const Part part = part_for(rank, size);
    over_states(part, [&](long n, long u, long left, long at) { enter(0, n, u, left, at, load<V>(h_[0] + at)); });
    team_.meet(rank, 0, size);
    steps(part);
  }
  void turn() {
    team_.forget();
    part_.forget();
    if (q_.steps % 2 == 0) return;
    turned_ = !turned_;
    exchange(h_);
    exchange(operand_);
  }
  // Between calls: the states, [N, stride].
  T* h() const { return h_[0]; }
  T* c() const { return c_; }
  long stride() const { return stride_; }

 private:
  static constexpr long chunk_elements = 96 << 10;

  // Not std::swap, a template that the linker keeps once for all instruction sets.
  template <class P>
  static void exchange(P* pair) {
    const P first = pair[0];
    pair[0] = pair[1];
    pair[1] = first;
  }

  // Steps whose projected source is at hand, [panel][row][gate][lane] for each phase.
  struct Chunk {
    long first;   // visited
    long lowest;  // in time
    long count;
    long rows;  // of the projection
    T* x[2];
  };

  template <int P>
  using In = Panels<Cell, P>;

  Part part_for(int rank, int size) const {
    return part_of(split_of(cost(q_), size), rank, size, q_.batch, weights_.blocks());
  }

  // Steps are taken in chunks, so that their projected source stays in the cache.
  void steps(const Part& part) {
    const long mine = part.rows() * (part.unit1 - part.unit0) * block_vectors<Cell>() * L<S> * Cell::gates;
    T* const x = x_ + room_ / part.size * part.rank;
    const long chunk = q_.input_weight == nullptr
                           ? q_.steps
                           : greatest(1, least(chunk_elements, room_ / part.size) / greatest(mine, 1));
    for (long done = 0; done < q_.steps; done += chunk) {
      const long count = least(chunk, q_.steps - done);
      Chunk now{done, d_.backwards() ? q_.steps - done - count : done, count, count * part.rows(), {x, x}};
      if (q_.input_weight != nullptr) {
        if constexpr (Cell::phases > 1) now.x[1] = x + own_panels<0>(part) * now.rows * In<0>::vectors * L<S>;
        if (count > 1) project(part, now);
      }
      for (long i = done; i < done + count; ++i) {
        phase<0>(part, now, i);
        part_.meet(part.rank, part.first, part.count);
        if constexpr (Cell::phases > 1) {
          phase<1>(part, now, i);
          part_.meet(part.rank, part.first, part.count);
        }
      }
    }
  }

  // ---- before and after the steps

  template <int P>
  T* bias_panel(long panel) const {
    return bias_ + In<P>::first * stride_ + panel * In<P>::vectors * L<S>;
  }
  void pack_biases(int rank, int size) {
    pack_bias<0>(rank, size);
    if constexpr (Cell::phases > 1) pack_bias<1>(rank, size);
  }
  template <int P>
  void pack_bias(int rank, int size) {
    const Share mine = share(weights_.template panels<P>(), rank, size);
    for (long p = mine.begin; p < mine.end; ++p)
      for (int g = 0; g < In<P>::count; ++g)
        for (int v = 0; v < In<P>::width; ++v) {
          const long u = (p * In<P>::width + v) * L<S>;
          const S* bias = d_.bias(In<P>::first + g);
          const V value = bias == nullptr || u >= q_.hidden ? V{} : load_part<V>(bias + u, q_.hidden - u);
          store(bias_panel<P>(p) + (g * In<P>::width + v) * L<S>, value);
        }
  }

  // A member's rows and units, vector by vector.
  template <class F>
  void over_states(const Part& part, F f) {
    const long wide = block_vectors<Cell>() * L<S>;
    for (long n = part.row0; n < part.row1; ++n)
      for (long u = part.unit0 * wide; u < part.unit1 * wide && u < q_.hidden; u += L<S>)
        f(n, u, q_.hidden - u, n * stride_ + u);
  }

  void start(const Part& part) {
    over_states(part, [&](long n, long u, long left, long at) {
      const S *h0 = d_.state_at(q_.init_state, n), *c0 = d_.state_at(q_.init_cell, n);
      const V h = load_or_zero<V>(h0 == nullptr ? nullptr : h0 + u, left);
      store(h_[0] + at, h);
      if (Cell::states > 1) store(c_ + at, load_or_zero<V>(c0 == nullptr ? nullptr : c0 + u, left));
      if (stands_between_ && q_.steps > 0) enter(0, n, u, left, at, h);
    });
  }

  void finish(const Part& part) {
    if (q_.last_state == nullptr && q_.last_cell == nullptr) return;
    over_states(part, [&](long n, long u, long left, long at) {
      S *h = d_.state_at(q_.last_state, n), *c = d_.state_at(q_.last_cell, n);
      if (h != nullptr) store_part(h + u, load<V>(h_[q_.steps & 1] + at), left);
      if (Cell::states > 1 && c != nullptr) store_part(c + u, load<V>(c_ + at), left);
    });
  }

  // What the recurrent product of the i-th step multiplies: mask * h, zeros after a reset.
  void enter(long i, long n, long u, long left, long at, V h) {
    const long t = d_.step(i);
    const S* mask = d_.mask_at(t, n);
    if (mask != nullptr) h = h * load_part<V>(mask + u, left);
    store_part(operand_[i & 1] + at, d_.keeps(t, n) ? h : V{}, L<S>);
  }

  // ---- the projection of the source

  void project(const Part& part, const Chunk& now) {
    for (long p = 0; p < own_panels<0>(part); ++p) project_panel<0>(part, now, p, input_after<0>(part, p));
    if constexpr (Cell::phases > 1)
      for (long p = 0; p < own_panels<1>(part); ++p) project_panel<1>(part, now, p, input_after<1>(part, p));
  }

  template <int P>
  long first_panel(const Part& part) const {
    return part.unit0 * block_vectors<Cell>() / In<P>::width;
  }
  template <int P>
  long own_panels(const Part& part) const {
    return (part.unit1 - part.unit0) * block_vectors<Cell>() / In<P>::width;
  }

  // The panel after it, or null.
  template <int P>
  const Word<S>* input_after(const Part& part, long p) const {
    return in_place_ || p + 1 >= own_panels<P>(part) ? nullptr
                                                     : weights_.template input<P>(first_panel<P>(part) + p + 1);
  }

  // `next` will be read after it.
  template <int P>
  void project_panel(const Part& part, const Chunk& now, long p, const Word<S>* next) {
    const Pieces tiles(now.rows, tile_rows);
    for (long k = 0; k < tiles.number; ++k) {
      const S* a[tile_rows] = {};
      const long begin = tiles.begin(k), rows = tiles.size(k);
      for (long r = 0; r < rows; ++r) {
        const long t = now.lowest + (begin + r) / part.rows(), n = part.row0 + (begin + r) % part.rows();
        a[r] = q_.source + d_.row(t, n) * q_.inputs;
      }
      multiply_panel<P, true>(first_panel<P>(part) + p, a, rows,
                              now.x[P] + (p * now.rows + begin) * In<P>::vectors * L<S>,
                              ahead_of(next, k, tiles.number, words<S>(q_.inputs), In<P>::vectors, a[0]));
    }
  }

  // Rows times a panel of the input weights, the bias added, or of the recurrent weights.
  template <int P, bool is_input>
  void multiply_panel(long panel, const S* const* a, long rows, T* sums, Ahead ahead) const {
    const long K = is_input ? q_.inputs : q_.hidden;
    const T* first = is_input ? bias_panel<P>(panel) : nullptr;
    if constexpr (!converts)
      if (in_place_) return dot_panel<P, is_input>(panel, a, rows, K, first, sums);
    const Word<S>* weights = is_input ? weights_.template input<P>(panel) : weights_.template recurrent<P>(panel);
    multiply_of<S>(rows, In<P>::vectors)(a, per_word<S>, weights, In<P>::vectors * L<S>, words<S>(K), tail_of<S>(K),
                                         first, sums, ahead);
  }

  // The same with the weights as they stand: a dot product for each unit.
  template <int P, bool is_input>
  void dot_panel(long panel, const S* const* a, long rows, long K, const T* first, T* sums) const {
    for (long r = 0; r < rows; ++r)
      for (int g = 0; g < In<P>::count; ++g)
        for (int v = 0; v < In<P>::width; ++v) {
          const long u = (panel * In<P>::width + v) * L<S>, at = g * In<P>::width + v;
          const S* weight = is_input ? d_.input(In<P>::first + g) : d_.recurrent(In<P>::first + g);
          V sum = u >= q_.hidden ? V{} : dot_products(weight + u * K, K, q_.hidden - u, a[r]);
          if (first != nullptr) sum += load<V>(first + at * L<S>);
          store(sums + (r * In<P>::vectors + at) * L<S>, sum);
        }
  }

  // Of a vector's rows of weights, as many as there are. Four rows at a time go through memory as it lies.
  static V dot_products(const S* weight, long K, long rows, const S* x) {
    V sums[L<S>];
    for (long j = 0; j < L<S>; j += dot_rows) {
      const S* row[dot_rows];
      V sum[dot_rows] = {};
#pragma GCC unroll 4
      for (long r = 0; r < dot_rows; ++r) row[r] = weight + least(j + r, rows - 1) * K;
      long k = 0;
      for (; k + L<S> <= K; k += L<S>) {
        const V part = load<V>(x + k);
#pragma GCC unroll 4
        for (long r = 0; r < dot_rows; ++r) sum[r] += load<V>(row[r] + k) * part;
      }
      if (k < K) {
        const V part = load_part<V>(x + k, K - k);
        for (long r = 0; r < dot_rows; ++r) sum[r] += load_part<V>(row[r] + k, K - k) * part;
      }
      for (long r = 0; r < dot_rows; ++r) sums[j + r] = sum[r];
    }
    return lane_sums(sums);
  }
  static constexpr long dot_rows = L<S> < 4 ? L<S> : 4;

  // ---- one phase of a step

  template <int P>
  void phase(const Part& part, const Chunk& now, long i) {
    const S* const base = P > 0 ? carry_ : operand_[i & 1];
    const Pieces tiles(part.rows(), tile_rows);
    const long panels = own_panels<P>(part), first = first_panel<P>(part), t = d_.step(i);
    // Every other step goes through the weights backwards: the last ones are still in the cache.
    const bool turned = ((i & 1) != 0) != turned_, is_alone = q_.input_weight != nullptr && now.count == 1;
    for (long j = 0; j < panels; ++j) {
      const long p = turned ? panels - 1 - j : j;
      if ((first + p) * In<P>::width * L<S> >= q_.hidden) continue;
      const Word<S>*own = nullptr, *next = nullptr;
      if (!in_place_) {
        own = weights_.template recurrent<P>(first + p);
        if (j + 1 < panels)
          next = is_alone ? weights_.template input<P>(first + (turned ? p - 1 : p + 1))
                          : weights_.template recurrent<P>(first + (turned ? p - 1 : p + 1));
      }
      // A step alone is projected here: so its input weights are met in that order too.
      if (is_alone) project_panel<P>(part, now, p, own);
      for (long k = 0; k < tiles.number; ++k) {
        const S* a[tile_rows] = {};
        const long n = part.row0 + tiles.begin(k), rows = tiles.size(k);
        for (long r = 0; r < rows; ++r) a[r] = base + (n + r) * stride_;
        alignas(64) T sums[tile_rows * In<P>::vectors * L<S>];
        multiply_panel<P, false>(first + p, a, rows, sums,
                                 ahead_of(next, k, tiles.number, words<S>(q_.hidden), In<P>::vectors, a[0]));
        const T* x = sums;  // not read where the source is projected already
        if (q_.input_weight != nullptr)
          x = now.x[P] + (p * now.rows + (t - now.lowest) * part.rows() + n - part.row0) * In<P>::vectors * L<S>;
        for (long v = 0; v < In<P>::width; ++v) {
          const long u = ((first + p) * In<P>::width + v) * L<S>;
          if (u < q_.hidden) units<P>(i, t, n, rows, u, sums + v * L<S>, x + v * L<S>);
        }
      }
    }
  }

  // The cell on a vector of units of some rows; not inlined, so that there is one order of its operations, whatever
  // the tile. sums and x are [row][gate][width][lane].
  template <int P>
  RECURRA_NOINLINE void units(long i, long t, long n0, long rows, long u, const T* sums, const T* x) {
    constexpr int count = In<P>::count, first = In<P>::first, step = In<P>::width * L<S>;
    const long left = q_.hidden - u;
    V params[Cell::params > 0 ? Cell::params : 1];
    for (int k = 0; k < Cell::params; ++k) {
      const S* param = d_.param(q_.params, k, Cell::params);
      params[k] = load_or_zero<V>(param == nullptr ? nullptr : param + u, left);
    }
    const bool projected = q_.input_weight != nullptr;
    for (long r = 0; r < rows; ++r, sums += In<P>::vectors * L<S>, x += In<P>::vectors * L<S>) {
      const long n = n0 + r, at = n * stride_ + u;
      if (!d_.valid(t, n)) {
        if (P + 1 == Cell::phases) skip(i, t, n, u, left, at);
        continue;
      }
      V in[count], recurrent[count], kept[Cell::gates], s[2] = {}, carry{};
      for (int g = 0; g < count; ++g) {
        recurrent[g] = load<V>(sums + g * step);
        in[g] = projected ? load<V>(x + g * step) : source_gate(t, n, first + g, u, left);
      }
      if (d_.keeps(t, n)) {
        s[0] = load<V>(h_[i & 1] + at);
        if (Cell::states > 1) s[1] = load<V>(c_ + at);
      }
      T* saved = Cell::phases > 1 ? kept_ + n * Cell::gates * stride_ + u : nullptr;
      if constexpr (P > 0)
        for (int g = 0; g < first; ++g) kept[g] = load<V>(saved + g * stride_);
      const V mh = stands_between_ ? load_part<V>(operand_[i & 1] + at, L<S>) : s[0];
      cell_.template step<P>(in, recurrent, params, mh, s, carry, kept);
      if constexpr (P + 1 < Cell::phases) {
        store_part(carry_ + at, carry, L<S>);
        for (int g = 0; g < count; ++g) store(saved + g * stride_, kept[g]);
      } else {
        store(h_[(i + 1) & 1] + at, s[0]);
        if (Cell::states > 1) store(c_ + at, s[1]);
        if (stands_between_ && i + 1 < q_.steps) enter(i + 1, n, u, left, at, s[0]);
        if (q_.h != nullptr) store_part(d_.hidden_at(q_.h, t, n) + u, s[0], left);
        if (q_.c != nullptr) store_part(d_.hidden_at(q_.c, t, n) + u, s[1], left);
        if (q_.z != nullptr)
          for (int g = 0; g < Cell::gates; ++g)
            store_part(d_.gates_at(q_.z, t, n) + q_.slot[g] * q_.hidden + u, kept[g], left);
      }
    }
  }

  // A gate of a source that is projected already.
  V source_gate(long t, long n, int gate, long u, long left) const {
    V x = load_part<V>(d_.gates_at(q_.source, t, n) + q_.slot[gate] * q_.hidden + u, left);
    if (q_.bias != nullptr) x += load_part<V>(d_.bias(gate) + u, left);
    return x;
  }

  // A step that the row does not have: results are 0, the states stay.
  void skip(long i, long t, long n, long u, long left, long at) {
    const V h = load<V>(h_[i & 1] + at);
    store(h_[(i + 1) & 1] + at, h);
    if (stands_between_ && i + 1 < q_.steps) enter(i + 1, n, u, left, at, h);
    if (q_.h != nullptr) store_part(d_.hidden_at(q_.h, t, n) + u, V{}, left);
    if (q_.c != nullptr) store_part(d_.hidden_at(q_.c, t, n) + u, V{}, left);
    if (q_.z != nullptr)
      for (int g = 0; g < Cell::gates; ++g) store_part(d_.gates_at(q_.z, t, n) + g * q_.hidden + u, V{}, left);
  }

  const Cell& cell_;
  const ForwardCall<S>& q_;
  Direction<S> d_;
  Weights<Cell, S> weights_;
  bool in_place_ = false, owns_packed_ = false, stands_between_ = false;
  bool turned_ = false;  // the first step of a call goes through the weights backwards
  long stride_ = 0, room_ = 0;
  T *h_[2] = {}, *c_ = nullptr, *kept_ = nullptr, *bias_ = nullptr, *x_ = nullptr;
  S *operand_[2] = {}, *carry_ = nullptr;
  Scratch scratch_;
  Meeting team_, part_;
};

}  // namespace RECURRA_ISA
}  // namespace recurra
