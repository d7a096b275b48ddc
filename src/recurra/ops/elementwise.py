"""Arithmetic of two tensors, and the summing back of broadcast gradients that every topic uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _arrays
from .._arrays import Array, Namespace
from .._errors import ArgumentError, ArgumentTypeError
from .._ir import Tensor, apply, number
from .._op import OPS, UNKNOWN, Op, ShapedType, register
from . import _delegate
from ._inference import FLOAT, REAL, same_type

# --- what the gradients of several topics share ---


def no_gradient(inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any], **_: Any) -> tuple[None, ...]:
    """The vjp of steps and of whole or true numbers: zero wherever there is one."""
    return (None,) * len(inputs)


def beside(op_name: str, value: Any, like: Any) -> Any:
    """A Python number as a tensor or array like `like`; anything else as it is."""
    if type(value) not in (bool, int, float, complex):  # NumPy's scalars are arrays
        return value
    if isinstance(like, Tensor):
        return like.graph.constant(number(OPS[op_name], value, like.dtype))
    if not _arrays.is_array(like):
        raise ArgumentTypeError(f"{op_name}: one of x and y must be a graph tensor or an array, got {like!r}")
    array = number(OPS[op_name], value, _arrays.dtype_of(like))
    return _arrays.constant(_arrays.namespace(like), array, _arrays.device_of(like))


def where_true(mask: Any, g: Any) -> Any:
    """g where the mask holds, 0 elsewhere: what a mask times g is, except beside inf and NaN."""
    return apply("select", mask, g, beside("select", 0, g))


def unbroadcast(g: Any, like: Any) -> Any:
    """A gradient of a broadcast result, summed down to the shape of the input `like` that it is for."""
    shape = tuple(like.shape)
    if UNKNOWN not in shape and tuple(g.shape) == shape:
        return g
    return apply("sum_to_shape_of", g, like)


def _sum_to_shape_of(xp: Namespace, g: Array, like: Array) -> Array:
    if g.shape == like.shape:
        return g
    extra = len(g.shape) - len(like.shape)
    axes = [*range(extra), *(i + extra for i, n in enumerate(like.shape) if n == 1 and g.shape[i + extra] != 1)]
    summed = _delegate.in_float32(xp, lambda a: xp.sum(a, axis=tuple(axes), dtype=a.dtype, keepdims=True), g)
    return xp.reshape(summed, tuple(like.shape))


# The two are each other's gradient.
register(
    Op(
        "sum_to_shape_of",
        infer=lambda g, like: ShapedType.trusted(like.shape, g.dtype),
        reference=_sum_to_shape_of,
        vjp=lambda inputs, outputs, g: (apply("broadcast_to_shape_of", g[0], inputs[0]), None),
        shape_only=frozenset({1}),
        is_view=True,
    )
)
register(
    Op(
        "broadcast_to_shape_of",
        infer=lambda x, like: ShapedType.trusted(like.shape, x.dtype),
        reference=lambda xp, x, like: xp.broadcast_to(x, tuple(like.shape)),
        vjp=lambda inputs, outputs, g: (unbroadcast(g[0], inputs[0]), None),
        shape_only=frozenset({1}),
        is_view=True,
    )
)


# --- arithmetic ---


def add(x: Any, y: Any, name: str | None = None) -> Any:
    """x + y, broadcast.

    Raises:
        DTypeError: when the dtypes differ, or are bool or complex.
        ShapeError: when the shapes do not broadcast.

    Example:
        >>> import numpy as np
        >>> add(np.ones((2, 1)), np.ones(3)).shape
        (2, 3)
    """
    return apply("add", x, y, name=name)


def subtract(x: Any, y: Any, name: str | None = None) -> Any:
    """x - y, broadcast."""
    return apply("subtract", x, y, name=name)


def multiply(x: Any, y: Any, name: str | None = None) -> Any:
    """x * y element by element, broadcast."""
    return apply("multiply", x, y, name=name)


def divide(x: Any, y: Any, name: str | None = None) -> Any:
    """x / y of floats, broadcast."""
    return apply("divide", x, y, name=name)


def divide_no_nan(x: Any, y: Any, name: str | None = None) -> Any:
    """x / y of floats, and 0 where y is 0; so are its gradients there."""
    return apply("divide_no_nan", x, y, name=name)


def mod(x: Any, y: Any, name: str | None = None) -> Any:
    """x - y * truncate(x / y): the remainder with the sign of x, as C's fmod."""
    return apply("mod", x, y, name=name)


def floor_mod(x: Any, y: Any, name: str | None = None) -> Any:
    """x - y * floor(x / y): the remainder with the sign of y, as Python's %."""
    return apply("floor_mod", x, y, name=name)


def power(x: Any, y: Any, name: str | None = None) -> Any:
    """x to the power of y. The gradient of y is 0 where x is 0 or less, where there is none."""
    return apply("power", x, y, name=name)


def maximum(x: Any, y: Any, name: str | None = None) -> Any:
    """The larger of both; where one is NaN, the other. Where they are equal, the gradient goes to x."""
    return apply("maximum", x, y, name=name)


def minimum(x: Any, y: Any, name: str | None = None) -> Any:
    """The smaller of both; where one is NaN, the other. Where they are equal, the gradient goes to x."""
    return apply("minimum", x, y, name=name)


def maximum_nan(x: Any, y: Any, name: str | None = None) -> Any:
    """The larger of both; NaN where one is."""
    return apply("maximum_nan", x, y, name=name)


def minimum_nan(x: Any, y: Any, name: str | None = None) -> Any:
    """The smaller of both; NaN where one is."""
    return apply("minimum_nan", x, y, name=name)


