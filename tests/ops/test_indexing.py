"""Reading and writing at indices."""

from __future__ import annotations

from itertools import product

import jax
import numpy as np
import pytest

from ops.generic_harness import HALF_LIBRARIES, LIBRARIES, Case, as_library, integers, normal, op_tests
from recurra import _arrays
from recurra._errors import ArgumentError, DTypeError, ShapeError
from recurra._ir import Program
from recurra._op import OPS, NoGradient
from recurra.ops import indexing as g, scattering as s

TABLE = normal(5, 3)
X = normal(2, 5, 3)
WORDS = np.asarray([4, 0, 4, 1], "int64")  # an index that comes twice
GRID = integers(0, 5, 2, 4)
NOTHING = np.zeros(0, "int32")
BATCHED = integers(0, 3, 2, 4, seed=3)
PAIRS = np.asarray([[1, 4], [0, 0], [1, 4]], "int32")
ALONG = integers(0, 5, 2, 2, 3)
ROWS = normal(4, 3, seed=5)
COMBINE = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "min": min,
    "max": max,
    "set": lambda a, b: b,
}
START = {"add": 0, "sub": 0, "mul": 1, "div": 1, "min": np.inf, "max": -np.inf, "set": 0}


def _gather(x, i, axis, batch=0):
    out = np.empty(x.shape[:axis] + i.shape[batch:] + x.shape[axis + 1 :], x.dtype)
    extra = i.ndim - batch
    for at in product(*map(range, out.shape)):
        source = i[at[:batch] + at[axis : axis + extra]]
        out[at] = x[(*at[:axis], source, *at[axis + extra :])]
    return out


def _gather_nd(x, i, batch=0):
    out = np.empty(i.shape[:-1] + x.shape[batch + i.shape[-1] :], x.dtype)
    for at in product(*map(range, i.shape[:-1])):
        out[at] = x[(*at[:batch], *i[at])]
    return out


def _along(x, i, axis):
    out = np.empty(i.shape, x.dtype)
    for at in product(*map(range, i.shape)):
        out[at] = x[(*at[:axis], i[at], *at[axis + 1 :])]
    return out


def _scatter(data, u, i, axis, mode):
    out = data.copy()
    for at in product(*map(range, u.shape)):
        place = (*at[:axis], i[at[axis : axis + i.ndim]], *at[axis + i.ndim :])
        out[place] = COMBINE[mode](out[place], u[at])
    return out


def _scatter_nd(data, u, i, batch, mode):
    out = data.copy()
    for at in product(*map(range, u.shape)):
        place = (*at[:batch], *i[at[: i.ndim - 1]], *at[i.ndim - 1 :])
        out[place] = COMBINE[mode](out[place], u[at])
    return out


def _scatter_along(data, u, i, axis, mode):
    out = data.copy()
    for at in product(*map(range, u.shape)):
        place = (*at[:axis], i[at], *at[axis + 1 :])
        out[place] = COMBINE[mode](out[place], u[at])
    return out


def _modes(make):
    """A case per mode. With "set" no index may come twice; div stays away from 0; four modes have no gradient."""
    return [make(mode, 2 if mode in ("add", "sub", "set") else 0) for mode in COMBINE]


ONCE = np.asarray([4, 0, 2, 1], "int32")
PAIRS_ONCE = np.asarray([[1, 4], [0, 0], [1, 2]], "int32")
ALONG_ONCE = np.asarray([[[4, 0, 1], [2, 1, 0]], [[3, 4, 0], [1, 2, 2]]], "int32")
UPDATES, UPDATES_ND, UPDATES_ALONG = (1.5 + np.abs(normal(*shape, seed=9)) for shape in ((2, 4, 3), (3, 3), (2, 2, 3)))

