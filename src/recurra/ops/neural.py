"""Activations, softmax and normalisation. The half types compute in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import math
from typing import Any

from .._arrays import Array, Namespace
from .._errors import ArgumentError, ArgumentTypeError
from .._ir import apply
from .._op import Op, ShapedType, register
from . import _delegate, _shapes
from ._attributes import integer
from ._inference import FLOAT, fits_into, given_type, same_type
from .activations import Activation, ActivationFunction, activation_function
from .comparison import greater, less, logical_and, select
from .elementwise import add, multiply, subtract, unbroadcast, where_true
from .reduction import reduce_sum
from .unary import absolute, erf, exp, negative, reciprocal, rsqrt, square


def relu(x: Any, name: str | None = None) -> Any:
    """max(x, 0). The gradient at 0 is 0."""
    return apply("relu", x, name=name)


def relu_gradient(g: Any, source: Any, name: str | None = None) -> Any:
    """g where source > 0, 0 elsewhere."""
    return select(greater(source, 0), g, 0, name=name)


def leaky_relu(x: Any, alpha: Any, name: str | None = None) -> Any:
    """x where x > 0, alpha x elsewhere. alpha is a number, or a tensor that broadcasts with x and has a gradient."""
    if isinstance(alpha, int | float):
        return apply("leaky_relu", x, alpha=_parameter("leaky_relu", alpha), name=name)
    return select(greater(x, 0), x, multiply(alpha, x), name=name)


def leaky_relu_gradient(g: Any, source: Any, alpha: Any, name: str | None = None) -> Any:
    """g where source > 0, alpha g elsewhere."""
    return select(greater(source, 0), g, multiply(g, alpha), name=name)


def sigmoid(x: Any, name: str | None = None) -> Any:
    """1 / (1 + exp(-x)), which never overflows."""
    return apply("sigmoid", x, name=name)


def sigmoid_gradient(g: Any, source: Any, name: str | None = None) -> Any:
    """g y (1 - y) with y = sigmoid(source)."""
    y = sigmoid(source)
    return multiply(g, multiply(y, subtract(1, y)), name=name)


def hard_sigmoid(x: Any, name: str | None = None) -> Any:
    """0.2 x + 0.5, not below 0 and not above 1."""
    return apply("hard_sigmoid", x, name=name)


def softplus(x: Any, name: str | None = None) -> Any:
    """log(1 + exp(x)), which never overflows."""
    return apply("softplus", x, name=name)


def softsign(x: Any, name: str | None = None) -> Any:
    """x / (1 + |x|)."""
    return apply("softsign", x, name=name)


def elu(x: Any, alpha: float = 1.0, name: str | None = None) -> Any:
    """x where x > 0, alpha (exp(x) - 1) elsewhere."""
    return apply("elu", x, alpha=_parameter("elu", alpha), name=name)


def gelu(x: Any, name: str | None = None) -> Any:
    """x (1 + erf(x / sqrt(2))) / 2."""
    return multiply(multiply(x, 0.5), add(erf(multiply(x, math.sqrt(0.5))), 1), name=name)


def softmax(x: Any, axis: int, name: str | None = None) -> Any:
    """exp(x) / sum(exp(x)) along an axis, for numbers of any size.

    Raises:
        DTypeError: when x is not of floats.
        ShapeError: when the axis is not one of x.

    Example:
        >>> import numpy as np
        >>> softmax(np.asarray([1000.0, 1000.0]), 0)
        array([0.5, 0.5])
    """
    return apply("softmax", x, axis=integer("softmax", "axis", axis), name=name)


def softmax_gradient(g: Any, source: Any, axis: int, name: str | None = None) -> Any:
    """(g - sum(g y)) y with y = softmax(source), the sum along the axis."""
    return _softmax_slope(g, softmax(source, axis), axis, name)


def log_softmax(x: Any, axis: int, name: str | None = None) -> Any:
    """log(softmax(x)), with all its digits."""
    return apply("log_softmax", x, axis=integer("log_softmax", "axis", axis), name=name)


def normalize(
    x: Any,
    mean: Any,
    variance: Any,
    gamma: Any = None,
    beta: Any = None,
    epsilon: float = 1e-5,
    name: str | None = None,
) -> Any:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, with 1 and 0 for a gamma and a beta that are None.

    Raises:
        ShapeError: when one of the others does not broadcast to the shape of x.
        DTypeError: when the dtypes differ, or are not float.
        ArgumentError: when epsilon is negative.
    """
    epsilon = _parameter("normalize", epsilon, "epsilon")
    if epsilon < 0:
        raise ArgumentError(f"normalize: epsilon must be 0 or more, got {epsilon!r}")
    whole = given_type("normalize", "x", x)
    factors = {"gamma": gamma, "beta": beta}
    for what, value in factors.items():
        if value is not None:
            fits_into("normalize", what, given_type("normalize", what, value), whole)
    last = [what for what, value in factors.items() if value is not None][-1:]
    result = apply("normalize", x, mean, variance, epsilon=epsilon, name=None if last else name)
    if gamma is not None:
        result = multiply(result, gamma, name=name if last == ["gamma"] else None)
    return result if beta is None else add(result, beta, name=name)