def atan2(y: Any, x: Any, name: str | None = None) -> Any:
    """The angle of the point (x, y), in [-pi, pi]. Its gradients at the origin are 0."""
    return apply("atan2", y, x, name=name)


def _divide_no_nan(xp: Namespace, x: Array, y: Array) -> Array:
    is_zero = y == 0
    return xp.where(is_zero, xp.zeros_like(y), x / xp.where(is_zero, xp.ones_like(y), y))


Slope = Callable[..., Any]  # slope(g, x, y, out): the gradient of one input, before it is summed down


def _check_integers(name: str, rule: str, is_bad: Callable[[Array], Array]) -> Callable[[Array, Array], None]:
    """What integers have no result for, and libraries answer in ways of their own."""

    def check(x: Array, y: Array) -> None:
        if _arrays.dtype_of(y).kind in ("int", "uint") and _arrays.is_readable(y):
            values = _arrays.to_numpy(y)
            bad = values[is_bad(values)]
            if bad.size:
                raise ArgumentError(f"{name}: y must {rule} where both are integers, got {bad.flat[0]}")

    return check


def _binary(
    name: str,
    kinds: Sequence[str],
    reference: Callable[..., Array],
    dx: Slope,
    dy: Slope,
    check: Callable[[Array, Array], None] | None = None,
) -> None:
    def vjp(inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, Any]:
        x, y = inputs
        g, out = cotangents[0], outputs[0]
        return unbroadcast(dx(g, x, y, out), x), unbroadcast(dy(g, x, y, out), y)

    register(Op(name, infer=same_type(name, kinds), reference=reference, vjp=vjp, check_values=check))


def _whole_quotient(x: Any, y: Any, remainder: Any) -> Any:
    # Rounding undoes the error of the division; the quotient that belongs to this remainder is a whole number.
    return apply("rint", divide(subtract(x, remainder), y))


def _slope_of_base(g: Any, x: Any, y: Any, out: Any) -> Any:
    # 0^(0-1) is kept out: the gradient of x^0 at 0 is 0, and stays so when it is differentiated again.
    at_origin = apply("logical_and", apply("equal", x, 0), apply("equal", y, 0))
    exponent = apply("select", at_origin, beside("select", 1, y), y)
    return multiply(g, multiply(y, power(x, subtract(exponent, 1))))


def _slope_of_exponent(g: Any, x: Any, y: Any, out: Any) -> Any:
    base = apply("select", apply("greater", x, 0), x, beside("select", 1, x))
    return multiply(g, multiply(out, apply("log", base)))


def _to_first(g: Any, x: Any, y: Any, out: Any) -> Any:
    return where_true(apply("equal", out, x), g)


def _to_second(g: Any, x: Any, y: Any, out: Any) -> Any:
    return where_true(apply("not_equal", out, x), g)


def _through_angle(g: Any, y: Any, x: Any) -> Any:
    return multiply(g, divide_no_nan(x, add(apply("square", x), apply("square", y))))


_binary("add", REAL, lambda xp, x, y: x + y, lambda g, x, y, out: g, lambda g, x, y, out: g)
_binary("subtract", REAL, lambda xp, x, y: x - y, lambda g, x, y, out: g, lambda g, x, y, out: apply("negative", g))
_binary(
    "multiply",
    REAL,
    lambda xp, x, y: x * y,
    lambda g, x, y, out: multiply(g, y),
    lambda g, x, y, out: multiply(g, x),
)
_binary(
    "divide",
    FLOAT,
    lambda xp, x, y: x / y,
    lambda g, x, y, out: divide(g, y),
    lambda g, x, y, out: apply("negative", multiply(divide(g, y), out)),
)
_binary(
    "divide_no_nan",
    FLOAT,
    _divide_no_nan,
    lambda g, x, y, out: divide_no_nan(g, y),
    lambda g, x, y, out: apply("negative", multiply(divide_no_nan(g, y), out)),
)
_binary(
    "mod",
    REAL,
    lambda xp, x, y: _delegate.call(xp, "fmod", x, y),
    lambda g, x, y, out: g,
    lambda g, x, y, out: apply("negative", multiply(g, _whole_quotient(x, y, out))),
    _check_integers("mod", "not be 0", lambda y: y == 0),
)
_binary(
    "floor_mod",
    REAL,
    lambda xp, x, y: xp.remainder(x, y),
    lambda g, x, y, out: g,
    lambda g, x, y, out: apply("negative", multiply(g, _whole_quotient(x, y, out))),
    _check_integers("floor_mod", "not be 0", lambda y: y == 0),
)
_binary(
    "power",
    REAL,
    lambda xp, x, y: x**y,
    _slope_of_base,
    _slope_of_exponent,
    _check_integers("power", "be 0 or more", lambda y: y < 0),
)
_binary("maximum", REAL, lambda xp, x, y: _delegate.call(xp, "fmax", x, y), _to_first, _to_second)
_binary("minimum", REAL, lambda xp, x, y: _delegate.call(xp, "fmin", x, y), _to_first, _to_second)
_binary("maximum_nan", REAL, lambda xp, x, y: xp.maximum(x, y), _to_first, _to_second)
_binary("minimum_nan", REAL, lambda xp, x, y: xp.minimum(x, y), _to_first, _to_second)
_binary(
    "atan2",
    FLOAT,
    lambda xp, y, x: xp.atan2(y, x),
    lambda g, y, x, out: _through_angle(g, y, x),
    lambda g, y, x, out: apply("negative", _through_angle(g, x, y)),
)
