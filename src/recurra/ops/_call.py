"""How a recurrent op is called: its arguments become a node's inputs, or arrays that are computed at once.

A node's inputs are the arguments that were given, in a fixed order; the attribute `slots` names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import _arrays
from .._errors import ArgumentTypeError
from .._ir import Program, Tensor, graph_of, lift, run_now
from .._op import Op
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


def chosen(names: Slots, values: Sequence[Any], wanted: Sequence[bool]) -> tuple[Slots, tuple[Any, ...]]:
    """The names and values that are wanted."""
    kept = [(n, v) for n, v, w in zip(names, values, wanted, strict=True) if w]
    return tuple(n for n, _ in kept), tuple(v for _, v in kept)


def required(op: str, name: str, value: Any) -> Any:
    """Refuse None for an argument that must be given."""
    if value is None:
        raise ArgumentTypeError(f"{op}: {name} must be an array or a graph tensor, got None")
    return value