CASES = [
    Case("gather: embedding", g.gather, (TABLE, WORDS), lambda x, i: _gather(x, i, 0)),
    Case("gather: a grid of indices", g.gather, (TABLE, GRID), lambda x, i: _gather(x, i, 0)),
    Case("gather: one index", g.gather, (TABLE, np.asarray(3)), lambda x, i: x[3]),
    Case("gather: no index", g.gather, (TABLE, NOTHING), lambda x, i: x[:0], half=False),
    Case("gather: axis", lambda x, i: g.gather(x, i, -2), (X, GRID), lambda x, i: _gather(x, i, 1)),
    Case("gather: batch", lambda x, i: g.gather(x, i, 2, 1), (X, BATCHED), lambda x, i: _gather(x, i, 2, 1)),
    Case(
        "gather: batch beside axis", lambda x, i: g.gather(x, i, 1, 1), (X, BATCHED), lambda x, i: _gather(x, i, 1, 1)
    ),
    Case(
        "gather: whole batch",
        lambda x, i: g.gather(x, i, 2, 2),
        (X, integers(0, 3, 2, 5)),
        lambda x, i: _gather(x, i, 2, 2),
    ),
    Case("gather: integers", g.gather, (GRID, np.asarray([1, 1, 0])), lambda x, i: _gather(x, i, 0)),
    Case("gather_nd", g.gather_nd, (X, PAIRS), _gather_nd, dynamic=False),
    Case("gather_nd: elements", g.gather_nd, (X[0], PAIRS[:, ::-1] % 3), _gather_nd, dynamic=False),
    Case("gather_nd: rows", g.gather_nd, (X, PAIRS[:, None, :1]), _gather_nd, dynamic=False),
    Case(
        "gather_nd: batch",
        lambda x, i: g.gather_nd(x, i, 1),
        (X, integers(0, 3, 2, 4, 2)),
        lambda x, i: _gather_nd(x, i, 1),
        dynamic=False,
    ),
    Case("gather_along_axis", lambda x, i: g.gather_along_axis(x, i, 1), (X, ALONG), lambda x, i: _along(x, i, 1)),
    Case(
        "gather_along_axis: last",
        lambda x, i: g.gather_along_axis(x, i, -1),
        (X[0], integers(0, 3, 5, 7, dtype="int64")),
        lambda x, i: _along(x, i, 1),
    ),
    Case(
        "gather_along_axis: first",
        lambda x, i: g.gather_along_axis(x, i, 0),
        (X[0], integers(0, 5, 2, 3)),
        lambda x, i: _along(x, i, 0),
    ),
    Case(
        "scatter: repeated",
        lambda u, i: s.scatter(u, i, (6, 3)),
        (ROWS, WORDS),
        lambda u, i: _scatter(np.zeros((6, 3), u.dtype), u, i, 0, "add"),
    ),
    Case(
        "scatter: a grid of indices",
        lambda u, i: s.scatter(u, i, (5, -1)),
        (normal(2, 4, 3), GRID),
        lambda u, i: _scatter(np.zeros((5, 3), u.dtype), u, i, 0, "add"),
    ),
    Case(
        "scatter: integers",
        lambda u, i: s.scatter(u, i, (5,), mode="max"),
        (np.asarray([3, -2, 7, 0], "int32"), WORDS),
        lambda u, i: np.asarray([-2, 0, -(2**31), -(2**31), 7], "int32"),
    ),
    Case(
        "scatter: booleans",
        lambda u, i: s.scatter(u, i, (5,), mode="set"),
        (np.asarray([True, True, False]), np.asarray([1, 3, 0])),
        lambda u, i: np.asarray([False, True, False, True, False]),
    ),
    Case(
        "scatter_with_data: repeated",
        lambda d, u, i: s.scatter_with_data(d, u, i, 0, "sub"),
        (TABLE, ROWS, WORDS),
        lambda d, u, i: _scatter(d, u, i, 0, "sub"),
    ),
    Case(
        "scatter_nd: batch",
        lambda u, i: s.scatter_nd(u, i, (-1, 3, 4, -1), 1),
        (normal(2, 5, 2), integers(0, 3, 2, 5, 2)),
        lambda u, i: _scatter_nd(np.zeros((2, 3, 4, 2), u.dtype), u, i, 1, "add"),
        dynamic=False,
    ),
    Case(
        "scatter_along_axis: repeated",
        lambda u, i: s.scatter_along_axis(u, i, (-1, 5, -1), 1),
        (UPDATES_ALONG, ALONG),
        lambda u, i: _scatter_along(np.zeros((2, 5, 3), u.dtype), u, i, 1, "add"),
    ),
    *_modes(
        lambda mode, orders: Case(
            f"scatter: {mode}",
            lambda u, i: s.scatter(u, i, (2, 5, 3), 1, mode),
            (UPDATES, ONCE if mode == "set" else WORDS),
            lambda u, i: _scatter(np.full((2, 5, 3), START[mode], u.dtype), u, i, 1, mode),
            orders=orders,
        )
    ),
    *_modes(
        lambda mode, orders: Case(
            f"scatter_with_data: {mode}",
            lambda d, u, i: s.scatter_with_data(d, u, i, 1, mode),
            (X, UPDATES, ONCE if mode == "set" else WORDS),
            lambda d, u, i: _scatter(d, u, i, 1, mode),
            orders=orders,
        )
    ),
    *_modes(
        lambda mode, orders: Case(
            f"scatter_nd: {mode}",
            lambda u, i: s.scatter_nd(u, i, (2, 5, 3), mode=mode),
            (UPDATES_ND, PAIRS_ONCE if mode == "set" else PAIRS),
            lambda u, i: _scatter_nd(np.full((2, 5, 3), START[mode], u.dtype), u, i, 0, mode),
            orders=orders,
            dynamic=False,
        )
    ),
    *_modes(
        lambda mode, orders: Case(
            f"scatter_nd_with_data: {mode}",
            lambda d, u, i: s.scatter_nd_with_data(d, u, i, mode=mode),
            (X, UPDATES_ND, PAIRS_ONCE if mode == "set" else PAIRS),
            lambda d, u, i: _scatter_nd(d, u, i, 0, mode),
            orders=orders,
            dynamic=False,
        )
    ),
    *_modes(
        lambda mode, orders: Case(
            f"scatter_along_axis: {mode}",
            lambda u, i: s.scatter_along_axis(u, i, (2, 5, 3), 1, mode),
            (UPDATES_ALONG, ALONG_ONCE if mode == "set" else ALONG),
            lambda u, i: _scatter_along(np.full((2, 5, 3), START[mode], u.dtype), u, i, 1, mode),
            orders=orders,
        )
    ),
    *_modes(
        lambda mode, orders: Case(
            f"scatter_along_axis_with_data: {mode}",
            lambda d, u, i: s.scatter_along_axis_with_data(d, u, i, 1, mode),
            (X, UPDATES_ALONG, ALONG_ONCE if mode == "set" else ALONG),
            lambda d, u, i: _scatter_along(d, u, i, 1, mode),
            orders=orders,
        )
    ),
]
test_values_agree, test_types_are_inferred, test_gradients_agree, test_half_types_stay_close = op_tests(CASES)


