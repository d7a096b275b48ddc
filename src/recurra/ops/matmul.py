"""Matrix products, and attention made of them."""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import Any

from .._errors import ArgumentTypeError, ShapeError
from .._ir import apply
from .._op import UNKNOWN, Op, ShapedType, register
from . import _delegate, _shapes
from ._inference import REAL, fits_into, given_type
from .elementwise import add, multiply, unbroadcast
from .movement import flatten_2d, swap_axes
from .neural import softmax


def matmul(x: Any, y: Any, name: str | None = None) -> Any:
    """The product of matrices, x [..., n, k] by y [..., k, m] to [..., n, m]; the leading axes broadcast.

    Half types accumulate in float32.

    Raises:
        DTypeError: when the dtypes differ, or are bool or complex.
        ShapeError: when an input has rank 0 or 1, the inner sizes differ, or the leading axes do not broadcast.

    Example:
        >>> import numpy as np
        >>> matmul(np.ones((5, 2, 3)), np.ones((3, 4))).shape
        (5, 2, 4)
    """
    return apply("matmul", x, y, name=name)


def sdpa(
    query: Any, key: Any, value: Any, mask: Any = None, scale: float | None = None, name: str | None = None
) -> Any:
    """Scaled dot-product attention: softmax(scale * query keyᵀ + mask) value.

    Args:
        query: [..., Tq, F].
        key: [..., Tk, F].
        value: [..., Tk, V]. The leading axes of the three broadcast.
        mask: added to the scores, broadcast to [..., Tq, Tk]: 0 where a key may be seen, -inf where it may not. A row
            that may see nothing is NaN.
        scale: 1 / sqrt(F) if None.

    Returns:
        [..., Tq, V].

    Raises:
        ShapeError: when a rank is below 2 or sizes do not agree.
        DTypeError: when the dtypes differ.
    """
    types = [given_type("sdpa", what, v) for what, v in (("query", query), ("key", key), ("value", value))]
    scores = _infer_scores(*types)
    if scale is None:
        features = types[0].shape[-1]
        if features == UNKNOWN:
            raise ShapeError("sdpa: scale must be given when the last size of query is unknown, got None")
        scale = 1 / math.sqrt(max(features, 1))
    elif isinstance(scale, bool) or not isinstance(scale, int | float):
        raise ArgumentTypeError(f"sdpa: scale must be a number or None, got {scale!r}")
    if mask is not None:
        fits_into("sdpa", "mask", given_type("sdpa", "mask", mask), scores)
    # The query is scaled rather than the scores: it is smaller, and keeps float16 from overflowing.
    weights = matmul(multiply(query, float(scale)), swap_axes(key, -2, -1))
    if mask is not None:
        weights = add(weights, mask)
    return matmul(softmax(weights, -1), value, name=name)


def _infer_scores(query: ShapedType, key: ShapedType, value: ShapedType) -> ShapedType:
    """The type of the scores [..., Tq, Tk], after a look at the three inputs."""
    _shapes.same_dtype("sdpa", query, key, value)
    for what, type_ in (("query", query), ("key", key), ("value", value)):
        if len(type_.shape) < 2:
            raise ShapeError(f"sdpa: {what} must have rank 2 or more, got shape {list(type_.shape)}")
    _shapes.agree("sdpa", query.shape[-1], key.shape[-1], "the last sizes of query and key")
    steps = _shapes.agree("sdpa", key.shape[-2], value.shape[-2], "the numbers of keys and values")
    leading = _shapes.broadcast("sdpa", query.shape[:-2], key.shape[:-2], value.shape[:-2])
    return ShapedType.trusted((*leading, query.shape[-2], steps), query.dtype)


def _infer(x: ShapedType, y: ShapedType) -> ShapedType:
    _shapes.same_dtype("matmul", x, y)
    _shapes.kind_of("matmul", x, REAL)
    if min(len(x.shape), len(y.shape)) < 2:
        raise ShapeError(
            f"matmul: both inputs must have rank 2 or more, got shapes {list(x.shape)} and {list(y.shape)}; "
            "reshape a vector to [1, n] or [n, 1]"
        )
    _shapes.agree("matmul", x.shape[-1], y.shape[-2], "the inner sizes")
    leading = _shapes.broadcast("matmul", x.shape[:-2], y.shape[:-2])
    return ShapedType.trusted((*leading, x.shape[-2], y.shape[-1]), x.dtype)


def _vjp(inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, Any]:
    x, y = inputs
    g = cotangents[0]
    dx = unbroadcast(matmul(g, swap_axes(y, -2, -1)), x)
    if len(y.shape) == 2 and len(x.shape) > 2:
        # One product over all rows: one per batch would need the memory of a whole y for each.
        return dx, matmul(swap_axes(flatten_2d(x, -1), 0, 1), flatten_2d(g, -1))
    return dx, unbroadcast(matmul(swap_axes(x, -2, -1), g), y)


register(Op("matmul", infer=_infer, reference=_delegate.matmul, vjp=_vjp))
