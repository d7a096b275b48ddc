"""How a recurrent op is called: its arguments become a node's inputs, or arrays that are computed at once.

A node's inputs are the arguments that were given, in a fixed order; the attribute `slots` names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import sys
from typing import Any, NamedTuple

import numpy as np

from .. import _arrays, _op
from .._dtypes import as_dtype
from .._errors import ArgumentTypeError
from .._ir import Program, Tensor, choice_now, compute, graph_of, lift, run_now
from .._op import UNKNOWN, Op
from . import _sequence
from ._descriptor import Descriptor

Slots = tuple[str, ...]

# Inputs that are never differentiated, and why nobody misses it.
INTEGRAL = ("lengths", "resets")


def call(op: Op, named: Mapping[str, Any], descriptor: Descriptor, wanted: tuple[bool, ...], name: str | None) -> Any:
    """Make a node, or compute at once; the outputs as a tuple."""
    given = {k: v for k, v in named.items() if v is not None}
    if {type(v) for v in given.values()} == _PLAIN and not _op.LISTENERS:
        return _on_numpy(op, given, named, descriptor, wanted)
    if _is_for_torch(given):
        from ..torch._ops_call import call as call_torch

        return call_torch(op.name, named, descriptor, wanted)
    _check_required(op, named)
    given = {k: _checked(op, k, v, named["source"]) for k, v in given.items()}
    _check_dtypes(op, given)
    attrs = {"slots": tuple(given), "descriptor": descriptor}
    values = list(given.values())
    graph: Program | None = graph_of(values)
    if graph is not None:
        _check_fixed_lengths(op, given)
        return graph.add(op, [lift(graph, v) for v in values], attrs, name).output_tensors
    return run_now(op, values, attrs, wanted)


_PLAIN = {np.ndarray}


def _is_for_torch(given: Mapping[str, Any]) -> bool:
    """Whether these are torch's tensors, and no graph's: torch then has to see one op (see recurra/torch)."""
    torch = sys.modules.get("torch")
    return (
        torch is not None
        and any(isinstance(v, torch.Tensor) for v in given.values())
        and not any(isinstance(v, Tensor) for v in given.values())
    )


class _Ready(NamedTuple):
    """What a call on arrays of the same types did before: everything but the arithmetic."""

    descriptor: Descriptor
    backends: list[Any]
    attrs: dict[str, Any]
    choice: _op.Choice
    is_direct: bool  # a kernel, and no values to check: it is called as it is


# A frame of audio takes microseconds: its inputs are looked at once.
_ready: dict[Any, _Ready] = {}


def _on_numpy(
    op: Op, given: dict[str, Any], named: Mapping[str, Any], descriptor: Descriptor, wanted: tuple[bool, ...]
) -> Any:
    values = given.values()
    key = (op.name, id(descriptor), wanted, *given, *[v.shape for v in values], *[v.dtype for v in values])
    found = _ready.get(key)
    if found is None or found.descriptor is not descriptor or found.backends is not _op.BACKENDS:
        _check_required(op, named)
        _check_dtypes(op, given)
        attrs = {"slots": tuple(given), "descriptor": descriptor}
        choice = choice_now(op, list(values), attrs, wanted)
        is_direct = choice.backend != "reference" and "lengths" not in given
        found = _Ready(descriptor, _op.BACKENDS, attrs, choice, is_direct)
        if len(_ready) > 500:
            _ready.clear()
        _ready[key] = found
    if found.is_direct:
        return found.choice.kernel(found.choice.xp, *values)
    return compute(op, list(values), found.attrs, found.choice)


def _check_required(op: Op, named: Mapping[str, Any]) -> None:
    for always in ("source", "recurrent_weight"):
        required(op.name, always, named[always])


def _check_dtypes(op: Op, given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        as_dtype(value.dtype, f"{op.name}: {name}")  # an array of objects, of words, …


def _check_fixed_lengths(op: Op, given: Mapping[str, Any]) -> None:
    """Refuse lengths that are known when the node is made as those of a run are refused."""
    lengths, steps = given.get("lengths"), given["source"].shape[:1]
    if lengths is not None and not isinstance(lengths, Tensor) and steps not in ((), (UNKNOWN,)):
        _sequence.check_lengths(op.name, lengths, steps[0])


def _checked(op: Op, name: str, value: Any, source: Any) -> Any:
    if isinstance(value, Tensor) or _arrays.is_array(value):
        return np.asarray(value) if isinstance(value, np.generic) else value
    if name in INTEGRAL and isinstance(value, list | tuple):
        array = from_list(op.name, name, value)
        if _arrays.is_array(source):
            return _arrays.constant(_arrays.namespace(source), array, _arrays.device_of(source))
        return array
    raise ArgumentTypeError(f"{op.name}: {name} must be an array or a graph tensor, got {type(value).__name__}")


def from_list(op: str, name: str, value: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Lengths or resets that were given as a list."""
    try:
        array = np.array(value)
        if not array.size:
            array = array.astype(np.int64 if name == "lengths" else np.bool_)
    except ValueError:  # lists of different lengths
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        kind = "integers" if name == "lengths" else "booleans"
        raise ArgumentTypeError(f"{op}: {name} must hold {kind}, got {value!r}")
    return array


def required(op: str, name: str, value: Any) -> Any:
    """Refuse None for an argument that must be given."""
    if value is None:
        raise ArgumentTypeError(f"{op}: {name} must be an array or a graph tensor, got None")
    return value
