// The kernels without Python, for what cannot run under it or not there: sanitizers, other machines. Every op on odd
// sizes with every option: forward against plain loops, gradients against differences of the forward op, all results
// bitwise the same for every number of threads, alone, nested and at the same time.
//
//   check_kernels [CASES]       all of it, for every instruction set of this machine
//   check_kernels plant NAME    a wrong call, which the sanitizer called NAME must catch: address, undefined, thread

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "isa.h"
#include "kernels.h"
#include "memory.h"
#include "team.h"

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

// ---- the equations once more, as plain loops

double activated(const ActivationSpec& s, double x) {
  return s.kind == 2 ? std::tanh(x) : s.kind == 3 ? 1 / (1 + std::exp(-x)) : x / (1 + std::fabs(x));
}

struct Plain {
  std::vector<double> h, c, h_last, c_last;
};

template <class S>
Plain plain(const Problem<S>& p) {
  const long wide = p.D * p.H;
  const auto rows = static_cast<std::size_t>(p.T * p.N * wide), states = static_cast<std::size_t>(p.N * wide);
  Plain out{std::vector<double>(rows), std::vector<double>(rows), std::vector<double>(states),
            std::vector<double>(states)};
  const auto get = [](const Array<S>& array, long i) {
    return array.empty() ? 0.0 : widened(array[static_cast<std::size_t>(i)]);
  };
  for (long d = 0; d < p.D; ++d)
    for (long n = 0; n < p.N; ++n) {
      const bool backwards = d == 1 || (p.D == 1 && p.spec.reverse);
      const long end = p.lengths.empty() ? p.T : p.lengths[static_cast<std::size_t>(n)];
      std::vector<double> h, c, m(static_cast<std::size_t>(p.H)), r(static_cast<std::size_t>(p.H));
      for (long u = 0; u < p.H; ++u) {
        h.push_back(get(p.h0, n * wide + d * p.H + u));
        c.push_back(get(p.c0, n * wide + d * p.H + u));
      }
      const auto row = [&](long gate) { return (d * p.G + p.spec.slot[gate]) * p.H; };
      const auto product = [&](long gate, long u, const std::vector<double>& v) {
        double sum = 0;
        for (long k = 0; k < p.H; ++k) sum += get(p.R, (row(gate) + u) * p.H + k) * v[static_cast<std::size_t>(k)];
        return sum;
      };
      for (long i = 0; i < end; ++i) {
        const long t = backwards ? end - 1 - i : i, reset = backwards ? t + 1 : t;
        if (p.resets && reset < end && p.resets[static_cast<std::size_t>(reset * p.N + n)]) {
          h.assign(h.size(), 0);
          c.assign(c.size(), 0);
        }
        const auto input = [&](long gate, long u) {
          double sum = get(p.bias, row(gate) + u);
          if (!p.has_input_weight) return sum + get(p.source, (t * p.N + n) * wide * p.G + row(gate) + u);
          for (long k = 0; k < p.I; ++k)
            sum += get(p.W, (row(gate) + u) * p.I + k) * get(p.source, (t * p.N + n) * p.I + k);
          return sum;
        };
        const auto peephole = [&](int k, long u) { return get(p.params, (d * 4 + p.spec.slot[k]) * p.H + u); };
        for (long u = 0; u < p.H; ++u)
          m[static_cast<std::size_t>(u)] =
              h[static_cast<std::size_t>(u)] *
              (p.mask.empty() ? 1 : get(p.mask, (p.mask_per_step ? t * p.N * wide : 0) + n * wide + d * p.H + u));
        if (p.spec.op == CellSpec::gru && !p.spec.reset_after)
          for (long u = 0; u < p.H; ++u)
            r[static_cast<std::size_t>(u)] =
                m[static_cast<std::size_t>(u)] * activated(p.spec.gates[1], input(1, u) + product(1, u, m));
        std::vector<double> h_new, c_new;
        for (long u = 0; u < p.H; ++u) {
          const double old_h = h[static_cast<std::size_t>(u)], old_c = c[static_cast<std::size_t>(u)];
          const auto gate = [&](int g, double more) {
            return activated(p.spec.gates[g], input(g, u) + product(g, u, m) + more);
          };
          if (p.spec.op == CellSpec::rnn) {
            h_new.push_back(gate(0, 0));
          } else if (p.spec.op == CellSpec::lstm) {
            const double next = gate(1, peephole(1, u) * old_c) * old_c +
                                gate(0, peephole(0, u) * old_c) * gate(2, peephole(2, u) * old_c);
            c_new.push_back(next);
            h_new.push_back(gate(3, peephole(3, u) * (p.spec.output_sees_new ? next : old_c)) *
                            activated(p.spec.cell, next));
          } else {
            const double z = gate(0, 0);
            const double part =
                p.spec.reset_after ? gate(1, 0) * (product(2, u, m) + get(p.params, d * p.H + u)) : product(2, u, r);
            const double o = activated(p.spec.gates[2], input(2, u) + part);
            h_new.push_back(p.spec.flip_z ? (1 - z) * old_h + z * o : z * old_h + (1 - z) * o);
          }
        }
        h = h_new;
        if (p.spec.op == CellSpec::lstm) c = c_new;
        for (long u = 0; u < p.H; ++u) {
          const auto to = static_cast<std::size_t>((t * p.N + n) * wide + d * p.H + u);
          out.h[to] = h[static_cast<std::size_t>(u)];
          out.c[to] = c[static_cast<std::size_t>(u)];
        }
      }
      for (long u = 0; u < p.H; ++u) {
        const auto to = static_cast<std::size_t>(n * wide + d * p.H + u);
        out.h_last[to] = h[static_cast<std::size_t>(u)];
        out.c_last[to] = c[static_cast<std::size_t>(u)];
      }
    }
  return out;
}

