"""Dtypes by value and by bits, and ops about where elements are."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from ops.generic_harness import LIBRARIES, Case, as_library, integers, normal, op_tests
from recurra import _arrays
from recurra._errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, UnsupportedError
from recurra._ir import Program
from recurra.ops import casting as c, positions as p

X = normal(3, 4)
BATCH = normal(2, 3, 4)
N = integers(-3, 4, 2, 3)
SINGLE = normal(2, 3).astype("float32")


def _band(x, lower, upper):
    y = np.zeros_like(x)
    for i, j in np.ndindex(*x.shape[-2:]):
        if (lower < 0 or i - j <= lower) and (upper < 0 or j - i <= upper):
            y[..., i, j] = x[..., i, j]
    return y


def _banded(lower, upper, x=X):
    name = f"band_part: {lower}, {upper}, rank {x.ndim}"
    return Case(name, lambda x: p.band_part(x, lower, upper), (x,), lambda x: _band(x, lower, upper))


CASES = [
    Case("cast: to float32", lambda x: c.cast(x, "float32"), (N,), lambda x: x.astype("float32")),
    Case("cast: to integers", lambda x: c.cast(x, np.int32), (X,), lambda x: np.trunc(x).astype("int32"), orders=1),
    Case("cast: to bool", lambda x: c.cast(x, bool), (N,), lambda x: x != 0),
    Case("cast: bool to float", lambda x: c.cast(x, "float32"), (N > 0,), lambda x: 1 * (x > 0) * np.float32(1)),
    Case("cast: to itself", lambda x: c.cast(x, "int32"), (N,), lambda x: x),
    Case(
        "cast: there and back",
        lambda x: c.cast(c.cast(x * x, "float32"), "float64"),
        (np.asarray([0.5, 1.5]),),
        lambda x: x * x,
        orders=0,
        half=False,
        without=("jax",),
    ),
    Case("reinterpret_cast", lambda x: c.reinterpret_cast(x, "int32"), (SINGLE,), lambda x: x.view("int32")),
    Case(
        "reinterpret_cast: back", lambda x: c.reinterpret_cast(x, "float32"), (N * 0 + 5,), lambda x: x.view("float32")
    ),
    Case("shape_of", p.shape_of, (BATCH,), lambda x: np.asarray([2, 3, 4])),
    Case("shape_of: a scalar", p.shape_of, (normal(),), lambda x: np.zeros(0, int)),
    Case(
        "coordinate_along_axis",
        lambda x: p.coordinate_along_axis(-2, like=x),
        (BATCH,),
        lambda x: np.fromfunction(lambda i, j, k: j, (2, 3, 4), dtype=int),
    ),
    _banded(0, 0),
    _banded(-1, 0),
    _banded(1, -1),
    _banded(2, 1, BATCH),
    _banded(-1, -1),
    _banded(0, 1, N),
    Case("one_hot", lambda i: p.one_hot(i, 4), (N,), lambda i: (i[..., None] == range(4)).astype("float32")),
    Case(
        "one_hot: axis and values",
        lambda i: p.one_hot(i, 3, axis=1, dtype="int32", on_value=7, off_value=-1),
        (N,),
        lambda i: np.where(np.asarray([i == d for d in range(3)]).transpose(1, 0, 2), 7, -1),
    ),
    Case("one_hot: bool", lambda i: p.one_hot(i, 3, 0, bool), (N,), lambda i: np.asarray([i == d for d in range(3)])),
    Case("one_hot: of nothing", lambda i: p.one_hot(i, 0), (N,), lambda i: np.zeros((2, 3, 0), "float32")),
]
test_values_agree, test_types_are_inferred, test_gradients_agree, test_half_types_stay_close = op_tests(CASES)


def test_a_cast_to_a_narrower_float_is_silent_and_its_gradient_is_cast_back():
    x = np.asarray([1e300, np.nan, 2.0])
    assert c.cast(x, "float16")[0] == np.inf
    assert c.cast(x, "int32")[2] == 2
    program = Program()
    t = program.placeholder((2,), "float16")
    wide = c.cast(t, "float32")
    assert wide.op.kind.vjp((t,), (wide,), (wide,), dtype="float32")[0].dtype == "float16"


@pytest.mark.parametrize("where", LIBRARIES)
def test_non_zero_indices(where):
    x = np.asarray([[0.0, 2.0, 0.0], [np.nan, 0.0, -1.0]], "float32")
    found = p.non_zero_indices(as_library(x, where))
    assert _arrays.dtype_of(found) == "int32"
    assert _arrays.to_numpy(found).tolist() == [[0, 1], [1, 0], [1, 2]]


def test_how_many_are_non_zero_is_unknown():
    assert p.non_zero_indices(Program().placeholder((2, 3))).shape == (-1, 2)


def test_non_zero_indices_are_refused_under_a_tracer():
    with pytest.raises(UnsupportedError, match="non_zero_indices: input must have values that can be read"):
        jax.jit(p.non_zero_indices)(np.zeros(3, "float32"))


def test_coordinates_of_a_shape():
    assert p.coordinate_along_axis(0, shape=(2, 2)).tolist() == [[0, 0], [1, 1]]
    tensor = p.coordinate_along_axis(0, shape=(2, 2), graph=Program())
    assert (tensor.shape, tensor.dtype) == ((2, 2), "int32")


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: c.cast(X, "float8"), DTypeError, "dtype: must be one of"),
        (
            lambda: c.cast(X * 1j, "float32"),
            DTypeError,
            "cast: complex numbers stay complex, got complex128 to float32",
        ),
        (lambda: c.reinterpret_cast(X, "int32"), DTypeError, "dtypes must have one size, got float64 and int32"),
        (lambda: c.reinterpret_cast(N > 0, "int8"), DTypeError, "dtypes must be integers or floats, got bool"),
        (lambda: p.band_part(X[0], 0, 0), ShapeError, r"band_part: input must have rank 2 or more, got \[4\]"),
        (lambda: p.non_zero_indices(X[0, 0].reshape(())), ShapeError, "input must have rank 1 or more, got a scalar"),
        (lambda: p.one_hot(X, 3), DTypeError, "one_hot: indices must be int32 or int64, got float64"),
        (lambda: p.one_hot(N, -1), ArgumentError, "one_hot: depth must be 0 or more, got -1"),
        (
            lambda: p.one_hot(N, 2, dtype="int32", on_value=0.5),
            DTypeError,
            "a float does not fit beside int32, got 0.5",
        ),
        (lambda: p.one_hot(N, 2, axis=3), ShapeError, "one_hot: axis must lie in"),
        (
            lambda: p.coordinate_along_axis(0),
            ArgumentTypeError,
            "one of shape and like must be given, got both or none",
        ),
        (
            lambda: p.coordinate_along_axis(0, shape=(-1, 2)),
            ShapeError,
            r"shape must be known, got \[-1, 2\]; give like",
        ),
        (lambda: p.coordinate_along_axis(2, like=X), ShapeError, "coordinate_along_axis: axis must lie in"),
    ],
)
def test_errors_say_what_came(build, error, message):
    with pytest.raises(error, match=message):
        build()
