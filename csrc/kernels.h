#pragma once

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
};

// What one instruction set provides.
struct Kernels {
  void (*forward_float)(const CellSpec&, const ForwardCall<float>&);
  void (*forward_double)(const CellSpec&, const ForwardCall<double>&);
  void (*gradient_float)(const CellSpec&, const GradientCall<float>&);
  void (*gradient_double)(const CellSpec&, const GradientCall<double>&);
};

// The kernels of selected_isa().
const Kernels& selected_kernels();

}  // namespace recurra
