"""Steps of training as values."""

from __future__ import annotations

import numpy as np
import pytest

from ops.generic_harness import Case, normal, op_tests
from recurra._errors import DTypeError
from recurra._ir import Program
from recurra.ops import optimizers as o

W, G = normal(3, 2, seed=1), normal(3, 2, seed=2)
M, V, TOP = normal(3, 2, seed=3), normal(3, 2, seed=4) ** 2 + 0.1, normal(3, 2, seed=5) ** 2 + 0.1
B1, B2, EPS, RATE = 0.9, 0.99, 1e-3, 0.05
SCALARS = tuple(np.asarray(x) for x in (RATE, B1, B2, EPS, B1**3, B2**3))


def _step(rate, w, m, v, top, g, b1=B1, b2=B2, eps=EPS):
    results = [np.empty_like(w) for _ in range(3 if top is None else 4)]
    for at in np.ndindex(*w.shape):
        m_new = b1 * m[at] + (1 - b1) * g[at]
        v_new = b2 * v[at] + (1 - b2) * g[at] ** 2
        largest = v_new if top is None else max(top[at], v_new)
        found = (w[at] - rate * m_new / (largest**0.5 + eps), m_new, v_new, largest)
        for result, value in zip(results, found, strict=False):
            result[at] = value
    return tuple(results)


def _corrected(rate=RATE, p1=B1**3, p2=B2**3):
    return rate * (1 - p2) ** 0.5 / (1 - p1)


CASES = [
    Case("sgd", lambda w, g: o.sgd(0.1, w, g), (W, G), lambda w, g: w - 0.1 * g),
    Case("sgd: rate in a tensor", lambda r, w, g: o.sgd(r, w, g), (SCALARS[0], W, G), lambda r, w, g: w - r * g),
    Case(
        "adam",
        lambda w, m, v, g: o.adam(RATE, B1, B2, EPS, B1**3, B2**3, w, m, v, None, g),
        (W, M, V, G),
        lambda w, m, v, g: _step(_corrected(), w, m, v, None, g),
        tolerance=64,  # a division by 1 - beta1^t and by sqrt(v) + eps
    ),
    Case(
        "adam: maximum velocity",
        lambda w, m, v, t, g: o.adam(RATE, B1, B2, EPS, B1**3, B2**3, w, m, v, t, g),
        (W, M, V, TOP, G),
        lambda w, m, v, t, g: _step(_corrected(), w, m, v, t, g),
        tolerance=64,
    ),
    Case(
        "adam: everything in tensors",
        lambda w, m, v, g, r, b1, b2, eps, p1, p2: o.adam(r, b1, b2, eps, p1, p2, w, m, v, None, g),
        (W, M, V, G, *SCALARS),
        lambda w, m, v, g, r, b1, b2, eps, p1, p2: _step(_corrected(r, p1, p2), w, m, v, None, g, b1, b2, eps),
        tolerance=64,
        half=False,  # 1 - beta2 has one digit left
    ),
    Case(
        "adam: powers in tensors",
        lambda w, m, v, g, p1, p2: o.adam(RATE, B1, B2, EPS, p1, p2, w, m, v, None, g),
        (W, M, V, G, *SCALARS[-2:]),
        lambda w, m, v, g, p1, p2: _step(_corrected(RATE, p1, p2), w, m, v, None, g),
        tolerance=64,
        half=False,
    ),
    Case(
        "adam_with_current_learning_rate",
        lambda w, m, v, t, g: o.adam_with_current_learning_rate(RATE, B1, B2, EPS, w, m, v, t, g),
        (W, M, V, TOP, G),
        lambda w, m, v, t, g: _step(RATE, w, m, v, t, g),
        tolerance=64,
    ),
]
test_values_agree, test_types_are_inferred, test_gradients_agree, test_half_types_stay_close = op_tests(CASES)


def test_adam_learns():
    w, m, v = np.asarray([3.0, -2.0]), np.zeros(2), np.zeros(2)
    for t in range(1, 400):
        w, m, v = o.adam(0.1, B1, B2, 1e-8, B1**t, B2**t, w, m, v, None, 2 * w)
    assert abs(w).max() < 1e-3


def test_the_new_values_carry_the_name():
    program = Program()
    w, g = program.placeholder((2,)), program.placeholder((2,))
    assert o.sgd(0.1, w, g, name="step").name == "step"
    assert o.adam(0.1, B1, B2, EPS, B1, B2, w, w, w, None, g, name="step")[0].name == "step"


def test_dtypes_must_agree():
    with pytest.raises(DTypeError, match="subtract: inputs must have one dtype, got float64 and float32"):
        o.sgd(0.1, W, G.astype("float32"))
