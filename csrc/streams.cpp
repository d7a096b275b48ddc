#include <new>
#include <vector>

#include "arrays.h"

namespace recurra {
namespace {

// The layers of a stream over one batch, each with its states; every layer reads what the one below it gave.
template <class S>
class Stack {
 public:
  // [N, I] (a step), [I] (a step of one row) or [T, N, I]; results likewise.
  using Frames = nb::ndarray<const Element<S>, nb::c_contig, nb::device::cpu>;
  using Results = nb::ndarray<Element<S>, nb::c_contig, nb::device::cpu>;
  // States of a layer in arrays [N, H] of what the kernels compute in.
  using States = nb::ndarray<StateOf<S>, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

  // For calls of any number of steps, of which `most_steps` are taken at a time.
  Stack(long batch, long most_steps, int threads) : batch_(batch), most_steps_(most_steps), threads_(threads) {
    if (batch < 0 || most_steps < 1 || threads == 0)
      throw std::invalid_argument("recurra._native: a stack needs a batch, steps and threads");
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  ~Stack() {
    for (const Layer& layer : layers_) layer.loop.close(layer.loop.self);
  }

  // The arrays and the packed weights are read as long as this lives: the binding keeps them.
  void add(const CellSpec& spec, const Packed& packed, long inputs, long hidden, bool has_input_weight, In<S> bias,
           In<S> mask, In<S> params) {
    refuse_while_running();
    const long gates = gate_count(spec);
    if (inputs < 1 || hidden < 1) throw std::invalid_argument("recurra._native: a layer needs inputs and units");
    // More than any memory holds, and less than what a product of sizes below would overflow at.
    if (static_cast<double>(batch_) * (static_cast<double>(most_steps_) * static_cast<double>(inputs) +
                                       8.0 * static_cast<double>(gates) * (static_cast<double>(hidden) + 64)) >
        1e15)
      throw std::bad_alloc();
    // The kernels that the weights were packed for, whatever instruction set is selected today.
    if (packed.element != sizeof(S)) throw std::invalid_argument("recurra._native: packed was made for another dtype");
    const Kernels<S>& table = *static_cast<const Kernels<S>*>(packed.table);
    ForwardCall<S> q{};
    q.steps = most_steps_;
    q.batch = batch_;
    q.inputs = inputs;
    q.hidden = hidden;
    q.directions = 1;
    for (long g = 0; g < gates; ++g) q.slot[g] = spec.slot[g];
    // Only whether there is one matters: the packed weights are read.
    q.input_weight = has_input_weight ? static_cast<const S*>(packed.at) : nullptr;
    q.packed = packed.at;
    q.bias = checked<const S>(bias, "bias", gates * hidden);
    q.mask = checked<const S>(mask, "mask", batch_ * hidden);
    q.params = checked<const S>(params, "params", hidden * (spec.op == CellSpec::lstm ? 4 : 1));
    q.threads = threads_;
    const long below = layers_.empty() ? inputs : layers_.back().loop.hidden;
    if (packed.bytes != table.packed_bytes(spec, q) || inputs != below ||
        (!has_input_weight && inputs != gates * hidden))
      throw std::invalid_argument("recurra._native: packed was made for other weights");
    // All memory first: what throws behind open() would lose what it opened.
    layers_.reserve(layers_.size() + 1);
    // What the layer below gives, for as many steps as are taken at a time.
    std::vector<S> source(layers_.empty() ? 0 : static_cast<std::size_t>(most_steps_ * batch_ * inputs));
    layers_.push_back({table.open(spec, q), inputs, std::move(source)});
    multiplications_ += gates * hidden * ((has_input_weight ? inputs : 0) + hidden) * batch_;
  }

  // One step.
  void step(const Frames& frame, const Results& h) {
    const std::size_t rank = frame.ndim();
    if (rank == 2 ? static_cast<long>(frame.shape(0)) != batch_ : rank != 1 || batch_ != 1) wrong_shapes();
    run(frame, h, 1, nullptr);
  }

  // Any number of steps; resets: [T, N].
  void block(const Frames& frames, const Results& h, const Resets& resets) {
    if (frames.ndim() != 3 || static_cast<long>(frames.shape(1)) != batch_) wrong_shapes();
    const long steps = static_cast<long>(frames.shape(0));
    run(frames, h, steps, checked<const bool>(resets, "resets", steps * batch_));
  }

  void get(std::size_t layer, const States& h, const std::optional<States>& c) {
    over_states(layer, h, c, [](StateOf<S>* state, StateOf<S>* array) { *array = *state; });
  }
  void put(std::size_t layer, const States& h, const std::optional<States>& c) {
    over_states(layer, h, c, [](StateOf<S>* state, StateOf<S>* array) { *state = *array; });
  }

 private:
  struct Layer {
    Resumable<S> loop;
    long inputs;
    std::vector<S> source;
  };
  // The state is in use for as long as this lives, however its block is left. The interpreter's lock guards the flag.
  struct Running {
    explicit Running(bool& flag_) : flag(flag_) { flag = true; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { flag = false; }
    bool& flag;
  };
  // About a microsecond of work: giving the interpreter to other threads and taking it back costs a tenth of it.
  static constexpr long worth_releasing = 30000;

  template <class P, class V>
  static P* pointer(V* data) {
    using Pointer = std::conditional_t<std::is_const_v<P>, const void*, void*>;
    return static_cast<P*>(static_cast<Pointer>(data));
  }

  [[noreturn]] static void wrong_shapes() {
    throw std::invalid_argument("recurra._native: frames and h must have the shapes of the stream");
  }
  void refuse_while_running() const {
    if (is_running_) throw std::runtime_error("recurra._native: the state is in use");
  }

  // The frames' rank and rows are right.
  void run(const Frames& frames, const Results& h, long steps, const bool* resets) {
    if (layers_.empty()) throw std::invalid_argument("recurra._native: a stream needs a layer");
    const std::size_t rank = frames.ndim();
    const long inputs = layers_.front().inputs, hidden = layers_.back().loop.hidden;
    if (static_cast<long>(frames.shape(rank - 1)) != inputs || h.ndim() != rank ||
        static_cast<long>(h.shape(rank - 1)) != hidden || static_cast<long>(h.size()) != steps * batch_ * hidden)
      wrong_shapes();
    const S* const from = pointer<const S>(frames.data());
    S* const to = pointer<S>(h.data());
    if (from < to + h.size() && to < from + frames.size())
      throw std::invalid_argument("recurra._native: frames and h must not overlap");
    refuse_while_running();
    const Running running(is_running_);
    if (steps * multiplications_ < worth_releasing) {
      go(from, to, resets, steps);
    } else {
      const nb::gil_scoped_release release;
      go(from, to, resets, steps);
    }
  }

  void go(const S* source, S* h, const bool* resets, long steps) {
    const long inputs = layers_.front().inputs, hidden = layers_.back().loop.hidden;
    for (long done = 0; done < steps; done += most_steps_) {
      const long count = steps - done < most_steps_ ? steps - done : most_steps_;
      const S* from = source + done * batch_ * inputs;
      for (std::size_t i = 0; i < layers_.size(); ++i) {
        S* const to = i + 1 < layers_.size() ? layers_[i + 1].source.data() : h + done * batch_ * hidden;
        layers_[i].loop.run(layers_[i].loop.self, {count, from, resets ? resets + done * batch_ : nullptr, to});
        from = to;
      }
    }
  }

  template <class F>
  void over_states(std::size_t index, const States& h, const std::optional<States>& c, F f) {
    refuse_while_running();
    if (index >= layers_.size()) throw std::invalid_argument("recurra._native: no such layer");
    const Resumable<S>& loop = layers_[index].loop;
    StateOf<S>*own_h, *own_c;
    loop.states(loop.self, &own_h, &own_c);
    const auto check = [&](const States& array) {
      if (static_cast<long>(array.shape(0)) != batch_ || static_cast<long>(array.shape(1)) != loop.hidden)
        throw std::invalid_argument("recurra._native: states must have shape [N, H]");
    };
    const auto over = [&](const States& array, StateOf<S>* own) {
      for (long n = 0; n < batch_; ++n)
        for (long u = 0; u < loop.hidden; ++u) f(own + n * loop.stride + u, array.data() + n * loop.hidden + u);
    };
    if (c && own_c == nullptr) throw std::invalid_argument("recurra._native: this cell has no c");
    check(h);
    if (c) check(*c);
    over(h, own_h);
    if (c) over(*c, own_c);
  }

  long batch_, most_steps_;
  int threads_;
  bool is_running_ = false;
  long multiplications_ = 0;  // of a step
  std::vector<Layer> layers_;
};

template <class S>
void define(nb::module_& m, const char* name) {
  using Class = Stack<S>;
#define RECURRA_OPTIONAL(name) nb::arg(name).none().noconvert()
  nb::class_<Class>(m, name, "The layers and states of a stream.")
      .def(nb::init<long, long, int>(), nb::arg("batch"), nb::arg("most_steps"), nb::arg("threads"))
      .def("add", &Class::add, nb::arg("cell"), nb::arg("packed"), nb::arg("inputs"), nb::arg("hidden"),
           nb::arg("has_input_weight"), RECURRA_OPTIONAL("bias"), RECURRA_OPTIONAL("mask"), RECURRA_OPTIONAL("params"),
           nb::keep_alive<1, 3>(), nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>(), nb::keep_alive<1, 9>())
      .def("step", &Class::step, nb::arg("frame").noconvert(), nb::arg("h").noconvert())
      .def("block", &Class::block, nb::arg("frames").noconvert(), nb::arg("h").noconvert(), RECURRA_OPTIONAL("resets"))
      .def("get", &Class::get, nb::arg("layer"), nb::arg("h").noconvert(), RECURRA_OPTIONAL("c"))
      .def("put", &Class::put, nb::arg("layer"), nb::arg("h").noconvert(), RECURRA_OPTIONAL("c"));
#undef RECURRA_OPTIONAL
}

}  // namespace

void define_streams(nb::module_& m) {
  define<float>(m, "Stack_float32");
  define<double>(m, "Stack_float64");
  define<Bf16>(m, "Stack_bfloat16");
}

}  // namespace recurra
