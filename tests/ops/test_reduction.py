"""Reductions along axes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ops.generic_harness import HALF_LIBRARIES, LIBRARIES, Case, as_library, gradient_of, integers, normal, op_tests
from recurra import _arrays
from recurra._errors import ArgumentTypeError, DTypeError, ShapeError
from recurra.ops.reduction import (
    argmax,
    argmin,
    mean,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    variance,
)

X = normal(2, 3, 4)
MEAN = normal(3, 1)
NOTHING = normal(0, 3)
I = integers(-9, 9, 2, 3, 4)
BYTES = integers(0, 255, 3, 4, dtype="uint8")
TRUTH = normal(2, 3, 4, seed=5) > -0.5
ZEROS = np.where(integers(0, 3, 2, 3, 4, seed=4) == 0, 0.0, X)  # some rows hold one zero, some several


def _prod(x: np.ndarray, axis: int) -> np.ndarray:
    rows = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
    kept = [1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)]
    return np.asarray([math.prod(r) for r in rows.tolist()], x.dtype).reshape(kept)


def _deviation(x: np.ndarray, axes: tuple[int, ...], centre: np.ndarray | None = None) -> np.ndarray:
    n = math.prod(x.shape[a] for a in axes)
    centre = x.sum(axes, keepdims=True) / n if centre is None else centre
    return ((x - centre) ** 2).sum(axes, keepdims=True) / n


CASES = [
    Case("reduce_sum: all", reduce_sum, (X,), lambda x: np.einsum("ijk->", x)[None, None, None]),
    Case("reduce_sum: one axis", lambda x: reduce_sum(x, 1), (X,), lambda x: np.einsum("ijk->ik", x)[:, None]),
    Case("reduce_sum: from the end", lambda x: reduce_sum(x, (-1, 0)), (X,), lambda x: x.sum((0, 2), keepdims=True)),
    Case("reduce_sum: dropped", lambda x: reduce_sum(x, [0, -1], keepdims=False), (X,), lambda x: x.sum((0, 2))),
    Case("reduce_sum: no axes", lambda x: reduce_sum(x, ()), (X,), lambda x: x),
    Case("reduce_sum: scalar", reduce_sum, (normal(),), lambda x: x),
    Case("reduce_sum: empty", lambda x: reduce_sum(x, 0), (normal(0, 3),), lambda x: np.zeros((1, 3), x.dtype)),
    Case("reduce_sum: integers", lambda x: reduce_sum(x, 1), (I,), lambda x: x.sum(1, keepdims=True, dtype=x.dtype)),
    Case("reduce_sum: bytes wrap", lambda x: reduce_sum(x, 1), (BYTES,), lambda x: x.sum(1, dtype="uint8")[:, None]),
    Case("reduce_max: all", reduce_max, (X,), lambda x: np.sort(x.reshape(-1))[-1:].reshape(1, 1, 1)),
    Case("reduce_max: axes", lambda x: reduce_max(x, (0, 2)), (X,), lambda x: x.max((0, 2), keepdims=True)),
    Case("reduce_max: dropped", lambda x: reduce_max(x, -1, keepdims=False), (X,), lambda x: np.sort(x)[..., -1]),
    Case("reduce_max: no axes", lambda x: reduce_max(x, ()), (X,), lambda x: x),
    Case("reduce_max: integers", lambda x: reduce_max(x, 0), (I,), lambda x: np.sort(x, 0)[-1:]),
    Case("reduce_min: axes", lambda x: reduce_min(x, (0, 2)), (X,), lambda x: -(-x).max((0, 2), keepdims=True)),
    Case("reduce_min: dropped", lambda x: reduce_min(x, 1, keepdims=False), (X,), lambda x: np.sort(x, 1)[:, 0]),
    Case("reduce_min: integers", lambda x: reduce_min(x, 0), (I,), lambda x: np.sort(x, 0)[:1]),
    Case("reduce_prod: one axis", lambda x: reduce_prod(x, 1), (X,), lambda x: _prod(x, 1)),
    Case("reduce_prod: all", reduce_prod, (X,), lambda x: _prod(x.reshape(-1), 0).reshape(1, 1, 1)),
    Case(
        "reduce_prod: dropped",
        lambda x: reduce_prod(x, (0, 2), keepdims=False),
        (X,),
        lambda x: _prod(_prod(x, 0), 2)[0, :, 0],
    ),
    Case("reduce_prod: zeros", lambda x: reduce_prod(x, -1), (ZEROS,), lambda x: _prod(x, -1)),
    Case("reduce_prod: zeros in two axes", lambda x: reduce_prod(x, (0, 2)), (ZEROS,), lambda x: _prod(_prod(x, 2), 0)),
    Case("reduce_prod: integers", lambda x: reduce_prod(x, 1), (I,), lambda x: _prod(x, 1)),
    Case("mean: all", mean, (X,), lambda x: np.asarray(math.fsum(x.reshape(-1)) / x.size, x.dtype).reshape(1, 1, 1)),
    Case("mean: axes", lambda x: mean(x, (0, -1)), (X,), lambda x: np.einsum("ijk->j", x).reshape(1, 3, 1) / 8),
    Case("mean: dropped", lambda x: mean(x, 1, keepdims=False), (X,), lambda x: np.einsum("ijk->ik", x) / 3),
    Case(
        "mean: of nothing is NaN",
        lambda x: mean(x, 0),
        (normal(0, 3),),
        lambda x: np.full((1, 3), np.nan, x.dtype),
        orders=0,
    ),
    Case("variance: all", variance, (X,), lambda x: _deviation(x, (0, 1, 2))),
    Case("variance: axes", lambda x: variance(x, (0, 2)), (X,), lambda x: _deviation(x, (0, 2))),
    Case("variance: dropped", lambda x: variance(x, 2, keepdims=False), (X,), lambda x: _deviation(x, (2,))[..., 0]),
    Case("variance: far from 0", lambda x: variance(x, 2), (X + 30,), lambda x: _deviation(x, (2,)), tolerance=64),
    Case(
        "variance: about a mean",
        lambda x, m: variance(x, (0, 2), m),
        (X, normal(3, 1)),
        lambda x, m: _deviation(x, (0, 2), m),
    ),
    Case("argmax", lambda x: argmax(x, 1), (X,), lambda x: np.argsort(x, 1)[:, -1:].astype("int32")),
    Case("argmax: from the end", lambda x: argmax(x, -1), (X,), lambda x: np.argsort(x)[..., -1:].astype("int32")),
    Case("argmax: integers", lambda x: argmax(x, 0), (I,), lambda x: (x[1:] > x[:1]).astype("int32")),
    Case("argmin", lambda x: argmin(x, 1), (X,), lambda x: np.argsort(x, 1)[:, :1].astype("int32")),
    Case("reduce_and", lambda x: reduce_and(x, 1), (TRUTH,), lambda x: x.sum(1, keepdims=True) == 3),
    Case("reduce_and: dropped", lambda x: reduce_and(x, (0, 1), keepdims=False), (TRUTH,), lambda x: x.min((0, 1))),
    Case("reduce_or", lambda x: reduce_or(x, 1), (~TRUTH,), lambda x: x.sum(1, keepdims=True) > 0),
    Case("reduce_or: all", reduce_or, (TRUTH,), lambda x: np.full((1, 1, 1), True)),
]

test_values, test_types, test_gradients, test_half_types = op_tests(CASES)


def test_equal_extremes_share_the_gradient():
    x = np.asarray([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    np.testing.assert_allclose(gradient_of(lambda x: reduce_max(x, 1), [x])[0], [[0, 0.5, 0.5], [1 / 3] * 3])
    np.testing.assert_allclose(gradient_of(lambda x: reduce_min(x, 1), [x])[0], [[1, 0, 0], [1 / 3] * 3])


@pytest.mark.parametrize("where", LIBRARIES)
def test_the_first_of_equal_elements_is_found(where):
    x = as_library(np.asarray([[1, 5, 5, 0, 0]], "float32"), where)
    assert _arrays.to_numpy(argmax(x, 1)).tolist() == [[1]]
    assert _arrays.to_numpy(argmin(x, 1)).tolist() == [[3]]


@pytest.mark.parametrize("where", HALF_LIBRARIES)
def test_half_types_add_up_in_float32(where):
    x = np.ones((5000,), "float16")
    x[0] = 4096  # 4096 + 1 is 4096 in float16
    array = as_library(x, where)
    assert float(_arrays.to_numpy(reduce_sum(array))[0]) == pytest.approx(9095, rel=1e-3)
    assert float(_arrays.to_numpy(mean(array))[0]) == pytest.approx(9095 / 5000, rel=1e-3)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: reduce_sum(TRUTH), DTypeError, "reduce_sum: input must be of kind float or int or uint, got bool"),
        (lambda: mean(I), DTypeError, "mean: input must be of kind float, got int32"),
        (lambda: reduce_and(X), DTypeError, "reduce_and: input must be of kind bool, got float64"),
        (lambda: reduce_sum(X, 3), ShapeError, r"reduce_sum: axis must lie in \[-3, 3\) for rank 3, got 3"),
        (lambda: reduce_sum(X, (0, -3)), ShapeError, r"reduce_sum: axes must be distinct, got \(0, -3\)"),
        (lambda: reduce_sum(X, 1.5), ArgumentTypeError, r"reduce_sum: axes must be integers, got 1\.5"),
        (lambda: reduce_sum(X, keepdims=1), ArgumentTypeError, "reduce_sum: keepdims must be True or False, got 1"),
        (
            lambda: reduce_max(normal(0, 3), 0),
            ShapeError,
            r"reduce_max: axes must hold at least one element, got shape \[0, 3\]",
        ),
        (
            lambda: argmax(normal(0, 3), 0),
            ShapeError,
            r"argmax: axes must hold at least one element, got shape \[0, 3\]",
        ),
        (lambda: argmin(X, 5), ShapeError, r"argmin: axis must lie in \[-3, 3\) for rank 3, got 5"),
        (lambda: argmax(X, None), ArgumentTypeError, "argmax: axis must be an integer, got None"),
        (
            lambda: variance(X, 0, normal(2, 2, 3, 4)),
            ShapeError,
            r"variance: mean must broadcast to the shape of the input, \[2, 3, 4\], got \[2, 2, 3, 4\]",
        ),
        (
            lambda: variance(X, 0, X.astype("float32")),
            DTypeError,
            "variance: mean must have the dtype of the input, float64, got float32",
        ),
    ],
)
def test_errors_say_what_came(build, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        build()