// ---- the checks

long checks = 0;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "check_kernels: %s\n", what.c_str());
  std::exit(1);
}

template <class S>
void near(const char* name, const Problem<S>& p, std::uint64_t seed, const Array<S>& got,
          const std::vector<double>& wanted, double bound) {
  double size = 1;
  for (const double x : wanted) size = std::fmax(size, std::fabs(x));
  for (std::size_t i = 0; i < got.size(); ++i, ++checks)
    if (!(std::fabs(widened(got[i]) - wanted[i]) <= bound * size))
      fail(std::string(p.op()) + " seed " + std::to_string(seed) + ": " + name + "[" + std::to_string(i) + "] is " +
           std::to_string(widened(got[i])) + ", must be " + std::to_string(wanted[i]));
}

template <class S>
void same(const Problem<S>& p, std::uint64_t seed, const std::string& when, const Results<S>& one,
          const Results<S>& two) {
  const auto a = one.all(), b = two.all();
  for (std::size_t k = 0; k < a.size(); ++k, ++checks)
    if (a[k]->size() != b[k]->size() ||
        (!a[k]->empty() && std::memcmp(a[k]->data(), b[k]->data(), a[k]->size() * sizeof(S)) != 0))
      fail(std::string(p.op()) + " seed " + std::to_string(seed) + ": array " + std::to_string(k) + " is another " +
           when);
}

// The gradients in a random direction, against the difference of two forward ops.
double loss(const Problem<double>& p) {
  Results<double> out;
  run_forward(p, 1, out, false);
  double sum = 0;
  const auto add = [&](const Array<double>& y, const Array<double>& dy) {
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
  };
  add(out.h, p.dh);
  add(out.h_last, p.dh_last);
  add(out.c, p.dc);
  add(out.c_last, p.dc_last);
  return sum;
}
void check_slope(std::uint64_t seed, const Results<double>& found) {
  Problem<double> there = drawn<double>(seed, 5), back = drawn<double>(seed, 5);
  Random r{seed + 77};
  const double step = 1e-5;
  double slope = 0, size = 1;
  const auto move = [&](Array<double>& up, Array<double>& down, const Array<double>& gradient) {
    for (std::size_t i = 0; i < up.size(); ++i) {
      const double way = r.uniform();
      up[i] += step * way;
      down[i] -= step * way;
      slope += way * gradient[i];
      size += std::fabs(way * gradient[i]);
    }
  };
  move(there.source, back.source, found.source);
  move(there.R, back.R, found.R);
  move(there.W, back.W, found.W);
  move(there.bias, back.bias, found.bias);
  move(there.h0, back.h0, found.h0);
  move(there.c0, back.c0, found.c0);
  move(there.params, back.params, found.params);
  const double difference = (loss(there) - loss(back)) / (2 * step);
  ++checks;
  if (!(std::fabs(difference - slope) <= 1e-7 * size))
    fail(std::string(there.op()) + " seed " + std::to_string(seed) + ": the gradient gives a slope of " +
         std::to_string(slope) + ", differences give " + std::to_string(difference));
}

