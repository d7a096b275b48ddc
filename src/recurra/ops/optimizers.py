"""Steps of training, as values: what a variable becomes, not the act of assigning it."""

from __future__ import annotations

import math
from typing import Any

from .elementwise import add, divide, maximum_nan, multiply, subtract
from .unary import sqrt, square


def sgd(learning_rate: Any, values: Any, gradient: Any, name: str | None = None) -> Any:
    """values - learning_rate * gradient. The learning rate is a number or a scalar tensor.

    Example:
        >>> import numpy as np
        >>> sgd(0.5, np.asarray([1.0, 2.0]), np.asarray([2.0, -2.0])).tolist()
        [0.0, 3.0]
    """
    return subtract(values, multiply(learning_rate, gradient), name=name)


def adam(
    learning_rate: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    beta1_power: Any,
    beta2_power: Any,
    values: Any,
    momentum: Any,
    velocity: Any,
    maximum_velocity: Any,
    gradient: Any,
    name: str | None = None,
) -> tuple[Any, ...]:
    """A step of Adam whose learning rate is corrected for the start: learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t).

    Args:
        learning_rate, beta1, beta2, epsilon: numbers or scalar tensors.
        beta1_power, beta2_power: beta1^t and beta2^t, where t is 1 at the first step.
        values: the parameters.
        momentum, velocity: running means of the gradient and of its square, of the shape of `values`; 0 at the start.
        maximum_velocity: the largest velocity so far (AMSGrad), or None.
        gradient: the gradient of the loss with respect to `values`.
        name: a label for the new values.

    Returns:
        The new values, momentum and velocity, and the new maximum velocity if there was one.
    """
    rate = _corrected(learning_rate, beta1_power, beta2_power)
    return adam_with_current_learning_rate(
        rate, beta1, beta2, epsilon, values, momentum, velocity, maximum_velocity, gradient, name
    )


def adam_with_current_learning_rate(
    current_learning_rate: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    values: Any,
    momentum: Any,
    velocity: Any,
    maximum_velocity: Any,
    gradient: Any,
    name: str | None = None,
) -> tuple[Any, ...]:
    """A step of Adam with the learning rate as it is.

        momentum = beta1 * momentum + (1 - beta1) * gradient
        velocity = beta2 * velocity + (1 - beta2) * gradient^2
        values = values - current_learning_rate * momentum / (sqrt(velocity or its maximum) + epsilon)

    Arguments and results are those of `adam`.
    """
    new_momentum = add(multiply(beta1, momentum), multiply(_rest(beta1), gradient))
    new_velocity = add(multiply(beta2, velocity), multiply(_rest(beta2), square(gradient)))
    largest = new_velocity if maximum_velocity is None else maximum_nan(maximum_velocity, new_velocity)
    step = divide(new_momentum, add(sqrt(largest), epsilon))
    new_values = subtract(values, multiply(current_learning_rate, step), name=name)
    results = (new_values, new_momentum, new_velocity)
    return results if maximum_velocity is None else (*results, largest)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _rest(share: Any) -> Any:
    """1 - share."""
    return 1.0 - share if _is_number(share) else subtract(1.0, share)


def _corrected(learning_rate: Any, beta1_power: Any, beta2_power: Any) -> Any:
    rest1, rest2 = _rest(beta1_power), _rest(beta2_power)
    root = math.sqrt(rest2) if _is_number(rest2) else sqrt(rest2)
    if _is_number(root) and _is_number(rest1):
        factor = root / rest1
    else:
        factor = divide(root, rest1)
    if _is_number(factor) and _is_number(learning_rate):
        return learning_rate * factor
    return multiply(learning_rate, factor)
