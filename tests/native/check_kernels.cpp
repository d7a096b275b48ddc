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

#include "check_calls.h"
#include "isa.h"
#include "kernels.h"
#include "memory.h"
#include "team.h"

namespace {

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
  run_team(Team{3, 0}, [&](int rank, int size) {
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
