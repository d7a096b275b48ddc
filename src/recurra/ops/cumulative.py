"""Running sums, products and extremes, and the linear recurrence that gives their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import math
from typing import Any

import numpy as np

from .. import _arrays
from .._arrays import Array, Namespace
from .._errors import ArgumentTypeError
from .._ir import apply
from .._op import Op, ShapedType, register
from . import _delegate, _shapes, _writes
from ._attributes import integer
from ._inference import REAL, same_type
from .comparison import greater_equal, less_equal, logical_not, ones_like
from .elementwise import multiply, where_true


def cumsum(x: Any, axis: int, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Any:
    """The running sum along an axis: y[t] = x[0] + … + x[t]. Half types add up in float32.

    With `exclusive` element t itself is left out, so that y[0] is 0; with `reverse` it runs from the end.

    Raises:
        ShapeError: when the axis is not one of x.

    Example:
        >>> import numpy as np
        >>> cumsum(np.asarray([1, 2, 3]), 0, exclusive=True)
        array([0, 1, 3])
    """
    return _cumulate("cumsum", x, axis, exclusive, reverse, "zero", name)


def cumprod(x: Any, axis: int, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Any:
    """The running product; with `exclusive` it starts with 1. Its gradients are right beside zeros too."""
    return _cumulate("cumprod", x, axis, exclusive, reverse, "one", name)


def cummax(x: Any, axis: int, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Any:
    """The largest so far; with `exclusive` it starts with -inf, or the least integer. NaN stays once it came.

    The gradient goes to the last of equal elements.
    """
    return _cumulate("cummax", x, axis, exclusive, reverse, "lowest", name)


def cummin(x: Any, axis: int, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Any:
    """The smallest so far; with `exclusive` it starts with inf, or the largest integer. NaN stays once it came."""
    return _cumulate("cummin", x, axis, exclusive, reverse, "highest", name)


def _cumulate(op: str, x: Any, axis: Any, exclusive: Any, reverse: Any, start: str, name: str | None) -> Any:
    for what, flag in (("exclusive", exclusive), ("reverse", reverse)):
        if not isinstance(flag, bool):
            raise ArgumentTypeError(f"{op}: {what} must be True or False, got {flag!r}")
    axis = integer(op, "axis", axis)
    if not exclusive:
        return apply(op, x, axis=axis, reverse=reverse, name=name)
    running = apply(op, x, axis=axis, reverse=reverse)
    return apply("shift", running, axis=axis, offset=-1 if reverse else 1, fill=start, name=name)


def _shift(x: Any, axis: int, offset: int, fill: str = "zero") -> Any:
    return apply("shift", x, axis=axis, offset=offset, fill=fill)


def _linear_scan(a: Any, b: Any, axis: int, reverse: bool) -> Any:
    """y[t] = a[t] y[t-1] + b[t] along an axis, from the end if reverse."""
    return apply("linear_scan", a, b, axis=axis, reverse=reverse)


def _infer(op: str) -> Callable[..., ShapedType]:
    infer_type = same_type(op, REAL)

    def infer(*types: ShapedType, axis: int, **_: Any) -> ShapedType:
        _shapes.axis_of(op, axis, len(types[0].shape))
        return infer_type(*types)

    return infer


# --- values ---


def _running(function: Callable[[Namespace, Array, int], Array]) -> Callable[..., Array]:
    def reference(xp: Namespace, x: Array, axis: int, reverse: bool) -> Array:
        if reverse:
            return xp.flip(function(xp, xp.flip(x, axis=axis), axis), axis=axis)
        return function(xp, x, axis)

    return reference


def _sums(xp: Namespace, x: Array, axis: int) -> Array:
    return _delegate.in_float32(xp, lambda a: xp.cumulative_sum(a, axis=axis, dtype=a.dtype), x)


def _products(xp: Namespace, x: Array, axis: int) -> Array:
    return _delegate.in_float32(xp, lambda a: xp.cumulative_prod(a, axis=axis, dtype=a.dtype), x)


def _shifted(xp: Namespace, x: Array, axis: int, offset: int, fill: str) -> Array:
    axis %= x.ndim
    if x.shape[axis] == 0:
        return x
    before = (slice(None),) * axis
    edge = _writes.full(xp, (*x.shape[:axis], 1, *x.shape[axis + 1 :]), _start(x, fill), x)
    if offset > 0:
        return xp.concat([edge, x[(*before, slice(None, -1), ...)]], axis=axis)
    return xp.concat([x[(*before, slice(1, None), ...)], edge], axis=axis)


def _start(x: Array, fill: str) -> Any:
    dtype = _arrays.dtype_of(x)
    if fill == "lowest":
        return -math.inf if dtype.is_float else int(np.iinfo(dtype.numpy).min)
    if fill == "highest":
        return math.inf if dtype.is_float else int(np.iinfo(dtype.numpy).max)
    return 1 if fill == "one" else 0


def _scanned(xp: Namespace, a: Array, b: Array, axis: int, reverse: bool) -> Array:
    def step(carry: tuple[Array], a_t: Array, b_t: Array) -> tuple[tuple[Array], tuple[Array]]:
        y = a_t * carry[0] + b_t
        return (y,), (y,)

    def scan(a: Array, b: Array) -> Array:
        a, b = xp.moveaxis(a, axis, 0), xp.moveaxis(b, axis, 0)
        zero = _arrays.zeros(xp, b.shape[1:], b)
        _, (y,) = _arrays.scan(xp, step, (zero,), (a, b), length=b.shape[0], reverse=reverse, like=(zero,))
        return xp.moveaxis(y, 0, axis)

    return _delegate.in_float32(xp, scan, a, b)


# --- gradients ---


def _sums_vjp(inputs: Any, outputs: Any, g: Any, axis: int, reverse: bool) -> tuple[Any]:
    return (cumsum(g[0], axis, reverse=not reverse),)


def _products_vjp(inputs: Any, outputs: Any, g: Any, axis: int, reverse: bool) -> tuple[Any]:
    # dx[k] = y[k-1] S[k] with S[k] = g[k] + x[k+1] S[k+1]: no division, so zeros do no harm.
    step = -1 if reverse else 1
    behind = _linear_scan(_shift(inputs[0], axis, -step), g[0], axis, not reverse)
    return (multiply(_shift(outputs[0], axis, step, "one"), behind),)


def _extremes_vjp(reaches: Callable[..., Any], start: str) -> Callable[..., tuple[Any]]:
    def vjp(inputs: Any, outputs: Any, g: Any, axis: int, reverse: bool) -> tuple[Any]:
        # A record gets what arrives from there up to the next one.
        step = -1 if reverse else 1
        record = reaches(inputs[0], _shift(outputs[0], axis, step, start))
        goes_on = where_true(logical_not(record), ones_like(g[0]))
        return (where_true(record, _linear_scan(_shift(goes_on, axis, -step), g[0], axis, not reverse)),)

    return vjp


def _shift_vjp(inputs: Any, outputs: Any, g: Any, axis: int, offset: int, fill: str) -> tuple[Any]:
    return (_shift(g[0], axis, -offset),)


def _scan_vjp(inputs: Sequence[Any], outputs: Any, g: Any, axis: int, reverse: bool) -> tuple[Any, Any]:
    step = -1 if reverse else 1
    db = _linear_scan(_shift(inputs[0], axis, -step), g[0], axis, not reverse)
    return multiply(db, _shift(outputs[0], axis, step)), db


register(Op("cumsum", _infer("cumsum"), _running(_sums), _sums_vjp))
register(Op("cumprod", _infer("cumprod"), _running(_products), _products_vjp))
register(
    Op(
        "cummax",
        _infer("cummax"),
        _running(lambda xp, x, axis: _delegate.cumulative_extreme(xp, "cummax", x, axis)),
        _extremes_vjp(greater_equal, "lowest"),
    )
)
register(
    Op(
        "cummin",
        _infer("cummin"),
        _running(lambda xp, x, axis: _delegate.cumulative_extreme(xp, "cummin", x, axis)),
        _extremes_vjp(less_equal, "highest"),
    )
)
register(Op("shift", _infer("shift"), _shifted, _shift_vjp))
register(Op("linear_scan", _infer("linear_scan"), _scanned, _scan_vjp))
