#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "kernels.h"
#include "memory.h"

// What the bindings share: Python's arrays as pointers of a known size.
namespace recurra {

namespace nb = nanobind;

// What Python's arrays of S hold: it has no bfloat16 of its own, and gives the bits.
template <class S>
using Element = std::conditional_t<std::is_same_v<S, Bf16>, std::uint16_t, S>;
template <class S>
using In = std::optional<nb::ndarray<const Element<S>, nb::c_contig, nb::device::cpu>>;
template <class S>
using Out = std::optional<nb::ndarray<Element<S>, nb::c_contig, nb::device::cpu>>;
using Lengths = std::optional<nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>>;
using Resets = std::optional<nb::ndarray<const bool, nb::c_contig, nb::device::cpu>>;

// The pointer of an array that must have this many elements. Python has checked the shapes; this keeps a mistake there
// from becoming a write outside of an array.
template <class P, class Array>
P* checked(const Array& array, const char* name, long count) {
  if (!array) return nullptr;
  if (static_cast<long>(array->size()) != count)
    throw std::invalid_argument(std::string("recurra._native: ") + name + " must have " + std::to_string(count) +
                                " elements, got " + std::to_string(array->size()));
  using Pointer = std::conditional_t<std::is_const_v<P>, const void*, void*>;
  return static_cast<P*>(static_cast<Pointer>(array->data()));
}

inline int gate_count(const CellSpec& spec) { return spec.op == CellSpec::rnn ? 1 : spec.op == CellSpec::lstm ? 4 : 3; }

template <class S>
const Kernels<S>& kernels() {
  const Kernels<S>* table = selected_kernels<S>();
  if (table == nullptr) throw std::invalid_argument("recurra._native: this instruction set has no such kernels");
  return *table;
}

// Weights in the order of the kernels, made once for many calls.
struct Packed {
  Packed(std::size_t bytes_, const void* table_, std::size_t element_)
      : at(take_block(bytes_)), bytes(bytes_), table(table_), element(element_) {}
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;
  ~Packed() { give_block(at, bytes); }
  void* at;
  std::size_t bytes;
  const void* table;    // the Kernels<S> that it was made for
  std::size_t element;  // sizeof(S), which is another for every S
};

// The sizes of a call, from its first two arrays, and the weights.
template <class S>
ForwardCall<S> sized_call(const CellSpec& spec, int threads, const In<S>& source, const In<S>& recurrent_weight,
                          const In<S>& input_weight) {
  const std::size_t rank = recurrent_weight ? recurrent_weight->ndim() : 0;
  if (!source || source->ndim() != 3 || rank < 2 || rank > 3)
    throw std::invalid_argument("recurra._native: source must have rank 3, and recurrent_weight 2 or 3");
  const long gates = gate_count(spec);
  ForwardCall<S> q{};
  q.steps = static_cast<long>(source->shape(0));
  q.batch = static_cast<long>(source->shape(1));
  q.inputs = static_cast<long>(source->shape(2));
  q.directions = rank == 2 ? 1 : static_cast<long>(recurrent_weight->shape(0));
  q.hidden = static_cast<long>(recurrent_weight->shape(rank - 1));
  q.reverse = spec.reverse;
  q.threads = threads;
  for (long g = 0; g < gates; ++g) q.slot[g] = spec.slot[g];
  const long stacked = q.directions * q.hidden * gates;
  q.source = checked<const S>(source, "source", q.steps * q.batch * (input_weight ? q.inputs : stacked));
  q.recurrent_weight = checked<const S>(recurrent_weight, "recurrent_weight", stacked * q.hidden);
  q.input_weight = checked<const S>(input_weight, "input_weight", stacked * q.inputs);
  return q;
}

// Adds recurra.Stream's part to the module (streams.cpp).
void define_streams(nb::module_& m);

}  // namespace recurra
