"""Random numbers from a seed, in NumPy: the distributions that the random ops offer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import math
from typing import Any

import numpy as np

from .._dtypes import DType

WORD = 2**32 - 1


def _generator(seed: np.ndarray[Any, Any]) -> np.random.Generator:
    words = [int(word) for word in seed.reshape(-1)]
    key, draws = words[0] & (2**64 - 1), 0
    if len(words) == 3:
        key, draws = (words[0] & WORD) | (words[1] & WORD) << 32, words[2] & WORD
    # The counter has 256 bits. Draws differ in the highest 64, so none reaches into the numbers of the next.
    return np.random.Generator(np.random.Philox(key=key, counter=draws << 192))


def _uniform(generator: np.random.Generator, shape: Any, dtype: DType, low: Any, high: Any) -> Any:
    if dtype.kind != "float":
        return generator.integers(low, high, size=shape, dtype=dtype.numpy)
    values = np.asarray(generator.random(shape, dtype=dtype.compute.numpy))
    if (low, high) != (0, 1):
        values = values * (high - low) + low
    elif not dtype.is_half:
        return values
    # Rounding may have reached `high`, which is not of the range.
    ends = np.asarray([high, low], dtype=dtype.numpy)
    return np.minimum(values.astype(dtype.numpy), np.nextafter(ends[0], ends[1]))


def _normal(generator: np.random.Generator, shape: Any, dtype: DType, mean: float, deviation: float) -> Any:
    values = np.asarray(generator.standard_normal(shape, dtype=dtype.compute.numpy))
    return (values * deviation + mean).astype(dtype.numpy)


def _truncated_normal(
    generator: np.random.Generator, shape: Any, dtype: DType, mean: float, deviation: float, low: float, high: float
) -> Any:
    values = mean + deviation * _between(
        generator, math.prod(shape), (low - mean) / deviation, (high - mean) / deviation
    )
    return np.clip(values, low, high).reshape(shape).astype(dtype.numpy)


def _between(generator: np.random.Generator, count: int, low: float, high: float) -> Any:
    """Standard normal numbers in [low, high], by rejection."""
    found = np.empty(0)
    nearest = min(max(low, 0.0), high)
    # From here on the density is below exp(-50) of its largest value: nothing is lost in float64.
    far = math.sqrt(nearest**2 + 100)
    low, high = max(low, -far), min(high, far)
    is_wide = math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2)) > 0.5
    while found.size < count:
        tries = min(max(4 * (count - found.size), 64), 2**20)
        if is_wide:
            drawn = generator.standard_normal(tries)
            accepted = drawn[(drawn >= low) & (drawn <= high)]
        else:
            drawn = low + (high - low) * generator.random(tries)
            accepted = drawn[generator.random(tries) < np.exp((nearest**2 - drawn**2) / 2)]
        found = np.concatenate([found, accepted])
    return found[:count]


def _bernoulli(generator: np.random.Generator, shape: Any, dtype: DType, p: float) -> Any:
    return np.asarray(generator.random(shape, dtype=np.float32) < p)


_DRAWS: dict[str, Callable[..., Any]] = {
    "uniform": _uniform,
    "normal": _normal,
    "truncated_normal": _truncated_normal,
    "bernoulli": _bernoulli,
}


def draw(
    seed: Any, shape: tuple[int, ...], dtype: DType, distribution: str, parameters: Sequence[float]
) -> np.ndarray[Any, Any]:
    """The numbers that a seed, or a state, stands for."""
    with np.errstate(over="ignore"):  # a wide normal distribution may leave the range of float16
        return np.asarray(_DRAWS[distribution](_generator(np.asarray(seed)), shape, dtype, *parameters))
