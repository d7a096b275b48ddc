#include <nanobind/stl/vector.h>

#include <memory>

#include "arrays.h"
#include "isa.h"
#include "team.h"

namespace recurra {
namespace {

#define RECURRA_INPUTS(S)                                                                                              \
  const CellSpec &spec, int threads, In<S> source, In<S> recurrent_weight, In<S> input_weight, In<S> bias,             \
      In<S> init_state, In<S> init_cell, In<S> mask, In<S> params, Lengths lengths, Resets resets, Out<S> h, Out<S> c, \
      Out<S> z

#define RECURRA_CALL(S)                                                                          \
  ForwardCall<S> q = sized_call<S>(spec, threads, source, recurrent_weight, input_weight);       \
  const long gates = gate_count(spec), rows = q.steps * q.batch, wide = q.directions * q.hidden, \
             stacked = wide * gates;                                                             \
  const bool per_step = mask && mask->ndim() == 3;                                               \
  q.bias = checked<const S>(bias, "bias", stacked);                                              \
  q.init_state = checked<const S>(init_state, "init_state", q.batch * wide);                     \
  q.init_cell = checked<const S>(init_cell, "init_cell", q.batch * wide);                        \
  q.mask_step = per_step ? q.batch * wide : 0;                                                   \
  q.mask = checked<const S>(mask, "mask", (per_step ? q.steps : 1) * q.batch * wide);            \
  q.params = checked<const S>(params, "params", wide * (spec.op == CellSpec::lstm ? 4 : 1));     \
  q.lengths = checked<const std::int64_t>(lengths, "lengths", q.batch);                          \
  q.resets = checked<const bool>(resets, "resets", rows);                                        \
  q.h = checked<S>(h, "h", rows * wide);                                                         \
  q.c = checked<S>(c, "c", rows * wide);                                                         \
  q.z = checked<S>(z, "z", rows * stacked)

template <class S>
void forward(RECURRA_INPUTS(S), const Packed* packed, Out<S> last_state, Out<S> last_cell) {
  RECURRA_CALL(S);
  q.last_state = checked<S>(last_state, "last_state", q.batch * wide);
  q.last_cell = checked<S>(last_cell, "last_cell", q.batch * wide);
  const Kernels<S>& table = kernels<S>();
  if (packed != nullptr && packed->table == &table) {  // else RECURRA_ISA has changed since: the call packs for itself
    if (packed->bytes != table.packed_bytes(spec, q))
      throw std::invalid_argument("recurra._native: packed was made for other weights");
    q.packed = packed->at;
  }
  nb::gil_scoped_release release;
  table.forward(spec, q);
}

template <class S>
void gradient(RECURRA_INPUTS(S), In<S> source_gradient, In<S> cell_sequence_gradient, In<S> state_gradient,
              In<S> cell_gradient, Out<S> d_source, Out<S> d_recurrent_weight, Out<S> d_input_weight, Out<S> d_bias,
              Out<S> d_init_state, Out<S> d_init_cell, Out<S> d_params) {
  RECURRA_CALL(S);
  GradientCall<S> g{};
  g.forward = q;
  if (!z || !d_source || !d_recurrent_weight || (spec.op == CellSpec::lstm && !c) || (spec.op == CellSpec::gru && !h) ||
      (q.input_weight != nullptr && !d_input_weight))
    throw std::invalid_argument("recurra._native: an array that the gradient needs is missing");
  g.source_gradient = checked<const S>(source_gradient, "source_gradient", rows * wide);
  g.cell_sequence_gradient = checked<const S>(cell_sequence_gradient, "cell_sequence_gradient", rows * wide);
  g.state_gradient = checked<const S>(state_gradient, "state_gradient", q.batch * wide);
  g.cell_gradient = checked<const S>(cell_gradient, "cell_gradient", q.batch * wide);
  g.source = checked<S>(d_source, "d_source", rows * (q.input_weight != nullptr ? q.inputs : stacked));
  g.recurrent_weight = checked<S>(d_recurrent_weight, "d_recurrent_weight", stacked * q.hidden);
  g.input_weight = checked<S>(d_input_weight, "d_input_weight", stacked * q.inputs);
  g.bias = checked<S>(d_bias, "d_bias", stacked);
  g.init_state = checked<S>(d_init_state, "d_init_state", q.batch * wide);
  g.init_cell = checked<S>(d_init_cell, "d_init_cell", q.batch * wide);
  g.params = checked<S>(d_params, "d_params", wide * (spec.op == CellSpec::lstm ? 4 : 1));
  const Kernels<S>& table = kernels<S>();
  nb::gil_scoped_release release;
  table.gradient(spec, g);
}

template <class S>
Packed* pack(const CellSpec& spec, In<S> source, In<S> recurrent_weight, In<S> input_weight) {
  const ForwardCall<S> q = sized_call<S>(spec, 1, source, recurrent_weight, input_weight);
  const Kernels<S>& table = kernels<S>();
  auto packed = std::make_unique<Packed>(table.packed_bytes(spec, q), &table, sizeof(S));
  nb::gil_scoped_release release;
  table.pack(spec, q, packed->at);
  return packed.release();  // Python owns it
}

// Memory of the pool as an array of bytes; it goes back when the array is gone.
nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>> empty(std::size_t bytes) {
  struct Owner {
    void* at;
    std::size_t bytes;
  };
  auto owner = std::make_unique<Owner>(Owner{take_block(bytes), bytes});
  void* const at = owner->at;
  nb::capsule keeper(owner.release(), [](void* p) noexcept {
    const std::unique_ptr<Owner> gone(static_cast<Owner*>(p));
    give_block(gone->at, gone->bytes);
  });
  return nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(at, {bytes}, keeper);
}

ActivationSpec activation(nb::handle given) {
  const nb::tuple t = nb::cast<nb::tuple>(given);
  const ActivationSpec spec{nb::cast<int>(t[0]), nb::cast<double>(t[1]), nb::cast<double>(t[2])};
  if (spec.kind < 0 || spec.kind > 11) throw std::invalid_argument("recurra._native: unknown activation");
  return spec;
}

#define RECURRA_OPTIONAL(name) nb::arg(name).none().noconvert()
#define RECURRA_INPUT_NAMES                                                                                    \
  nb::arg("cell"), nb::arg("threads"), nb::arg("source").noconvert(), nb::arg("recurrent_weight").noconvert(), \
      RECURRA_OPTIONAL("input_weight"), RECURRA_OPTIONAL("bias"), RECURRA_OPTIONAL("init_state"),              \
      RECURRA_OPTIONAL("init_cell"), RECURRA_OPTIONAL("mask"), RECURRA_OPTIONAL("params"),                     \
      RECURRA_OPTIONAL("lengths"), RECURRA_OPTIONAL("resets"), RECURRA_OPTIONAL("h"), RECURRA_OPTIONAL("c"),   \
      RECURRA_OPTIONAL("z")

// The functions of a dtype, each with its name behind it.
template <class S>
void define(nb::module_& m, const std::string& dtype) {
  m.def(("forward_" + dtype).c_str(), &forward<S>, RECURRA_INPUT_NAMES, nb::arg("packed").none() = nb::none(),
        RECURRA_OPTIONAL("last_state") = nb::none(), RECURRA_OPTIONAL("last_cell") = nb::none(),
        "The forward op; h, c, z and the last states are written where they are given.");
  m.def(("gradient_" + dtype).c_str(), &gradient<S>, RECURRA_INPUT_NAMES, RECURRA_OPTIONAL("source_gradient"),
        RECURRA_OPTIONAL("cell_sequence_gradient"), RECURRA_OPTIONAL("state_gradient"),
        RECURRA_OPTIONAL("cell_gradient"), RECURRA_OPTIONAL("d_source"), RECURRA_OPTIONAL("d_recurrent_weight"),
        RECURRA_OPTIONAL("d_input_weight"), RECURRA_OPTIONAL("d_bias"), RECURRA_OPTIONAL("d_init_state"),
        RECURRA_OPTIONAL("d_init_cell"), RECURRA_OPTIONAL("d_params"),
        "The gradient op; reads h, c and z, writes the arrays whose names begin with d_.");
  m.def(("pack_" + dtype).c_str(), &pack<S>, nb::arg("cell"), nb::arg("source").noconvert(),
        nb::arg("recurrent_weight").noconvert(), RECURRA_OPTIONAL("input_weight"),
        "The weights in the order of the kernels, for forward; of source only the shape is read.");
}

}  // namespace
}  // namespace recurra

