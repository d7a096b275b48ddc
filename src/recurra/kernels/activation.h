#pragma once

#include "recurra/kernels/math.h"

// The activations of a gate (ops/activations.py, in the same order), their slopes, and what the training state keeps.
namespace recurra {
inline namespace RECURRA_ISA {

enum class Kind : int {
  none,
  relu,
  tanh,
  sigmoid,
  hard_sigmoid,
  affine,
  leaky_relu,
  thresholded_relu,
  scaled_tanh,
  elu,
  softsign,
  softplus
};

// An activation that is known at run time.
struct Activation {
  Kind kind;
  double alpha, beta;

  // Whether the slope can be had from f(x); if not, the training state keeps x.
  bool output_suffices() const {
    const bool folds = kind == Kind::leaky_relu || kind == Kind::thresholded_relu || kind == Kind::elu;
    return !(folds && alpha < 0);
  }

  template <class V>
  V value(V x) const {
    const V zero{}, a = fill<V>(alpha), b = fill<V>(beta);
    switch (kind) {
      case Kind::none:
        return x;
      case Kind::relu:
        return select(x > zero, x, zero);
      case Kind::tanh:
        return tanh_of(x);
      case Kind::sigmoid:
        return sigmoid_of(x);
      case Kind::hard_sigmoid: {
        const V line = a * x + b, one = fill<V>(1);
        return select(line < zero, zero, select(line > one, one, line));
      }
      case Kind::affine:
        return a * x + b;
      case Kind::leaky_relu:
        return select(x > zero, x, a * x);
      case Kind::thresholded_relu:
        return select(x > a, x, zero);
      case Kind::scaled_tanh:
        return a * tanh_of(b * x);
      case Kind::elu:
        return select(x > zero, x, a * expm1_of(select(x > zero, zero, x)));
      case Kind::softsign:
        return x / (1 + select(x < zero, -x, x));
      case Kind::softplus: {
        const V small = exp_of(select(x > zero, -x, x));
        return select(x > zero, x, zero) + log_one_plus(small);
      }
    }
    return x;
  }

  // f'(x) from x.
  template <class V>
  V slope(V x) const {
    const V zero{}, one = fill<V>(1), a = fill<V>(alpha), b = fill<V>(beta);
    switch (kind) {
      case Kind::hard_sigmoid: {
        const V line = a * x + b;
        return select(line > zero, select(line < one, a, zero), zero);
      }
      case Kind::leaky_relu:
        return select(x > zero, one, a);
      case Kind::thresholded_relu:
        return select(x > a, one, zero);
      case Kind::elu:
        return select(x > zero, one, value(x) + a);
      case Kind::softplus:
        return sigmoid_of(x);
      default:  // the others' slope is had from f(x), whatever their parameters
        return slope_from_output(value(x));
    }
  }

  // f'(x) from y = f(x), where that suffices.
  template <class V>
  V slope_from_output(V y) const {
    const V zero{}, one = fill<V>(1), a = fill<V>(alpha), b = fill<V>(beta);
    switch (kind) {
      case Kind::none:
        return one;
      case Kind::relu:
        return select(y > zero, one, zero);
      case Kind::tanh:
        return one - y * y;
      case Kind::sigmoid:
        return y * (one - y);
      case Kind::hard_sigmoid:
        return select(y > zero, select(y < one, a, zero), zero);
      case Kind::affine:
        return a;
      case Kind::leaky_relu:
        return select(y > zero, one, a);
      case Kind::thresholded_relu:
        return select(y > a, one, zero);
      case Kind::scaled_tanh:
        return alpha == 0 ? zero : b * (a - y * y / a);
      case Kind::elu:
        return select(y > zero, one, y + a);
      case Kind::softsign: {
        const V rest = 1 - select(y < zero, -y, y);
        return rest * rest;
      }
      case Kind::softplus:
        return -expm1_of(-y);
    }
    return one;
  }

  template <class V>
  V keep(V x, V y) const {
    return output_suffices() ? y : x;
  }
  template <class V>
  V kept_value(V kept) const {
    return output_suffices() ? kept : value(kept);
  }
  template <class V>
  V kept_slope(V kept) const {
    return output_suffices() ? slope_from_output(kept) : slope(kept);
  }
};

// The two that nearly every model uses, known when the kernel is compiled.
struct Sigmoid {
  template <class V>
  V value(V x) const {
    return sigmoid_of(x);
  }
  template <class V>
  V keep(V, V y) const {
    return y;
  }
  template <class V>
  V kept_value(V kept) const {
    return kept;
  }
  template <class V>
  V kept_slope(V kept) const {
    return kept * (1 - kept);
  }
};

struct Tanh {
  template <class V>
  V value(V x) const {
    return tanh_of(x);
  }
  template <class V>
  V slope(V x) const {
    const V y = tanh_of(x);
    return 1 - y * y;
  }
  template <class V>
  V keep(V, V y) const {
    return y;
  }
  template <class V>
  V kept_value(V kept) const {
    return kept;
  }
  template <class V>
  V kept_slope(V kept) const {
    return 1 - kept * kept;
  }
};

}  // namespace RECURRA_ISA
}  // namespace recurra
