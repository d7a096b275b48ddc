"""The activations of a gate: Apple's five, and ONNX's others with their parameters (contract 2.2 and 9.5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import enum
import math
from numbers import Real
from typing import Any, TypeAlias

from .._arrays import Array, Namespace
from .._errors import ArgumentError, ArgumentTypeError


@dataclass(frozen=True)
class _Formula:
    """One kind of activation. `value(xp, x, alpha, beta)`; the slope from x, and from y where y says enough.

    Values are written so that differentiating them automatically is right at 0 too: no `abs`, whose own
    derivative at 0 is 0, on a path that must have slope there, and no overflow in a branch that `where` drops.
    """

    value: Callable[[Namespace, Array, float, float], Array]
    slope_from_input: Callable[[Namespace, Array, float, float], Array]
    slope_from_output: Callable[[Namespace, Array, float, float], Array]
    defaults: tuple[float, ...] = ()
    # Whether the slope can be had from y alone with this alpha.
    output_suffices: Callable[[float], bool] = lambda alpha: True


def _sigmoid(xp: Namespace, x: Array) -> Array:
    small = xp.exp(xp.where(x >= 0, -x, x))  # e^-|x|: never overflows, and keeps its digits far from 0
    return xp.where(x >= 0, 1 / (1 + small), small / (1 + small))


def _choose(xp: Namespace, condition: Array, yes: Array | float, no: Array | float, like: Array) -> Array:
    """`where` for scalars and arrays alike: older standards want arrays on both sides."""
    zero = xp.zeros_like(like)
    return xp.where(condition, yes + zero, no + zero)


def _relu(xp: Namespace, x: Array) -> Array:
    return xp.where(x > 0, x, xp.zeros_like(x))


def _hard_sigmoid(xp: Namespace, x: Array, alpha: float, beta: float) -> Array:
    line = alpha * x + beta
    return _choose(xp, line > 0, xp.where(line < 1, line, xp.ones_like(line)), 0.0, x) + 0 * line  # NaN stays NaN


def _softplus(xp: Namespace, x: Array) -> Array:
    return xp.where(x >= 0, x, xp.zeros_like(x)) + xp.log1p(xp.exp(xp.where(x >= 0, -x, x)))


def _elu(xp: Namespace, x: Array, alpha: float) -> Array:
    below = xp.where(x > 0, xp.zeros_like(x), x)
    return xp.where(x > 0, x, alpha * xp.expm1(below))


_FORMULAS: dict[str, _Formula] = {
    "none": _Formula(
        value=lambda xp, x, a, b: x,
        slope_from_input=lambda xp, x, a, b: xp.ones_like(x),
        slope_from_output=lambda xp, y, a, b: xp.ones_like(y),
    ),
    "relu": _Formula(
        value=lambda xp, x, a, b: _relu(xp, x),
        slope_from_input=lambda xp, x, a, b: _choose(xp, x > 0, 1.0, 0.0, x),
        slope_from_output=lambda xp, y, a, b: _choose(xp, y > 0, 1.0, 0.0, y),
    ),
    "tanh": _Formula(
        value=lambda xp, x, a, b: xp.tanh(x),
        slope_from_input=lambda xp, x, a, b: 1 - xp.tanh(x) * xp.tanh(x),
        slope_from_output=lambda xp, y, a, b: 1 - y * y,
    ),
    "sigmoid": _Formula(
        value=lambda xp, x, a, b: _sigmoid(xp, x),
        slope_from_input=lambda xp, x, a, b: _sigmoid(xp, x) * _sigmoid(xp, -x),
        slope_from_output=lambda xp, y, a, b: y * (1 - y),
    ),
    "hard_sigmoid": _Formula(
        value=_hard_sigmoid,
        slope_from_input=lambda xp, x, a, b: _choose(xp, (a * x + b > 0) & (a * x + b < 1), a, 0.0, x),
        slope_from_output=lambda xp, y, a, b: _choose(xp, (y > 0) & (y < 1), a, 0.0, y),
        defaults=(0.2, 0.5),
    ),
    "affine": _Formula(
        value=lambda xp, x, a, b: a * x + b,
        slope_from_input=lambda xp, x, a, b: a * xp.ones_like(x),
        slope_from_output=lambda xp, y, a, b: a * xp.ones_like(y),
        defaults=(1.0, 0.0),
    ),
    "leaky_relu": _Formula(
        value=lambda xp, x, a, b: xp.where(x > 0, x, a * x),
        slope_from_input=lambda xp, x, a, b: _choose(xp, x > 0, 1.0, a, x),
        slope_from_output=lambda xp, y, a, b: _choose(xp, y > 0, 1.0, a, y),
        defaults=(0.01,),
        output_suffices=lambda alpha: alpha >= 0,  # below 0, both branches give the same y
    ),
    "thresholded_relu": _Formula(
        value=lambda xp, x, a, b: xp.where(x > a, x, xp.zeros_like(x)),
        slope_from_input=lambda xp, x, a, b: _choose(xp, x > a, 1.0, 0.0, x),
        slope_from_output=lambda xp, y, a, b: _choose(xp, y > a, 1.0, 0.0, y),
        defaults=(1.0,),
        output_suffices=lambda alpha: alpha >= 0,  # below 0, "off" gives y = 0 > alpha
    ),
    "scaled_tanh": _Formula(
        value=lambda xp, x, a, b: a * xp.tanh(b * x),
        slope_from_input=lambda xp, x, a, b: a * b * (1 - xp.tanh(b * x) * xp.tanh(b * x)),
        slope_from_output=lambda xp, y, a, b: b * (a - y * y / a) if a != 0 else xp.zeros_like(y),
        defaults=(1.0, 1.0),
    ),
    "elu": _Formula(
        value=lambda xp, x, a, b: _elu(xp, x, a),
        slope_from_input=lambda xp, x, a, b: _choose(xp, x > 0, 1.0, _elu(xp, x, a) + a, x),
        slope_from_output=lambda xp, y, a, b: _choose(xp, y > 0, 1.0, y + a, y),
        defaults=(1.0,),
        output_suffices=lambda alpha: alpha >= 0,  # below 0, both branches give positive y
    ),
    "softsign": _Formula(
        value=lambda xp, x, a, b: x / (1 + xp.abs(x)),
        slope_from_input=lambda xp, x, a, b: 1 / ((1 + xp.abs(x)) * (1 + xp.abs(x))),
        slope_from_output=lambda xp, y, a, b: (1 - xp.abs(y)) * (1 - xp.abs(y)),
    ),
    "softplus": _Formula(
        value=lambda xp, x, a, b: _softplus(xp, x),
        slope_from_input=lambda xp, x, a, b: _sigmoid(xp, x),
        slope_from_output=lambda xp, y, a, b: -xp.expm1(-y),
    ),
}


class Activation(enum.IntEnum):
    """MPSGraphRNNActivation with Apple's raw values 0 to 4, then ONNX's others with their default parameters.

    Wherever an activation is wanted, a member, its lower-case name, or a tuple `(name, alpha, beta)` will do.
    `hard_sigmoid` is `min(max(0.2 x + 0.5, 0), 1)`; torch's Hardsigmoid and Keras 3's hard_sigmoid have the other
    slope: write `("hard_sigmoid", 1 / 6, 0.5)` for models that were trained with those.

    Example:
        >>> import recurra
        >>> recurra.LSTMDescriptor(activation="relu").activation
        <Activation.RELU: 1>
        >>> recurra.LSTMDescriptor(activation=("leaky_relu", 0.1)).activation
        ParametricActivation(kind='leaky_relu', parameters=(0.1,))
    """

    NONE = 0
    RELU = 1
    TANH = 2
    SIGMOID = 3
    HARD_SIGMOID = 4
    AFFINE = 5
    LEAKY_RELU = 6
    THRESHOLDED_RELU = 7
    SCALED_TANH = 8
    ELU = 9
    SOFTSIGN = 10
    SOFTPLUS = 11

    @classmethod
    def _missing_(cls, value: object) -> Activation | None:
        return cls.__members__.get(value.upper()) if isinstance(value, str) and value.islower() else None

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class ParametricActivation:
    """An activation whose parameters are not the default ones, such as `("leaky_relu", 0.1)`."""

    kind: str
    parameters: tuple[float, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(f'{p:g}' for p in self.parameters)})" if self.parameters else self.kind


ActivationLike: TypeAlias = "Activation | ParametricActivation | str | tuple[Any, ...]"


@dataclass(frozen=True)
class ActivationFunction:
    """An activation ready to be computed: value and slope in any array library."""

    name: str
    alpha: float = 0.0
    beta: float = 0.0

    @property
    def output_suffices(self) -> bool:
        """Whether the slope can be had from the output; if not, the training state keeps the pre-activation."""
        return _FORMULAS[self.name].output_suffices(self.alpha)

    def value(self, xp: Namespace, x: Array) -> Array:
        """f(x)."""
        return _FORMULAS[self.name].value(xp, x, self.alpha, self.beta)

    def slope(self, xp: Namespace, x: Array) -> Array:
        """f'(x) from x."""
        return _FORMULAS[self.name].slope_from_input(xp, x, self.alpha, self.beta)

    def save(self, x: Array, y: Array) -> Array:
        """What the training state of an activated gate holds: y, or x where y does not say enough."""
        return y if self.output_suffices else x

    def saved_value(self, xp: Namespace, saved: Array) -> Array:
        """f(x) from what `save` kept."""
        return saved if self.output_suffices else self.value(xp, saved)

    def saved_slope(self, xp: Namespace, saved: Array) -> Array:
        """f'(x) from what `save` kept."""
        if not self.output_suffices:
            return self.slope(xp, saved)
        return _FORMULAS[self.name].slope_from_output(xp, saved, self.alpha, self.beta)


