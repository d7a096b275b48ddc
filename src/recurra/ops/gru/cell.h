#pragma once

#include "recurra/kernels/cell.h"

// The GRU, gates in the order z, r, o: the equations of this room's README.
namespace recurra {
inline namespace RECURRA_ISA {

// FZ, FR, FO: the activations of the gates.
template <bool reset_after, class FZ, class FR, class FO>
struct GruCell {
  static constexpr int gates = 3, phases = reset_after ? 1 : 2, states = 1, params = 1;
  static constexpr int first(int p) { return p == 0 ? 0 : 2; }
  static constexpr int count(int p) { return reset_after ? 3 : p == 0 ? 2 : 1; }
  FZ fz;
  FR fr;
  FO fo;
  bool has_params;  // the secondary bias
  bool flip_z;

  template <int P, class V>
  void step(const V* x, const V* r, const V* b2, V mh, V* s, V& carry, V* kept) const {
    if constexpr (P == 0) {
      const V az = x[0] + r[0], ar = x[1] + r[1];
      const V z = fz.value(az), reset = fr.value(ar);
      kept[0] = fz.keep(az, z);
      kept[1] = fr.keep(ar, reset);
      if constexpr (reset_after) {
        candidate(x[2] + reset * (has_params ? r[2] + b2[0] : r[2]), z, s, kept);
      } else {
        carry = reset * mh;
      }
    } else {
      candidate(x[0] + r[0], fz.kept_value(kept[0]), s, kept);
    }
  }

  // Not to be had from the gates: the loop is given h.
  template <class V>
  V output(const V*, V) const {
    return V{};
  }
  template <class V>
  V reset(const V* kept) const {
    return fr.kept_value(kept[1]);
  }

  template <int P, class V>
  void grad(const V* kept, const V*, const StepValues<V>& at, V* ds, V dcarry, V* dx, V* dr) const {
    const V z = fz.kept_value(kept[0]), reset = fr.kept_value(kept[1]);
    const V o = fo.kept_value(kept[2]);
    const V dh = ds[0], mh = at.mask * at.h_old;
    if constexpr (reset_after) {
      to_candidate(dh, z, kept, dx[2]);
      dr[2] = dx[2] * reset;
      to_update(dh, o, at, kept, dx[0]);
      dx[1] = dx[2] * at.product * fr.kept_slope(kept[1]);
      dr[0] = dx[0];
      dr[1] = dx[1];
      ds[0] = dh * (flip_z ? 1 - z : z);
    } else if constexpr (P == 1) {
      to_candidate(dh, z, kept, dx[0]);
      dr[0] = dx[0];
    } else {
      to_update(dh, o, at, kept, dx[0]);
      dx[1] = dcarry * mh * fr.kept_slope(kept[1]);
      dr[0] = dx[0];
      dr[1] = dx[1];
      ds[0] = dh * (flip_z ? 1 - z : z) + dcarry * at.mask * reset;
    }
  }

 private:
  template <class V>
  void candidate(V a, V z, V* s, V* kept) const {
    const V o = fo.value(a);
    kept[2] = fo.keep(a, o);
    s[0] = flip_z ? (1 - z) * s[0] + z * o : z * s[0] + (1 - z) * o;
  }
  template <class V>
  void to_candidate(V dh, V z, const V* kept, V& dx) const {
    dx = dh * (flip_z ? z : 1 - z) * fo.kept_slope(kept[2]);
  }
  template <class V>
  void to_update(V dh, V o, const StepValues<V>& at, const V* kept, V& dx) const {
    dx = dh * (flip_z ? o - at.h_old : at.h_old - o) * fz.kept_slope(kept[0]);
  }
};

}  // namespace RECURRA_ISA
}  // namespace recurra
