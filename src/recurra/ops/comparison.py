"""Comparisons, logic, and the choice between values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._arrays import Array, device_of
from .._dtypes import bool_
from .._errors import DTypeError
from .._ir import apply
from .._op import Op, ShapedType, register
from . import _shapes
from ._inference import ANY, FLOAT, REAL, same_type, truth_value
from .elementwise import beside, maximum, no_gradient, unbroadcast, where_true


def equal(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether x = y, broadcast. NaN equals nothing.

    Raises:
        DTypeError: when the dtypes differ.
        ShapeError: when the shapes do not broadcast.

    Example:
        >>> import numpy as np
        >>> equal(np.asarray([1, 2]), np.asarray([1, 3]))
        array([ True, False])
    """
    return apply("equal", x, y, name=name)


def not_equal(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether x ≠ y, broadcast."""
    return apply("not_equal", x, y, name=name)


def less(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether x < y, broadcast; of numbers, not booleans."""
    return apply("less", x, y, name=name)


def less_equal(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether x ≤ y, broadcast."""
    return apply("less_equal", x, y, name=name)


def greater(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether x > y, broadcast."""
    return apply("greater", x, y, name=name)


def greater_equal(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether x ≥ y, broadcast."""
    return apply("greater_equal", x, y, name=name)


def logical_and(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether both booleans hold, broadcast."""
    return apply("logical_and", x, y, name=name)


def logical_or(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether one of two booleans holds, broadcast."""
    return apply("logical_or", x, y, name=name)


def logical_xor(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether exactly one of two booleans holds, broadcast."""
    return apply("logical_xor", x, y, name=name)


def logical_nand(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether not both booleans hold, broadcast."""
    return apply("logical_nand", x, y, name=name)


def logical_nor(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether neither of two booleans holds, broadcast."""
    return apply("logical_nor", x, y, name=name)


def logical_xnor(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether two booleans are equal, broadcast."""
    return apply("logical_xnor", x, y, name=name)


def logical_not(x: Any, name: str | None = None) -> Any:
    """Whether a boolean does not hold."""
    return apply("logical_not", x, name=name)


def is_nan(x: Any, name: str | None = None) -> Any:
    """Whether a float is NaN."""
    return apply("is_nan", x, name=name)


def is_finite(x: Any, name: str | None = None) -> Any:
    """Whether a float is neither infinite nor NaN."""
    return apply("is_finite", x, name=name)


def is_infinite(x: Any, name: str | None = None) -> Any:
    """Whether a float is infinite, of either sign."""
    return apply("is_infinite", x, name=name)


def select(predicate: Any, x: Any, y: Any, name: str | None = None) -> Any:
    """x where the boolean predicate holds, y elsewhere; all three broadcast. One of x and y may be a number.

    Raises:
        DTypeError: when the predicate is not bool, or the dtypes of x and y differ.
        ShapeError: when the shapes do not broadcast.
    """
    return apply("select", predicate, beside("select", x, y), beside("select", y, x), name=name)


def clamp(x: Any, min: Any, max: Any, name: str | None = None) -> Any:
    """x, not below min and not above max; where min > max, max. min and max may be tensors or numbers, broadcast.

    The gradient goes to whichever of the three the result is; to x where x lies on a bound.
    """
    return apply("clamp", x, min, max, name=name)


def zeros_like(x: Any, name: str | None = None) -> Any:
    """Zeros with the shape and dtype of x."""
    return apply("zeros_like", x, name=name)


def ones_like(x: Any, name: str | None = None) -> Any:
    """Ones with the shape and dtype of x."""
    return apply("ones_like", x, name=name)


def _predicate(name: str, kinds: Sequence[str], reference: Callable[..., Array]) -> None:
    register(Op(name, infer=truth_value(name, kinds), reference=reference, vjp=no_gradient))


_predicate("equal", ANY, lambda xp, x, y: x == y)
_predicate("not_equal", ANY, lambda xp, x, y: x != y)
_predicate("less", REAL, lambda xp, x, y: x < y)
_predicate("less_equal", REAL, lambda xp, x, y: x <= y)
_predicate("greater", REAL, lambda xp, x, y: x > y)
_predicate("greater_equal", REAL, lambda xp, x, y: x >= y)
_predicate("logical_and", ("bool",), lambda xp, x, y: x & y)
_predicate("logical_or", ("bool",), lambda xp, x, y: x | y)
_predicate("logical_xor", ("bool",), lambda xp, x, y: x ^ y)
_predicate("logical_nand", ("bool",), lambda xp, x, y: ~(x & y))
_predicate("logical_nor", ("bool",), lambda xp, x, y: ~(x | y))
_predicate("logical_xnor", ("bool",), lambda xp, x, y: x == y)
_predicate("logical_not", ("bool",), lambda xp, x: ~x)
_predicate("is_nan", FLOAT, lambda xp, x: xp.isnan(x))
_predicate("is_finite", FLOAT, lambda xp, x: xp.isfinite(x))
_predicate("is_infinite", FLOAT, lambda xp, x: xp.isinf(x))


def _infer_select(predicate: ShapedType, x: ShapedType, y: ShapedType) -> ShapedType:
    if predicate.dtype != bool_:
        raise DTypeError(f"select: predicate must be bool, got {predicate.dtype}")
    _shapes.same_dtype("select", x, y)
    return ShapedType.trusted(_shapes.broadcast("select", predicate.shape, x.shape, y.shape), x.dtype)


def _select_vjp(inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
    predicate, x, y = inputs
    g = cotangents[0]
    return None, unbroadcast(where_true(predicate, g), x), unbroadcast(where_true(logical_not(predicate), g), y)


def _clamp_vjp(inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
    x, low, high = inputs
    g = cotangents[0]
    is_high = greater(maximum(x, low), high)
    is_low = logical_and(less(x, low), logical_not(is_high))
    is_x = logical_nor(is_high, is_low)
    return tuple(unbroadcast(where_true(m, g), v) for m, v in ((is_x, x), (is_low, low), (is_high, high)))


register(Op("select", infer=_infer_select, reference=lambda xp, p, x, y: xp.where(p, x, y), vjp=_select_vjp))
register(
    Op(
        "clamp",
        infer=same_type("clamp", REAL),
        reference=lambda xp, x, low, high: xp.minimum(xp.maximum(x, low), high),
        vjp=_clamp_vjp,
    )
)
register(
    Op(
        "zeros_like",
        infer=same_type("zeros_like", ANY),
        reference=lambda xp, x: xp.zeros(tuple(x.shape), dtype=x.dtype, device=device_of(x)),
        vjp=no_gradient,
        shape_only=frozenset({0}),
    )
)
register(
    Op(
        "ones_like",
        infer=same_type("ones_like", ANY),
        reference=lambda xp, x: xp.ones(tuple(x.shape), dtype=x.dtype, device=device_of(x)),
        vjp=no_gradient,
        shape_only=frozenset({0}),
    )
)
