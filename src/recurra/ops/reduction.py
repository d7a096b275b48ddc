"""Sums, means and extremes along axes. The axes are kept with size 1, as MPSGraph does, unless `keepdims=False`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import math
from typing import Any

from .._arrays import Array, Namespace, cast
from .._dtypes import as_dtype, int32
from .._errors import ArgumentTypeError, ShapeError
from .._ir import apply
from .._op import Op, ShapedType, register
from . import _delegate, _shapes
from ._attributes import integer, integers
from ._inference import FLOAT, REAL, fits_into
from .comparison import equal, ones_like
from .cumulative import cumprod
from .elementwise import divide_no_nan, multiply, no_gradient, subtract, where_true


def reduce_sum(x: Any, axes: Any = None, *, keepdims: bool = True, name: str | None = None) -> Any:
    """The sum over the axes; None means all. Half types add up in float32; integers keep their dtype and wrap.

    Raises:
        DTypeError: when x is bool or complex.
        ShapeError: when an axis is not one of x, or comes twice.

    Example:
        >>> import numpy as np
        >>> reduce_sum(np.ones((2, 3)), 1)
        array([[3.],
               [3.]])
    """
    return _reduce("reduce_sum", x, axes, keepdims, name)


def reduce_max(x: Any, axes: Any = None, *, keepdims: bool = True, name: str | None = None) -> Any:
    """The largest element; NaN where there is one. Equal ones share the gradient evenly."""
    return _reduce("reduce_max", x, axes, keepdims, name)


def reduce_min(x: Any, axes: Any = None, *, keepdims: bool = True, name: str | None = None) -> Any:
    """The smallest element; NaN where there is one. Equal ones share the gradient evenly."""
    return _reduce("reduce_min", x, axes, keepdims, name)


def reduce_prod(x: Any, axes: Any = None, *, keepdims: bool = True, name: str | None = None) -> Any:
    """The product. Its gradients are right beside zeros too."""
    return _reduce("reduce_prod", x, axes, keepdims, name)


def reduce_and(x: Any, axes: Any = None, *, keepdims: bool = True, name: str | None = None) -> Any:
    """Whether all booleans hold."""
    return _reduce("reduce_and", x, axes, keepdims, name)


def reduce_or(x: Any, axes: Any = None, *, keepdims: bool = True, name: str | None = None) -> Any:
    """Whether one of the booleans holds."""
    return _reduce("reduce_or", x, axes, keepdims, name)


def mean(x: Any, axes: Any = None, *, keepdims: bool = True, name: str | None = None) -> Any:
    """The mean of floats; NaN where there are none."""
    return _reduce("mean", x, axes, keepdims, name)


def variance(x: Any, axes: Any = None, mean: Any = None, *, keepdims: bool = True, name: str | None = None) -> Any:
    """The mean of (x - mean)²: the variance of a population, divided by n. `mean` is that of x unless it is given.

    Raises:
        ShapeError: when the given mean does not broadcast to the shape of x.
    """
    if mean is None:
        return _reduce("variance", x, axes, keepdims, name)
    return apply("variance_about", x, mean, **_attributes("variance", axes, keepdims), name=name)


def argmax(x: Any, axis: int, name: str | None = None) -> Any:
    """Where along the axis the largest element is, the first of equal ones: int32, the axis kept with size 1."""
    return apply("argmax", x, axis=integer("argmax", "axis", axis), name=name)


def argmin(x: Any, axis: int, name: str | None = None) -> Any:
    """Where along the axis the smallest element is, the first of equal ones: int32, the axis kept with size 1."""
    return apply("argmin", x, axis=integer("argmin", "axis", axis), name=name)


def spread(g: Any, like: Any, axes: Any, keepdims: bool, average: bool = False) -> Any:
    """A reduced value brought back to the shape of `like`; divided by how many it went to if `average`.

    The gradients of `reduce_sum` and of `mean`, which are its own gradients in turn.
    """
    return apply("spread", g, like, axes=axes, keepdims=keepdims, average=average)


def _reduce(op: str, x: Any, axes: Any, keepdims: bool, name: str | None) -> Any:
    return apply(op, x, **_attributes(op, axes, keepdims), name=name)


def _attributes(op: str, axes: Any, keepdims: Any) -> dict[str, Any]:
    if not isinstance(keepdims, bool):
        raise ArgumentTypeError(f"{op}: keepdims must be True or False, got {keepdims!r}")
    return {"axes": None if axes is None else integers(op, "axes", axes), "keepdims": keepdims}


def _infer(op: str, kinds: Sequence[str], may_be_empty: bool = True) -> Callable[..., ShapedType]:
    def infer(x: ShapedType, axes: Any, keepdims: bool) -> ShapedType:
        _shapes.kind_of(op, x, kinds)
        reduced = _shapes.axes_of(op, axes, len(x.shape))
        if not may_be_empty and any(x.shape[i] == 0 for i in reduced):
            raise ShapeError(f"{op}: axes must hold at least one element, got shape {list(x.shape)}")
        if keepdims:
            return ShapedType.trusted(tuple(1 if i in reduced else n for i, n in enumerate(x.shape)), x.dtype)
        return ShapedType.trusted(tuple(n for i, n in enumerate(x.shape) if i not in reduced), x.dtype)

    return infer


def _infer_about(x: ShapedType, mean: ShapedType, axes: Any, keepdims: bool) -> ShapedType:
    fits_into("variance", "mean", mean, x)
    return _infer("variance", FLOAT)(x, axes, keepdims)


def _infer_arg(op: str) -> Callable[..., ShapedType]:
    along = _infer(op, REAL, may_be_empty=False)

    def infer(x: ShapedType, axis: int) -> ShapedType:
        return ShapedType.trusted(along(x, (_shapes.axis_of(op, axis, len(x.shape)),), True).shape, int32)

    return infer


# --- values ---


def _axis(axes: Any) -> tuple[int, ...] | None:
    return None if axes is None else tuple(axes)


def _sum(xp: Namespace, x: Array, axes: Any, keepdims: bool) -> Array:
    if not as_dtype(x.dtype).is_half:
        return xp.sum(x, axis=_axis(axes), dtype=x.dtype, keepdims=keepdims)
    return xp.astype(xp.sum(x, axis=_axis(axes), dtype=xp.float32, keepdims=keepdims), x.dtype)


def _prod(xp: Namespace, x: Array, axes: Any, keepdims: bool) -> Array:
    if not as_dtype(x.dtype).is_half:
        return xp.prod(x, axis=_axis(axes), dtype=x.dtype, keepdims=keepdims)
    return xp.astype(xp.prod(x, axis=_axis(axes), dtype=xp.float32, keepdims=keepdims), x.dtype)


def _count(shape: Sequence[int], axes: Any) -> int:
    return math.prod(shape) if axes is None else math.prod(shape[i] for i in axes)


def _mean(xp: Namespace, x: Array, axes: Any, keepdims: bool) -> Array:
    count = _count(x.shape, axes)

    def divided(a: Array) -> Array:
        total = xp.sum(a, axis=_axis(axes), keepdims=keepdims)
        return total / count if count else total + math.nan  # 0/0 without NumPy's warning

    return _delegate.in_float32(xp, divided, x)


def _variance(xp: Namespace, x: Array, axes: Any, keepdims: bool) -> Array:
    return _delegate.in_float32(xp, lambda a: _variance_about(xp, a, _mean(xp, a, axes, True), axes, keepdims), x)


def _variance_about(xp: Namespace, x: Array, mean: Array, axes: Any, keepdims: bool) -> Array:
    def centred(a: Array, m: Array) -> Array:
        distance = a - m
        return _mean(xp, distance * distance, axes, keepdims)

    return _delegate.in_float32(xp, centred, x, mean)


def _spread(xp: Namespace, g: Array, like: Array, axes: Any, keepdims: bool, average: bool) -> Array:
    shape = tuple(like.shape)
    if not keepdims:
        reduced = _shapes.axes_of("spread", axes, len(shape))
        g = xp.reshape(g, tuple(1 if i in reduced else n for i, n in enumerate(shape)))
    if average:
        g = g / max(_count(shape, axes), 1)
    return xp.broadcast_to(g, shape)


# --- gradients ---


def _sum_vjp(inputs: Any, outputs: Any, g: Any, axes: Any, keepdims: bool) -> tuple[Any]:
    return (spread(g[0], inputs[0], axes, keepdims),)


def _mean_vjp(inputs: Any, outputs: Any, g: Any, axes: Any, keepdims: bool) -> tuple[Any]:
    return (spread(g[0], inputs[0], axes, keepdims, average=True),)


def _spread_vjp(inputs: Any, outputs: Any, g: Any, axes: Any, keepdims: bool, average: bool) -> tuple[Any, None]:
    return (mean if average else reduce_sum)(g[0], axes, keepdims=keepdims), None


def _extreme_vjp(inputs: Any, outputs: Any, g: Any, axes: Any, keepdims: bool) -> tuple[Any]:
    x = inputs[0]
    chosen = where_true(equal(x, spread(outputs[0], x, axes, keepdims)), ones_like(x))
    share = divide_no_nan(g[0], reduce_sum(chosen, axes, keepdims=keepdims))
    return (multiply(chosen, spread(share, x, axes, keepdims)),)


def _prod_vjp(inputs: Any, outputs: Any, g: Any, axes: Any, keepdims: bool) -> tuple[Any]:
    reduced = _shapes.axes_of("reduce_prod", axes, len(inputs[0].shape))
    # One axis at a time, so that the product of all others along an axis is one running from either end.
    stages = [inputs[0]]
    for axis in reduced:
        stages.append(reduce_prod(stages[-1], axis))
    gradient = g[0] if keepdims else apply("expand_dims", g[0], axes=reduced)
    for axis in reversed(reduced):
        stages.pop()
        before = cumprod(stages[-1], axis, exclusive=True)
        after = cumprod(stages[-1], axis, exclusive=True, reverse=True)
        gradient = multiply(gradient, multiply(before, after))
    return (gradient,)


def _variance_vjp(inputs: Any, outputs: Any, g: Any, axes: Any, keepdims: bool) -> tuple[Any]:
    return (_slope_of_squares(inputs[0], mean(inputs[0], axes), g[0], axes, keepdims),)


def _about_vjp(inputs: Any, outputs: Any, g: Any, axes: Any, keepdims: bool) -> tuple[Any, Any]:
    slope = _slope_of_squares(inputs[0], inputs[1], g[0], axes, keepdims)
    return slope, apply("sum_to_shape_of", apply("negative", slope), inputs[1])


def _slope_of_squares(x: Any, centre: Any, g: Any, axes: Any, keepdims: bool) -> Any:
    return multiply(multiply(subtract(x, centre), 2), spread(g, x, axes, keepdims, average=True))


register(Op("reduce_sum", _infer("reduce_sum", REAL), _sum, _sum_vjp))
register(Op("reduce_prod", _infer("reduce_prod", REAL), _prod, _prod_vjp))
register(Op("mean", _infer("mean", FLOAT), _mean, _mean_vjp))
register(Op("variance", _infer("variance", FLOAT), _variance, _variance_vjp))
register(Op("variance_about", _infer_about, _variance_about, _about_vjp))
register(
    Op(
        "reduce_max",
        _infer("reduce_max", REAL, may_be_empty=False),
        lambda xp, x, axes, keepdims: xp.max(x, axis=_axis(axes), keepdims=keepdims),
        _extreme_vjp,
    )
)
register(
    Op(
        "reduce_min",
        _infer("reduce_min", REAL, may_be_empty=False),
        lambda xp, x, axes, keepdims: xp.min(x, axis=_axis(axes), keepdims=keepdims),
        _extreme_vjp,
    )
)
register(
    Op(
        "reduce_and",
        _infer("reduce_and", ("bool",)),
        lambda xp, x, axes, keepdims: xp.all(x, axis=_axis(axes), keepdims=keepdims),
        no_gradient,
    )
)
register(
    Op(
        "reduce_or",
        _infer("reduce_or", ("bool",)),
        lambda xp, x, axes, keepdims: xp.any(x, axis=_axis(axes), keepdims=keepdims),
        no_gradient,
    )
)
register(
    Op(
        "argmax",
        _infer_arg("argmax"),
        lambda xp, x, axis: cast(xp, xp.argmax(x, axis=axis, keepdims=True), int32),
        no_gradient,
    )
)
register(
    Op(
        "argmin",
        _infer_arg("argmin"),
        lambda xp, x, axis: cast(xp, xp.argmin(x, axis=axis, keepdims=True), int32),
        no_gradient,
    )
)
register(
    Op(
        "spread",
        lambda g, like, **attrs: ShapedType.trusted(like.shape, g.dtype),
        _spread,
        _spread_vjp,
        is_view=True,
        shape_only=frozenset({1}),
    )
)
