"""How a recurrent op is called and recorded: what the three rooms share between their specs and their references.

A node's inputs are the arguments that were given, in a fixed order; the attribute `slots` names them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _arrays
from .._arrays import Array, Namespace
from .._errors import ArgumentTypeError
from .._ir import Program, Tensor, graph_of, lift, run_now
from .._op import Op, ShapedType
from . import _rules, _sequence
from ._composed import NO_MASK_GRADIENT
from ._descriptor import Descriptor

Slots = tuple[str, ...]

# Inputs that are never differentiated, and why nobody misses it.
_INTEGRAL = ("lengths", "resets")


def call(op: Op, named: Mapping[str, Any], descriptor: Descriptor, wanted: tuple[bool, ...], name: str | None) -> Any:
    """Make a node, or compute at once; the outputs as a tuple."""
    for always in ("source", "recurrent_weight"):
        required(op.name, always, named[always])
    given = {k: _checked(op, k, v, named["source"]) for k, v in named.items() if v is not None}
    attrs = {"slots": tuple(given), "descriptor": descriptor}
    values = list(given.values())
    graph: Program | None = graph_of(values)
    if graph is not None:
        return graph.add(op, [lift(graph, v) for v in values], attrs, name).output_tensors
    return run_now(op, values, attrs, wanted)


def _checked(op: Op, name: str, value: Any, source: Any) -> Any:
    if isinstance(value, Tensor) or _arrays.is_array(value):
        return np.asarray(value) if isinstance(value, np.generic) else value
    if name in _INTEGRAL and isinstance(value, list | tuple):
        array = _from_list(op, name, value)
        if _arrays.is_array(source):
            return _arrays.constant(_arrays.namespace(source), array, _arrays.device_of(source))
        return array
    raise ArgumentTypeError(f"{op.name}: {name} must be an array or a graph tensor, got {type(value).__name__}")


def _from_list(op: Op, name: str, value: Sequence[Any]) -> np.ndarray[Any, Any]:
    try:
        array = np.array(value, dtype=None if value else np.int64 if name == "lengths" else np.bool_)
    except ValueError:  # lists of different lengths
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        kind = "integers" if name == "lengths" else "booleans"
        raise ArgumentTypeError(f"{op.name}: {name} must hold {kind}, got {value!r}")
    return array


def infer_forward(op: str, gates: int, outputs: tuple[int, ...]) -> Callable[..., tuple[ShapedType, ...]]:
    """Inference of a forward op; `outputs` has each output's channels as a multiple of D*H."""

    def infer(*types: ShapedType, slots: Slots, descriptor: Descriptor) -> tuple[ShapedType, ...]:
        s = _rules.check(op, dict(zip(slots, types, strict=True)), gates, descriptor.directions)
        return tuple(ShapedType.trusted((s.T, s.N, s.D * s.H * k), types[0].dtype) for k in outputs)

    return infer


def infer_gradients(op: str, gates: int, order: Slots) -> Callable[..., tuple[ShapedType, ...]]:
    """Inference of a gradient op: each gradient is like its input."""

    def infer(*types: ShapedType, slots: Slots, descriptor: Descriptor) -> tuple[ShapedType, ...]:
        given = dict(zip(slots, types, strict=True))
        s = _rules.check(op, given, gates, descriptor.directions)
        given["source"] = ShapedType.trusted((s.T, s.N, s.I), given["source"].dtype)
        return tuple(given[name] for name in present(order, slots))

    return infer


def present(order: Slots, slots: Slots) -> Slots:
    """The names in `order` that were given."""
    return tuple(name for name in order if name in slots)


def forward_reference(forward: Callable[..., tuple[Array | None, ...]]) -> Callable[..., tuple[Array | None, ...]]:
    """A room's forward equations as an op's reference: named inputs, compute dtype, results like source."""

    def reference(
        xp: Namespace, *inputs: Array, slots: Slots, descriptor: Descriptor, wanted: tuple[bool, ...]
    ) -> tuple[Array | None, ...]:
        arrays = _sequence.computable(xp, dict(zip(slots, inputs, strict=True)))
        dtype = _arrays.dtype_of(inputs[0])
        return tuple(None if y is None else _arrays.cast(xp, y, dtype) for y in forward(xp, arrays, descriptor, wanted))

    return reference


def gradient_reference(backward: Callable[..., dict[str, Array]], order: Slots) -> Callable[..., tuple[Array, ...]]:
    """A room's backward equations as an op's reference."""

    def reference(
        xp: Namespace, *inputs: Array, slots: Slots, descriptor: Descriptor, wanted: tuple[bool, ...]
    ) -> tuple[Array, ...]:
        arrays = _sequence.computable(xp, dict(zip(slots, inputs, strict=True)))
        if "source_gradient" not in arrays:
            steps, batch, _ = arrays["source"].shape
            hidden = arrays["recurrent_weight"].shape[-1] * descriptor.directions
            arrays["source_gradient"] = _arrays.zeros(xp, (steps, batch, hidden), arrays["source"])
        gradients = backward(xp, arrays, descriptor)
        dtype = _arrays.dtype_of(inputs[0])
        return tuple(_arrays.cast(xp, gradients[name], dtype) for name in present(order, slots))

    return reference


def check_values(op: str) -> Callable[..., None]:
    """The run-time check of an op's inputs: lengths within [0, T]."""

    def check(*inputs: Array, slots: Slots, descriptor: Descriptor) -> None:
        if "lengths" in slots:
            _sequence.check_lengths(op, inputs[slots.index("lengths")], inputs[0].shape[0])

    return check


def by_slot(slots: Slots, gradients: Any) -> list[Any]:
    """A vjp's answer: the gradient of each input, the mask's refusal included."""
    return [NO_MASK_GRADIENT if name == "mask" else getattr(gradients, name, None) for name in slots]


def chosen(names: Slots, values: Sequence[Any], wanted: Sequence[bool]) -> tuple[Slots, tuple[Any, ...]]:
    """The names and values that are wanted."""
    kept = [(n, v) for n, v, w in zip(names, values, wanted, strict=True) if w]
    return tuple(n for n, _ in kept), tuple(v for _, v in kept)


def required(op: str, name: str, value: Any) -> Any:
    """Refuse None for an argument that must be given."""
    if value is None:
        raise ArgumentTypeError(f"{op}: {name} must be an array or a graph tensor, got None")
    return value
