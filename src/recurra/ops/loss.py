"""The loss of a classifier."""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import Any

from .._arrays import Array, Namespace
from .._errors import ArgumentError, ShapeError
from .._ir import apply
from .._op import Op, ShapedType, register
from . import _delegate, _shapes
from ._attributes import integer
from ._inference import FLOAT
from .elementwise import multiply, subtract
from .movement import expand_dims
from .neural import LOG_SOFTMAX, log_softmax, softmax
from .reduction import reduce_sum, spread
from .unary import negative

REDUCTIONS = ("none", "sum", "mean")


def softmax_cross_entropy(
    source: Any, labels: Any, axis: int = -1, reduction: str = "none", name: str | None = None
) -> Any:
    """-sum(labels * log(softmax(source))) along an axis, for logits of any size.

    Args:
        source: logits.
        labels: probabilities or weights of the classes, with the shape of `source`. A class whose label is 0 adds
            nothing, even if its logit is -inf.
        axis: the axis of the classes.
        reduction: `"none"` gives one loss per position of the other axes (the axis of the classes is gone), `"sum"`
            and `"mean"` that of all positions: a scalar of shape [].

    Raises:
        ShapeError: when the shapes differ or the axis is not one of them.
        DTypeError: when the dtypes differ, or are not float.
        ArgumentError: for another reduction.

    Example:
        >>> import numpy as np
        >>> softmax_cross_entropy(np.zeros((1, 2)), np.asarray([[0.0, 1.0]]))
        array([0.69314718])
    """
    return apply("softmax_cross_entropy", source, labels, **_attributes(axis, reduction), name=name)


def softmax_cross_entropy_gradient(
    g: Any, source: Any, labels: Any, axis: int = -1, reduction: str = "none", name: str | None = None
) -> Any:
    """The gradient of `source`: g (softmax(source) * sum(labels) - labels)."""
    attributes = _attributes(axis, reduction)
    labels_of_all = reduce_sum(labels, attributes["axis"])
    slope = subtract(multiply(softmax(source, attributes["axis"]), labels_of_all), labels)
    return multiply(_per_position(g, labels_of_all, **attributes), slope, name=name)


def _attributes(axis: Any, reduction: Any) -> dict[str, Any]:
    if reduction not in REDUCTIONS:
        raise ArgumentError(
            f"softmax_cross_entropy: reduction must be one of {', '.join(REDUCTIONS)}, got {reduction!r}"
        )
    return {"axis": integer("softmax_cross_entropy", "axis", axis), "reduction": reduction}


def _per_position(g: Any, like: Any, axis: int, reduction: str) -> Any:
    """What arrives at each position, to be multiplied with something that has the axis of the classes."""
    if reduction == "none":
        return expand_dims(g, axis)
    return spread(g, like, None, keepdims=False, average=True) if reduction == "mean" else g


def _infer(source: ShapedType, labels: ShapedType, axis: int, reduction: str) -> ShapedType:
    _shapes.same_dtype("softmax_cross_entropy", source, labels)
    _shapes.kind_of("softmax_cross_entropy", source, FLOAT)
    shape, other = source.shape, labels.shape
    if len(shape) != len(other) or any(a != b and -1 not in (a, b) for a, b in zip(shape, other, strict=True)):
        raise ShapeError(
            f"softmax_cross_entropy: labels must have the shape of source, {list(shape)}, got {list(other)}"
        )
    place = _shapes.axis_of("softmax_cross_entropy", axis, len(shape))
    agreed = tuple(max(a, b) for a, b in zip(shape, other, strict=True))
    return ShapedType.trusted((*agreed[:place], *agreed[place + 1 :]) if reduction == "none" else (), source.dtype)


def _reference(xp: Namespace, source: Array, labels: Array, axis: int, reduction: str) -> Array:
    def loss(x: Array, y: Array) -> Array:
        logs = LOG_SOFTMAX.reference(xp, x, axis=axis)
        terms = y * xp.where(y == 0, xp.zeros_like(logs), logs)
        if reduction == "none":
            return -xp.sum(terms, axis=axis)
        total = -xp.sum(terms)
        if reduction == "sum":
            return total
        count = math.prod(n for i, n in enumerate(x.shape) if i != axis % x.ndim)
        return total / count if count else total + math.nan

    return _delegate.in_float32(xp, loss, source, labels)


def _vjp(
    inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any], axis: int, reduction: str
) -> tuple[Any, Any]:
    source, labels = inputs
    g = cotangents[0]
    like = reduce_sum(labels, axis)
    dlabels = negative(multiply(_per_position(g, like, axis, reduction), log_softmax(source, axis)))
    return softmax_cross_entropy_gradient(g, source, labels, axis, reduction), dlabels


register(Op("softmax_cross_entropy", infer=_infer, reference=_reference, vjp=_vjp))
