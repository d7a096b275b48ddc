"""Activations, softmax and normalisation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ops.generic_harness import LIBRARIES, Case, as_library, gradient_of, integers, normal, op_tests, uniform
from recurra import _arrays
from recurra._errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from recurra.ops import neural as n

X, G = normal(3, 4, seed=1), normal(3, 4, seed=2)
LARGE = np.asarray([-1e3, -80.0, 80.0, 1e3])
ALPHA = uniform(0.1, 0.4, 4)
I = integers(0, 3, 3, 4)
MEAN, VARIANCE, GAMMA, BETA = normal(4, seed=3), uniform(0.5, 2, 4), normal(4, seed=5), normal(3, 1, seed=6)


def _each(function):
    """`function` of every element, in Python."""
    return lambda x: np.asarray([function(float(v)) for v in x.reshape(-1)], x.dtype).reshape(x.shape)


def _sigmoid(v: float) -> float:
    return 0.5 * (1 + math.tanh(v / 2))


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x)
    return powers / np.add.reduce(powers, axis, keepdims=True)


def _softmax_gradient(g: np.ndarray, x: np.ndarray) -> np.ndarray:
    y = _softmax(x, 1)
    jacobian = y[:, :, None] * (np.eye(y.shape[1], dtype=x.dtype) - y[:, None, :])
    return np.einsum("ni,nij->nj", g, jacobian)


def _normalized(x, mean, variance, gamma=1.0, beta=0.0, epsilon=1e-5):
    return ((x - mean) * (variance + epsilon) ** -0.5 * gamma + beta).astype(x.dtype)


CASES = [
    Case("relu", n.relu, (X,), _each(lambda v: max(v, 0))),
    Case("relu_gradient", n.relu_gradient, (G, X), lambda g, x: g * (x > 0)),
    Case("leaky_relu", lambda x: n.leaky_relu(x, 0.2), (X,), _each(lambda v: v if v > 0 else 0.2 * v)),
    Case("leaky_relu: negative alpha", lambda x: n.leaky_relu(x, -1), (X,), np.abs),
    Case("leaky_relu: tensor", n.leaky_relu, (X, ALPHA), lambda x, a: np.maximum(x, a * x)),
    Case(
        "leaky_relu_gradient",
        lambda g, x: n.leaky_relu_gradient(g, x, 0.2),
        (G, X),
        lambda g, x: g * (0.2 + 0.8 * (x > 0)).astype(x.dtype),
    ),
    Case("sigmoid", n.sigmoid, (X,), _each(_sigmoid)),
    Case("sigmoid: large", n.sigmoid, (LARGE,), _each(_sigmoid)),
    Case("sigmoid_gradient", n.sigmoid_gradient, (G, X), lambda g, x: g / (np.exp(x) + np.exp(-x) + 2)),
    Case("hard_sigmoid", n.hard_sigmoid, (3 * X,), _each(lambda v: min(max(0.2 * v + 0.5, 0), 1))),
    Case("softplus", n.softplus, (X,), _each(lambda v: math.log1p(math.exp(v)))),
    Case("softplus: large", n.softplus, (LARGE,), _each(lambda v: max(v, 0) + math.log1p(math.exp(-abs(v))))),
    Case("softsign", n.softsign, (X,), _each(lambda v: v / (1 + abs(v)))),
    Case("elu", n.elu, (X,), _each(lambda v: v if v > 0 else math.expm1(v))),
    Case("elu: alpha", lambda x: n.elu(x, 0.3), (X,), _each(lambda v: v if v > 0 else 0.3 * math.expm1(v))),
    Case("gelu", n.gelu, (X,), _each(lambda v: v * math.erfc(-v / math.sqrt(2)) / 2)),
    Case("softmax", lambda x: n.softmax(x, 1), (X,), lambda x: _softmax(x, 1)),
    Case("softmax: first axis", lambda x: n.softmax(x, -2), (X,), lambda x: _softmax(x, 0)),
    Case("softmax: large", lambda x: n.softmax(x, 0), (LARGE,), lambda x: np.asarray([0, 0, 0, 1], x.dtype)),
    Case("softmax: no classes", lambda x: n.softmax(x, 1), (normal(2, 0),), lambda x: x),
    Case("softmax: no rows", lambda x: n.softmax(x, 1), (normal(0, 2),), lambda x: x),
    Case("softmax_gradient", lambda g, x: n.softmax_gradient(g, x, 1), (G, X), _softmax_gradient),
    Case("log_softmax", lambda x: n.log_softmax(x, 1), (X,), lambda x: np.log(_softmax(x, 1))),
    Case("log_softmax: large", lambda x: n.log_softmax(x, 0), (LARGE,), lambda x: x - 1000),
    Case("normalize", n.normalize, (X, MEAN, VARIANCE), _normalized),
    Case("normalize: gamma and beta", n.normalize, (X, MEAN, VARIANCE, GAMMA, BETA), _normalized),
    Case("normalize: gamma", n.normalize, (X, MEAN, VARIANCE, GAMMA), _normalized),
    Case(
        "normalize: beta",
        lambda x, m, v, b: n.normalize(x, m, v, None, b),
        (X, MEAN, VARIANCE, BETA),
        lambda x, m, v, b: _normalized(x, m, v) + b,
    ),
    Case(
        "normalize: epsilon",
        lambda x, m, v: n.normalize(x, m, v, epsilon=0.5),
        (X, MEAN, VARIANCE),
        lambda x, m, v: _normalized(x, m, v, epsilon=0.5),
    ),
]

test_values, test_types, test_gradients, test_half_types = op_tests(CASES)


def test_gradients_at_kinks():
    zero = np.zeros(1)
    assert gradient_of(n.relu, [zero])[0] == 0
    assert gradient_of(lambda x: n.leaky_relu(x, 0.2), [zero])[0] == pytest.approx(0.2)
    assert gradient_of(n.softsign, [zero])[0] == 1
    assert gradient_of(n.softplus, [zero])[0] == 0.5
    assert gradient_of(n.sigmoid, [zero])[0] == 0.25
    assert gradient_of(n.elu, [zero])[0] == 1


@pytest.mark.parametrize("where", LIBRARIES)
def test_gradients_stay_finite_far_from_0(where):
    x = as_library(LARGE.astype("float32"), where)
    one = as_library(np.ones(4, "float32"), where)
    assert np.isfinite(_arrays.to_numpy(n.sigmoid_gradient(one, x))).all()
    assert np.isfinite(_arrays.to_numpy(n.softmax_gradient(one, x, 0))).all()


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: n.relu(I), DTypeError, "relu: input must be of kind float, got int32"),
        (lambda: n.softmax(I, 0), DTypeError, "softmax: input must be of kind float, got int32"),
        (lambda: n.softmax(X, 2), ShapeError, r"softmax: axis must lie in \[-2, 2\) for rank 2, got 2"),
        (lambda: n.log_softmax(X, None), ArgumentTypeError, "log_softmax: axis must be an integer, got None"),
        (lambda: n.elu(X, "a"), ArgumentTypeError, "elu: alpha must be a number, got 'a'"),
        (lambda: n.leaky_relu(X, math.nan), ArgumentError, "leaky_relu: alpha must be finite, got nan"),
        (lambda: n.leaky_relu(X, True), ArgumentTypeError, "leaky_relu: alpha must be a number, got True"),
        (
            lambda: n.normalize(X, MEAN, VARIANCE, epsilon=-1.0),
            ArgumentError,
            r"normalize: epsilon must be 0 or more, got -1\.0",
        ),
        (lambda: n.normalize(I, I, I), DTypeError, "normalize: input must be of kind float, got int32"),
        (
            lambda: n.normalize(X, MEAN, VARIANCE.astype("float32")),
            DTypeError,
            "normalize: variance must have the dtype of the input, float64, got float32",
        ),
        (
            lambda: n.normalize(X, normal(2, 3, 4), VARIANCE),
            ShapeError,
            r"normalize: mean must broadcast to the shape of the input, \[3, 4\], got \[2, 3, 4\]",
        ),
        (
            lambda: n.normalize(X[:, :1], MEAN[:1], VARIANCE[:1], GAMMA),
            ShapeError,
            r"normalize: gamma must broadcast to the shape of the input, \[3, 1\], got \[4\]",
        ),
        (
            lambda: n.normalize(X, MEAN, VARIANCE, 1.0),
            ArgumentTypeError,
            r"normalize: gamma must be a graph tensor or an array, got 1\.0",
        ),
    ],
)
def test_errors_say_what_came(build, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        build()
