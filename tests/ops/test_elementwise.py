"""Arithmetic of two tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ops.generic_harness import HALF_LIBRARIES, Case, as_library, gradient_of, integers, normal, op_tests, uniform
from recurra import _arrays
from recurra._errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from recurra._ir import Program
from recurra.ops.elementwise import (
    add,
    atan2,
    divide,
    divide_no_nan,
    floor_mod,
    maximum,
    maximum_nan,
    minimum,
    minimum_nan,
    mod,
    multiply,
    power,
    subtract,
    unbroadcast,
)

A, B = normal(2, 3, seed=1), normal(2, 3, seed=2)
ROW, COLUMN = normal(3, seed=3), normal(4, 1, seed=4)
FAR = uniform(0.5, 2, 2, 3)
I, J = integers(-9, 9, 2, 3, seed=1), integers(1, 5, 3, seed=2)
NAN, INF = np.nan, np.inf
WITH_NAN = np.asarray([NAN, 1.0, NAN, 3.0]), np.asarray([2.0, NAN, NAN, -INF])
WITH_ZERO = np.asarray([2.0, 0.0, -1.0, 0.0]), np.asarray([0.0, 0.0, 4.0, -0.0])


def _values(*numbers: float):
    """An expected result that the inputs decide only the dtype of."""
    return lambda x, y: np.asarray(numbers, x.dtype)


def _mod(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x - y * np.trunc(x / y)


def _floor_mod(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x - y * np.floor(x / y)


# half=False with NaN: the comparisons of NumPy's bfloat16 warn about it.
CASES = [
    Case("add", add, (A, B), lambda x, y: np.add(x, y)),
    Case("add: row and column", add, (ROW, COLUMN), lambda x, y: x[None] + y),
    Case("add: scalar array", add, (A, normal()), lambda x, y: np.asarray([[v + y for v in row] for row in x])),
    Case("add: number", lambda x: add(x, 2), (A,), lambda x: x + 2),
    Case("add: integers", add, (I, J), lambda x, y: x + y),
    Case("add: empty", add, (normal(0, 3), ROW), lambda x, y: np.zeros((0, 3), x.dtype)),
    Case("subtract", subtract, (A, ROW), lambda x, y: x + -y),
    Case("subtract: from number", lambda x: subtract(1, x), (A,), lambda x: 1 - x),
    Case("subtract: integers", subtract, (J, I), lambda x, y: x + -y),
    Case("multiply", multiply, (A, ROW), lambda x, y: np.einsum("ij,j->ij", x, y)),
    Case("multiply: with itself", lambda x: multiply(x, x), (A,), np.square),
    Case("multiply: integers", multiply, (I, J), lambda x, y: x * y),
    Case("divide", divide, (A, FAR), lambda x, y: x * y**-1.0),
    Case("divide: number", lambda x: divide(1, x), (FAR,), np.reciprocal),
    Case("divide_no_nan", divide_no_nan, (A, FAR), lambda x, y: x / y),
    Case("divide_no_nan: zeros", divide_no_nan, WITH_ZERO, _values(0, 0, -0.25, 0), orders=0),
    Case("mod", mod, (5 * A, FAR), _mod),
    Case("mod: broadcast", mod, (A, COLUMN[:2]), _mod),
    Case("mod: integers", mod, (I, J), lambda x, y: (np.sign(x) * (np.abs(x) % y)).astype(x.dtype)),
    Case("floor_mod", floor_mod, (5 * A, FAR), _floor_mod),
    Case("floor_mod: negative divisor", floor_mod, (5 * A, -FAR), _floor_mod),
    Case("floor_mod: integers", floor_mod, (I, -J), lambda x, y: (x - y * np.floor(x / y)).astype(x.dtype)),
    Case("power", power, (FAR, A), lambda x, y: np.exp(y * np.log(x))),
    Case("power: broadcast", power, (FAR, ROW), lambda x, y: np.exp(y * np.log(x))),
    Case("power: square", lambda x: power(x, 2), (A,), np.square),
    Case("power: integers", power, (I, J), lambda x, y: np.power(x, y)),
    Case("power: negative base", lambda x: power(x, 3.0), (A,), lambda x: x * x * x),
    Case("maximum", maximum, (A, ROW), lambda x, y: np.where(x > y, x, y)),
    Case(
        "maximum: passes over NaN",
        maximum,
        WITH_NAN,
        _values(2, 1, NAN, 3),
        orders=0,
        half=False,
    ),
    Case("maximum: integers", maximum, (I, J), lambda x, y: np.where(x > y, x, y)),
    Case("minimum", minimum, (A, ROW), lambda x, y: np.where(x < y, x, y)),
    Case(
        "minimum: passes over NaN",
        minimum,
        WITH_NAN,
        _values(2, 1, NAN, -INF),
        orders=0,
        half=False,
    ),
    Case("minimum: integers", minimum, (I, J), lambda x, y: np.where(x < y, x, y)),
    Case("maximum_nan", maximum_nan, (A, ROW), lambda x, y: np.where(x > y, x, y)),
    Case(
        "maximum_nan: keeps NaN",
        maximum_nan,
        WITH_NAN,
        _values(NAN, NAN, NAN, 3),
        orders=0,
        half=False,
    ),
    Case("minimum_nan", minimum_nan, (A, ROW), lambda x, y: np.where(x < y, x, y)),
    Case(
        "minimum_nan: keeps NaN",
        minimum_nan,
        WITH_NAN,
        _values(NAN, NAN, NAN, -INF),
        orders=0,
        half=False,
    ),
    Case("atan2", atan2, (A, B), lambda y, x: np.angle(x + 1j * y).astype(y.dtype)),
    Case("atan2: axes", atan2, (np.asarray([0.0, 1, 0]), np.asarray([-1.0, 0, 1])), np.arctan2, orders=0),
    Case(
        "sum_to_shape_of: all kinds of axes",
        lambda g, like: unbroadcast(g, like),
        (normal(4, 2, 3), normal(2, 1)),
        lambda g, like: g.sum((0, 2))[:, None],
    ),
    Case("sum_to_shape_of: scalar", unbroadcast, (A, normal()), lambda g, like: g.sum()),
    Case("sum_to_shape_of: nothing to sum", unbroadcast, (A, B), lambda g, like: g),
]

test_values, test_types, test_gradients, test_half_types = op_tests(CASES)


@pytest.mark.parametrize(
    ("compute", "inputs", "expected"),
    [
        (divide_no_nan, WITH_ZERO, ([0, 0, 0.25, 0], [0, 0, 1 / 16, 0])),
        (atan2, ([0.0, 1.0], [0.0, 0.0]), ([0, 0], [0, -1])),
        (power, ([0.0, 0.0, -2.0], [0.0, 2.0, 3.0]), ([0, 0, 12], [0, 0, 0])),
        (maximum, ([1.0, NAN, 2.0], [1.0, 5.0, NAN]), ([1, 0, 1], [0, 1, 0])),
        (minimum, ([1.0, NAN, 2.0], [1.0, 5.0, NAN]), ([1, 0, 1], [0, 1, 0])),
        (maximum_nan, ([1.0, 3.0], [1.0, 5.0]), ([1, 0], [0, 1])),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_gradients_at_the_edges_of_definition(compute, inputs, expected):
    found = gradient_of(compute, [np.asarray(x) for x in inputs])
    for gradient, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(gradient, wanted)


def test_a_gradient_of_equal_shape_is_not_summed():
    program = Program()
    g, like = program.placeholder((2, 3)), program.placeholder((2, 3))
    assert unbroadcast(g, like) is g
    assert unbroadcast(g, program.placeholder((-1, 3))).op.kind.name == "sum_to_shape_of"


@pytest.mark.parametrize("where", HALF_LIBRARIES)
def test_half_gradients_are_summed_in_float32(where):
    g, like = np.full((4096, 1), 1, "float16"), np.zeros((1, 1), "float16")
    g[0] = 2048  # 2048 + 1 is 2048 in float16
    summed = unbroadcast(as_library(g, where), as_library(like, where))
    assert float(_arrays.to_numpy(summed)[0, 0]) == pytest.approx(6143, rel=1e-3)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda: add(np.zeros(2, "float32"), np.zeros(2)),
            DTypeError,
            "add: inputs must have one dtype, got float32 and float64; cast first",
        ),
        (
            lambda: add(np.zeros(2, bool), np.zeros(2, bool)),
            DTypeError,
            "add: input must be of kind float or int or uint, got bool",
        ),
        (lambda: divide(I, I), DTypeError, "divide: input must be of kind float, got int32"),
        (
            lambda: multiply(np.zeros((2, 3)), np.zeros((3, 2))),
            ShapeError,
            r"multiply: shapes must broadcast, got \[2, 3\] and \[3, 2\]",
        ),
        (
            lambda: add(1, 2),
            ArgumentTypeError,
            "add: inputs must be graph tensors or arrays, got 1",
        ),
        (lambda: power(I, 0.5), DTypeError, "power: a float does not fit beside int32, got 0.5; cast first"),
        (lambda: power(I, -2), ArgumentError, "power: y must be 0 or more where both are integers, got -2"),
        (lambda: mod(I, 0), ArgumentError, "mod: y must not be 0 where both are integers, got 0"),
        (lambda: floor_mod(I, 0), ArgumentError, "floor_mod: y must not be 0 where both are integers, got 0"),
        (
            lambda: floor_mod(torch.ones(2, dtype=torch.int64), torch.tensor([1, 0])),
            ArgumentError,
            "floor_mod: y must not be 0 where both are integers, got 0",
        ),
    ],
)
def test_errors_say_what_came(build, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        build()
