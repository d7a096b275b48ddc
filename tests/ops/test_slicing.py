"""Parts of a tensor."""

from __future__ import annotations

import numpy as np
import pytest

from ops.generic_harness import Case, integers, normal, op_tests
from recurra._errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from recurra._ir import Program
from recurra.ops import slicing as s

X = normal(4, 5, 3)
N = integers(0, 99, 6)
PART = normal(2, 2, 3, seed=1)


def _put(x, update, key):
    y = x.copy()
    y[key] = update
    return y


def _keyed(name, key, x=X):
    return Case(f"index: {name}", lambda x, key=key: s.index(x, key), (x,), lambda x, key=key: x[key])


CASES = [
    Case("slice_axis", lambda x: s.slice_axis(x, 1, 1, 3), (X,), lambda x: x[:, 1:4]),
    Case("slice_axis: from the end", lambda x: s.slice_axis(x, -1, -2, 2), (X,), lambda x: x[:, :, 1:]),
    Case("slice_axis: before the end", lambda x: s.slice_axis(x, 0, -3, 2), (X,), lambda x: x[1:3]),
    Case("slice_axis: nothing", lambda x: s.slice_axis(x, 0, 4, 0), (X,), lambda x: x[:0], half=False),
    Case("slice_axis: nothing, from the end", lambda x: s.slice_axis(x, 0, -1, 0), (X,), lambda x: x[:0], half=False),
    Case("slice", lambda x: s.slice(x, (1, 0, -2), (3, -1, 3)), (X,), lambda x: x[1:3, 0:4, 1:3]),
    Case("slice: strides", lambda x: s.slice(x, (0, 1, 0), (4, 5, 3), (2, 3, 1)), (X,), lambda x: x[::2, 1::3]),
    Case("slice: open", lambda x: s.slice(x, [None, -3, 1], [2, None, None]), (X,), lambda x: x[:2, 2:, 1:]),
    Case("slice: integers", lambda x: s.slice(x, [1], [6], [2]), (N,), lambda x: x[1:6:2]),
    Case(
        "slice_update",
        lambda x, u: s.slice_update(x, u, (1, 0, 0), (3, 4, 3), (1, 2, 1)),
        (X, PART),
        lambda x, u: _put(x, u, np.s_[1:3, 0:4:2]),
    ),
    Case(
        "slice_update: from the end",
        lambda x, u: s.slice_update(x, u, (-2, -2, None), (None, None, None)),
        (X, PART),
        lambda x, u: _put(x, u, np.s_[-2:, -2:]),
    ),
    _keyed("an integer", 2),
    _keyed("from the end", -1),
    _keyed("integers", (1, -2, 0)),
    _keyed("all", np.s_[:]),
    _keyed("nothing", ()),
    _keyed("slices", np.s_[1:3, ::2]),
    _keyed("beyond the ends", np.s_[-9:2, 3:99, 5:]),
    _keyed("backwards", np.s_[::-1]),
    _keyed("backwards in steps", np.s_[3:0:-2, ..., ::-2]),
    _keyed("backwards, nothing", np.s_[0:3:-1]),
    _keyed("ellipsis", np.s_[..., 1]),
    _keyed("ellipsis in the middle", np.s_[0, ..., 1:]),
    _keyed("ellipsis for nothing", np.s_[0, 1, 2, ...]),
    _keyed("new axes", np.s_[None, 1, :, None]),
    _keyed("new axes and backwards", np.s_[1, None, ::-1, ..., None, ::-1]),
    _keyed("of integers", np.s_[4:1:-1], N),
    _keyed("a scalar", np.s_[None], normal()),
    _keyed("NumPy integer", np.int64(1)),
]
test_values_agree, test_types_are_inferred, test_gradients_agree, test_half_types_stay_close = op_tests(CASES)


def test_tensors_take_python_keys():
    x = Program().placeholder((4, -1, 3))
    assert x[1].shape == (-1, 3)
    assert x[..., None, -1].shape == (4, -1, 1)
    assert x[1:, 2:].shape == (3, -1, 3)


