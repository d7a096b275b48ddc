"""Several tensors made one, one made several, and padding and tiling."""

from __future__ import annotations

import numpy as np
import pytest

from ops.generic_harness import HALF_LIBRARIES, Case, as_library, integers, normal, op_tests
from recurra import _arrays
from recurra._errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from recurra._ir import Program, apply
from recurra.ops import joining as j, padding as p

A, B, C = normal(2, 3, seed=1), normal(2, 1, seed=2), normal(2, 2, seed=3)
D, E = normal(2, 3, seed=4), normal(2, 3, seed=5)
X = normal(4, 5)
N = integers(0, 9, 2, 3)
EDGES = {"reflect": "reflect", "symmetric": "symmetric", "clamp": "edge"}

CASES = [
    Case(
        "concat",
        lambda *t: j.concat(t, -1),
        (A, B, C),
        lambda a, b, c: np.asarray([[*x, *y, *z] for x, y, z in zip(a, b, c, strict=True)]),
    ),
    Case("concat: one", lambda a: j.concat([a], 0), (A,), lambda a: a),
    Case("concat: with nothing", lambda a, b: j.concat([b, a], 0), (A, A[:0]), lambda a, b: a),
    Case("concat: twice the same", lambda a: j.concat([a, a], 0), (A,), lambda a: np.asarray([*a, *a])),
    Case("stack", lambda *t: j.stack(t), (A, D, E), lambda *t: np.asarray(t)),
    Case("stack: last", lambda *t: j.stack(t, -1), (A, D, E), lambda *t: np.asarray(t).transpose(1, 2, 0)),
    Case("stack: integers", lambda a: j.stack([a, a], 1), (N,), lambda a: np.asarray([[x, x] for x in a])),
    Case("split: sizes", lambda x: j.split(x, [1, 0, 4], 1), (X,), lambda x: (x[:, :1], x[:, 1:1], x[:, 1:])),
    Case("split: count", lambda x: j.split(x, 2), (X,), lambda x: (x[:2], x[2:]), dynamic=False),
    Case("unstack", lambda x: j.unstack(x, -1), (A,), lambda x: (x[:, 0], x[:, 1], x[:, 2]), dynamic=False),
    Case(
        "pad",
        lambda x: p.pad(x, (1, 0), (0, 2), value=2.5),
        (X,),
        lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=2.5),
    ),
    Case("pad: integers", lambda x: p.pad(x, (0, 2), (1, 0)), (N,), lambda x: np.pad(x, ((0, 1), (2, 0)))),
    Case("pad: nothing", lambda x: p.pad(x, (0, 0), (0, 0)), (X,), lambda x: x),
    *[
        Case(
            f"pad: {mode}",
            lambda x, mode=mode: p.pad(x, (3, 2), (1, 4), mode),
            (X,),
            lambda x, plain=plain: np.pad(x, ((3, 1), (2, 4)), mode=plain),
        )
        for mode, plain in EDGES.items()
    ],
    Case(
        "pad: clamp far",
        lambda x: p.pad(x, (9, 0), (9, 0), "clamp"),
        (X,),
        lambda x: np.pad(x, ((9, 9), (0, 0)), "edge"),
    ),
    Case("tile", lambda x: p.tile(x, (2, 3)), (A,), lambda x: np.concatenate([np.concatenate([x] * 3, 1)] * 2)),
    Case("tile: nothing", lambda x: p.tile(x, (1, 0)), (A,), lambda x: x[:, :0], half=False),
    Case("tile: integers", lambda x: p.tile(x, (1, 2)), (N,), lambda x: np.concatenate([x, x], 1)),
]
test_values_agree, test_types_are_inferred, test_gradients_agree, test_half_types_stay_close = op_tests(CASES)


def test_gradients_of_concat_need_no_known_sizes():
    program = Program()
    parts = [program.placeholder((2, -1)) for _ in range(3)]
    y = j.concat(parts, 1)
    kinds = [g.op.kind.name for g in y.op.kind.vjp(parts, (y,), (y,), axis=1)]
    assert kinds == ["concat_part"] * 3
    known = [program.placeholder((-1, n)) for n in (1, 2)]
    y = j.concat(known, 1)
    assert [g.shape for g in y.op.kind.vjp(known, (y,), (y,), axis=1)] == [(-1, 1), (-1, 2)]


def test_sizes_of_a_split_are_compared_when_they_become_known():
    x = Program().placeholder((-1, 2))
    first, second = j.split(x, [2, 3])
    assert (first.shape, second.shape) == ((2, 2), (3, 2))
    with pytest.raises(ShapeError, match="slice_axis: axis 0 must have size 5, got 6"):
        apply("slice_axis", np.zeros((6, 2)), **first.op.attrs)