def as_activation(value: ActivationLike | int, where: str) -> Activation | ParametricActivation:
    """The activation meant by an enum member, its raw value, a lower-case name or a tuple `(name, alpha, beta)`.

    Raises:
        ArgumentError: for an unknown name or bad parameters; `where` names the op and the slot.
        ArgumentTypeError: for anything else.
    """
    if isinstance(value, Activation):
        return value
    if isinstance(value, ParametricActivation):
        value = (value.kind, *value.parameters)
    name, *given = value if isinstance(value, tuple | list) and value else (value,)
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise ArgumentTypeError(f"{where}: must be an Activation, a name or a tuple (name, alpha, beta), got {value!r}")
    try:
        name = str(Activation(name))  # type: ignore[arg-type]
    except ValueError:
        names = ", ".join(str(member) for member in Activation)
        raise ArgumentError(f"{where}: must be one of {names}, got {name!r}") from None
    return _with_parameters(name, tuple(given), where)


def _with_parameters(name: str, given: tuple[Any, ...], where: str) -> Activation | ParametricActivation:
    defaults = _FORMULAS[name].defaults
    if len(given) > len(defaults):
        plural = "parameter" if len(defaults) == 1 else "parameters"
        raise ArgumentError(f"{where}: {name} takes {len(defaults)} {plural}, got {len(given)}: {given}")
    for value in given:
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise ArgumentError(f"{where}: the parameters of {name} must be finite numbers, got {given}")
    parameters = tuple(float(value) for value in given) + defaults[len(given) :]
    if parameters == defaults:
        return Activation(name)  # type: ignore[arg-type]
    return ParametricActivation(name, parameters)


def activation_function(value: ActivationLike) -> ActivationFunction:
    """The computable form of an activation."""
    value = as_activation(value, "activation")
    if isinstance(value, Activation):
        return ActivationFunction(str(value), *_FORMULAS[str(value)].defaults)
    return ActivationFunction(value.kind, *value.parameters)
