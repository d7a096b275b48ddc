"""Order along an axis."""

from __future__ import annotations

import numpy as np
import pytest

from ops.generic_harness import LIBRARIES, Case, as_library, integers, normal, op_tests
from recurra import _arrays
from recurra._errors import DTypeError, ShapeError
from recurra._ir import Program
from recurra.ops import sorting as o

X = normal(3, 6)
TIES = np.asarray([[2.0, 1.0, 2.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
ODD = np.asarray([1.0, np.nan, -np.inf, np.inf, 0.5])
N = integers(0, 3, 4, 5)


def _order(row, descending):
    return sorted(range(len(row)), key=lambda k: -row[k] if descending else row[k])


def _argsort(x, axis, descending=False):
    return np.apply_along_axis(lambda row: np.asarray(_order(row, descending)), axis, x)


def _sorted(x, axis, descending=False):
    return np.apply_along_axis(lambda row: np.asarray(sorted(row, reverse=descending), row.dtype), axis, x)


CASES = [
    Case("sort", o.sort, (X,), lambda x: _sorted(x, -1)),
    Case("sort: descending, first axis", lambda x: o.sort(x, 0, True), (X,), lambda x: _sorted(x, 0, True)),
    Case("sort: integers", lambda x: o.sort(x, 0), (N,), lambda x: _sorted(x, 0)),
    Case("sort: NaN last", o.sort, (ODD,), lambda x: x[[2, 4, 0, 3, 1]], orders=0),
    Case("argsort", o.argsort, (X,), lambda x: _argsort(x, -1)),
    Case("argsort: ties", o.argsort, (TIES,), lambda x: _argsort(x, -1), orders=0),
    Case(
        "argsort: ties, descending", lambda x: o.argsort(x, 1, True), (TIES,), lambda x: _argsort(x, 1, True), orders=0
    ),
    Case("argsort: integers, first axis", lambda x: o.argsort(x, 0), (N,), lambda x: _argsort(x, 0)),
    Case(
        "top_k",
        lambda x: o.top_k(x, 2),
        (X,),
        lambda x: (_sorted(x, -1, True)[:, :2], _argsort(x, -1, True)[:, :2]),
    ),
    Case(
        "top_k: first axis",
        lambda x: o.top_k(x, 3, 0),
        (X,),
        lambda x: (_sorted(x, 0, True), _argsort(x, 0, True)),
    ),
    Case(
        "top_k: ties",
        lambda x: o.top_k(x, 3),
        (TIES,),
        lambda x: (_sorted(x, -1, True)[:, :3], np.asarray([[0, 2, 1], [0, 1, 2]])),
        orders=0,
    ),
    Case(
        "top_k: none", lambda x: o.top_k(x, 0), (X,), lambda x: (x[:, :0], np.zeros((3, 0), int)), half=False, orders=0
    ),
    Case("top_k: NaN first", lambda x: o.top_k(x, 2), (ODD,), lambda x: (x[[1, 3]], np.asarray([1, 3])), orders=0),
]
test_values_agree, test_types_are_inferred, test_gradients_agree, test_half_types_stay_close = op_tests(CASES)


@pytest.mark.parametrize("where", LIBRARIES)
def test_indices_are_int32(where):
    x = as_library(X.astype("float32"), where)
    assert _arrays.dtype_of(o.argsort(x)) == "int32"
    assert _arrays.dtype_of(o.top_k(x, 1)[1]) == "int32"


def test_outputs_of_top_k_have_names():
    values, indices = o.top_k(Program().placeholder((-1, 9)), 4, name="beam")
    assert (values.name, indices.name) == ("beam.values", "beam.indices")
    assert values.shape == indices.shape == (-1, 4)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: o.sort(X > 0), DTypeError, "sort: input must be of kind float or int or uint, got bool"),
        (lambda: o.sort(X, 2), ShapeError, r"sort: axis must lie in \[-2, 2\) for rank 2, got 2"),
        (lambda: o.argsort(X * 1j), DTypeError, "argsort: input must be of kind .* got complex128"),
        (lambda: o.top_k(X, 7), ShapeError, r"top_k: k must lie in \[0, 6\] of axis 1, got 7"),
        (
            lambda: o.top_k(Program().placeholder((-1,)), -1),
            ShapeError,
            r"top_k: k must lie in \[0, size\] of axis 0, got -1",
        ),
    ],
)
def test_errors_say_what_came(build, error, message):
    with pytest.raises(error, match=message):
        build()
