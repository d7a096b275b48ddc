"""Random tensors, and dropout.

A random op is a pure function of a seed: NumPy's Philox, a counter-based generator, draws on the host, and the numbers
then move to the array library and its device. So one seed gives the same numbers with every library. Without a seed,
a graph draws anew in every run (`Graph(seed=…)` makes the runs repeat), and an eager call takes a seed from the system.

A state is int32 `[3]`: the low and the high word of the seed, and how many tensors were drawn from it.
"""

from __future__ import annotations

from collections.abc import Sequence
import math
import secrets
import sys
from typing import Any

import ml_dtypes
import numpy as np

from .. import _arrays
from .._arrays import Array, Namespace
from .._dtypes import DType, as_dtype, bool_, int32
from .._errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, UnsupportedError
from .._ir import Program, Tensor, apply, graph_of
from .._op import UNKNOWN, Op, ShapedType, as_shape, register
from ._attributes import integer, shape_given
from ._draws import WORD, draw
from ._shapes import kind_of
from ._writes import full
from .casting import cast
from .comparison import greater_equal
from .elementwise import no_gradient


def random_uniform(
    shape: Any = None,
    low: float = 0.0,
    high: float = 1.0,
    dtype: Any = "float32",
    seed: Any = None,
    *,
    like: Any = None,
    graph: Any = None,
    name: str | None = None,
) -> Any:
    """Numbers in [low, high), all equally likely; whole ones for an integer dtype.

    Args:
        shape: sizes, all known; or give `like`.
        low, high: the range, as numbers.
        dtype: a float or an integer dtype.
        seed: an integer from 0 on, or a tensor or array with one (int32 or int64), or a state. None takes a new one,
            in a graph for every run.
        like: a tensor or array whose shape the result takes, known or not.
        graph: the graph that the result belongs to; that of `like` or `seed` need not be given. Without a graph and
            without an array, the result is a NumPy array.
        name: a label.

    Example:
        >>> random_uniform((2, 2), seed=7).tolist() == random_uniform((2, 2), seed=7).tolist()
        True
    """
    attrs = _described("random_uniform", "uniform", dtype, low=low, high=high)
    return _random("random_uniform", shape, seed, like, graph, name, attrs)


def random_normal(
    shape: Any = None,
    mean: float = 0.0,
    standard_deviation: float = 1.0,
    dtype: Any = "float32",
    seed: Any = None,
    *,
    like: Any = None,
    graph: Any = None,
    name: str | None = None,
) -> Any:
    """Numbers of a normal distribution; the other arguments are those of `random_uniform`."""
    attrs = _described("random_normal", "normal", dtype, mean=mean, standard_deviation=standard_deviation)
    return _random("random_normal", shape, seed, like, graph, name, attrs)


def random_tensor(
    shape: Any = None,
    distribution: str = "uniform",
    dtype: Any = "float32",
    seed: Any = None,
    *,
    like: Any = None,
    graph: Any = None,
    name: str | None = None,
    **parameters: float,
) -> Any:
    """Numbers of a distribution: `"uniform"` (low, high), `"normal"` (mean, standard_deviation), `"truncated_normal"`.

    The truncated normal takes `mean` and `standard_deviation`, and keeps to [low, high], by default two standard
    deviations on either side. The other arguments are those of `random_uniform`.
    """
    attrs = _described("random_tensor", distribution, dtype, **parameters)
    return _random("random_tensor", shape, seed, like, graph, name, attrs)


def random_state(seed: int, graph: Any = None, name: str | None = None) -> Any:
    """The state that belongs to a seed, before anything was drawn: int32 [3], in a graph a constant."""
    words = _words("random_state", seed)
    return words if graph is None else _checked_graph("random_state", graph).constant(words, name=name)


def random_with_state(
    shape: Any,
    state: Any,
    distribution: str = "uniform",
    dtype: Any = "float32",
    *,
    like: Any = None,
    name: str | None = None,
    **parameters: float,
) -> tuple[Any, Any]:
    """Numbers of a distribution drawn from a state, and the state for the next draw.

    Example:
        >>> first, state = random_with_state((3,), random_state(1))
        >>> second, state = random_with_state((3,), state, "normal", mean=1.0)
        >>> state.tolist()
        [1, 0, 2]
    """
    attrs = _described("random_with_state", distribution, dtype, **parameters)
    values = _random("random_with_state", shape, state, like, None, name, attrs)
    return values, apply("random_next_state", state)


def dropout(x: Any, rate: Any, seed: Any = None, state: Any = None, name: str | None = None) -> Any:
    """`x` with each element set to 0 with probability `rate`, and scaled by 1 / (1 - rate) otherwise.

    The gradient uses the mask of the forward pass. A rate of 1 gives zeros, and zeros as gradients; what is dropped
    becomes 0 even if it was NaN.

    Args:
        x: a float tensor.
        rate: a number from 0 to 1, or a float tensor of one element; it has no gradient.
        seed: as for `random_uniform`.
        state: a state instead of a seed; the result is then a tuple of the tensor and the next state.
        name: a label.
    """
    shape_given("dropout", x)
    if seed is not None and state is not None:
        raise ArgumentError("dropout: one of seed and state may be given, got both")
    kept = _dropped(x, rate, seed if state is None else state, name)
    return kept if state is None else (kept, apply("random_next_state", state))