@pytest.mark.parametrize("where", HALF_LIBRARIES)
def test_half_updates_are_summed_in_float32(where):
    updates, indices = np.ones((4096, 1), "float16"), np.zeros(4096, "int32")
    updates[0] = 2048  # 2048 + 1 is 2048 in float16
    summed = s.scatter(as_library(updates, where), as_library(indices, where), (1, 1))
    assert float(_arrays.to_numpy(summed)[0, 0]) == pytest.approx(6143, rel=1e-3)


def test_unsigned_updates_wrap_like_a_difference():
    updates = np.asarray([1, 3], "uint8")
    assert s.scatter(updates, np.asarray([0, 0]), (1,), mode="sub").tolist() == [252]


def test_read_only_data_is_not_written_to():
    data = np.zeros((3, 1))
    data.setflags(write=False)
    s.scatter_with_data(data, np.ones((1, 1)), np.asarray([1]))
    assert not data.any()


def test_gather_nd_and_scatter_nd_take_sizes_known_at_run_time():
    program = Program()
    x, i = program.placeholder((-1, 4, -1)), program.placeholder((-1, 2), "int32")
    assert g.gather_nd(x, i).shape == (-1, -1)
    u = program.placeholder((-1, 7))
    assert s.scatter_nd(u, i, (3, 4, -1)).shape == (3, 4, 7)
    assert s.scatter(u, program.placeholder((-1,), "int64"), (9, -1)).shape == (9, 7)


@pytest.mark.parametrize("where", LIBRARIES)
@pytest.mark.parametrize("bad", [-1, 5])
@pytest.mark.parametrize(
    ("compute", "shape", "message"),
    [
        (lambda x, i: g.gather(x, i), (3,), r"gather: indices must lie in \[0, 5\), got {}"),
        (lambda x, i: g.gather_nd(x, i), (2, 1), r"gather_nd: coordinate 0 of indices must lie in \[0, 5\), got {}"),
        (lambda x, i: g.gather_along_axis(x, i, 0), (2, 3), r"gather_along_axis: indices must lie in \[0, 5\), got {}"),
        (lambda x, i: s.scatter(x[:3, ...], i, (5, 3)), (3,), r"scatter: indices must lie in \[0, 5\), got {}"),
        (lambda x, i: s.scatter_with_data(x, x[:3, ...], i), (3,), r"scatter_with_data: indices must lie in .* got {}"),
        (
            lambda x, i: s.scatter_nd(x[:2, ...], i, (5, 3)),
            (2, 1),
            "scatter_nd: coordinate 0 of indices must lie in .* got {}",
        ),
        (
            lambda x, i: s.scatter_along_axis(x[:2, ...], i, (5, 3), 0),
            (2, 3),
            r"scatter_along_axis: indices must lie in \[0, 5\), got {}",
        ),
    ],
    ids=lambda value: value.partition(":")[0] if isinstance(value, str) else None,
)
def test_an_index_outside_is_refused(compute, shape, message, bad, where):
    indices = np.zeros(shape, "int32")
    indices[(-1,) * indices.ndim] = bad
    with pytest.raises(ArgumentError, match=message.format(bad)):
        compute(as_library(TABLE, where), as_library(indices, where))


def test_an_index_into_nothing_is_refused_and_no_index_is_fine():
    with pytest.raises(ArgumentError, match=r"gather: indices must lie in \[0, 0\), got 0"):
        g.gather(TABLE[:0], np.asarray([0]))
    assert g.gather(TABLE[:0], NOTHING).shape == (0, 3)


