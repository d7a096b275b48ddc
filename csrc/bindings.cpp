#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include <optional>
#include <stdexcept>
#include <string>

#include "isa.h"
#include "kernels.h"

namespace nb = nanobind;

namespace recurra {
namespace {

template <class T>
using In = std::optional<nb::ndarray<const T, nb::c_contig, nb::device::cpu>>;
template <class T>
using Out = std::optional<nb::ndarray<T, nb::c_contig, nb::device::cpu>>;

// The pointer of an array that must have this many elements. Python has checked the shapes; this keeps a mistake there
// from becoming a write outside of an array.
template <class Array>
auto checked(const Array& array, const char* name, long count) -> decltype(array->data()) {
  if (!array) return nullptr;
  if (static_cast<long>(array->size()) != count)
    throw std::invalid_argument(std::string("recurra._native: ") + name + " must have " + std::to_string(count) +
                                " elements, got " + std::to_string(array->size()));
  return array->data();
}

int gate_count(const CellSpec& spec) { return spec.op == CellSpec::rnn ? 1 : spec.op == CellSpec::lstm ? 4 : 3; }

template <class T>
struct Inputs {
  In<T> source, recurrent_weight, input_weight, bias, init_state, init_cell, mask, params;
  In<std::int64_t> lengths;
  In<bool> resets;
  Out<T> h, c, z;
};

template <class T>
ForwardCall<T> forward_call(const CellSpec& spec, bool reverse, const std::vector<int>& slots, int threads,
                            const Inputs<T>& in) {
  if (!in.source || !in.recurrent_weight || in.source->ndim() != 3 || in.recurrent_weight->ndim() != 3)
    throw std::invalid_argument("recurra._native: source and recurrent_weight must have rank 3");
  const long gates = gate_count(spec);
  ForwardCall<T> q{};
  q.steps = static_cast<long>(in.source->shape(0));
  q.batch = static_cast<long>(in.source->shape(1));
  q.inputs = static_cast<long>(in.source->shape(2));
  q.directions = static_cast<long>(in.recurrent_weight->shape(0));
  q.hidden = static_cast<long>(in.recurrent_weight->shape(2));
  q.reverse = reverse;
  if (static_cast<long>(slots.size()) != gates) throw std::invalid_argument("recurra._native: a slot per gate");
  for (long g = 0; g < gates; ++g) {
    if (slots[g] < 0 || slots[g] >= gates) throw std::invalid_argument("recurra._native: slots must be gates");
    q.slot[g] = slots[g];
  }
  const long rows = q.steps * q.batch, wide = q.directions * q.hidden, stacked = wide * gates;
  q.source = checked(in.source, "source", rows * (in.input_weight ? q.inputs : stacked));
  q.recurrent_weight = checked(in.recurrent_weight, "recurrent_weight", stacked * q.hidden);
  q.input_weight = checked(in.input_weight, "input_weight", stacked * q.inputs);
  q.bias = checked(in.bias, "bias", stacked);
  q.init_state = checked(in.init_state, "init_state", q.batch * wide);
  q.init_cell = checked(in.init_cell, "init_cell", q.batch * wide);
  const bool per_step = in.mask && in.mask->ndim() == 3;
  q.mask_step = per_step ? q.batch * wide : 0;
  q.mask = checked(in.mask, "mask", (per_step ? q.steps : 1) * q.batch * wide);
  q.params = checked(in.params, "params", wide * (spec.op == CellSpec::lstm ? 4 : 1));
  q.lengths = checked(in.lengths, "lengths", q.batch);
  q.resets = checked(in.resets, "resets", rows);
  q.h = checked(in.h, "h", rows * wide);
  q.c = checked(in.c, "c", rows * wide);
  q.z = checked(in.z, "z", rows * stacked);
  q.threads = threads < 1 ? 1 : threads;
  return q;
}

template <class T>
auto kernel_forward() {
  if constexpr (std::is_same_v<T, float>)
    return selected_kernels().forward_float;
  else
    return selected_kernels().forward_double;
}

template <class T>
auto kernel_gradient() {
  if constexpr (std::is_same_v<T, float>)
    return selected_kernels().gradient_float;
  else
    return selected_kernels().gradient_double;
}

template <class T>
void forward(const CellSpec& spec, bool reverse, const std::vector<int>& slots, int threads, In<T> source,
             In<T> recurrent_weight, In<T> input_weight, In<T> bias, In<T> init_state, In<T> init_cell, In<T> mask,
             In<T> params, In<std::int64_t> lengths, In<bool> resets, Out<T> h, Out<T> c, Out<T> z) {
  const ForwardCall<T> q = forward_call<T>(
      spec, reverse, slots, threads,
      {source, recurrent_weight, input_weight, bias, init_state, init_cell, mask, params, lengths, resets, h, c, z});
  const auto run = kernel_forward<T>();
  nb::gil_scoped_release release;
  run(spec, q);
}

template <class T>
void gradient(const CellSpec& spec, bool reverse, const std::vector<int>& slots, int threads, In<T> source,
              In<T> recurrent_weight, In<T> input_weight, In<T> bias, In<T> init_state, In<T> init_cell, In<T> mask,
              In<T> params, In<std::int64_t> lengths, In<bool> resets, Out<T> h, Out<T> c, Out<T> z,
              In<T> source_gradient, In<T> cell_sequence_gradient, In<T> state_gradient, In<T> cell_gradient,
              Out<T> d_projected, Out<T> d_source, Out<T> d_recurrent_weight, Out<T> d_input_weight, Out<T> d_bias,
              Out<T> d_init_state, Out<T> d_init_cell, Out<T> d_params) {
  GradientCall<T> g{};
  g.forward = forward_call<T>(
      spec, reverse, slots, threads,
      {source, recurrent_weight, input_weight, bias, init_state, init_cell, mask, params, lengths, resets, h, c, z});
  const ForwardCall<T>& q = g.forward;
  const long gates = gate_count(spec), rows = q.steps * q.batch, wide = q.directions * q.hidden, stacked = wide * gates;
  if (!z || !d_projected || !d_recurrent_weight || (spec.op == CellSpec::lstm && !c) ||
      (spec.op == CellSpec::gru && !h) || (q.input_weight != nullptr && (!d_source || !d_input_weight)))
    throw std::invalid_argument("recurra._native: an array that the gradient needs is missing");
  g.source_gradient = checked(source_gradient, "source_gradient", rows * wide);
  g.cell_sequence_gradient = checked(cell_sequence_gradient, "cell_sequence_gradient", rows * wide);
  g.state_gradient = checked(state_gradient, "state_gradient", q.batch * wide);
  g.cell_gradient = checked(cell_gradient, "cell_gradient", q.batch * wide);
  g.projected = checked(d_projected, "d_projected", rows * stacked);
  g.source = checked(d_source, "d_source", rows * q.inputs);
  g.recurrent_weight = checked(d_recurrent_weight, "d_recurrent_weight", stacked * q.hidden);
  g.input_weight = checked(d_input_weight, "d_input_weight", stacked * q.inputs);
  g.bias = checked(d_bias, "d_bias", stacked);
  g.init_state = checked(d_init_state, "d_init_state", q.batch * wide);
  g.init_cell = checked(d_init_cell, "d_init_cell", q.batch * wide);
  g.params = checked(d_params, "d_params", wide * (spec.op == CellSpec::lstm ? 4 : 1));
  const auto run = kernel_gradient<T>();
  nb::gil_scoped_release release;
  run(spec, g);
}

ActivationSpec activation(nb::handle given) {
  const nb::tuple t = nb::cast<nb::tuple>(given);
  const ActivationSpec spec{nb::cast<int>(t[0]), nb::cast<double>(t[1]), nb::cast<double>(t[2])};
  if (spec.kind < 0 || spec.kind > 11) throw std::invalid_argument("recurra._native: unknown activation");
  return spec;
}

int most_threads() {
#if defined(_OPENMP)
  return omp_get_max_threads();
#else
  return 1;
#endif
}

}  // namespace
}  // namespace recurra