def _parameter(op: str, value: Any, what: str = "alpha") -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentTypeError(f"{op}: {what} must be a number, got {value!r}")
    if not math.isfinite(value):
        raise ArgumentError(f"{op}: {what} must be finite, got {value!r}")
    return float(value)


# --- activations: the values are those of the recurrent ops' gates ---


def _activation(name: str, formula: Callable[..., ActivationFunction], slope: Callable[..., Any]) -> None:
    """`slope(g, x, y, **parameters)` is the gradient of x."""

    def reference(xp: Namespace, x: Array, **parameters: float) -> Array:
        return _delegate.in_float32(xp, lambda a: formula(**parameters).value(xp, a), x)

    def vjp(inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any], **parameters: float) -> Any:
        return (slope(cotangents[0], inputs[0], outputs[0], **parameters),)

    register(Op(name, infer=same_type(name, FLOAT), reference=reference, vjp=vjp))


def _plain(kind: Activation) -> Callable[[], ActivationFunction]:
    formula = activation_function(kind)
    return lambda: formula


_activation("relu", _plain(Activation.RELU), lambda g, x, y: relu_gradient(g, x))
_activation(
    "leaky_relu",
    lambda alpha: ActivationFunction("leaky_relu", alpha),
    lambda g, x, y, alpha: leaky_relu_gradient(g, x, alpha),
)
_activation("sigmoid", _plain(Activation.SIGMOID), lambda g, x, y: multiply(g, multiply(y, subtract(1, y))))
_activation(
    "hard_sigmoid",
    _plain(Activation.HARD_SIGMOID),
    lambda g, x, y: where_true(logical_and(greater(y, 0), less(y, 1)), multiply(g, 0.2)),
)
_activation("softplus", _plain(Activation.SOFTPLUS), lambda g, x, y: multiply(g, sigmoid(x)))
_activation("softsign", _plain(Activation.SOFTSIGN), lambda g, x, y: multiply(g, square(subtract(1, absolute(y)))))
_activation(
    "elu",
    lambda alpha: ActivationFunction("elu", alpha),
    lambda g, x, y, alpha: select(greater(x, 0), g, multiply(g, add(y, alpha))),
)


# --- softmax ---


def _infer_along(op: str) -> Callable[..., ShapedType]:
    infer_type = same_type(op, FLOAT)

    def infer(x: ShapedType, axis: int) -> ShapedType:
        _shapes.axis_of(op, axis, len(x.shape))
        return infer_type(x)

    return infer


def _below_largest(xp: Namespace, x: Array, axis: int) -> Array:
    return x - xp.max(x, axis=axis, keepdims=True) if x.shape[axis] else x


def _softmax(xp: Namespace, x: Array, axis: int) -> Array:
    def softmax(a: Array) -> Array:
        powers = xp.exp(_below_largest(xp, a, axis))
        return powers / xp.sum(powers, axis=axis, keepdims=True)

    return _delegate.in_float32(xp, softmax, x)


def _log_softmax(xp: Namespace, x: Array, axis: int) -> Array:
    def log_softmax(a: Array) -> Array:
        below = _below_largest(xp, a, axis)
        return below - xp.log(xp.sum(xp.exp(below), axis=axis, keepdims=True))

    return _delegate.in_float32(xp, log_softmax, x)


def _softmax_slope(g: Any, y: Any, axis: int, name: str | None = None) -> Any:
    return multiply(subtract(g, reduce_sum(multiply(g, y), axis)), y, name=name)


def _log_softmax_slope(g: Any, y: Any, axis: int) -> Any:
    return subtract(g, multiply(exp(y), reduce_sum(g, axis)))


register(
    Op(
        "softmax",
        infer=_infer_along("softmax"),
        reference=_softmax,
        vjp=lambda inputs, outputs, g, axis: (_softmax_slope(g[0], outputs[0], axis),),
    )
)
LOG_SOFTMAX = register(
    Op(
        "log_softmax",
        infer=_infer_along("log_softmax"),
        reference=_log_softmax,
        vjp=lambda inputs, outputs, g, axis: (_log_softmax_slope(g[0], outputs[0], axis),),
    )
)


# --- normalisation ---


def _infer_normalize(x: ShapedType, mean: ShapedType, variance: ShapedType, epsilon: float) -> ShapedType:
    _shapes.kind_of("normalize", x, FLOAT)
    fits_into("normalize", "mean", mean, x)
    fits_into("normalize", "variance", variance, x)
    return x


def _normalize(xp: Namespace, x: Array, mean: Array, variance: Array, epsilon: float) -> Array:
    return _delegate.in_float32(xp, lambda x, m, v: (x - m) / xp.sqrt(v + epsilon), x, mean, variance)


def _normalize_vjp(inputs: Sequence[Any], outputs: Sequence[Any], g: Sequence[Any], epsilon: float) -> tuple[Any, ...]:
    mean, variance = inputs[1:]
    safe = add(variance, epsilon)
    dx = multiply(g[0], rsqrt(safe))
    dvariance = multiply(multiply(g[0], outputs[0]), multiply(reciprocal(safe), -0.5))
    return dx, unbroadcast(negative(dx), mean), unbroadcast(dvariance, variance)


register(Op("normalize", infer=_infer_normalize, reference=_normalize, vjp=_normalize_vjp))
