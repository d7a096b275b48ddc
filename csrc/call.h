#pragma once

#include <cstdint>

namespace recurra {

// bfloat16 as it stands in memory.
struct Bf16 {
  std::uint16_t bits;
};

// Calls on at most so many rows read the weights as they stand, unless they are packed already: packing reads every
// weight once and writes it once. Their sums go in another order then.
constexpr long rows_in_place = 4;

// One call of a recurrent op. All arrays are contiguous and row-major; absent ones are null. Nothing aliases, but
// last_state and last_cell may be init_state and init_cell.
template <class S>
struct ForwardCall {
  long steps, batch, inputs, hidden, directions;
  bool reverse;
  long slot[4];               // where the stacked weights and states have each gate of the cell
  const S* source;            // [T, N, I], or [T, N, D*G*H] without input_weight
  const S* recurrent_weight;  // [D, G*H, H]
  const S* input_weight;      // [D*G*H, I]
  const S* bias;              // [D*G*H]
  const S* init_state;        // [N, D*H]
  const S* init_cell;         // [N, D*H]
  const S* mask;              // [N, D*H], or [T, N, D*H] when mask_step is N*D*H instead of 0
  long mask_step;
  const S* params;              // [D, 4*H] peepholes in gate order, or [D, H] secondary bias
  const std::int64_t* lengths;  // [N]
  const bool* resets;           // [T, N]
  const void* packed;           // the weights as pack() wrote them; null: they are packed in the call
  S* h;                         // [T, N, D*H]
  S* c;                         // [T, N, D*H]
  S* z;                         // [T, N, D*G*H]
  S* last_state;                // [N, D*H]: h after the last visited step
  S* last_cell;                 // [N, D*H]
  int threads;                  // at most so many; exactly -threads when negative
};

// The same call backwards: the forward arrays h, c and z are read, those below are written.
template <class S>
struct GradientCall {
  ForwardCall<S> forward;
  const S* source_gradient;         // [T, N, D*H]
  const S* cell_sequence_gradient;  // [T, N, D*H]
  const S* state_gradient;          // [N, D*H]
  const S* cell_gradient;           // [N, D*H]
  S* source;                        // [T, N, I], or [T, N, D*G*H] without input_weight
  S* recurrent_weight;
  S* input_weight;
  S* bias;
  S* init_state;
  S* init_cell;
  S* params;
};

}  // namespace recurra
