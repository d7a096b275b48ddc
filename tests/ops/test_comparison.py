"""Comparisons, logic, and the choice between values."""

from __future__ import annotations

import numpy as np
import pytest

from ops.generic_harness import Case, gradient_of, integers, normal, op_tests
from recurra._errors import ArgumentTypeError, DTypeError, ShapeError
from recurra._ir import Program
from recurra.ops import comparison as c

A, B, ROW = integers(-3, 4, 2, 3, seed=1).astype("float64"), integers(-3, 4, 2, 3, seed=2).astype("float64"), normal(3)
I, J = integers(-3, 4, 2, 3, seed=1), integers(-3, 4, 3, seed=2)
P, Q = np.asarray([[True, True], [False, False]]), np.asarray([True, False])
ODD = np.asarray([0.0, np.nan, np.inf, -np.inf, 1.0])
X, Y = normal(2, 3, seed=3), normal(2, 3, seed=4)
CHOICE = normal(2, 3, seed=5) > 0
LOW, HIGH = np.asarray([-0.5, -0.1, 0.1]), np.asarray([[0.4], [0.2]])


def _each(function):
    """`function` of every pair of elements, in Python."""
    return np.vectorize(function, otypes=[bool])


COMPARISONS = {
    c.equal: lambda x, y: x == y,
    c.not_equal: lambda x, y: x != y,
    c.less: lambda x, y: x < y,
    c.less_equal: lambda x, y: x <= y,
    c.greater: lambda x, y: x > y,
    c.greater_equal: lambda x, y: x >= y,
}
LOGIC = {
    c.logical_and: lambda x, y: x and y,
    c.logical_or: lambda x, y: x or y,
    c.logical_xor: lambda x, y: x is not y,
    c.logical_nand: lambda x, y: not (x and y),
    c.logical_nor: lambda x, y: not (x or y),
    c.logical_xnor: lambda x, y: x is y,
}

# half=False with NaN: the comparisons of NumPy's bfloat16 warn about it.
CASES = [
    *[Case(f.__name__, f, (A, B), _each(plain), orders=0) for f, plain in COMPARISONS.items()],
    *[Case(f"{f.__name__}: integers", f, (I, J), _each(plain)) for f, plain in COMPARISONS.items()],
    Case("equal: booleans", c.equal, (P, Q), _each(lambda x, y: x == y)),
    Case("equal: NaN", lambda x: c.equal(x, x), (ODD,), lambda x: np.asarray([1, 0, 1, 1, 1], bool), half=False),
    Case("less: number", lambda x: c.less(x, 0.5), (X,), _each(lambda x: x < 0.5)),
    *[
        Case(f.__name__, f, (P, Q), lambda x, y, plain=plain: _each(lambda a, b: plain(bool(a), bool(b)))(x, y))
        for f, plain in LOGIC.items()
    ],
    Case("logical_not", c.logical_not, (P,), _each(lambda x: not x)),
    Case("is_nan", c.is_nan, (ODD,), lambda x: np.asarray([0, 1, 0, 0, 0], bool), orders=0),
    Case("is_finite", c.is_finite, (ODD,), lambda x: np.asarray([1, 0, 0, 0, 1], bool), orders=0),
    Case("is_infinite", c.is_infinite, (ODD,), lambda x: np.asarray([0, 0, 1, 1, 0], bool), orders=0),
    Case("select", c.select, (CHOICE, X, Y), lambda p, x, y: p * x + (1 - p.astype(x.dtype)) * y),
    Case("select: broadcast", c.select, (Q[:, None], X, ROW), lambda p, x, y: np.stack([x[0], y])),
    Case("select: number", lambda p, x: c.select(p, x, -1), (CHOICE, X), lambda p, x: np.where(p, x, -np.ones_like(x))),
    Case("select: number first", lambda p, x: c.select(p, 0.5, x), (CHOICE, X), lambda p, x: x + p * (0.5 - x)),
    Case("select: integers", c.select, (CHOICE, I, J), np.where),
    Case(
        "select: keeps NaN out",
        c.select,
        (Q, np.asarray([1.0, np.nan]), np.asarray([np.nan, 2.0])),
        lambda p, x, y: np.asarray([1, 2], x.dtype),
    ),
    Case(
        "clamp: numbers",
        lambda x: c.clamp(x, -0.3, 0.5),
        (X,),
        lambda x: np.clip(x, x.dtype.type(-0.3), x.dtype.type(0.5)),
    ),
    Case("clamp: tensors", c.clamp, (X, LOW, HIGH), lambda x, low, high: np.sort([x, low + 0 * x, high + 0 * x], 0)[1]),
    Case("clamp: min above max", c.clamp, (X, 0 * X + 1, 0 * X - 1), lambda x, low, high: high),
    Case("clamp: integers", lambda x: c.clamp(x, -1, 2), (I,), lambda x: np.clip(x, -1, 2)),
    Case("zeros_like", c.zeros_like, (X,), lambda x: 0 * x),
    Case("zeros_like: booleans", c.zeros_like, (P,), lambda x: x & ~x),
    Case("ones_like", c.ones_like, (X,), lambda x: x - x + 1),
    Case("ones_like: empty", c.ones_like, (normal(0, 2),), lambda x: x),
]

test_values, test_types, test_gradients, test_half_types = op_tests(CASES)


def test_gradients_on_the_bounds_of_clamp_go_to_x():
    x, low, high = np.asarray([-1.0, 0.0, 1.0, 2.0, -2.0]), np.full(5, -1.0), np.full(5, 1.0)
    for found, wanted in zip(gradient_of(c.clamp, [x, low, high]), np.eye(3)[[0, 0, 0, 2, 1]].T, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_dropped_infinity_leaves_no_nan_in_the_gradient():
    def safe_inverse(x):
        is_zero = c.equal(x, 0)
        return c.select(is_zero, 0, 1 / c.select(is_zero, 1, x))

    np.testing.assert_array_equal(gradient_of(safe_inverse, [np.asarray([0.0, 2.0])])[0], [0, -0.25])


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: c.less(P, P), DTypeError, "less: input must be of kind float or int or uint, got bool"),
        (lambda: c.logical_and(I, I), DTypeError, "logical_and: input must be of kind bool, got int32"),
        (lambda: c.logical_not(I), DTypeError, "logical_not: input must be of kind bool, got int32"),
        (lambda: c.is_nan(I), DTypeError, "is_nan: input must be of kind float, got int32"),
        (lambda: c.equal(X, I), DTypeError, "equal: inputs must have one dtype, got float64 and int32; cast first$"),
        (lambda: c.equal(X, Y[:, :2]), ShapeError, r"equal: shapes must broadcast, got \[2, 3\] and \[2, 2\]"),
        (lambda: c.select(I, X, Y), DTypeError, "select: predicate must be bool, got int32"),
        (lambda: c.select(P, 1, 2), ArgumentTypeError, "select: one of x and y must be a graph tensor or an array"),
        (lambda: c.select(CHOICE, X, I), DTypeError, "select: inputs must have one dtype"),
        (lambda: c.select(CHOICE, I, 0.5), DTypeError, r"select: a float does not fit beside int32"),
        (lambda: c.clamp(X, I, X), DTypeError, "clamp: inputs must have one dtype"),
    ],
)
def test_errors_say_what_came(build, error, message):
    with pytest.raises(error, match=f"^{message}"):
        build()


def test_a_number_beside_a_tensor_becomes_a_constant_of_its_dtype():
    x = Program().placeholder((2,), "float16")
    assert c.select(c.greater(x, 0), x, 1).dtype == "float16"
