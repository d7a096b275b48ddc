#pragma once

#include "recurra/kernels/cell.h"

// The single-gate RNN: equations (1) to (4) of this room's README.
namespace recurra {
inline namespace RECURRA_ISA {

template <class F>
struct RnnCell {
  static constexpr int gates = 1, phases = 1, states = 1, params = 0;
  static constexpr int first(int) { return 0; }
  static constexpr int count(int) { return 1; }
  F f;

  template <int P, class V>
  void step(const V* x, const V* r, const V*, V, V* s, V&, V* kept) const {
    kept[0] = x[0] + r[0];  // the pre-activation, by definition of this op's training state
    s[0] = f.value(kept[0]);
  }

  template <class V>
  V output(const V* kept, V) const {
    return f.value(kept[0]);
  }

  template <int P, class V>
  void grad(const V* kept, const V*, const StepValues<V>&, V* ds, V, V* dx, V* dr) const {
    dx[0] = dr[0] = ds[0] * f.slope(kept[0]);
    ds[0] = V{};
  }
};

}  // namespace RECURRA_ISA
}  // namespace recurra
