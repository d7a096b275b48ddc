"""Shapes and axes."""

from __future__ import annotations

import numpy as np
import pytest

from ops.generic_harness import NAMESPACES, Case, as_library, integers, normal, op_tests
from recurra import _arrays
from recurra._errors import ArgumentTypeError, DTypeError, ShapeError, UnsupportedError
from recurra._ir import Program, apply
from recurra.ops import movement as m

X = normal(2, 3, 4)
ROW = normal(1, 3, 1, seed=1)
N = integers(0, 9, 2, 3)
EMPTY = np.zeros((0, 3))
WHOLE = normal(2, 6)


def _loop_transpose(x):
    y = np.empty((4, 2, 3), x.dtype)
    for i, j, k in np.ndindex(*x.shape):
        y[k, i, j] = x[i, j, k]
    return y


CASES = [
    Case("reshape", lambda x: m.reshape(x, (4, 6)), (X,), lambda x: np.asarray([*x.flat]).reshape(4, 6)),
    Case("reshape: -1", lambda x: m.reshape(x, (-1, 4)), (X,), lambda x: np.asarray([*x.flat]).reshape(6, 4)),
    Case("reshape: one number", lambda x: m.reshape(x, -1), (N,), lambda x: np.asarray([*x.flat], x.dtype)),
    Case("reshape: empty", lambda x: m.reshape(x, (-1, 3, 1)), (EMPTY,), lambda x: x[:, :, None]),
    Case("reshape: to a scalar", lambda x: m.reshape(x, ()), (normal(1, 1),), lambda x: x[0, 0]),
    Case("reshape: shape in an array", lambda x: m.reshape(x, np.asarray([4, 6])), (X,), lambda x: x.reshape(4, 6)),
    Case("reshape_like", m.reshape_like, (X, WHOLE[:, :, None].repeat(2, 2)), lambda x, like: x.reshape(2, 6, 2)),
    Case("transpose", m.transpose, (X,), lambda x: x.T),
    Case("transpose: permutation", lambda x: m.transpose(x, (2, 0, 1)), (X,), _loop_transpose),
    Case("transpose: from the end", lambda x: m.transpose(x, [-1, 0, -2]), (X,), _loop_transpose),
    Case("swap_axes", lambda x: m.swap_axes(x, 0, -1), (X,), lambda x: x.swapaxes(0, 2)),
    Case("expand_dims", lambda x: m.expand_dims(x, 1), (X,), lambda x: x[:, None]),
    Case("expand_dims: several", lambda x: m.expand_dims(x, (-1, 0)), (X,), lambda x: x[None, ..., None]),
    Case("squeeze", m.squeeze, (ROW,), lambda x: x[0, :, 0], dynamic=False),
    Case("squeeze: axes", lambda x: m.squeeze(x, (-1,)), (ROW,), lambda x: x[..., 0]),
    Case("squeeze: two axes", lambda x: m.squeeze(x, (-1, 0)), (ROW,), lambda x: x[0, :, 0]),
    Case("flatten_2d", lambda x: m.flatten_2d(x, 1), (X,), lambda x: x.reshape(2, 12)),
    Case("flatten_2d: axis 0", lambda x: m.flatten_2d(x, 0), (X,), lambda x: x.reshape(1, 24)),
    Case("flatten_2d: behind the last", lambda x: m.flatten_2d(x, 3), (X,), lambda x: x.reshape(24, 1)),
    Case("flatten_2d: from the end", lambda x: m.flatten_2d(x, -1), (X,), lambda x: x.reshape(6, 4)),
    Case("broadcast", lambda x: m.broadcast(x, (2, 3, 4)), (ROW,), lambda x: np.tile(x, (2, 1, 4))),
    Case("broadcast: new axes", lambda x: m.broadcast(x, (5, -1, -1, 2)), (ROW,), lambda x: np.tile(x, (5, 1, 1, 2))),
    Case("broadcast: a scalar", lambda x: m.broadcast(x, (2, 3)), (normal(),), lambda x: np.full((2, 3), x)),
    Case("reverse", m.reverse, (X,), lambda x: x[::-1, ::-1, ::-1]),
    Case("reverse: axes", lambda x: m.reverse(x, (0, -1)), (X,), lambda x: x[::-1, :, ::-1]),
    Case("reverse: booleans", lambda x: m.reverse(x, 1), (N > 4,), lambda x: x[:, ::-1]),
]
test_values_agree, test_types_are_inferred, test_gradients_agree, test_half_types_stay_close = op_tests(CASES)


@pytest.mark.parametrize(
    ("given", "wanted", "shape"),
    [
        ((-1, -1, 8), (-1, 8), (-1, 8)),
        ((-1, 8), (4, 8), (4, 8)),
        ((2, 3), (-1,), (6,)),
        ((0, -1), (0, 5), (0, 5)),
        ((0, -1), (-1, 5), (0, 5)),
        ((0, 3), (-1, 7), (0, 7)),
    ],
)
def test_reshape_infers_what_can_be_known(given, wanted, shape):
    assert m.reshape(Program().placeholder(given), wanted).shape == shape


