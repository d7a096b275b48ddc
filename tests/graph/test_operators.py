"""Operators and methods of tensors do what those of NumPy arrays do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import recurra

X = np.array([[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]])
Y = np.array([[2.0, 1.0, -3.0], [0.25, 4.0, 2.0]])

EXPRESSIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "add a number": lambda x, y: 1 + x + 2.5,
    "subtract": lambda x, y: x - y,
    "subtract from a number": lambda x, y: 1 - x,
    "subtract from an array": lambda x, y: Y - x,
    "multiply": lambda x, y: 3 * x * y * Y,
    "divide": lambda x, y: x / y,
    "divide a number": lambda x, y: 2 / x,
    "modulo": lambda x, y: x % y,
    "modulo of a number": lambda x, y: 7 % x,
    "power": lambda x, y: abs(x) ** y,
    "power of a number": lambda x, y: 2**x,
    "matmul": lambda x, y: x @ y.T,
    "matmul of an array": lambda x, y: Y @ x.T,
    "negative": lambda x, y: -x,
    "absolute": lambda x, y: abs(x),
    "less": lambda x, y: x < y,
    "less or equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > 0,
    "greater or equal": lambda x, y: x >= y,
    "and": lambda x, y: (x > 0) & (y > 0),
    "or": lambda x, y: (x > 0) | (y > 0),
    "xor": lambda x, y: (x > 0) ^ (y > 0),
    "not": lambda x, y: ~(x > 0),
    "row": lambda x, y: x[1],
    "last column": lambda x, y: x[..., -1],
    "slice": lambda x, y: x[:, 1:],
    "backwards": lambda x, y: x[:, ::-1],
    "new axis": lambda x, y: x[:, None, :],
    "transposed": lambda x, y: x.T,
    "transpose": lambda x, y: x.transpose((1, 0)),
    "reshape": lambda x, y: x.reshape(3, 2),
    "reshape to one axis": lambda x, y: x.reshape(-1),
    "reshape by tuple": lambda x, y: x.reshape((6, 1)),
    "squeeze": lambda x, y: x[:, None].squeeze(1),
    "cast": lambda x, y: x.astype("int32"),
    "sum": lambda x, y: x.sum(),
    "sum over an axis": lambda x, y: x.sum(1),
    "mean kept": lambda x, y: x.mean(0, keepdims=True),
    "max": lambda x, y: x.max(1),
    "min": lambda x, y: x.min(),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_of_tensors_is_the_expression_of_arrays(name: str) -> None:
    graph = recurra.Graph()
    x, y = graph.placeholder(X.shape, "float64"), graph.placeholder(Y.shape, "float64")
    made = EXPRESSIONS[name](x, y)
    wanted = np.asarray(EXPRESSIONS[name](X, Y))
    got = graph.run({x: X, y: Y}, made)
    assert made.shape == wanted.shape
    assert made.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, atol=1e-15)


def test_tensors_are_compared_by_identity_so_that_they_can_be_keys() -> None:
    graph = recurra.Graph()
    x, y = graph.placeholder([2]), graph.placeholder([2])
    assert x == x
    assert x != y
    assert {x: 1, y: 2}[y] == 2
    assert x != "x"
    assert x is not None
    assert x not in ("x", None, y)


def test_a_tensor_describes_itself() -> None:
    graph = recurra.Graph()
    x = graph.placeholder([None, 3], name="x")
    assert (x.shape, x.ndim, x.dtype, x.name, x.graph) == ((-1, 3), 2, "float32", "x", graph)
    assert x.dtype == np.float32
    assert repr(x) == "<Tensor x float32[-1, 3]>"
    y = x + x
    assert y.op.input_tensors == (x, x)
    assert y.op.output_tensors == (y,)
    assert y.op.control_dependencies == ()