NB_MODULE(_native, m) {
  using namespace recurra;
  // torch keeps what it was given beyond the end of the interpreter; at exit that is no news for anybody.
  nanobind::set_leak_warnings(false);
  m.doc() = "The compiled part of recurra.";
  m.def("isa", &selected_isa,
        "Name of the instruction set whose kernels this machine uses; the environment variable RECURRA_ISA overrides.");
  m.def(
      "has_bfloat16", [] { return selected_kernels<Bf16>() != nullptr; },
      "Whether that instruction set has kernels for bfloat16.");
  m.attr("rows_in_place") = rows_in_place;
  m.def("default_threads", &default_threads, "How many threads a team has by default.");
  m.def("forget_team", &forget_team, "For the child of a fork, which has none of its parent's threads.");
  m.def("empty", &empty, nb::arg("bytes"), "Memory of the pool, as an array of bytes.");
  m.def("kept_bytes", &kept_bytes, "How much memory the pool keeps for later.");
  m.def("drop_kept", &drop_kept, "Gives that memory back to the system.");

  nb::class_<Packed>(m, "Packed", "Weights in the order of the kernels.").def_prop_ro("bytes", [](const Packed& p) {
    return p.bytes;
  });
  nb::class_<CellSpec>(m, "CellSpec", "A cell and its activations.")
      .def(
          "__init__",
          [](CellSpec* self, int op, nb::list gates, nb::tuple cell, bool output_sees_new, bool reset_after,
             bool flip_z, bool reverse, const std::vector<int>& slots) {
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
            self->reverse = reverse;
            if (slots.size() != nb::len(gates)) throw std::invalid_argument("recurra._native: a slot per gate");
            for (int g = 0; g < gate_count(*self); ++g) {
              if (slots[g] < 0 || slots[g] >= gate_count(*self))
                throw std::invalid_argument("recurra._native: slots must be gates");
              self->slot[g] = slots[g];
            }
          },
          nb::arg("op"), nb::arg("gates"), nb::arg("cell"), nb::arg("output_sees_new"), nb::arg("reset_after"),
          nb::arg("flip_z"), nb::arg("reverse"), nb::arg("slots"));
  define<float>(m, "float32");
  define<double>(m, "float64");
  define<Bf16>(m, "bfloat16");
  define_streams(m);
}