def _dropped(x: Any, rate: Any, seed: Any, name: str | None) -> Any:
    if isinstance(rate, bool) or not isinstance(rate, int | float):
        _one_element(shape_given("dropout: rate", rate), x.shape)
        attrs = _described("dropout", "uniform", "float32")
        uniform = _random("dropout", None, seed, x, graph_of((x, rate)), None, attrs)
        keep = greater_equal(uniform, cast(rate, "float32"))
        return apply("dropout", x, keep, cast(rate, x.dtype), rate=None, name=name)
    if not 0 <= rate <= 1:
        raise ArgumentError(f"dropout: rate must lie in [0, 1], got {rate}")
    if rate == 0:
        return x
    attrs = {"distribution": "bernoulli", "dtype": bool_, "parameters": [1.0 - rate]}
    keep = _random("dropout", None, seed, x, None, None, attrs)
    return apply("dropout", x, keep, rate=float(rate), name=name)


# --- arguments ---

_PARAMETERS: dict[str, tuple[str, ...]] = {
    "uniform": ("low", "high"),
    "normal": ("mean", "standard_deviation"),
    "truncated_normal": ("mean", "standard_deviation", "low", "high"),
}
_DEFAULTS: dict[str, float] = {"low": 0.0, "high": 1.0, "mean": 0.0, "standard_deviation": 1.0}


