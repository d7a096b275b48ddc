"""Functions of one number, element by element. All take floats; the first four and `square` take integers too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import math
from typing import Any

from .._arrays import Array, Namespace, dtype_of
from .._ir import apply
from .._op import Op, register
from . import _delegate
from ._inference import ANY, FLOAT, REAL, same_type
from .elementwise import add, divide, multiply, no_gradient, subtract


def identity(x: Any, name: str | None = None) -> Any:
    """x itself; the result may share memory with it."""
    return apply("identity", x, name=name)


def negative(x: Any, name: str | None = None) -> Any:
    """-x."""
    return apply("negative", x, name=name)


def absolute(x: Any, name: str | None = None) -> Any:
    """|x|. The gradient at 0 is 0."""
    return apply("absolute", x, name=name)


def sign(x: Any, name: str | None = None) -> Any:
    """-1, 0 or 1, as x is below, at or above 0; NaN for NaN."""
    return apply("sign", x, name=name)


def exp(x: Any, name: str | None = None) -> Any:
    """e to the power of x."""
    return apply("exp", x, name=name)


def exp2(x: Any, name: str | None = None) -> Any:
    """2 to the power of x."""
    return apply("exp2", x, name=name)


def exp10(x: Any, name: str | None = None) -> Any:
    """10 to the power of x."""
    return apply("exp10", x, name=name)


def expm1(x: Any, name: str | None = None) -> Any:
    """exp(x) - 1, with all its digits near 0."""
    return apply("expm1", x, name=name)


def log(x: Any, name: str | None = None) -> Any:
    """The logarithm to base e."""
    return apply("log", x, name=name)


def log2(x: Any, name: str | None = None) -> Any:
    """The logarithm to base 2."""
    return apply("log2", x, name=name)


def log10(x: Any, name: str | None = None) -> Any:
    """The logarithm to base 10."""
    return apply("log10", x, name=name)


def log1p(x: Any, name: str | None = None) -> Any:
    """log(1 + x), with all its digits near 0."""
    return apply("log1p", x, name=name)


def square(x: Any, name: str | None = None) -> Any:
    """x * x."""
    return apply("square", x, name=name)


def sqrt(x: Any, name: str | None = None) -> Any:
    """The square root."""
    return apply("sqrt", x, name=name)


def reciprocal(x: Any, name: str | None = None) -> Any:
    """1 / x."""
    return apply("reciprocal", x, name=name)


def rsqrt(x: Any, name: str | None = None) -> Any:
    """1 / sqrt(x)."""
    return apply("rsqrt", x, name=name)


def ceil(x: Any, name: str | None = None) -> Any:
    """The smallest whole number not below x."""
    return apply("ceil", x, name=name)


def floor(x: Any, name: str | None = None) -> Any:
    """The largest whole number not above x."""
    return apply("floor", x, name=name)


def round(x: Any, name: str | None = None) -> Any:
    """The nearest whole number; halves go away from 0: 0.5 to 1, -0.5 to -1."""
    return apply("round", x, name=name)


def rint(x: Any, name: str | None = None) -> Any:
    """The nearest whole number; halves go to the even one: 0.5 to 0, 1.5 to 2."""
    return apply("rint", x, name=name)


def truncate(x: Any, name: str | None = None) -> Any:
    """x without its fraction."""
    return apply("truncate", x, name=name)


def sin(x: Any, name: str | None = None) -> Any:
    """The sine of an angle in radians."""
    return apply("sin", x, name=name)


def cos(x: Any, name: str | None = None) -> Any:
    """The cosine of an angle in radians."""
    return apply("cos", x, name=name)


def tan(x: Any, name: str | None = None) -> Any:
    """The tangent of an angle in radians."""
    return apply("tan", x, name=name)


def asin(x: Any, name: str | None = None) -> Any:
    """The angle in [-pi/2, pi/2] whose sine is x."""
    return apply("asin", x, name=name)


def acos(x: Any, name: str | None = None) -> Any:
    """The angle in [0, pi] whose cosine is x."""
    return apply("acos", x, name=name)


def atan(x: Any, name: str | None = None) -> Any:
    """The angle in [-pi/2, pi/2] whose tangent is x."""
    return apply("atan", x, name=name)


def sinh(x: Any, name: str | None = None) -> Any:
    """The hyperbolic sine."""
    return apply("sinh", x, name=name)


def cosh(x: Any, name: str | None = None) -> Any:
    """The hyperbolic cosine."""
    return apply("cosh", x, name=name)


def tanh(x: Any, name: str | None = None) -> Any:
    """The hyperbolic tangent."""
    return apply("tanh", x, name=name)


def asinh(x: Any, name: str | None = None) -> Any:
    """The inverse of `sinh`."""
    return apply("asinh", x, name=name)


def acosh(x: Any, name: str | None = None) -> Any:
    """The inverse of `cosh`, 0 or more."""
    return apply("acosh", x, name=name)


def atanh(x: Any, name: str | None = None) -> Any:
    """The inverse of `tanh`."""
    return apply("atanh", x, name=name)


def erf(x: Any, name: str | None = None) -> Any:
    """The error function, 2/sqrt(pi) times the integral of exp(-t²) from 0 to x."""
    return apply("erf", x, name=name)


def _round(xp: Namespace, x: Array) -> Array:
    # The largest number below a half: with a half itself, 0.5 - eps/4 would be rounded up.
    half = 0.5 - dtype_of(x).compute.eps / 4
    return _delegate.in_float32(xp, lambda a: xp.trunc(a + xp.sign(a) * half), x)


def _unary(
    name: str,
    kinds: Sequence[str],
    reference: Callable[..., Array],
    slope: Callable[..., Any] | None,
    is_view: bool = False,
) -> None:
    """`slope(g, x, y)` is the gradient of x; None stands for an op that is flat wherever it is smooth."""

    def vjp(inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any]:
        assert slope is not None
        return (slope(cotangents[0], inputs[0], outputs[0]),)

    register(
        Op(
            name,
            infer=same_type(name, kinds),
            reference=reference,
            vjp=no_gradient if slope is None else vjp,
            is_view=is_view,
        )
    )


_LOG2, _LOG10 = math.log(2), math.log(10)
_ERF_AT_0 = 2 / math.sqrt(math.pi)  # its slope there

_unary("identity", ANY, lambda xp, x: x, lambda g, x, y: g, is_view=True)
_unary("negative", ("float", "int"), lambda xp, x: -x, lambda g, x, y: negative(g))
_unary("absolute", REAL, lambda xp, x: xp.abs(x), lambda g, x, y: multiply(g, sign(x)))
_unary("sign", REAL, lambda xp, x: xp.sign(x), None)
_unary("exp", FLOAT, lambda xp, x: xp.exp(x), lambda g, x, y: multiply(g, y))
_unary("exp2", FLOAT, lambda xp, x: 2**x, lambda g, x, y: multiply(g, multiply(y, _LOG2)))
_unary("exp10", FLOAT, lambda xp, x: 10**x, lambda g, x, y: multiply(g, multiply(y, _LOG10)))
_unary("expm1", FLOAT, lambda xp, x: xp.expm1(x), lambda g, x, y: multiply(g, exp(x)))
_unary("log", FLOAT, lambda xp, x: xp.log(x), lambda g, x, y: divide(g, x))
_unary("log2", FLOAT, lambda xp, x: xp.log2(x), lambda g, x, y: divide(g, multiply(x, _LOG2)))
_unary("log10", FLOAT, lambda xp, x: xp.log10(x), lambda g, x, y: divide(g, multiply(x, _LOG10)))
_unary("log1p", FLOAT, lambda xp, x: xp.log1p(x), lambda g, x, y: divide(g, add(x, 1)))
_unary("square", REAL, lambda xp, x: x * x, lambda g, x, y: multiply(g, multiply(x, 2)))
_unary("sqrt", FLOAT, lambda xp, x: xp.sqrt(x), lambda g, x, y: divide(g, multiply(y, 2)))
_unary("reciprocal", FLOAT, lambda xp, x: 1 / x, lambda g, x, y: negative(multiply(g, square(y))))
_unary("rsqrt", FLOAT, lambda xp, x: 1 / xp.sqrt(x), lambda g, x, y: multiply(g, multiply(divide(y, x), -0.5)))
_unary("ceil", FLOAT, lambda xp, x: xp.ceil(x), None)
_unary("floor", FLOAT, lambda xp, x: xp.floor(x), None)
_unary("round", FLOAT, _round, None)
_unary("rint", FLOAT, lambda xp, x: xp.round(x), None)
_unary("truncate", FLOAT, lambda xp, x: xp.trunc(x), None)
_unary("sin", FLOAT, lambda xp, x: xp.sin(x), lambda g, x, y: multiply(g, cos(x)))
_unary("cos", FLOAT, lambda xp, x: xp.cos(x), lambda g, x, y: negative(multiply(g, sin(x))))
_unary("tan", FLOAT, lambda xp, x: xp.tan(x), lambda g, x, y: multiply(g, add(square(y), 1)))
_unary("asin", FLOAT, lambda xp, x: xp.asin(x), lambda g, x, y: divide(g, sqrt(subtract(1, square(x)))))
_unary("acos", FLOAT, lambda xp, x: xp.acos(x), lambda g, x, y: negative(divide(g, sqrt(subtract(1, square(x))))))
_unary("atan", FLOAT, lambda xp, x: xp.atan(x), lambda g, x, y: divide(g, add(square(x), 1)))
_unary("sinh", FLOAT, lambda xp, x: xp.sinh(x), lambda g, x, y: multiply(g, cosh(x)))
_unary("cosh", FLOAT, lambda xp, x: xp.cosh(x), lambda g, x, y: multiply(g, sinh(x)))
_unary("tanh", FLOAT, lambda xp, x: xp.tanh(x), lambda g, x, y: multiply(g, subtract(1, square(y))))
_unary("asinh", FLOAT, lambda xp, x: xp.asinh(x), lambda g, x, y: divide(g, sqrt(add(square(x), 1))))
_unary("acosh", FLOAT, lambda xp, x: xp.acosh(x), lambda g, x, y: divide(g, sqrt(subtract(square(x), 1))))
_unary("atanh", FLOAT, lambda xp, x: xp.atanh(x), lambda g, x, y: divide(g, subtract(1, square(x))))
_unary("erf", FLOAT, _delegate.erf, lambda g, x, y: multiply(g, multiply(exp(negative(square(x))), _ERF_AT_0)))