template <class S>
void check_all(std::uint64_t seeds) {
  if (selected_kernels<S>() == nullptr) return;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Problem<S> p = drawn<S>(seed, 5);
    const Results<S> one = run(p, 1);
    const Plain exact = plain(p);
    near("h", p, seed, one.h, exact.h, allowed<S>);
    near("h_last", p, seed, one.h_last, exact.h_last, allowed<S>);
    near("c", p, seed, one.c, exact.c, allowed<S>);
    near("c_last", p, seed, one.c_last, exact.c_last, allowed<S>);
    if constexpr (std::is_same_v<S, double>)
      check_slope(seed, one);
    else {
      Problem<double> wide = drawn<double>(seed, 5);  // the same numbers, rounded
      wide.source = widened(p.source), wide.R = widened(p.R), wide.W = widened(p.W), wide.bias = widened(p.bias);
      wide.h0 = widened(p.h0), wide.c0 = widened(p.c0), wide.mask = widened(p.mask), wide.params = widened(p.params);
      wide.dh = widened(p.dh), wide.dc = widened(p.dc);
      wide.dh_last = widened(p.dh_last), wide.dc_last = widened(p.dc_last);
      const Results<double> exactly = run(wide, 1);
      const double bound = 2 * allowed<S>;
      near("d_source", p, seed, one.source, exactly.source, bound);
      near("d_R", p, seed, one.R, exactly.R, bound);
      near("d_W", p, seed, one.W, exactly.W, bound);
      near("d_bias", p, seed, one.bias, exactly.bias, bound);
      near("d_h0", p, seed, one.h0, exactly.h0, bound);
      near("d_c0", p, seed, one.c0, exactly.c0, bound);
      near("d_params", p, seed, one.params, exactly.params, bound);
    }
    for (const int threads : {2, 3, 7})
      same(p, seed, "with " + std::to_string(threads) + " threads", one, run(p, -threads));
    if (p.T * p.N > 4) {  // fewer rows read weights that are not packed as they stand, in another order
      Results<S> packed = one;
      run_forward(p, 2, packed, true);
      same(p, seed, "with packed weights", one, packed);
    }
  }
}

// Calls from several threads, and from the inside of a team, do not disturb each other.
template <class S>
void check_together() {
  constexpr std::uint64_t first = 100, callers = 4;
  std::vector<Problem<S>> problems;
  std::vector<Results<S>> alone, together(callers), inside(callers);
  for (std::uint64_t k = 0; k < callers; ++k) {
    problems.push_back(drawn<S>(first + k, 5));
    alone.push_back(run(problems.back(), 1));
  }
  const auto work = [&](std::vector<Results<S>>& found, std::uint64_t k) {
    for (int again = 0; again < 5; ++again) found[k] = run(problems[k], -3);
  };
  std::vector<std::thread> threads;
  for (std::uint64_t k = 0; k < callers; ++k) threads.emplace_back([&, k] { work(together, k); });
  for (std::thread& thread : threads) thread.join();
  run_team(3, [&](int rank, int size) {
    for (std::uint64_t k = 0; k < callers; ++k)
      if (static_cast<int>(k) % size == rank) work(inside, k);
  });
  for (std::uint64_t k = 0; k < callers; ++k) {
    same(problems[k], first + k, "beside other calls", alone[k], together[k]);
    same(problems[k], first + k, "inside of a team", alone[k], inside[k]);
  }
}

// ---- wrong calls, for a sanitizer to catch

int plant(const std::string& name) {
  Problem<float> p;
  for (std::uint64_t seed = 0;; ++seed) {
    p = drawn<float>(seed, 5);
    if (p.T * p.N > 4 && p.H > 4 && p.resets && p.lengths.empty() && p.has_input_weight) break;
  }
  Results<float> out;
  if (name == "address") {  // the kernels read behind the end
    p.source.pop_back();
    p.source.shrink_to_fit();
  } else if (name == "undefined") {  // and bools that are neither true nor false
    std::memset(&p.resets[0], 2, static_cast<std::size_t>(p.T * p.N));
  } else if (name == "thread") {  // two calls write the same results
    run_forward(p, 1, out, false);
    ForwardCall<float> q = call_of(p, 1);
    q.h = at(out.h);
    std::thread other([&] { selected_kernels<float>()->forward(p.spec, q); });
    selected_kernels<float>()->forward(p.spec, q);
    other.join();
    return 0;
  } else {
    fail("there is nothing to plant for " + name);
  }
  run_forward(p, 1, out, false);
  return 0;
}

}  // namespace

int main(int count, char** given) {
  if (count == 3 && std::string(given[1]) == "plant") return plant(given[2]);
  const std::uint64_t cases = count == 2 ? std::strtoul(given[1], nullptr, 10) : 60;
  const std::string wanted = std::getenv("RECURRA_ISA") == nullptr ? "" : std::getenv("RECURRA_ISA");
  for (const char* isa : {"x86-64-v4-bf16", "x86-64-v4", "x86-64-v3", "x86-64-v2", "neon", "generic"}) {
    if (!wanted.empty() && wanted != isa) continue;
    setenv("RECURRA_ISA", isa, 1);
    try {
      if (std::string(selected_isa()) != isa) fail(std::string(isa) + " was asked for, got " + selected_isa());
    } catch (const std::invalid_argument&) {
      if (!wanted.empty()) throw;
      std::printf("%-15s not on this machine\n", isa);
      continue;
    }
    const long before = checks;
    check_all<float>(cases);
    check_all<double>(cases);
    check_all<Bf16>(cases);
    check_together<float>();
    std::printf("%-15s %ld checks\n", isa, checks - before);
  }
  drop_kept();
  return checks > 0 ? 0 : 1;
}
