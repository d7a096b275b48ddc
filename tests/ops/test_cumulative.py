"""Running sums, products and extremes."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest

from ops.generic_harness import HALF_LIBRARIES, Case, as_library, gradient_of, integers, normal, op_tests
from recurra import _arrays
from recurra._errors import ArgumentTypeError, DTypeError, ShapeError
from recurra.ops.cumulative import cummax, cummin, cumprod, cumsum

X = normal(2, 4, 3)
I = integers(-5, 6, 2, 4, 3)
ZEROS = np.where(integers(0, 3, 2, 4, 3, seed=4) == 0, 0.0, X)
FUNCTIONS = {cumsum: (operator.add, 0), cumprod: (operator.mul, 1), cummax: (max, "lowest"), cummin: (min, "highest")}


def _start(start, dtype):
    if isinstance(start, int):
        return start
    limits = (-np.inf, np.inf) if dtype.kind in "fV" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return limits[start == "highest"]


def _plain(function, axis: int, exclusive: bool = False, reverse: bool = False):
    """The same by Python's accumulate, row by row."""
    step, start = FUNCTIONS[function]

    def row(values: np.ndarray) -> np.ndarray:
        given = values.tolist()[::-1] if reverse else values.tolist()
        if exclusive:
            given = [_start(start, values.dtype), *given[:-1]]
        running = list(itertools.accumulate(given, step))
        return np.asarray(running[::-1] if reverse else running, values.dtype)

    return lambda x: np.apply_along_axis(row, axis, x)


def _case(function, axis: int, x: np.ndarray, suffix: str = "", **options) -> Case:
    flags = "".join(f", {name}" for name in options)
    return Case(
        f"{function.__name__}: axis {axis}{flags}{suffix}",
        lambda x: function(x, axis, **options),
        (x,),
        _plain(function, axis, **options),
    )


OPTIONS = [{}, {"exclusive": True}, {"reverse": True}, {"exclusive": True, "reverse": True}]
CASES = [
    *[_case(f, 1, X, **o) for f, o in itertools.product((cumsum, cumprod), OPTIONS)],
    *[_case(f, 1, X, **o) for f, o in itertools.product((cummax, cummin), OPTIONS[::2])],
    *[_case(f, -1, X) for f in FUNCTIONS],
    *[_case(f, 0, I, ", integers", **o) for f, o in itertools.product(FUNCTIONS, OPTIONS[:2])],
    *[_case(cumprod, 1, ZEROS, ", zeros", **o) for o in OPTIONS],
    Case("cumsum: vector", lambda x: cumsum(x, 0), (normal(5),), _plain(cumsum, 0)),
    Case("cumprod: one element", lambda x: cumprod(x, 0), (normal(1),), lambda x: x),
    Case("cumsum: no steps", lambda x: cumsum(x, 0), (normal(0, 3),), lambda x: x),
    Case("cumsum: no steps, exclusive", lambda x: cumsum(x, 0, True), (normal(0, 3),), lambda x: x),
    Case("cumprod: no steps", lambda x: cumprod(x, 0), (normal(0, 3),), lambda x: x),
]

test_values, test_types, test_gradients, test_half_types = op_tests(CASES)


@pytest.mark.parametrize(("function", "reverse"), [(cummax, False), (cummin, True)])
def test_exclusive_extremes_start_with_infinity(function, reverse):
    expected = _plain(function, 1, exclusive=True, reverse=reverse)(X)
    np.testing.assert_array_equal(function(X, 1, True, reverse), expected)
    assert np.isinf(expected).sum() == 6


def test_the_gradient_of_an_extreme_goes_to_the_last_of_equal_ones():
    x = np.asarray([1.0, 3.0, 2.0, 3.0, 1.0])
    np.testing.assert_array_equal(gradient_of(lambda x: cummax(x, 0), [x])[0], [1, 2, 0, 2, 0])


@pytest.mark.parametrize("where", HALF_LIBRARIES)
def test_half_types_add_up_in_float32(where):
    x = np.ones((1000,), "float16")
    x[0] = 4096  # 4096 + 1 is 4096 in float16
    assert float(_arrays.to_numpy(cumsum(as_library(x, where), 0))[-1]) == pytest.approx(5095, rel=1e-3)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: cumsum(X, 3), ShapeError, r"cumsum: axis must lie in \[-3, 3\) for rank 3, got 3"),
        (lambda: cumsum(X, 1.0), ArgumentTypeError, r"cumsum: axis must be an integer, got 1\.0"),
        (lambda: cumprod(X, 0, 1), ArgumentTypeError, "cumprod: exclusive must be True or False, got 1"),
        (lambda: cummax(X, 0, False, None), ArgumentTypeError, "cummax: reverse must be True or False, got None"),
        (lambda: cummin(X > 0, 0), DTypeError, "cummin: input must be of kind float or int or uint, got bool"),
    ],
)
def test_errors_say_what_came(build, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        build()
