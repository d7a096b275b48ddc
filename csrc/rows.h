#pragma once

#include "direction.h"
#include "meeting.h"
#include "pack.h"

// The gradients that the steps of a chunk leave, row by row in the order of time, and what their recurrent products
// multiplied. Its methods are called by every member of a team; `rank` and `size` say which share is meant.
namespace recurra {
inline namespace RECURRA_ISA {

// Steps in time: [lowest, lowest + count).
struct Steps {
  long lowest, count;
};

template <class Cell, class S>
class ChunkRows {
  using V = Column<S>;

 public:
  // GRU with reset after: what passes R of the candidate is not the gradient of its pre-activation, but that times the
  // reset gate. It stands first in a row, so that both lie together: [dq, dz, dr, do].
  static constexpr bool recomputes_product = Cell::gates == 3 && Cell::phases == 1;
  static constexpr int shift = recomputes_product ? 1 : 0, blocks = Cell::gates + shift;

  // For chunks of at most `steps` steps.
  ChunkRows(const Cell& cell, const GradientCall<S>& g, long direction, long steps, Scratch& scratch)
      : cell_(cell),
        q_(g.forward),
        d_{g.forward, direction, Cell::gates},
        wide_(words<S>(q_.hidden) * per_word<S>),
        row_(wide_ * blocks) {
    chunk_ = scratch.zeros<S>((steps + 2) * q_.batch * row_);
    old_ = scratch.zeros<S>(steps * q_.batch * wide_);
    if (Cell::phases > 1) factor_ = scratch.zeros<S>(steps * q_.batch * wide_);
  }

  // Elements of a block, whole words, and of a row.
  long width() const { return wide_; }
  long row_size() const { return row_; }
  static long local(const Steps& now, long batch, long t, long n) { return (t - now.lowest) * batch + n; }

  // The gradients at a step of the chunk, or the one before or after it.
  S* row(const Steps& now, long t, long n) const { return chunk_ + (q_.batch + local(now, q_.batch, t, n)) * row_; }
  // The k-th row of the chunk; and what the recurrent product of its step multiplied: mask * h, and for the candidate
  // of a GRU with reset before that times the reset gate.
  const S* row(long k) const { return chunk_ + (q_.batch + k) * row_; }
  const S* masked(long k) const { return old_ + k * wide_; }
  const S* factor(long k) const { return factor_ + k * wide_; }

  // The h and c that entered a step, from unit u on; null: zeros.
  const S* old_h(long t, long n, long u) const { return entered(q_.init_state, q_.h, t, n, u); }
  const S* old_c(long t, long n, long u) const { return entered(q_.init_cell, q_.c, t, n, u); }

  // What a phase of a step leaves.
  template <int P>
  void put(S* row, long u, long left, const V* dx, const V* dr) const {
    if constexpr (recomputes_product) store_part(row + u, dr[2], left);
    for (int g = 0; g < Cell::count(P); ++g) store_part(row + (shift + Cell::first(P) + g) * wide_ + u, dx[g], left);
  }

  // Makes room for the steps `now`, which come before the steps `later`, of which the first was `later`'s, and finds
  // what the recurrent products multiplied.
  void begin(const Steps& now, const Steps& later, int rank, int size) {
    if (later.count > 0) {
      const long from = d_.backwards() ? later.count : 1, to = d_.backwards() ? 0 : now.count + 1;
      const Share mine = share(q_.batch * row_, rank, size);
      copy_of(chunk_ + from * q_.batch * row_ + mine.begin, mine.end - mine.begin,
              chunk_ + to * q_.batch * row_ + mine.begin);
    }
    const Share mine = share(now.count * q_.batch, rank, size);
    for (long k = mine.begin; k < mine.end; ++k) find_old(now.lowest + k / q_.batch, k % q_.batch, k);
  }

 private:
  // A row of the states after the step before, of the initial ones, or null.
  const S* entered(const S* initial, const S* after, long t, long n, long u) const {
    if (!d_.keeps(t, n)) return nullptr;
    const S* row = d_.is_first(t, n) ? d_.state_at(initial, n) : d_.hidden_at(after, d_.backwards() ? t + 1 : t - 1, n);
    return row == nullptr ? nullptr : row + u;
  }

  void find_old(long t, long n, long k) const {
    const long H = q_.hidden, before = d_.backwards() ? t + 1 : t - 1;
    const bool enters = d_.valid(t, n) && d_.keeps(t, n), initial = d_.is_first(t, n);
    const S *h0 = d_.state_at(q_.init_state, n), *mask = d_.mask_at(t, n);
    for (long u = 0; u < H; u += L<S>) {
      const long left = H - u;
      V h{};
      if (enters && initial)
        h = load_or_zero<V>(h0 == nullptr ? nullptr : h0 + u, left);
      else if (enters)
        h = state_after(before, n, u, left);
      if (mask != nullptr) h = h * load_part<V>(mask + u, left);
      store_part(old_ + k * wide_ + u, h, left);
      if constexpr (Cell::phases > 1) {
        V kept[Cell::gates]{};
        kept[1] = load_part<V>(d_.gates_at(q_.z, t, n) + q_.slot[1] * H + u, left);
        store_part(factor_ + k * wide_ + u, d_.valid(t, n) ? cell_.reset(kept) * h : V{}, left);
      }
    }
  }

  // h after step t, from what the forward pass saved.
  V state_after(long t, long n, long u, long left) const {
    if (q_.h != nullptr) return load_part<V>(d_.hidden_at(q_.h, t, n) + u, left);
    V kept[Cell::gates];
    for (int g = 0; g < Cell::gates; ++g)
      kept[g] = load_part<V>(d_.gates_at(q_.z, t, n) + q_.slot[g] * q_.hidden + u, left);
    if constexpr (Cell::states > 1)
      return cell_.output(kept, load_part<V>(d_.hidden_at(q_.c, t, n) + u, left));
    else
      return cell_.output(kept, V{});
  }

  const Cell& cell_;
  const ForwardCall<S>& q_;
  Direction<S> d_;
  long wide_, row_;
  S *chunk_ = nullptr, *old_ = nullptr, *factor_ = nullptr;
};

}  // namespace RECURRA_ISA
}  // namespace recurra
