#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels.h"
#include "memory.h"

// What check_kernels.cpp draws and runs: numbers of each type, calls with their arrays, and what the kernels give.
using namespace recurra;

namespace {

// ---- numbers of each type

float as_bf16(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
template <class S>
S narrowed(double x) {
  return static_cast<S>(x);
}
template <>
Bf16 narrowed(double x) {
  const float rounded = as_bf16(static_cast<float>(x));
  std::uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  return {static_cast<std::uint16_t>(bits >> 16)};
}
double widened(float x) { return x; }
double widened(double x) { return x; }
double widened(Bf16 x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x.bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class S>
std::vector<double> widened(const std::vector<S>& from) {
  std::vector<double> to;
  for (const S& x : from) to.push_back(widened(x));
  return to;
}
// What rounding may leave of a result, times a few for the steps.
template <class S>
constexpr double allowed = std::is_same_v<S, double>  ? 1e-12
                           : std::is_same_v<S, float> ? 5e-5
                                                      : 0.1;

struct Random {
  std::uint64_t state;
  std::uint64_t bits() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  }
  long below(long n) { return static_cast<long>(bits() >> 16) % n; }
  double uniform() { return static_cast<double>(bits() >> 11) / 4503599627370496.0 - 1; }  // [-1, 1)
};

// ---- a call with its arrays, each of exactly the size that it must have

template <class S>
using Array = std::vector<S>;

template <class S>
struct Problem {
  CellSpec spec{};
  long T, N, I, H, D, G;
  bool has_input_weight, mask_per_step;
  Array<S> source, R, W, bias, h0, c0, mask, params;
  std::vector<std::int64_t> lengths;
  std::unique_ptr<bool[]> resets;
  Array<S> dh, dc, dh_last, dc_last;  // incoming gradients

  const char* op() const { return spec.op == CellSpec::rnn ? "rnn" : spec.op == CellSpec::lstm ? "lstm" : "gru"; }
};

template <class S>
Problem<S> drawn(std::uint64_t seed, long size_limit) {
  Random r{seed * 0x9e3779b97f4a7c15ull + 88172645463325252ull};
  for (int i = 0; i < 8; ++i) r.bits();
  const long some_T[] = {0, 1, 2, 9, 23}, some_N[] = {0, 1, 3, 17, 6}, some_H[] = {1, 5, 31, 70, 48},
             some_I[] = {1, 5, 33, 8};
  Problem<S> p;
  p.T = some_T[r.below(5)];
  p.N = some_N[r.below(5)];
  p.I = some_I[r.below(4)];
  p.H = some_H[r.below(size_limit)];
  p.D = 1 + r.below(2);
  p.spec.op = static_cast<CellSpec::Op>(r.below(3));
  p.G = p.spec.op == CellSpec::rnn ? 1 : p.spec.op == CellSpec::lstm ? 4 : 3;
  const int tanh = 2, sigmoid = 3, softsign = 10;
  const bool usual = r.below(3) > 0;
  for (int g = 0; g < p.G; ++g) {
    p.spec.gates[g] = {p.G == 1 || g == 2 ? (usual ? tanh : softsign) : sigmoid, 0, 0};
    p.spec.slot[g] = static_cast<int>((g + (p.D - 1)) % p.G);  // any order
  }
  p.spec.cell = {tanh, 0, 0};
  p.spec.output_sees_new = r.below(2) > 0;
  p.spec.reset_after = r.below(2) > 0;
  p.spec.flip_z = r.below(2) > 0;
  p.spec.reverse = r.below(2) > 0;
  p.has_input_weight = r.below(4) > 0;
  p.mask_per_step = r.below(2) > 0;
  const long wide = p.D * p.H, stacked = wide * p.G, rows = p.T * p.N;
  const auto fill = [&](Array<S>& to, long count, double scale) {
    to.reserve(static_cast<std::size_t>(count));
    for (long i = 0; i < count; ++i) to.push_back(narrowed<S>(scale * r.uniform()));
  };
  const auto maybe = [&](Array<S>& to, long count, double scale) {
    if (r.below(3) > 0) fill(to, count, scale);
  };
  fill(p.source, rows * (p.has_input_weight ? p.I : stacked), 1);
  fill(p.R, stacked * p.H, 1.5 / std::sqrt(static_cast<double>(p.H)));
  if (p.has_input_weight) fill(p.W, stacked * p.I, 1 / std::sqrt(static_cast<double>(p.I)));
  maybe(p.bias, stacked, 0.5);
  maybe(p.h0, p.N * wide, 1);
  if (p.spec.op == CellSpec::lstm) maybe(p.c0, p.N * wide, 1);
  maybe(p.mask, (p.mask_per_step ? p.T : 1) * p.N * wide, 1.5);
  if (p.spec.op == CellSpec::lstm) maybe(p.params, wide * 4, 0.5);
  if (p.spec.op == CellSpec::gru && p.spec.reset_after) maybe(p.params, wide, 0.5);
  if (r.below(2) > 0)
    for (long n = 0; n < p.N; ++n) p.lengths.push_back(r.below(p.T + 1));
  if (r.below(2) > 0) {
    p.resets.reset(new bool[static_cast<std::size_t>(rows)]);
    for (long k = 0; k < rows; ++k) p.resets[static_cast<std::size_t>(k)] = r.below(6) == 0;
  }
  fill(p.dh, rows * wide, 1);
  fill(p.dh_last, p.N * wide, 1);
  if (p.spec.op == CellSpec::lstm) {
    fill(p.dc, rows * wide, 1);
    fill(p.dc_last, p.N * wide, 1);
  }
  return p;
}

template <class S>
S* at(Array<S>& array) {
  return array.empty() ? nullptr : array.data();
}
template <class S>
const S* at(const Array<S>& array) {
  return array.empty() ? nullptr : array.data();
}
// Never null: an empty array is not an absent one.
template <class S>
S* there(Array<S>& array) {
  static S none{};
  return array.empty() ? &none : array.data();
}
template <class S>
const S* there(const Array<S>& array) {
  return there(const_cast<Array<S>&>(array));
}

template <class S>
ForwardCall<S> call_of(const Problem<S>& p, int threads) {
  ForwardCall<S> q{};
  q.steps = p.T;
  q.batch = p.N;
  q.inputs = p.has_input_weight ? p.I : p.D * p.G * p.H;
  q.hidden = p.H;
  q.directions = p.D;
  q.reverse = p.spec.reverse;
  for (int g = 0; g < 4; ++g) q.slot[g] = p.spec.slot[g];
  q.source = there(p.source);
  q.recurrent_weight = at(p.R);
  q.input_weight = at(p.W);
  q.bias = at(p.bias);
  q.init_state = at(p.h0);
  q.init_cell = at(p.c0);
  q.mask = at(p.mask);
  q.mask_step = p.mask_per_step ? p.N * p.D * p.H : 0;
  q.params = at(p.params);
  q.lengths = p.lengths.empty() ? nullptr : p.lengths.data();
  q.resets = p.resets.get();
  q.threads = threads;
  return q;
}

template <class S>
struct Results {
  Array<S> h, c, z, h_last, c_last;             // forward
  Array<S> source, R, W, bias, h0, c0, params;  // gradients
  std::vector<const Array<S>*> all() const {
    return {&h, &c, &z, &h_last, &c_last, &source, &R, &W, &bias, &h0, &c0, &params};
  }
};

template <class S>
void run_forward(const Problem<S>& p, int threads, Results<S>& out, bool packed) {
  const Kernels<S>& table = *selected_kernels<S>();
  const S nan = narrowed<S>(std::numeric_limits<double>::quiet_NaN());
  const auto rows = static_cast<std::size_t>(p.T * p.N * p.D * p.H), states = static_cast<std::size_t>(p.N * p.D * p.H);
  ForwardCall<S> q = call_of(p, threads);
  out.h.assign(rows, nan);
  out.z.assign(rows * static_cast<std::size_t>(p.G), nan);
  out.h_last.assign(states, nan);
  if (p.spec.op == CellSpec::lstm) {
    out.c.assign(rows, nan);
    out.c_last.assign(states, nan);
  }
  q.h = at(out.h);
  q.c = at(out.c);
  q.z = at(out.z);
  q.last_state = at(out.h_last);
  q.last_cell = at(out.c_last);
  std::vector<char> weights;
  if (packed) {
    const std::size_t bytes = table.packed_bytes(p.spec, q);
    void* const memory = take_block(bytes);
    table.pack(p.spec, q, memory);
    q.packed = memory;
    table.forward(p.spec, q);
    give_block(memory, bytes);
  } else {
    table.forward(p.spec, q);
  }
}

template <class S>
Results<S> run(const Problem<S>& p, int threads) {
  Results<S> out;
  run_forward(p, threads, out, false);
  const auto like = [](const Array<S>& input) {
    return Array<S>(input.size(), narrowed<S>(std::numeric_limits<double>::quiet_NaN()));
  };
  out.source = like(p.source), out.R = like(p.R), out.W = like(p.W), out.bias = like(p.bias);
  out.h0 = like(p.h0), out.c0 = like(p.c0), out.params = like(p.params);
  GradientCall<S> g{};
  g.forward = call_of(p, threads);
  g.forward.h = there(out.h);
  g.forward.c = p.spec.op == CellSpec::lstm ? there(out.c) : nullptr;
  g.forward.z = there(out.z);
  g.source_gradient = at(p.dh);
  g.cell_sequence_gradient = at(p.dc);
  g.state_gradient = at(p.dh_last);
  g.cell_gradient = at(p.dc_last);
  g.source = there(out.source);
  g.recurrent_weight = at(out.R);
  g.input_weight = at(out.W);
  g.bias = at(out.bias);
  g.init_state = at(out.h0);
  g.init_cell = at(out.c0);
  g.params = at(out.params);
  selected_kernels<S>()->gradient(p.spec, g);
  return out;
}

}  // namespace
