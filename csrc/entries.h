#pragma once

#include "backward.h"
#include "forward.h"
#include "kernels.h"
#include "recurra/ops/gru/cell.h"
#include "recurra/ops/lstm/cell.h"
#include "recurra/ops/rnn/cell.h"
#include "resumed.h"

// The table of an instruction set: from a cell as the caller states it to the loops over that cell.
namespace recurra {
inline namespace RECURRA_ISA {

inline Activation activation(const ActivationSpec& s) { return {static_cast<Kind>(s.kind), s.alpha, s.beta}; }
inline bool is(const ActivationSpec& s, Kind kind) { return static_cast<Kind>(s.kind) == kind; }

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

template <class S>
void forward(const CellSpec& s, const ForwardCall<S>& q) {
  with_cell(s, q.params != nullptr, [&](const auto& cell) {
    using Cell = std::decay_t<decltype(cell)>;
    using Loop = Forward<Cell, S>;
    const Team team = Loop::team(q);
    Loop first(cell, q, 0, team.threads);
    if (q.directions == 1) return run_team(team, [&](int rank, int size) { first.work(rank, size); });
    Loop second(cell, q, 1, team.threads);
    // Threads that would have to wait for each other at every step take a direction each instead.
    run_team(team, [&](int rank, int size) {
      if (size % 2 == 0 && split_of(Loop::cost(q), size).unit_groups > 1)
        return rank < size / 2 ? first.work(rank, size / 2) : second.work(rank - size / 2, size / 2);
      first.work(rank, size);
      second.work(rank, size);
    });
  });
}

template <class S>
void gradient(const CellSpec& s, const GradientCall<S>& g) {
  const ForwardCall<S>& q = g.forward;
  with_cell(s, q.params != nullptr, [&](const auto& cell) {
    using Cell = std::decay_t<decltype(cell)>;
    using Loop = Backward<Cell, S>;
    const StepCost cost = Loop::cost(q);
    const long I = q.input_weight == nullptr ? 0 : q.inputs, columns = Cell::gates * q.hidden;
    const double around = product_cost<S>(q.steps * q.batch, columns, 2 * I + q.hidden) +
                          0.3 * static_cast<double>(columns * (I + q.hidden));
    const Team team = team_for(cost, q.steps, around, q.threads);
    // One direction after the other: the second adds its part of the gradient of the source.
    for (long d = 0; d < q.directions; ++d) {
      Loop loop(cell, g, d, team.threads);
      run_team(team, [&](int rank, int size) { loop.work(rank, size); });
    }
  });
}

template <class S>
std::size_t packed_bytes(const CellSpec& s, const ForwardCall<S>& q) {
  long size = 0;
  with_cell(s, false, [&](const auto& cell) {
    for (long d = 0; d < q.directions; ++d) size += Weights<std::decay_t<decltype(cell)>, S>(q, d).size();
  });
  return static_cast<std::size_t>(size) * sizeof(Word<S>);
}

template <class S>
void pack(const CellSpec& s, const ForwardCall<S>& q, void* to) {
  with_cell(s, false, [&](const auto& cell) {
    Word<S>* at = static_cast<Word<S>*>(to);
    for (long d = 0; d < q.directions; ++d) {
      Weights<std::decay_t<decltype(cell)>, S> weights(q, d);
      weights.place(at);
      weights.pack(0, 1);
      at += weights.size();
    }
  });
}

template <class S>
Resumable<S> open(const CellSpec& s, const ForwardCall<S>& q) {
  Resumable<S> opened{};
  with_cell(s, q.params != nullptr, [&](const auto& cell) {
    using Layer = Resumed<std::decay_t<decltype(cell)>, S>;
    const int most = q.threads < 0 ? -q.threads : q.threads < 1 ? 1 : q.threads;
    opened = (new Layer(cell, q, most > 64 ? 64 : most))->handle();
  });
  return opened;
}

template <class S>
constexpr Kernels<S> entries() {
  return {forward<S>, gradient<S>, packed_bytes<S>, pack<S>, open<S>};
}

}  // namespace RECURRA_ISA
}  // namespace recurra