@pytest.mark.parametrize("where", ["numpy", *NAMESPACES])
def test_reshape_to_the_values_of_a_tensor(where):
    program = Program()
    x, shape = program.placeholder((-1, 4), "float64"), program.placeholder((3,), "int32")
    y = m.reshape(x, shape)
    assert y.shape == (-1, -1, -1)
    values, sizes = (
        as_library(normal(3, 4).astype("float32"), where),
        as_library(np.asarray([2, -1, 3], "int32"), where),
    )
    assert apply("reshape_to", values, sizes).shape == (2, 2, 3)
    (gradient, none) = y.op.kind.vjp((x, shape), (y,), (y,))
    assert none is None
    assert gradient.shape == (-1, 4)


def test_a_traced_shape_is_refused():
    import jax

    with pytest.raises(
        UnsupportedError, match="reshape: shape must have values that can be read, got one under a tracer"
    ):
        jax.jit(lambda x, s: m.reshape(x, s))(np.zeros(4, "float32"), np.asarray([2, 2], "int32"))


def test_views_share_memory_in_numpy():
    x = normal(2, 3, 1)
    for y in (m.reshape(x, (6,)), m.transpose(x), m.expand_dims(x, 0), m.squeeze(x), m.broadcast(x, (4, 2, 3, 1))):
        assert np.shares_memory(x, y)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda x: m.reshape(x, (5, -1)),
            ShapeError,
            "the number of elements must stay, got shape .5, -1. for .2, 3, 4.",
        ),
        (lambda x: m.reshape(x, (-1, -1)), ShapeError, "reshape: shape may hold one -1, got .-1, -1."),
        (lambda x: m.reshape(x, (0, -1)), ShapeError, "reshape: -1 cannot be inferred beside a size of 0, got .0, -1."),
        (lambda x: m.reshape(x, (2.5,)), ArgumentTypeError, "reshape: shape must hold integers, -1 or None, got 2.5"),
        (lambda x: m.reshape(x, np.zeros(2)), DTypeError, "reshape: shape must hold integers, got float64"),
        (
            lambda x: m.reshape(x, np.zeros((2, 2), int)),
            ShapeError,
            "shape must be of rank 1 with a known length, got .2, 2.",
        ),
        (lambda x: m.reshape_like(x, np.zeros((5, 5))), ShapeError, None),
        (lambda x: m.transpose(x, (0, 1)), ShapeError, "permutation must hold every axis of rank 3 once, got .0, 1."),
        (lambda x: m.transpose(x, (0, 1, 1)), ShapeError, "permutation must hold every axis of rank 3 once"),
        (lambda x: m.transpose(x, "abc"), ArgumentTypeError, "transpose: permutation must be integers, got 'abc'"),
        (lambda x: m.transpose(x, 1.5), ArgumentTypeError, "transpose: permutation must be integers, got 1.5"),
        (lambda x: m.swap_axes(x, 0, 3), ShapeError, "swap_axes: axis must lie in .-3, 3. for rank 3, got 3"),
        (lambda x: m.swap_axes(x, 0, True), ArgumentTypeError, "swap_axes: second must be an integer, got True"),
        (lambda x: m.expand_dims(x, 4), ShapeError, "expand_dims: axis must lie in .-4, 4. for rank 4, got 4"),
        (lambda x: m.expand_dims(x, (0, 0)), ShapeError, "expand_dims: axes must be distinct"),
        (lambda x: m.squeeze(x, 1), ShapeError, "squeeze: axis 1 must have size 1, got .2, 3, 4."),
        (lambda x: m.squeeze(Program().placeholder((1, -1))), ShapeError, "axes must be given when sizes are unknown"),
        (lambda x: m.squeeze("x"), ArgumentTypeError, "squeeze: inputs must be graph tensors or arrays, got 'x'"),
        (lambda x: m.flatten_2d(x, 4), ShapeError, "flatten_2d: axis must lie in .-3, 3. for rank 3, got 4"),
        (lambda x: m.broadcast(x, (2, 3, 5)), ShapeError, "shape .2, 3, 5. must be one that .2, 3, 4. broadcasts to"),
        (lambda x: m.broadcast(x, (3, 4)), ShapeError, "must be one that .2, 3, 4. broadcasts to"),
        (lambda x: m.broadcast(x, (-1, 2, 3, 4)), ShapeError, "must be one that .2, 3, 4. broadcasts to"),
        (lambda x: m.reverse(x, 3), ShapeError, "reverse: axis must lie in"),
    ],
)
def test_errors_say_what_came(build, error, message):
    with pytest.raises(error, match=message):
        build(X)


def test_a_run_time_size_that_cannot_fit_is_refused_at_once():
    with pytest.raises(ShapeError, match="the number of elements must stay"):
        m.reshape(Program().placeholder((-1, 8)), (3, 3))


def test_sizes_of_reshape_like_are_compared():
    with pytest.raises(ShapeError, match=r"reshape_like: the number of elements must stay, got \[5\] for \[2, 3, 4\]"):
        apply("reshape_like", X, np.zeros(5))


def test_lists_serve_as_tuples():
    assert _arrays.shape_of(m.reshape(X, [4, -1])) == (4, 6)
