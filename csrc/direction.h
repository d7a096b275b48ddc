#pragma once

#include "call.h"
#include "product.h"
#include "recurra/kernels/cell.h"

// What the forward and the backward time loops share: the order of the steps, and which rows take part.
namespace recurra {
inline namespace RECURRA_ISA {

// One direction of a call: where a step's arrays are, and the rules of lengths and resets.
template <class S>
struct Direction {
  const ForwardCall<S>& q;
  long index;
  int gates;

  bool backwards() const { return index == 1 || (q.reverse && q.directions == 1); }
  // The i-th step that is visited.
  long step(long i) const { return backwards() ? q.steps - 1 - i : i; }
  long row(long t, long n) const { return t * q.batch + n; }

  // Row n has step t.
  bool valid(long t, long n) const { return q.lengths == nullptr || t < q.lengths[n]; }
  // State may enter step t of row n from the step visited before it. Steps that do not exist reset nothing.
  bool keeps(long t, long n) const {
    if (q.resets == nullptr) return true;
    if (!backwards()) return !q.resets[row(t, n)];
    return t + 1 >= q.steps || !valid(t + 1, n) || !q.resets[row(t + 1, n)];
  }
  // Step t is the first that row n visits.
  bool is_first(long t, long n) const {
    if (!backwards()) return t == 0;
    return t == q.steps - 1 || !valid(t + 1, n);
  }

  // Rows of [T, N, D*H], [T, N, D*G*H] and [N, D*H] arrays; null stays null.
  template <class P>
  P* hidden_at(P* array, long t, long n) const {
    return array == nullptr ? nullptr : array + (row(t, n) * q.directions + index) * q.hidden;
  }
  template <class P>
  P* gates_at(P* array, long t, long n) const {
    return array == nullptr ? nullptr : array + (row(t, n) * q.directions + index) * gates * q.hidden;
  }
  template <class P>
  P* state_at(P* array, long n) const {
    return array == nullptr ? nullptr : array + (n * q.directions + index) * q.hidden;
  }
  const S* mask_at(long t, long n) const {
    return q.mask == nullptr ? nullptr : q.mask + t * q.mask_step + (n * q.directions + index) * q.hidden;
  }
  // The recurrent and the input weights of a gate of the cell, [H, H] and [H, I].
  const S* recurrent(int gate) const {
    return q.recurrent_weight + (index * gates + q.slot[gate]) * q.hidden * q.hidden;
  }
  const S* input(int gate) const { return q.input_weight + (index * gates + q.slot[gate]) * q.hidden * q.inputs; }
  const S* bias(int gate) const {
    return q.bias == nullptr ? nullptr : q.bias + (index * gates + q.slot[gate]) * q.hidden;
  }
  // The k-th vector of parameters of the cell, [H].
  template <class P>
  P* param(P* array, int k, int count) const {
    return array == nullptr ? nullptr : array + (index * count + (count == 4 ? q.slot[k] : 0)) * q.hidden;
  }
};

template <class V, class S>
inline V load_or_zero(const S* p, long left) {
  return p == nullptr ? V{} : load_part<V>(p, left);
}

// Vectors of units, and the room that a row of them takes in scratch memory, where there is no last part of a vector.
template <class S>
constexpr long unit_vectors(long H) {
  return ceiling(H, L<S>);
}

}  // namespace RECURRA_ISA
}  // namespace recurra
