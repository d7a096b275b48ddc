#pragma once

#include "recurra/kernels/cell.h"

// The LSTM, gates in the order i, f, z, o: the equations of this room's README.
namespace recurra {
inline namespace RECURRA_ISA {

// FI, FF, FZ, FO: the activations of the gates. FC: that of the cell.
template <class FI, class FF, class FZ, class FO, class FC>
struct LstmCell {
  static constexpr int gates = 4, phases = 1, states = 2, params = 4;
  static constexpr int first(int) { return 0; }
  static constexpr int count(int) { return 4; }
  FI fi;
  FF ff;
  FZ fz;
  FO fo;
  FC fc;
  bool has_params;       // peepholes
  bool output_sees_new;  // the output gate peeks at the new cell

  template <int P, class V>
  void step(const V* x, const V* r, const V* p, V, V* s, V&, V* kept) const {
    const V old = s[1];
    V ai = x[0] + r[0], af = x[1] + r[1], az = x[2] + r[2], ao = x[3] + r[3];
    if (has_params) {
      ai += p[0] * old;
      af += p[1] * old;
      az += p[2] * old;
    }
    const V i = fi.value(ai), f = ff.value(af), z = fz.value(az);
    const V c = f * old + i * z;
    if (has_params) ao += p[3] * (output_sees_new ? c : old);
    const V o = fo.value(ao);
    s[0] = o * fc.value(c);
    s[1] = c;
    kept[0] = fi.keep(ai, i);
    kept[1] = ff.keep(af, f);
    kept[2] = fz.keep(az, z);
    kept[3] = fo.keep(ao, o);
  }

  template <class V>
  V output(const V* kept, V c) const {
    return fo.kept_value(kept[3]) * fc.value(c);
  }

  template <int P, class V>
  void grad(const V* kept, const V* p, const StepValues<V>& at, V* ds, V, V* dx, V* dr) const {
    const V i = fi.kept_value(kept[0]), f = ff.kept_value(kept[1]), z = fz.kept_value(kept[2]);
    const V o = fo.kept_value(kept[3]);
    const V dh = ds[0];
    dx[3] = dh * fc.value(at.c_new) * fo.kept_slope(kept[3]);
    V dc = dh * o * fc.slope(at.c_new) + ds[1];
    if (has_params && output_sees_new) dc += p[3] * dx[3];
    dx[0] = dc * z * fi.kept_slope(kept[0]);
    dx[1] = dc * at.c_old * ff.kept_slope(kept[1]);
    dx[2] = dc * i * fz.kept_slope(kept[2]);
    V to_old = dc * f;
    if (has_params) {
      to_old += p[0] * dx[0] + p[1] * dx[1] + p[2] * dx[2];
      if (!output_sees_new) to_old += p[3] * dx[3];
    }
    ds[0] = V{};
    ds[1] = to_old;
    for (int g = 0; g < 4; ++g) dr[g] = dx[g];
  }
};

}  // namespace RECURRA_ISA
}  // namespace recurra
