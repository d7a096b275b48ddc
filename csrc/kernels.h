#pragma once

#include <cstddef>

#include "call.h"

namespace recurra {

// An activation as the caller states it: Kind in ops/activations.py order, and its parameters.
struct ActivationSpec {
  int kind;
  double alpha, beta;
};

struct CellSpec {
  enum Op { rnn, lstm, gru } op;
  ActivationSpec gates[4];   // in the cell's own order: LSTM i, f, z, o; GRU z, r, o
  ActivationSpec cell;       // LSTM only
  bool output_sees_new;      // LSTM
  bool reset_after, flip_z;  // GRU
  bool reverse;
  int slot[4];  // where the stacked weights and states have each gate
};

// What one instruction set provides for arrays of S.
template <class S>
struct Kernels {
  void (*forward)(const CellSpec&, const ForwardCall<S>&);
  void (*gradient)(const CellSpec&, const GradientCall<S>&);
  // The weights of a call in the order in which forward reads them: it takes them as `packed`.
  std::size_t (*packed_bytes)(const CellSpec&, const ForwardCall<S>&);
  void (*pack)(const CellSpec&, const ForwardCall<S>&, void* to);
};

// The kernels of selected_isa(); null where it has none for S.
template <class S>
const Kernels<S>* selected_kernels();

}  // namespace recurra
