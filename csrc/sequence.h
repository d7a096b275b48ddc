#pragma once

#include "gemm.h"
#include "steps.h"

// The forward time loop over any cell.
namespace recurra {
inline namespace RECURRA_ISA {

// The recurrent weights of a phase, packed so that one vector holds the same gate of neighbouring units:
// [panel][k][gate][lane], zeros beyond H.
template <class Cell, class T>
void pack_for_steps(const Direction<T>& d, int phase, Buffer<T>& packed) {
  const long H = d.q.hidden, W = lanes<T>, panels = (H + W - 1) / W, count = Cell::count(phase);
  packed.allocate(panels * H * count * W);
  for (long p = 0; p < panels; ++p)
    for (long g = 0; g < count; ++g)
      for (long j = 0; j < least(W, H - p * W); ++j) {
        const T* from = d.weight() + (d.q.slot[Cell::first(phase) + g] * H + p * W + j) * H;
        T* to = packed.data() + p * H * count * W + g * W + j;
        for (long k = 0; k < H; ++k) to[k * count * W] = from[k];
      }
}

template <class Cell, class T>
class Forward {
 public:
  Forward(const Cell& cell, const ForwardCall<T>& q, long direction)
      : cell_(cell), q_(q), d_{q, direction, Cell::gates} {
    const long states = q.batch * q.hidden;
    for (int p = 0; p < Cell::phases; ++p) pack_for_steps<Cell>(d_, p, packed_[p]);
    h_[0].allocate(states);
    h_[1].allocate(states);
    if (Cell::states > 1) c_.allocate(states);
    if (q.mask != nullptr || q.resets != nullptr) entering_.allocate(states);
    if (Cell::phases > 1) {
      carry_.allocate(states);
      kept_.allocate(states * Cell::gates);
    }
    for (long n = 0; n < q.batch; ++n) {
      const T *h0 = d_.state_at(q.init_state, n), *c0 = d_.state_at(q.init_cell, n);
      if (h0 != nullptr) copy_of(h0, q.hidden, h_[0].data() + n * q.hidden);
      if (Cell::states > 1 && c0 != nullptr) copy_of(c0, q.hidden, c_.data() + n * q.hidden);
    }
  }

  // Steps are taken in chunks, so that the projected source of a chunk stays small.
  void run() {
    const long width = Cell::gates * q_.hidden, row_bytes = q_.batch * width * static_cast<long>(sizeof(T));
    const long chunk = greatest(1L, least(q_.steps, (4L << 20) / greatest(1L, row_bytes)));
    Buffer<T> scratch;
    if (q_.input_weight != nullptr) {
      x_.allocate(chunk * q_.batch * width);
      scratch.allocate(product_scratch<T>(width));
    }
    for (long done = 0; done < q_.steps; done += chunk) {
      const long count = least(chunk, q_.steps - done);
      x_step_ = d_.backwards() ? q_.steps - done - count : done;
      if (q_.input_weight != nullptr) project(count, width, scratch.data());
#pragma omp parallel num_threads(q_.threads) if (q_.threads > 1)
      take_steps(done, done + count);
    }
  }

 private:
  void project(long count, long width, T* scratch) {
    const T* bias = q_.bias == nullptr ? nullptr : q_.bias + d_.index * width;
    for (long i = 0; i < count * q_.batch; ++i) {
      T* to = x_.data() + i * width;
      if (bias == nullptr)
        clear(to, width);
      else
        copy_of(bias, width, to);
    }
    const T* weight = q_.input_weight + d_.index * width * q_.inputs;
    product<T>(count * q_.batch, width, q_.inputs, {q_.source + x_step_ * q_.batch * q_.inputs, q_.inputs, 1},
               {weight, 1, q_.inputs}, x_.data(), width, true, scratch, q_.threads);
  }

  void take_steps(long begin, long end) {
    const long W = lanes<T>, panels = (q_.hidden + W - 1) / W;
    const int threads = team_size();
    const Part part = part_of(q_.batch, panels, team_rank(), threads);
    const bool meets = !splits_rows(q_.batch, threads);
    for (long i = begin; i < end; ++i) {
      const long t = d_.step(i);
      if (!entering_.empty()) {
        enter(t, i, part);
        if (meets) meet();
      }
      phase<0>(t, i, part);
      if (meets) meet();
      if constexpr (Cell::phases > 1) {
        phase<1>(t, i, part);
        if (meets) meet();
      }
    }
  }

  // What the recurrent product multiplies at step t: mask * h, zeros after a reset.
  void enter(long t, long i, const Part& part) {
    const long H = q_.hidden, u0 = part.panel0 * lanes<T>, u1 = least(H, part.panel1 * lanes<T>);
    const T* h = h_[i & 1].data();
    for (long n = part.row0; n < part.row1; ++n) {
      const T* mask = d_.mask_at(t, n);
      const bool keeps = d_.keeps(t, n);
      for (long u = u0; u < u1; ++u)
        entering_.data()[n * H + u] = !keeps ? T(0) : mask == nullptr ? h[n * H + u] : mask[u] * h[n * H + u];
    }
  }

  template <int P>
  void phase(long t, long i, const Part& part) {
    const long H = q_.hidden;
    const T* base = P > 0 ? carry_.data() : entering_.empty() ? h_[i & 1].data() : entering_.data();
    // Every other step goes through the weights backwards: the last ones are still in the cache.
    for (long j = part.panel0; j < part.panel1; ++j) {
      const long p = i & 1 ? part.panel1 - 1 - (j - part.panel0) : j;
      for (long n = part.row0; n < part.row1; n += step_rows) {
        const long rows = least(step_rows, part.row1 - n);
        const T* a[step_rows];
        for (long r = 0; r < rows; ++r) a[r] = base + (n + r) * H;
        with_rows(rows, [&](auto count) { tile<P, count.value>(t, i, p, n, a); });
      }
    }
  }

  template <int P, int rows>
  void tile(long t, long i, long p, long n0, const T* const* a) {
    using V = Vec<T>;
    constexpr int count = Cell::count(P);
    V acc[rows][count] = {};
    accumulate<rows, count, T>(acc, a, 1, packed_[P].data() + p * q_.hidden * count * lanes<T>, q_.hidden);
    for (int r = 0; r < rows; ++r) unit<P>(t, i, n0 + r, p * lanes<T>, acc[r]);
  }

  template <int P>
  void unit(long t, long i, long n, long u, const Vec<T>* recurrent) {
    using V = Vec<T>;
    constexpr int count = Cell::count(P), first = Cell::first(P);
    const long H = q_.hidden, left = H - u, at = n * H + u;
    T *h_new = h_[(i + 1) & 1].data() + at, *c = Cell::states > 1 ? c_.data() + at : nullptr;
    const T* h_old = h_[i & 1].data() + at;
    if (!d_.valid(t, n)) {
      if (P + 1 == Cell::phases) skip(t, n, u, left, h_old, h_new);
      return;
    }
    V x[count], kept[Cell::gates], params[Cell::params > 0 ? Cell::params : 1], s[2] = {}, carry{};
    const T* from = q_.input_weight != nullptr ? x_.data() + ((t - x_step_) * q_.batch + n) * Cell::gates * H
                                               : d_.gates_at(q_.source, t, n);
    const bool adds_bias = q_.input_weight == nullptr && q_.bias != nullptr;
    for (int g = 0; g < count; ++g) {
      const long place = q_.slot[first + g] * H + u;
      x[g] = load_part<V>(from + place, left);
      if (adds_bias) x[g] += load_part<V>(q_.bias + d_.index * Cell::gates * H + place, left);
    }
    for (int k = 0; k < Cell::params; ++k) params[k] = load_or_zero<V>(param_at(k, u), left);
    if (d_.keeps(t, n)) {
      s[0] = load_part<V>(h_old, left);
      if (Cell::states > 1) s[1] = load_part<V>(c, left);
    }
    T* saved = Cell::phases > 1 ? kept_.data() + n * Cell::gates * H + u : nullptr;
    if constexpr (P > 0)
      for (int g = 0; g < Cell::gates; ++g) kept[g] = load_part<V>(saved + g * H, left);
    const V mh = entering_.empty() ? s[0] : load_part<V>(entering_.data() + at, left);
    cell_.template step<P>(x, recurrent, params, mh, s, carry, kept);
    if constexpr (P + 1 < Cell::phases) {
      store_part(carry_.data() + at, carry, left);
      for (int g = 0; g < count; ++g) store_part(saved + g * H, kept[g], left);
      return;
    }
    store_part(h_new, s[0], left);
    if (Cell::states > 1) store_part(c, s[1], left);
    if (q_.h != nullptr) store_part(d_.hidden_at(q_.h, t, n) + u, s[0], left);
    if (q_.c != nullptr) store_part(d_.hidden_at(q_.c, t, n) + u, s[1], left);
    if (q_.z != nullptr)
      for (int g = 0; g < Cell::gates; ++g) store_part(d_.gates_at(q_.z, t, n) + q_.slot[g] * H + u, kept[g], left);
  }

  // A step that the row does not have: results are 0, the states stay.
  void skip(long t, long n, long u, long left, const T* h_old, T* h_new) {
    using V = Vec<T>;
    store_part(h_new, load_part<V>(h_old, left), left);
    if (q_.h != nullptr) store_part(d_.hidden_at(q_.h, t, n) + u, V{}, left);
    if (q_.c != nullptr) store_part(d_.hidden_at(q_.c, t, n) + u, V{}, left);
    if (q_.z != nullptr)
      for (int g = 0; g < Cell::gates; ++g) store_part(d_.gates_at(q_.z, t, n) + g * q_.hidden + u, V{}, left);
  }

  const T* param_at(int k, long u) const {
    if (q_.params == nullptr) return nullptr;
    const long place = Cell::params == 4 ? q_.slot[k] : 0;
    return q_.params + (d_.index * Cell::params + place) * q_.hidden + u;
  }

  const Cell& cell_;
  const ForwardCall<T>& q_;
  Direction<T> d_;
  Buffer<T> packed_[2], h_[2], c_, entering_, carry_, kept_, x_;
  long x_step_ = 0;  // the step whose projected source stands first in x_
};

}  // namespace RECURRA_ISA
}  // namespace recurra
