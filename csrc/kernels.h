#pragma once

#include <cstddef>
#include <type_traits>

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

// A stream's states are kept in what the kernels compute in: they do not lose bits from step to step.
template <class S>
using StateOf = std::conditional_t<std::is_same_v<S, Bf16>, float, S>;

// Further steps of a stream.
template <class S>
struct StreamCall {
  long steps;
  const S* source;     // [steps, N, I], or [steps, N, G*H] without input_weight
  const bool* resets;  // [steps, N], or null
  S* h;                // [steps, N, H]
};

// One layer of a stream: the memory that lasts from call to call, and the functions for its cell.
template <class S>
struct Resumable {
  void* self;
  long hidden, stride;  // of a row of the states
  void (*run)(void* self, const StreamCall<S>&);
  // The states between calls, [N, stride]; c is null where the cell has none. Until the next run.
  void (*states)(void* self, StateOf<S>** h, StateOf<S>** c);
  void (*close)(void* self);
};

// What one instruction set provides for arrays of S.
template <class S>
struct Kernels {
  void (*forward)(const CellSpec&, const ForwardCall<S>&);
  void (*gradient)(const CellSpec&, const GradientCall<S>&);
  // The weights of a call in the order in which forward reads them: it takes them as `packed`.
  std::size_t (*packed_bytes)(const CellSpec&, const ForwardCall<S>&);
  void (*pack)(const CellSpec&, const ForwardCall<S>&, void* to);
  // A stream's layer for at most `steps` steps a call, of whose arrays the packed weights, mask and params are read
  // as long as it is open; states start at zero.
  Resumable<S> (*open)(const CellSpec&, const ForwardCall<S>&);
};

// The kernels of selected_isa(); null where it has none for S.
template <class S>
const Kernels<S>* selected_kernels();

}  // namespace recurra