def test_parts_are_named_after_the_whole():
    x = Program().placeholder((4, 2))
    assert [t.name for t in j.split(x, 2, name="gates")] == ["gates.0", "gates.1"]
    assert [t.name for t in j.unstack(x, 1, name="columns")] == ["columns.0", "columns.1"]


@pytest.mark.parametrize("where", HALF_LIBRARIES)
def test_half_gradients_of_tile_are_summed_in_float32(where):
    g, like = np.ones(4096, "float16"), np.zeros(1, "float16")
    g[0] = 2048  # 2048 + 1 is 2048 in float16
    summed = apply("tile_gradient", as_library(g, where), as_library(like, where), multiples=(4096,))
    assert float(_arrays.to_numpy(summed)[0]) == pytest.approx(6143, rel=1e-3)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: j.concat([], 0), ArgumentTypeError, "concat: tensors must hold at least one, got none"),
        (lambda: j.concat(A, 0), ArgumentTypeError, "concat: tensors must be a list or a tuple, got ndarray"),
        (lambda: j.concat([A, N], 0), DTypeError, "concat: inputs must have one dtype, got float64.* and int32"),
        (lambda: j.concat([A, B], 0), ShapeError, "concat: the sizes of axis 1 must be equal, got 3 and 1"),
        (lambda: j.concat([A, A[0]], 0), ShapeError, r"concat: tensors must have one rank, got \[2, 3\] and \[3\]"),
        (lambda: j.concat([A, A], 2), ShapeError, r"concat: axis must lie in \[-2, 2\) for rank 2, got 2"),
        (lambda: j.stack([A, B]), ShapeError, "stack: the sizes of axis 1 must be equal, got 3 and 1"),
        (lambda: j.stack([A, A[0]]), ShapeError, r"stack: tensors must have one shape, got \[2, 3\] and \[3\]"),
        (lambda: j.stack([A], 3), ShapeError, "stack: axis must lie in"),
        (lambda: j.split(X, [1, 2]), ShapeError, r"split: sizes must add up to 4, the size of axis 0, got \[1, 2\]"),
        (lambda: j.split(X, [5, -1]), ArgumentError, r"split: sizes must be 0 or more, got \[5, -1\]"),
        (lambda: j.split(X, 0), ArgumentError, "split: count must be 1 or more, got 0"),
        (lambda: j.split(X, 3), ShapeError, "split: the size of axis 0 must be a multiple of the count 3, got 4"),
        (
            lambda: j.split(Program().placeholder((-1,)), 3),
            ShapeError,
            "axis 0 must have a known size for 3 equal parts",
        ),
        (lambda: j.unstack(Program().placeholder((-1,))), ShapeError, "unstack: axis 0 must have a known size"),
        (lambda: p.pad(X, (1,), (1, 1)), ShapeError, "paddings_before must have one entry for each of 2 axes, got .1."),
        (lambda: p.pad(X, (1, 1), (1, -1)), ArgumentError, "pad: paddings_after must be 0 or more, got .1, -1."),
        (lambda: p.pad(X, (1, 1), (1, 1), "wrap"), ArgumentError, "pad: mode must be one of constant, .* got 'wrap'"),
        (lambda: p.pad(N, (1, 1), (1, 1), value=0.5), DTypeError, "pad: a float does not fit beside int32, got 0.5"),
        (lambda: p.pad(N, (1, 1), (1, 1), value="x"), ArgumentTypeError, "pad: value must be a number, got 'x'"),
        (
            lambda: p.pad(X, (4, 0), (0, 0), "reflect"),
            ShapeError,
            "mode reflect can add at most 3 to axis 0 of size 4, got 4",
        ),
        (lambda: p.pad(X, (0, 0), (0, 6), "symmetric"), ShapeError, "can add at most 5 to axis 1 of size 5, got 6"),
        (lambda: p.pad(X[:0], (1, 0), (0, 0), "clamp"), ShapeError, "can add at most 0 to axis 0 of size 0, got 1"),
        (lambda: p.tile(X, (2,)), ShapeError, r"tile: multiples must have one entry for each of 2 axes, got \[2\]"),
        (lambda: p.tile(X, (2, -1)), ArgumentError, r"tile: multiples must be 0 or more, got \[2, -1\]"),
    ],
)
def test_errors_say_what_came(build, error, message):
    with pytest.raises(error, match=message):
        build()
