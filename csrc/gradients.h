#pragma once

#include "gemm.h"
#include "recurra/kernels/cell.h"
#include "steps.h"

// The backward time loop over any cell, and the weight gradients after it.
namespace recurra {
inline namespace RECURRA_ISA {

template <class Cell, class T>
class Backward {
 public:
  Backward(const Cell& cell, const GradientCall<T>& g, long direction)
      : cell_(cell), g_(g), q_(g.forward), d_{g.forward, direction, Cell::gates} {
    const long states = q_.batch * q_.hidden, all = q_.steps * states;
    for (int p = 0; p < Cell::phases; ++p) {
      pack(p);
      dr_[p][0].allocate(states * Cell::count(p));
      dr_[p][1].allocate(states * Cell::count(p));
    }
    direct_.allocate(states);
    if (Cell::states > 1) dc_.allocate(states);
    if (Cell::phases > 1) dh_.allocate(states);
    old_.allocate(all);
    if (q_.mask != nullptr) masked_.allocate(all);
    for (long n = 0; n < q_.batch; ++n) {
      const T *s = d_.state_at(g_.state_gradient, n), *k = d_.state_at(g_.cell_gradient, n);
      if (s != nullptr) copy_of(s, q_.hidden, direct_.data() + n * q_.hidden);
      if (Cell::states > 1 && k != nullptr) copy_of(k, q_.hidden, dc_.data() + n * q_.hidden);
    }
    scratch_.allocate(product_scratch<T>(greatest(q_.hidden, q_.inputs)));
  }

  void run() {
#pragma omp parallel for schedule(static) num_threads(q_.threads) if (q_.threads > 1)
    for (long t = 0; t < q_.steps; ++t) find_old(t);
    if constexpr (recomputes_product) find_products();
#pragma omp parallel num_threads(q_.threads) if (q_.threads > 1)
    take_steps();
    initial_gradients();
    weight_gradients();
  }

 private:
  // GRU with reset after: the reset gate sees a product that the training state does not hold.
  static constexpr bool recomputes_product = Cell::gates == 3 && Cell::phases == 1;
  static constexpr long wide = panel_columns<T>;

  const T* masked() const { return masked_.empty() ? old_.data() : masked_.data(); }
  long rows() const { return q_.steps * q_.batch; }
  long stride() const { return q_.directions * Cell::gates * q_.hidden; }
  View<T> gate_of_projected(int gate) const {  // transposed: [units, rows]
    return {g_.projected + (d_.index * Cell::gates + q_.slot[gate]) * q_.hidden, 1, stride()};
  }

  // R of a phase's gates, [gate and unit, columns], in panels.
  void pack(int phase) {
    const long H = q_.hidden, panels = (H + wide - 1) / wide, K = Cell::count(phase) * H;
    packed_[phase].allocate(panels * K * wide);
    for (long p = 0; p < panels; ++p)
      for (long g = 0; g < Cell::count(phase); ++g)
        pack_panel<T>({d_.weight() + q_.slot[Cell::first(phase) + g] * H * H, H, 1}, H, p * wide, 0, H,
                      packed_[phase].data() + (p * K + g * H) * wide);
  }

  // The h that entered step t, zeros after a reset, without and with the mask.
  void find_old(long t) {
    using V = Vec<T>;
    const long H = q_.hidden;
    for (long n = 0; n < q_.batch; ++n) {
      T* to = old_.data() + d_.row(t, n) * H;
      const bool enters = d_.valid(t, n) && d_.keeps(t, n);
      const bool initial = d_.is_first(t, n);
      const T *h0 = d_.state_at(q_.init_state, n), *mask = d_.mask_at(t, n);
      const long before = d_.backwards() ? t + 1 : t - 1;
      for (long u = 0; u < H; u += lanes<T>) {
        const long left = H - u;
        V h{};
        if (enters && initial)
          h = load_or_zero<V>(h0 == nullptr ? nullptr : h0 + u, left);
        else if (enters)
          h = state_after(before, n, u, left);
        store_part(to + u, h, left);
        if (mask != nullptr) store_part(masked_.data() + d_.row(t, n) * H + u, h * load_part<V>(mask + u, left), left);
      }
    }
  }

  // h after step t, from what the forward pass saved.
  Vec<T> state_after(long t, long n, long u, long left) const {
    using V = Vec<T>;
    if (q_.h != nullptr) return load_part<V>(d_.hidden_at(q_.h, t, n) + u, left);
    V kept[Cell::gates];
    for (int g = 0; g < Cell::gates; ++g)
      kept[g] = load_part<V>(d_.gates_at(q_.z, t, n) + q_.slot[g] * q_.hidden + u, left);
    if constexpr (Cell::states > 1)
      return cell_.output(kept, load_part<V>(d_.hidden_at(q_.c, t, n) + u, left));
    else
      return cell_.output(kept, V{});
  }

  void find_products() {
    const long H = q_.hidden, R_o = q_.slot[2] * H * H;
    products_.allocate(rows() * H);
    const T* bias = q_.params == nullptr ? nullptr : q_.params + d_.index * H;
    for (long i = 0; bias != nullptr && i < rows(); ++i) copy_of(bias, H, products_.data() + i * H);
    product<T>(rows(), H, H, {masked(), H, 1}, {d_.weight() + R_o, 1, H}, products_.data(), H, true, scratch_.data(),
               q_.threads);
  }

  void take_steps() {
    const long panels = (q_.hidden + wide - 1) / wide;
    const Part part = part_of(q_.batch, panels, team_rank(), team_size());
    const bool meets = !splits_rows(q_.batch, team_size());
    for (long i = q_.steps - 1; i >= 0; --i) {
      phase<Cell::phases - 1>(i, part);
      if (meets) meet();
      if constexpr (Cell::phases > 1) {
        phase<0>(i, part);
        if (meets) meet();
      }
    }
    phase<-1>(-1, part);  // what reaches the initial state
  }

  template <int P>
  void phase(long i, const Part& part) {
    // The first phase of a step multiplies what the step after it left; the others what the phase before left.
    constexpr bool starts = P == Cell::phases - 1 || P == -1;
    constexpr int source = starts ? 0 : P + 1;
    const long K = starts && i + 1 == q_.steps ? 0 : Cell::count(source) * q_.hidden;
    const T* dr = dr_[source][(starts ? i + 1 : i) & 1].data();
    for (long p = part.panel0; p < part.panel1; ++p)
      for (long n = part.row0; n < part.row1; n += step_rows) {
        const long count = least(step_rows, part.row1 - n);
        const T* a[step_rows];
        for (long r = 0; r < count; ++r) a[r] = dr + (n + r) * Cell::count(source) * q_.hidden;
        with_rows(count, [&](auto rows) {
          Vec<T> acc[rows.value][panel_vectors] = {};
          accumulate<rows.value, panel_vectors, T>(acc, a, 1, packed_[source].data() + p * K * wide, K);
          for (int r = 0; r < rows.value; ++r)
            for (long v = 0; v < panel_vectors; ++v) {
              const long u = p * wide + v * lanes<T>;
              if (u < q_.hidden) unit<P>(i, n + r, u, acc[r][v]);
            }
        });
      }
  }

  template <int P>
  void unit(long i, long n, long u, Vec<T> product) {
    using V = Vec<T>;
    constexpr bool starts = P == Cell::phases - 1 || P == -1;
    const long H = q_.hidden, left = H - u, at = n * H + u;
    V ds[2] = {};
    if constexpr (starts) {
      ds[0] = arrived(i, n, u, left, product);
      if constexpr (P == -1) {
        store_part(direct_.data() + at, ds[0], left);
        return;
      }
    }
    if constexpr (P >= 0) {
      const long t = d_.step(i);
      if (!d_.valid(t, n)) {
        pass_by<P>(i, t, n, u, left, ds[0]);
        return;
      }
      step<P>(i, t, n, u, left, ds, product);
    }
  }

  // The gradient of h that comes from the step visited after i.
  Vec<T> arrived(long i, long n, long u, long left, Vec<T> product) const {
    using V = Vec<T>;
    const V direct = load_part<V>(direct_.data() + n * q_.hidden + u, left);
    if (i + 1 >= q_.steps) return direct;
    const long after = d_.step(i + 1);
    if (!d_.valid(after, n) || !d_.keeps(after, n)) return direct;
    const T* mask = d_.mask_at(after, n);
    return direct + (mask == nullptr ? product : product * load_part<V>(mask + u, left));
  }

  // A step that the row does not have: carries go on, everything else is 0.
  template <int P>
  void pass_by(long i, long t, long n, long u, long left, Vec<T> carry) {
    using V = Vec<T>;
    constexpr int count = Cell::count(P), first = Cell::first(P);
    if (P == Cell::phases - 1) store_part(direct_.data() + n * q_.hidden + u, carry, left);
    for (int g = 0; g < count; ++g) {
      store_part(d_.gates_at(g_.projected, t, n) + q_.slot[first + g] * q_.hidden + u, V{}, left);
      store_part(dr_[P][i & 1].data() + (n * count + g) * q_.hidden + u, V{}, left);
    }
  }

  template <int P>
  void step(long i, long t, long n, long u, long left, Vec<T>* ds, Vec<T> product) {
    using V = Vec<T>;
    constexpr int count = Cell::count(P), first = Cell::first(P);
    const long H = q_.hidden, at = n * H + u, row = d_.row(t, n) * H + u;
    if constexpr (P == Cell::phases - 1) {
      if (g_.source_gradient != nullptr) ds[0] += load_part<V>(d_.hidden_at(g_.source_gradient, t, n) + u, left);
      if constexpr (Cell::phases > 1) store_part(dh_.data() + at, ds[0], left);
    } else {
      ds[0] = load_part<V>(dh_.data() + at, left);
    }
    V kept[Cell::gates], params[Cell::params > 0 ? Cell::params : 1], dx[Cell::gates], dr[Cell::gates];
    for (int g = 0; g < Cell::gates; ++g) kept[g] = load_part<V>(d_.gates_at(q_.z, t, n) + q_.slot[g] * H + u, left);
    for (int k = 0; k < Cell::params; ++k) params[k] = load_or_zero<V>(param_at(k, u), left);
    const T* mask = d_.mask_at(t, n);
    StepValues<V> seen{load_part<V>(old_.data() + row, left), V{}, V{},
                       mask == nullptr ? fill<V>(1) : load_part<V>(mask + u, left), V{}};
    if constexpr (recomputes_product) seen.product = load_part<V>(products_.data() + row, left);
    if constexpr (Cell::states > 1) {
      seen.c_new = load_part<V>(d_.hidden_at(q_.c, t, n) + u, left);
      seen.c_old = old_cell(t, n, u, left);
      ds[1] = load_part<V>(dc_.data() + at, left);
      if (g_.cell_sequence_gradient != nullptr)
        ds[1] += load_part<V>(d_.hidden_at(g_.cell_sequence_gradient, t, n) + u, left);
    }
    cell_.template grad<P>(kept, params, seen, ds, product, dx, dr);
    for (int g = 0; g < count; ++g) {
      store_part(d_.gates_at(g_.projected, t, n) + q_.slot[first + g] * H + u, dx[g], left);
      store_part(dr_[P][i & 1].data() + (n * count + g) * H + u, dr[g], left);
    }
    if constexpr (P == 0) {
      const bool keeps = d_.keeps(t, n);
      store_part(direct_.data() + at, keeps ? ds[0] : V{}, left);
      if constexpr (Cell::states > 1) store_part(dc_.data() + at, keeps ? ds[1] : V{}, left);
    }
  }

  Vec<T> old_cell(long t, long n, long u, long left) const {
    using V = Vec<T>;
    if (!d_.keeps(t, n)) return V{};
    if (d_.is_first(t, n)) {
      const T* c0 = d_.state_at(q_.init_cell, n);
      return load_or_zero<V>(c0 == nullptr ? nullptr : c0 + u, left);
    }
    return load_part<V>(d_.hidden_at(q_.c, d_.backwards() ? t + 1 : t - 1, n) + u, left);
  }

  const T* param_at(int k, long u) const {
    if (q_.params == nullptr) return nullptr;
    const long place = Cell::params == 4 ? q_.slot[k] : 0;
    return q_.params + (d_.index * Cell::params + place) * q_.hidden + u;
  }

  void initial_gradients() {
    for (long n = 0; n < q_.batch; ++n) {
      const long from = n * q_.hidden, to = (n * q_.directions + d_.index) * q_.hidden;
      if (g_.init_state != nullptr) copy_of(direct_.data() + from, q_.hidden, g_.init_state + to);
      if (Cell::states > 1 && g_.init_cell != nullptr) copy_of(dc_.data() + from, q_.hidden, g_.init_cell + to);
    }
  }

  // Sums over all steps and rows, as products: contract 4.1 to 4.3, the lines with dR, dp and db2.
  void weight_gradients() {
    const long H = q_.hidden;
    Buffer<T> other;  // the candidate's own factor of a GRU
    if constexpr (Cell::gates == 3) {
      other.allocate(rows() * H);
      for (long t = 0; t < q_.steps; ++t)
        for (long n = 0; n < q_.batch; ++n) candidate_factor(t, n, other.data() + d_.row(t, n) * H);
    }
    for (int gate = 0; gate < Cell::gates; ++gate) {
      View<T> left = gate_of_projected(gate), right{masked(), H, 1};
      if (Cell::gates == 3 && gate == 2) {
        if (Cell::phases == 1)
          left = {other.data(), 1, H};
        else
          right = {other.data(), H, 1};
      }
      product<T>(H, H, rows(), left, right, g_.recurrent_weight + (d_.index * Cell::gates + q_.slot[gate]) * H * H, H,
                 false, scratch_.data(), q_.threads);
    }
    if (g_.params != nullptr) params_gradient(other);
  }

  // Reset after: da_o * r, the gradient of the recurrent product. Reset before: r * mask * h, what the product saw.
  void candidate_factor(long t, long n, T* to) const {
    using V = Vec<T>;
    const long H = q_.hidden;
    for (long u = 0; u < H; u += lanes<T>) {
      const long left = H - u;
      V kept[Cell::gates]{};
      kept[1] = load_part<V>(d_.gates_at(q_.z, t, n) + q_.slot[1] * H + u, left);
      const T* with =
          Cell::phases == 1 ? d_.gates_at(g_.projected, t, n) + q_.slot[2] * H + u : masked() + d_.row(t, n) * H + u;
      store_part(to + u, d_.valid(t, n) ? cell_.reset(kept) * load_part<V>(with, left) : V{}, left);
    }
  }

  void params_gradient(const Buffer<T>& other) {
    const long H = q_.hidden;
    for (int k = 0; k < Cell::params; ++k) {
      const long place = Cell::params == 4 ? q_.slot[k] : 0;
      T* to = g_.params + (d_.index * Cell::params + place) * H;
      clear(to, H);
      for (long t = 0; t < q_.steps; ++t)
        for (long n = 0; n < q_.batch; ++n) {
          if (!d_.valid(t, n)) continue;
          for (long u = 0; u < H; u += lanes<T>) add_param(k, t, n, u, to, other);
        }
    }
  }

  void add_param(int k, long t, long n, long u, T* to, const Buffer<T>& other) const {
    using V = Vec<T>;
    const long H = q_.hidden, left = H - u;
    V term;
    if constexpr (Cell::params == 4) {
      const V da = load_part<V>(d_.gates_at(g_.projected, t, n) + q_.slot[k] * H + u, left);
      const bool sees_new = k == 3 && cell_.output_sees_new;
      term = da * (sees_new ? load_part<V>(d_.hidden_at(q_.c, t, n) + u, left) : old_cell(t, n, u, left));
    } else {
      term = load_part<V>(other.data() + d_.row(t, n) * H + u, left);
    }
    store_part(to + u, load_part<V>(to + u, left) + term, left);
  }

  const Cell& cell_;
  const GradientCall<T>& g_;
  const ForwardCall<T>& q_;
  Direction<T> d_;
  // direct_ and dc_: the carries that do not pass R. old_ and masked_: [T, N, H].
  Buffer<T> packed_[2], dr_[2][2], direct_, dc_, dh_, old_, masked_, products_, scratch_;
};

// Contract 4.4, for both directions at once: the gradients of source, input weight and bias.
template <class T>
void projection_gradients(const GradientCall<T>& g, long gates) {
  const ForwardCall<T>& q = g.forward;
  const long rows = q.steps * q.batch, width = q.directions * gates * q.hidden;
  if (q.input_weight != nullptr) {
    Buffer<T> scratch(product_scratch<T>(q.inputs));
    product<T>(rows, q.inputs, width, {g.projected, width, 1}, {q.input_weight, q.inputs, 1}, g.source, q.inputs, false,
               scratch.data(), q.threads);
    product<T>(width, q.inputs, rows, {g.projected, 1, width}, {q.source, q.inputs, 1}, g.input_weight, q.inputs, false,
               scratch.data(), q.threads);
  }
  if (g.bias != nullptr) {
    clear(g.bias, width);
    for (long i = 0; i < rows; ++i)
      for (long j = 0; j < width; ++j) g.bias[j] += g.projected[i * width + j];
  }
}

}  // namespace RECURRA_ISA
}  // namespace recurra