NB_MODULE(_native, m) {
  using namespace recurra;
  m.doc() = "The compiled part of recurra.";
  m.def("isa", &selected_isa,
        "Name of the instruction set whose kernels this machine uses; the environment variable RECURRA_ISA overrides.");
  m.def("most_threads", &most_threads, "How many threads OpenMP would use.");

  nb::class_<CellSpec>(m, "CellSpec", "A cell and its activations.")
      .def(
          "__init__",
          [](CellSpec* self, int op, nb::list gates, nb::tuple cell, bool output_sees_new, bool reset_after,
             bool flip_z) {
            if (op < 0 || op > 2) throw std::invalid_argument("recurra._native: unknown op");
            new (self) CellSpec{};
            self->op = static_cast<CellSpec::Op>(op);
            if (static_cast<int>(nb::len(gates)) != gate_count(*self))
              throw std::invalid_argument("recurra._native: an activation per gate");
            for (int g = 0; g < gate_count(*self); ++g) self->gates[g] = activation(gates[g]);
            self->cell = activation(cell);
            self->output_sees_new = output_sees_new;
            self->reset_after = reset_after;
            self->flip_z = flip_z;
          },
          nb::arg("op"), nb::arg("gates"), nb::arg("cell"), nb::arg("output_sees_new"), nb::arg("reset_after"),
          nb::arg("flip_z"));

#define RECURRA_INPUTS                                                                                        \
  nb::arg("cell"), nb::arg("reverse"), nb::arg("slots"), nb::arg("threads"), nb::arg("source").noconvert(),   \
      nb::arg("recurrent_weight").noconvert(), nb::arg("input_weight").none().noconvert(),                    \
      nb::arg("bias").none().noconvert(), nb::arg("init_state").none().noconvert(),                           \
      nb::arg("init_cell").none().noconvert(), nb::arg("mask").none().noconvert(),                            \
      nb::arg("params").none().noconvert(), nb::arg("lengths").none().noconvert(),                            \
      nb::arg("resets").none().noconvert(), nb::arg("h").none().noconvert(), nb::arg("c").none().noconvert(), \
      nb::arg("z").none().noconvert()
#define RECURRA_GRADIENTS                                                                              \
  nb::arg("source_gradient").none().noconvert(), nb::arg("cell_sequence_gradient").none().noconvert(), \
      nb::arg("state_gradient").none().noconvert(), nb::arg("cell_gradient").none().noconvert(),       \
      nb::arg("d_projected").none().noconvert(), nb::arg("d_source").none().noconvert(),               \
      nb::arg("d_recurrent_weight").none().noconvert(), nb::arg("d_input_weight").none().noconvert(),  \
      nb::arg("d_bias").none().noconvert(), nb::arg("d_init_state").none().noconvert(),                \
      nb::arg("d_init_cell").none().noconvert(), nb::arg("d_params").none().noconvert()
  m.def("forward", &forward<float>, RECURRA_INPUTS, "The forward op; h, c and z are written where they are given.");
  m.def("forward", &forward<double>, RECURRA_INPUTS);
  m.def("gradient", &gradient<float>, RECURRA_INPUTS, RECURRA_GRADIENTS,
        "The gradient op; reads h, c and z, writes the arrays whose names begin with d_.");
  m.def("gradient", &gradient<double>, RECURRA_INPUTS, RECURRA_GRADIENTS);
}