@pytest.mark.parametrize(
    ("start", "end", "size"), [(0, 5, 5), (-5, -1, 4), (-3, None, 3), (1, None, -1), (1, -1, -1), (None, 2, 2)]
)
def test_a_strict_slice_infers_what_can_be_known(start, end, size):
    assert s.slice(Program().placeholder((-1,)), [start], [end]).shape == (size,)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda x: s.slice_axis(x, 1, 3, 3),
            ShapeError,
            r"slice_axis: length must lie in \[0, 2\] from start 3 on, got 3",
        ),
        (lambda x: s.slice_axis(x, 1, -2, 3), ShapeError, r"length must lie in \[0, 2\] from start -2 on, got 3"),
        (
            lambda x: s.slice_axis(x, 1, -6, 1),
            ShapeError,
            r"slice_axis: start must lie in \[-5, 5\] for size 5, got -6",
        ),
        (lambda x: s.slice_axis(x, 1, 0, -1), ShapeError, r"slice_axis: length must lie in \[0, 5\]"),
        (lambda x: s.slice_axis(x, 3, 0, 1), ShapeError, "slice_axis: axis must lie in"),
        (lambda x: s.slice_axis(x, 0, 0.5, 1), ArgumentTypeError, "slice_axis: start must be an integer, got 0.5"),
        (lambda x: s.take_range(x, 0, 0, 1, 9), ShapeError, "slice_axis: axis 0 must have size 9, got 4"),
        (
            lambda x: s.slice(x, (0, 0, 0), (5, 5, 3)),
            ShapeError,
            r"slice: ends must lie in \[-4, 4\] for size 4, got 5",
        ),
        (
            lambda x: s.slice(x, (0, 6, 0), (4, 5, 3)),
            ShapeError,
            r"slice: starts must lie in \[-5, 5\] for size 5, got 6",
        ),
        (lambda x: s.slice(x, (3, 0, 0), (1, 5, 3)), ShapeError, "slice: ends must not lie before starts, got 3 and 1"),
        (
            lambda x: s.slice(x, (0, 0), (1, 1)),
            ShapeError,
            r"slice: starts must have one entry for each of 3 axes, got \[0, 0\]",
        ),
        (
            lambda x: s.slice(x, (0,) * 3, (1,) * 3, (1, 1)),
            ShapeError,
            "slice: strides must have one entry for each of 3",
        ),
        (
            lambda x: s.slice(x, (0,) * 3, (1,) * 3, (1, 1, 0)),
            ArgumentError,
            r"strides must be 1 or more, got \[1, 1, 0\]",
        ),
        (lambda x: s.slice(x, 0, 1), ArgumentTypeError, "slice: starts must be a list or a tuple, got 0"),
        (
            lambda x: s.slice_update(x, PART, (0,) * 3, (1,) * 3),
            ShapeError,
            r"of the part, \[1, 1, 1\], got \[2, 2, 3\]",
        ),
        (lambda x: s.slice_update(x, N, (0,) * 3, (1,) * 3), DTypeError, "slice_update: inputs must have one dtype"),
        (lambda x: s.index(x, 4), ShapeError, r"index: 4 must lie in \[-4, 4\) for axis 0 of \[4, 5, 3\]"),
        (lambda x: s.index(x, (0, 0, 0, 0)), ShapeError, "index: key must have at most 3 entries for rank 3, got 4"),
        (lambda x: s.index(x, (..., ...)), ArgumentError, "index: key may hold one ellipsis, got 2"),
        (lambda x: s.index(x, np.s_[::0]), ArgumentError, "index: the step of a slice must not be 0"),
        (
            lambda x: s.index(x, np.s_[:1.5]),
            ArgumentTypeError,
            "index: the bounds of a slice must be an integer, got 1.5",
        ),
        (lambda x: s.index(x, 1.5), ArgumentTypeError, "index: key must hold integers, slices, ... or None, got 1.5"),
        (lambda x: s.index(x, N), ArgumentTypeError, "got a ndarray; use gather to index with a tensor"),
        (lambda x: s.index(x, [0, 1]), ArgumentTypeError, "got a list; use gather"),
        (lambda x: s.index(x, True), ArgumentTypeError, "index: key must hold .* got True"),
    ],
)
def test_errors_say_what_came(build, error, message):
    with pytest.raises(error, match=message):
        build(X)


def test_a_tensor_as_key_points_to_gather():
    program = Program()
    x, i = program.placeholder((4, 3)), program.placeholder((), "int32")
    with pytest.raises(ArgumentTypeError, match="got a Tensor; use gather to index with a tensor"):
        x[i]


@pytest.mark.parametrize(("start", "end"), [(-1, -3), (4, 2)])
def test_a_strict_slice_of_unknown_size_is_checked_where_it_can_be(start, end):
    with pytest.raises(ShapeError, match="ends must not lie before starts"):
        s.slice(Program().placeholder((-1,)), [start], [end])


def test_a_length_that_no_size_allows_is_refused():
    with pytest.raises(ShapeError, match=r"length must lie in \[0, 2\] from start -2 on, got 3"):
        s.slice_axis(Program().placeholder((-1,)), 0, -2, 3)
