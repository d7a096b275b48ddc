"""Matrix products and attention."""

from __future__ import annotations

import numpy as np
import pytest

from ops.generic_harness import HALF_LIBRARIES, Case, as_library, integers, normal, op_tests
from recurra import _arrays
from recurra._autodiff import gradients
from recurra._errors import ArgumentTypeError, DTypeError, ShapeError
from recurra._ir import Program
from recurra.ops.matmul import matmul, sdpa

A, B, STACK, BLOCK = normal(2, 3), normal(3, 4), normal(5, 2, 3), normal(2, 1, 3, 4)
I, J = integers(-5, 6, 2, 3), integers(-5, 6, 3, 4)
Q, K, V = normal(2, 2, 3, 4, seed=1), normal(2, 2, 5, 4, seed=2), normal(2, 2, 5, 3, seed=3)
MASK = np.where(normal(3, 5, seed=4) > 1, -np.inf, normal(3, 5))


def _product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x[..., :, :, None] * y[..., None, :, :]).sum(-2, dtype=x.dtype)


def _attention(q, k, v, mask=0.0, scale=0.5):
    weights = np.exp(np.einsum("...if,...jf->...ij", q, k) * scale + mask)
    return np.einsum("...ij,...jv->...iv", weights / weights.sum(-1, keepdims=True), v)


CASES = [
    Case("matmul", matmul, (A, B), _product),
    Case("matmul: stack by matrix", matmul, (STACK, B), _product),
    Case("matmul: matrix by stack", matmul, (A, BLOCK), _product),
    Case("matmul: stacks broadcast", matmul, (STACK, BLOCK), _product),
    Case("matmul: row by column", matmul, (A[:1], B[:, :1]), _product),
    Case("matmul: by its own transpose", lambda x: matmul(x, x.T), (A,), lambda x: _product(x, x.T)),
    Case("matmul: integers", matmul, (I, J), _product),
    Case("matmul: nothing to add", matmul, (normal(2, 0), normal(0, 3)), lambda x, y: np.zeros((2, 3), x.dtype)),
    Case("matmul: no rows", matmul, (normal(0, 4, 3), B), lambda x, y: np.zeros((0, 4, 4), x.dtype)),
    Case("sdpa", lambda q, k, v: sdpa(q, k, v, scale=0.5), (Q, K, V), _attention),
    Case("sdpa: scale by size", sdpa, (Q, K, V), _attention, dynamic=False),
    Case("sdpa: mask", lambda q, k, v, m: sdpa(q, k, v, m, 0.5), (Q, K, V, normal(3, 5)), _attention),
    Case("sdpa: one key for all heads", lambda q, k, v: sdpa(q, k, v, scale=0.5), (Q, K[:, :1], V[:, :1]), _attention),
]

test_values, test_types, test_gradients, test_half_types = op_tests(CASES)


def test_minus_infinity_in_the_mask_hides_a_key():
    hidden = np.where(-np.inf == MASK, 0, 1)
    assert not hidden.all()
    assert hidden.any(-1).all()
    np.testing.assert_allclose(sdpa(Q, K, V, MASK), _attention(Q, K, V, MASK), rtol=1e-12)


@pytest.mark.parametrize("where", HALF_LIBRARIES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_accumulate_in_float32(where, dtype):
    x = np.ones((1, 4096), _arrays.native_dtype(_arrays.namespace(A), dtype))
    x[0, 0] = 4096  # 4096 + 1 is 4096 in either type
    y = np.ones((4096, 1), x.dtype)
    product = matmul(as_library(x, where), as_library(y, where))
    assert float(_arrays.to_numpy(product)[0, 0]) == pytest.approx(8191, rel=0.005)


def test_the_gradient_of_a_shared_matrix_is_one_product():
    program = Program()
    x, w = program.placeholder((None, None, 3)), program.placeholder((3, 4))
    y = matmul(x, w)
    dw = gradients(program, [y], [y], [w])[0]
    assert dw.shape == (3, 4)
    assert dw.op.kind.name == "matmul"
    assert all(len(t.shape) == 2 for t in dw.op.input_tensors)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda: matmul(A, normal(3)),
            ShapeError,
            r"matmul: both inputs must have rank 2 or more, got shapes \[2, 3\] and \[3\]; "
            r"reshape a vector to \[1, n\] or \[n, 1\]",
        ),
        (lambda: matmul(A, A), ShapeError, "matmul: the inner sizes must be equal, got 3 and 2"),
        (
            lambda: matmul(normal(2, 2, 3), normal(3, 3, 4)),
            ShapeError,
            r"matmul: shapes must broadcast, got \[2\] and \[3\]",
        ),
        (lambda: matmul(A, J), DTypeError, "matmul: inputs must have one dtype, got float64 and int32; cast first"),
        (lambda: matmul(A > 0, B > 0), DTypeError, "matmul: input must be of kind float or int or uint, got bool"),
        (
            lambda: sdpa(Q, V, V),
            ShapeError,
            "sdpa: the last sizes of query and key must be equal, got 4 and 3",
        ),
        (
            lambda: sdpa(Q, K, V[..., :4, :]),
            ShapeError,
            "sdpa: the numbers of keys and values must be equal, got 5 and 4",
        ),
        (lambda: sdpa(normal(3), K, V), ShapeError, r"sdpa: query must have rank 2 or more, got shape \[3\]"),
        (lambda: sdpa(Q, K, [1.0]), ArgumentTypeError, r"sdpa: value must be a graph tensor or an array, got \[1\.0\]"),
        (lambda: sdpa(Q, K, V, scale="a"), ArgumentTypeError, "sdpa: scale must be a number or None, got 'a'"),
        (
            lambda: sdpa(Q, K, V, MASK > 0),
            DTypeError,
            "sdpa: mask must have the dtype of the input, float64, got bool",
        ),
        (
            lambda: sdpa(Q, K, V, normal(3, 3, 5)),
            ShapeError,
            r"sdpa: shapes must broadcast, got \[3, 3, 5\] and \[2, 2, 3, 5\]",
        ),
        (
            lambda: sdpa(*[Program().placeholder((2, None))] * 3),
            ShapeError,
            "sdpa: scale must be given when the last size of query is unknown, got None",
        ),
    ],
)
def test_errors_say_what_came(build, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        build()
