#pragma once

#include "call.h"
#include "threads.h"
#include "vec.h"

// What the forward and the backward time loops share: the order of the steps, which rows take part, who does what.
namespace recurra {
inline namespace RECURRA_ISA {

// One direction of a call: where a step's arrays are, and the rules of lengths and resets.
template <class T>
struct Direction {
  const ForwardCall<T>& q;
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

  const T* hidden_at(const T* array, long t, long n) const {
    return array + row(t, n) * q.directions * q.hidden + index * q.hidden;
  }
  T* hidden_at(T* array, long t, long n) const {
    return array + row(t, n) * q.directions * q.hidden + index * q.hidden;
  }
  const T* gates_at(const T* array, long t, long n) const {
    return array + (row(t, n) * q.directions + index) * gates * q.hidden;
  }
  T* gates_at(T* array, long t, long n) const { return array + (row(t, n) * q.directions + index) * gates * q.hidden; }
  // [N, D*H] arrays; null stays null.
  const T* state_at(const T* array, long n) const {
    return array == nullptr ? nullptr : array + (n * q.directions + index) * q.hidden;
  }
  const T* mask_at(long t, long n) const {
    return q.mask == nullptr ? nullptr : q.mask + t * q.mask_step + (n * q.directions + index) * q.hidden;
  }
  const T* weight() const { return q.recurrent_weight + index * gates * q.hidden * q.hidden; }
};

template <class V, class T>
inline V load_or_zero(const T* p, long left) {
  return p == nullptr ? V{} : load_part<V>(p, left);
}

// A thread's part of a step: some rows of all units, or some units of all rows.
struct Part {
  long row0, row1, panel0, panel1;
};

// Rows are independent for the whole sequence and need no barrier; units meet after every product.
inline bool splits_rows(long rows, int threads) { return threads == 1 || rows >= 4 * threads; }

inline Part part_of(long rows, long panels, int thread, int threads) {
  if (splits_rows(rows, threads)) return {rows * thread / threads, rows * (thread + 1) / threads, 0, panels};
  return {0, rows, panels * thread / threads, panels * (thread + 1) / threads};
}

// Rows that a step's tile computes at once: as many accumulators as fit beside the weights.
constexpr long step_rows = vector_bytes == 32 ? 3 : 6;

}  // namespace RECURRA_ISA
}  // namespace recurra
