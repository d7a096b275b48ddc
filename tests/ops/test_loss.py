"""Softmax cross entropy."""

from __future__ import annotations

import numpy as np
import pytest

from ops.generic_harness import HALF_LIBRARIES, Case, as_library, gradient_of, normal, op_tests, uniform
from recurra import _arrays
from recurra._errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from recurra.ops.loss import softmax_cross_entropy, softmax_cross_entropy_gradient

X, LABELS = normal(2, 4, 3), uniform(0.1, 1, 2, 4, 3)
HOT = np.eye(4)[[1, 3, 0]].T + np.zeros((2, 1, 1))  # one class each, along axis 1
LARGE = np.asarray([[1e4, -1e4, 0.0], [0.0, 1e4, 1e4]])


def _losses(x: np.ndarray, labels: np.ndarray, axis: int) -> np.ndarray:
    logs = x - np.log(np.exp(x).sum(axis, keepdims=True))
    return np.negative((labels * logs).sum(axis))


def _case(axis: int, reduction: str, labels: np.ndarray = LABELS, suffix: str = "") -> Case:
    reduce = {"none": lambda y: y, "sum": np.sum, "mean": np.mean}[reduction]
    return Case(
        f"axis {axis}, {reduction}{suffix}",
        lambda x, y: softmax_cross_entropy(x, y, axis, reduction),
        (X, labels),
        lambda x, y: reduce(_losses(x, y, axis)),
    )


def _gradient_case(reduction: str) -> Case:
    g = {"none": normal(2, 3)}.get(reduction, normal())

    def expected(g, x, labels):
        each = g[:, None] if reduction == "none" else g / (6 if reduction == "mean" else 1)
        powers = np.exp(x)
        softmax = powers / powers.sum(1, keepdims=True)
        return (each * (softmax * labels.sum(1, keepdims=True) - labels)).astype(x.dtype)

    return Case(
        f"gradient, {reduction}",
        lambda g, x, y: softmax_cross_entropy_gradient(g, x, y, 1, reduction),
        (g, X, LABELS),
        expected,
    )


CASES = [
    *[_case(axis, reduction) for axis in (1, -1) for reduction in ("none", "sum", "mean")],
    _case(1, "none", HOT, ", one class each"),
    *[_gradient_case(reduction) for reduction in ("none", "sum", "mean")],
    Case("default axis", softmax_cross_entropy, (X, LABELS), lambda x, y: _losses(x, y, 2)),
    Case(
        "large logits",
        softmax_cross_entropy,
        (LARGE, np.asarray([[0.0, 1, 0], [0, 1, 0]])),
        lambda x, y: np.asarray([2e4, np.log(2)], x.dtype),
    ),
    Case("no rows", softmax_cross_entropy, (normal(0, 3), normal(0, 3)), lambda x, y: x[:, 0]),
    Case(
        "no rows, mean",
        lambda x, y: softmax_cross_entropy(x, y, reduction="mean"),
        (normal(0, 3), normal(0, 3)),
        lambda x, y: np.asarray(np.nan, x.dtype),
        orders=0,
    ),
]

test_values, test_types, test_gradients, test_half_types = op_tests(CASES)


def test_a_class_that_is_ruled_out_adds_nothing():
    x, labels = np.asarray([[-np.inf, 0.0, 0.0]]), np.asarray([[0.0, 1.0, 0.0]])
    assert softmax_cross_entropy(x, labels) == pytest.approx(np.log(2))
    np.testing.assert_allclose(gradient_of(softmax_cross_entropy, [x, labels])[0], [[0, -0.5, 0.5]])


@pytest.mark.parametrize("where", HALF_LIBRARIES)
def test_half_losses_add_up_in_float32(where):
    x, labels = np.zeros((4000, 2), "float16"), np.zeros((4000, 2), "float16")
    labels[:, 0] = 1
    total = softmax_cross_entropy(as_library(x, where), as_library(labels, where), reduction="sum")
    assert float(_arrays.to_numpy(total)) == pytest.approx(4000 * np.log(2), rel=1e-3)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda: softmax_cross_entropy(X, LABELS[0]),
            ShapeError,
            r"softmax_cross_entropy: labels must have the shape of source, \[2, 4, 3\], got \[4, 3\]",
        ),
        (
            lambda: softmax_cross_entropy(X, LABELS, 3),
            ShapeError,
            r"softmax_cross_entropy: axis must lie in \[-3, 3\) for rank 3, got 3",
        ),
        (
            lambda: softmax_cross_entropy(X, LABELS, reduction="average"),
            ArgumentError,
            "softmax_cross_entropy: reduction must be one of none, sum, mean, got 'average'",
        ),
        (
            lambda: softmax_cross_entropy(X, LABELS, 1.5),
            ArgumentTypeError,
            r"softmax_cross_entropy: axis must be an integer, got 1\.5",
        ),
        (
            lambda: softmax_cross_entropy(X, LABELS > 0),
            DTypeError,
            "softmax_cross_entropy: inputs must have one dtype, got float64 and bool; cast first",
        ),
    ],
)
def test_errors_say_what_came(build, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        build()