def test_indices_are_not_looked_at_under_a_tracer():
    rows = jax.jit(g.gather)(jax.numpy.asarray(TABLE), jax.numpy.asarray([1, 0]))
    np.testing.assert_allclose(np.asarray(rows), TABLE[[1, 0]], rtol=1e-6)


@pytest.mark.parametrize("mode", ["mul", "div", "min", "max"])
@pytest.mark.parametrize("name", ["scatter", "scatter_with_data"])
def test_modes_without_gradient_say_so(mode, name):
    inputs = [TABLE, ROWS, WORDS] if name.endswith("data") else [ROWS, WORDS]
    attrs = {} if name.endswith("data") else {"shape": (5, 3)}
    *found, of_indices = OPS[name].vjp(inputs, [TABLE], [TABLE], axis=0, mode=mode, **attrs)
    assert of_indices is None
    assert all(isinstance(f, NoGradient) and f.reason == f"mode {mode} has no gradient" for f in found)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda: g.gather(TABLE, WORDS.astype("int16")),
            DTypeError,
            "gather: indices must be int32 or int64, got int16",
        ),
        (lambda: g.gather(TABLE, ROWS), DTypeError, "gather: indices must be int32 or int64, got float64"),
        (lambda: g.gather(TABLE, WORDS, 2), ShapeError, r"gather: axis must lie in \[-2, 2\) for rank 2, got 2"),
        (lambda: g.gather(X, GRID, 0, 1), ShapeError, r"gather: batch_dimensions must lie in \[0, 0\] here, got 1"),
        (lambda: g.gather(X, GRID, 2, -1), ShapeError, r"gather: batch_dimensions must lie in \[0, 2\] here, got -1"),
        (
            lambda: g.gather(X, GRID[:1], 1, 1),
            ShapeError,
            "gather: the sizes of batch axis 0 must be equal, got 2 and 1",
        ),
        (
            lambda: g.gather_nd(X, np.asarray(1)),
            ShapeError,
            "gather_nd: indices must have rank 1 or more, got a scalar",
        ),
        (lambda: g.gather_nd(TABLE, ALONG), ShapeError, "last axis of indices must hold 1 to 2 coordinates, got 3"),
        (
            lambda: g.gather_nd(Program().placeholder((2, 3)), Program().placeholder((-1, -1), "int32")),
            Exception,
            "tensors of one graph",
        ),
        (lambda: g.gather_along_axis(X, GRID, 1), ShapeError, r"indices must have rank 3, got \[2, 4\]"),
        (lambda: g.gather_along_axis(TABLE, GRID, 0), ShapeError, "the sizes of axis 1 must be equal, got 3 and 4"),
        (
            lambda: s.scatter(ROWS, WORDS, (5, 4)),
            ShapeError,
            r"scatter: updates must have shape \[4, 4\], got \[4, 3\]",
        ),
        (
            lambda: s.scatter(ROWS, WORDS, (-1, 3)),
            ShapeError,
            r"shape must give the sizes that indices count, got \[-1, 3\]",
        ),
        (
            lambda: s.scatter(ROWS, WORDS, (5, -1, -1, -1)),
            ShapeError,
            "updates must have the sizes that shape leaves open",
        ),
        (lambda: s.scatter(ROWS, WORDS, (5, 3), mode="mean"), ArgumentError, "mode must be one of add, .* got 'mean'"),
        (
            lambda: s.scatter(GRID, GRID[0], (5, 4), mode="div"),
            DTypeError,
            "scatter with mode div: input must be of kind",
        ),
        (
            lambda: s.scatter(ROWS > 0, WORDS, (5, 3)),
            DTypeError,
            "scatter with mode add: input must be of kind .* got bool",
        ),
        (lambda: s.scatter_with_data(TABLE, GRID, WORDS), DTypeError, "scatter_with_data: inputs must have one dtype"),
        (
            lambda: s.scatter_nd(ROWS, PAIRS, (2, 5, 3)),
            ShapeError,
            r"scatter_nd: updates must have shape \[3, 3\], got \[4, 3\]",
        ),
        (
            lambda: s.scatter_nd(UPDATES_ND, PAIRS, (-1, 5, 3)),
            ShapeError,
            "shape must give the sizes that indices count",
        ),
        (
            lambda: s.scatter_along_axis(ROWS, GRID, (5, 3), 0),
            ShapeError,
            "the sizes of axis 1 must be equal, got 3 and 4",
        ),
    ],
)
def test_errors_say_what_came(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_the_number_of_coordinates_must_be_known():
    program = Program()
    x, i = program.placeholder((2, 3)), program.placeholder((-1, -1), "int32")
    with pytest.raises(ShapeError, match="must hold 1 to 2 coordinates, got a size that is not known"):
        g.gather_nd(x, i)
