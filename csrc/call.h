#pragma once

#include <cstdint>

namespace recurra {

// One call of a recurrent op. All arrays are contiguous and row-major; absent ones are null. Nothing aliases.
template <class T>
struct ForwardCall {
  long steps, batch, inputs, hidden, directions;
  bool reverse;
  long slot[4];               // where the stacked weights and states have each gate of the cell
  const T* source;            // [T, N, I], or [T, N, D*G*H] without input_weight
  const T* recurrent_weight;  // [D, G*H, H]
  const T* input_weight;      // [D*G*H, I]
  const T* bias;              // [D*G*H]
  const T* init_state;        // [N, D*H]
  const T* init_cell;         // [N, D*H]
  const T* mask;              // [N, D*H], or [T, N, D*H] when mask_step is N*D*H instead of 0
  long mask_step;
  const T* params;              // [D, 4*H] peepholes in gate order, or [D, H] secondary bias
  const std::int64_t* lengths;  // [N]
  const bool* resets;           // [T, N]
  T* h;                         // [T, N, D*H]
  T* c;                         // [T, N, D*H]
  T* z;                         // [T, N, D*G*H]
  int threads;
};

// The same call backwards: the forward arrays h, c and z are read, those below are written or added.
template <class T>
struct GradientCall {
  ForwardCall<T> forward;
  const T* source_gradient;         // [T, N, D*H]
  const T* cell_sequence_gradient;  // [T, N, D*H]
  const T* state_gradient;          // [N, D*H]
  const T* cell_gradient;           // [N, D*H]
  T* projected;                     // [T, N, D*G*H]: the gradient of what the cell adds up
  T* source;                        // [T, N, I]; null without input_weight, when projected is the gradient
  T* recurrent_weight;
  T* input_weight;
  T* bias;
  T* init_state;
  T* init_cell;
  T* params;
};

}  // namespace recurra
