"""The ops that only gradients use give in every library what they give in NumPy, where differences have proved them."""

from __future__ import annotations

import numpy as np
import pytest

from ops.generic_harness import LIBRARIES, as_library, integers, normal
from recurra import _arrays
from recurra._ir import apply
from recurra._op import UNKNOWN

G = normal(2, 3, 4).astype("float32")
LIKE = np.zeros((5, 3, 4), "float32")
ROWS = np.asarray([1, 1], "int32")
ALL = (None, None, None)

CASES = {
    "index: backwards and new axes": (
        "index_gradient",
        (G[None, :, ::-1, None], LIKE),
        {"key": [None, [3, 0, -2], ALL, None]},
    ),
    "index: integers": ("index_gradient", (G[0, 0], LIKE), {"key": [2, -1]}),
    "concat, second": ("concat_part", (G, LIKE[:1], LIKE[:1]), {"axis": 0}),
    "concat back": ("concat_part_gradient", (G, LIKE, LIKE[:1], LIKE[:2]), {"axis": -3}),
    "pad: constant": (
        "pad_gradient",
        (G, LIKE[:1, :, :2]),
        {"before": [1, 0, 2], "after": [0, 0, 0], "mode": "constant"},
    ),
    "pad: reflect": (
        "pad_gradient",
        (G, LIKE[:2, :2, :3]),
        {"before": [0, 1, 0], "after": [0, 0, 1], "mode": "reflect"},
    ),
    "tile": ("tile_gradient", (G, LIKE[:1, :, :2]), {"multiples": [2, 1, 2]}),
    "gather": ("gather_gradient", (G, ROWS, LIKE), {"axis": 0, "batch_dimensions": 0}),
    "gather: batch": (
        "gather_gradient",
        (G, integers(0, 5, 2, 3), np.zeros((2, 5, 4))),
        {"axis": 1, "batch_dimensions": 1},
    ),
    "gather_nd": ("gather_nd_gradient", (G[:, 0], np.asarray([[4, 2], [4, 2]]), LIKE), {"batch_dimensions": 0}),
    "gather_along_axis": ("gather_along_axis_gradient", (G, integers(0, 5, 2, 3, 4), LIKE), {"axis": 0}),
    "reshape": ("reshape_like", (G, np.zeros((6, 4))), {}),
}


@pytest.mark.parametrize("where", LIBRARIES)
@pytest.mark.parametrize("name", CASES)
def test_gradient_ops_agree_with_numpy(name, where):
    op, inputs, attrs = CASES[name]
    inputs = [x.astype("float32") if x.dtype == "float64" else x for x in inputs]
    expected = apply(op, *inputs, **attrs)
    found = apply(op, *[as_library(x, where) for x in inputs], **attrs)
    assert UNKNOWN not in found.shape
    np.testing.assert_allclose(_arrays.to_numpy(found), expected, rtol=1e-5, atol=1e-6)
