#include "kernels.h"

#include "gradients.h"
#include "recurra/ops/gru/cell.h"
#include "recurra/ops/lstm/cell.h"
#include "recurra/ops/rnn/cell.h"
#include "sequence.h"

// Compiled once for each instruction set (CMakeLists.txt), which gives RECURRA_ISA its name.
namespace recurra {
inline namespace RECURRA_ISA {

Activation activation(const ActivationSpec& s) { return {static_cast<Kind>(s.kind), s.alpha, s.beta}; }
bool is(const ActivationSpec& s, Kind kind) { return static_cast<Kind>(s.kind) == kind; }

// Two instantiations of a cell: the usual activations known to the compiler, or any.
template <class F>
void with_cell(const CellSpec& s, bool has_params, F f) {
  const ActivationSpec* g = s.gates;
  if (s.op == CellSpec::rnn) {
    if (is(g[0], Kind::tanh)) return f(RnnCell<Tanh>{{}});
    return f(RnnCell<Activation>{activation(g[0])});
  }
  if (s.op == CellSpec::lstm) {
    const bool usual = is(g[0], Kind::sigmoid) && is(g[1], Kind::sigmoid) && is(g[2], Kind::tanh) &&
                       is(g[3], Kind::sigmoid) && is(s.cell, Kind::tanh);
    if (usual)
      return f(LstmCell<Sigmoid, Sigmoid, Tanh, Sigmoid, Tanh>{{}, {}, {}, {}, {}, has_params, s.output_sees_new});
    return f(LstmCell<Activation, Activation, Activation, Activation, Activation>{
        activation(g[0]), activation(g[1]), activation(g[2]), activation(g[3]), activation(s.cell), has_params,
        s.output_sees_new});
  }
  const bool usual = is(g[0], Kind::sigmoid) && is(g[1], Kind::sigmoid) && is(g[2], Kind::tanh);
  if (s.reset_after) {
    if (usual) return f(GruCell<true, Sigmoid, Sigmoid, Tanh>{{}, {}, {}, has_params, s.flip_z});
    return f(GruCell<true, Activation, Activation, Activation>{activation(g[0]), activation(g[1]), activation(g[2]),
                                                               has_params, s.flip_z});
  }
  if (usual) return f(GruCell<false, Sigmoid, Sigmoid, Tanh>{{}, {}, {}, false, s.flip_z});
  return f(GruCell<false, Activation, Activation, Activation>{activation(g[0]), activation(g[1]), activation(g[2]),
                                                              false, s.flip_z});
}

template <class T>
void forward(const CellSpec& s, const ForwardCall<T>& q) {
  with_cell(s, q.params != nullptr, [&](const auto& cell) {
    for (long d = 0; d < q.directions; ++d) Forward<std::decay_t<decltype(cell)>, T>(cell, q, d).run();
  });
}

template <class T>
void gradient(const CellSpec& s, const GradientCall<T>& g) {
  with_cell(s, g.forward.params != nullptr, [&](const auto& cell) {
    using Cell = std::decay_t<decltype(cell)>;
    for (long d = 0; d < g.forward.directions; ++d) Backward<Cell, T>(cell, g, d).run();
    projection_gradients(g, Cell::gates);
  });
}

extern const Kernels kernels;
const Kernels kernels = {forward<float>, forward<double>, gradient<float>, gradient<double>};

}  // namespace RECURRA_ISA
}  // namespace recurra