def _described(op: str, distribution: str, dtype: Any, **given: Any) -> dict[str, Any]:
    """The attributes of a random node."""
    if distribution not in _PARAMETERS:
        raise ArgumentError(f"{op}: distribution must be uniform, normal or truncated_normal, got {distribution!r}")
    wanted = _PARAMETERS[distribution]
    for name, value in given.items():
        if name not in wanted:
            raise ArgumentError(f"{op}: {distribution} takes {' and '.join(wanted)}, got {name}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ArgumentError(f"{op}: {name} must be a finite number, got {value!r}")
    values = {**_DEFAULTS, **given}
    if distribution == "truncated_normal":
        around = 2 * values["standard_deviation"]
        values = {**values, "low": values["mean"] - around, "high": values["mean"] + around, **given}
    kind = as_dtype(dtype)
    _check_range(op, distribution, kind, values)
    return {"distribution": distribution, "dtype": kind, "parameters": [values[name] for name in wanted]}


def _check_range(op: str, distribution: str, dtype: DType, values: dict[str, Any]) -> None:
    low, high, deviation = values["low"], values["high"], values["standard_deviation"]
    if dtype.kind in ("int", "uint") and distribution == "uniform":
        limits = np.iinfo(dtype.numpy)
        if type(low) is not int or type(high) is not int or not limits.min <= low < high <= int(limits.max) + 1:
            rule = f"low and high must be integers with low < high in the range of {dtype}"
            raise ArgumentError(f"{op}: {rule}, got {low!r} and {high!r}")
        return
    if not dtype.is_float:
        raise DTypeError(f"{op}: dtype must be a float{' or an integer' * (distribution == 'uniform')}, got {dtype}")
    if "low" in _PARAMETERS[distribution]:
        largest = float(ml_dtypes.finfo(dtype.numpy).max)  # type: ignore[no-untyped-call]
        if not low < high or max(abs(low), abs(high), high - low) > largest:
            raise ArgumentError(f"{op}: low must be below high, both in the range of {dtype}, got {low} and {high}")
    if deviation < 0 or (distribution == "truncated_normal" and deviation == 0):
        raise ArgumentError(f"{op}: standard_deviation must not be negative, or 0 if truncated, got {deviation}")


def _checked_graph(op: str, graph: Any) -> Program:
    if not isinstance(graph, Program):
        raise ArgumentTypeError(f"{op}: graph must be a Graph or None, got {graph!r}")
    return graph


def _words(op: str, seed: Any) -> np.ndarray[Any, Any]:
    number = integer(op, "seed", seed)
    if not 0 <= number < 2**64:
        raise ArgumentError(f"{op}: seed must lie in [0, 2**64), got {number}")
    return np.asarray([number & WORD, number >> 32, 0], dtype=np.uint32).view(np.int32)


def _random(op: str, shape: Any, seed: Any, like: Any, graph: Any, name: str | None, attrs: dict[str, Any]) -> Any:
    if (shape is None) == (like is None):
        raise ArgumentTypeError(f"{op}: one of shape and like must be given, got both or none")
    if like is None:
        shape = as_shape(shape, op)
        if UNKNOWN in shape:
            raise ShapeError(f"{op}: shape must be known, got {list(shape)}; give like instead")
    graph = graph_of((like, seed)) if graph is None else _checked_graph(op, graph)
    source = _source(op, seed, graph, like)
    if like is not None:
        return apply("random", source, like, shape=None, name=name, **attrs)
    if graph is not None and seed is None:
        # The seed of a run is a number of the host; this says on which device the run is.
        return apply("random", source, graph.constant(np.zeros((), np.float32)), shape=shape, name=name, **attrs)
    return apply("random", source, shape=shape, name=name, **attrs)


def _source(op: str, seed: Any, graph: Program | None, like: Any) -> Any:
    """The seed as what the random op reads."""
    if isinstance(seed, Tensor):
        return seed
    if seed is None and graph is not None:
        return graph.run_seed()
    if like is not None:
        shape_given(op, like)
    if seed is None:
        if _arrays.is_array(like) and _arrays.is_traced(like):
            raise ArgumentError(f"{op}: seed must be given under a tracer, or every call would draw the same; got None")
        seed = secrets.randbits(64)
    array = seed if _arrays.is_array(seed) else _words(op, seed)
    if graph is not None:
        return graph.constant(array)
    if array is not seed and _arrays.is_array(like):
        return _arrays.constant(_arrays.namespace(like), array, _arrays.device_of(like))
    return array


# --- records ---


def _reference(
    xp: Namespace, seed: Array, *like: Array, shape: Any, dtype: str, distribution: str, parameters: Sequence[float]
) -> Array:
    sizes = tuple(like[0].shape if shape is None else shape)
    kind = as_dtype(dtype)

    def drawn(seed: Any) -> np.ndarray[Any, Any]:
        return draw(_arrays.to_numpy(seed), sizes, kind, distribution, parameters)

    if not _arrays.is_readable(seed):
        if not _arrays.is_jax(seed):
            raise UnsupportedError("random: seed must have a value that can be read, got one under a tracer")
        jax = sys.modules["jax"]
        result = jax.ShapeDtypeStruct(sizes, _arrays.native_dtype(xp, kind))
        return jax.pure_callback(drawn, result, seed, vmap_method="sequential")
    return _arrays.constant(xp, drawn(seed), _arrays.device_of(like[0] if like else seed))


def _infer(
    seed: ShapedType, *like: ShapedType, shape: Any, dtype: str, distribution: str, parameters: Sequence[float]
) -> ShapedType:
    is_state = seed.dtype == "int32" and seed.shape in ((3,), (UNKNOWN,))
    if not is_state and (seed.dtype not in ("int32", "int64") or seed.shape != ()):
        raise DTypeError(f"random: seed must be an int32 or int64 number, or a state (int32 [3]), got {seed!r}")
    return ShapedType.trusted(tuple(like[0].shape if shape is None else shape), as_dtype(dtype))


def _infer_next(state: ShapedType) -> ShapedType:
    if state.dtype != "int32" or state.shape not in ((3,), (UNKNOWN,)):
        raise DTypeError(f"random_next_state: state must be int32 [3], got {state!r}")
    return ShapedType.trusted((3,), int32)


def _infer_dropout(x: ShapedType, keep: ShapedType, *rates: ShapedType, rate: float | None) -> ShapedType:
    kind_of("dropout", x, ("float",))
    for given in rates:
        _one_element(given.shape, x.shape)
    return x


def _one_element(rate: Sequence[int], x: Sequence[int]) -> None:
    if any(size not in (1, UNKNOWN) for size in rate) or len(rate) > len(x):
        raise ShapeError(f"dropout: rate must have one element, got {list(rate)}")


def _scale_kept(xp: Namespace, x: Array, keep: Array, *rates: Array, rate: float | None) -> Array:
    if rates:
        one = xp.ones_like(rates[0])
        scaled = x / xp.where(rates[0] < 1, one - rates[0], one)
    else:
        # An array, because a Python number would make float32 of NumPy's bfloat16.
        scaled = x if rate == 1 else x * full(xp, (), 1 / (1 - rate), x)  # type: ignore[operator]
    return xp.where(keep, scaled, _arrays.zeros(xp, (), x))


def _dropout_vjp(inputs: Sequence[Any], outputs: Sequence[Any], g: Sequence[Any], rate: Any) -> tuple[Any, ...]:
    return (apply("dropout", g[0], *inputs[1:], rate=rate), *(None for _ in inputs[1:]))


def _check_rate(x: Array, keep: Array, *rates: Array, rate: float | None) -> None:
    for given in rates:
        if _arrays.is_readable(given):
            value = float(_arrays.to_numpy(given).reshape(-1)[0])
            if not 0 <= value <= 1:
                raise ArgumentError(f"dropout: rate must lie in [0, 1], got {value}")


register(Op("random", infer=_infer, reference=_reference, vjp=no_gradient, shape_only=frozenset({1})))
register(
    Op(
        "random_next_state",
        infer=_infer_next,
        reference=lambda xp, state: (
            state + _arrays.constant(xp, np.asarray([0, 0, 1], np.int32), _arrays.device_of(state))
        ),
        vjp=no_gradient,
    )
)
register(Op("dropout", infer=_infer_dropout, reference=_scale_kept, vjp=_dropout_vjp, check_values=_check_rate))
