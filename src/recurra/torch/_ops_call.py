"""From the arguments of a function to a call of torch's dispatcher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

import torch

from .. import _arrays
from .._errors import ArgumentTypeError, DeviceError
from .._op import Attrs
from ..ops._call import INTEGRAL, from_list, required
from ..ops._descriptor import Descriptor
from . import (
    _ops_autocast as _ops_autocast,
    _ops_autograd as _ops_autograd,
    _ops_fake as _ops_fake,
    _ops_kernel as _ops_kernel,
    _ops_vmap as _ops_vmap,
)
from ._ops import BY_NAME, TorchOp
from ._ops_text import text_of


def call(name: str, named: Mapping[str, Any], descriptor: Descriptor, wanted: Sequence[bool]) -> tuple[Any, ...]:
    """The op's results, None for those that are not wanted.

    Raises:
        ArgumentTypeError: an argument is not an array.
        DeviceError: it is of another library or on another device than source.
    """
    op = BY_NAME[name]
    source = named["source"]
    required(name, "source", source)
    required(name, "recurrent_weight", named["recurrent_weight"])
    tensors = [named[n] for n in op.arguments]
    for i, tensor in enumerate(tensors):
        is_one = isinstance(tensor, torch.Tensor) and isinstance(source, torch.Tensor)
        if tensor is not None and not (is_one and tensor.device == source.device):
            tensors[i] = _refused_or_made(op, op.arguments[i], tensor, source)
    outputs = iter(op.overload(*tensors, descriptor=text_of(descriptor)))
    return tuple(next(outputs) if w else None for w in wanted)


def call_in_slots(name: str, attrs: Attrs, tensors: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    """The same for an op's inputs in the order of its slots, and the results that some step wants: a plan's call."""
    op = BY_NAME[name]
    given = dict(zip(attrs["slots"], tensors, strict=True))
    options, wanted = attrs["descriptor"], attrs["wanted"]
    if not op.is_gradient:
        fields = {"training": wanted[-1], **({"produce_cell": wanted[1]} if "c" in op.pair.results else {})}
        options = dataclasses.replace(options, **fields)
    text = text_of(options)
    outputs = iter(op.overload(*[given.get(n) for n in op.arguments], descriptor=text))
    return tuple(next(outputs) if there else None for there in op.wanted(text, tuple(given)))


def _refused_or_made(op: TorchOp, argument: str, value: Any, source: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor) and isinstance(source, torch.Tensor):
        raise DeviceError(
            f"{op.name}: {argument} must be on the device of source, {source.device}, got {value.device}; "
            f"write {argument}.to({str(source.device)!r})"
        )
    other = source if argument == "source" else value
    if _arrays.is_array(other):
        raise DeviceError(f"{op.name}: arrays must be of one library, got {_arrays.library(other)} and torch")
    if argument in INTEGRAL and isinstance(value, list | tuple):
        return torch.as_tensor(from_list(op.name, argument, value), device=source.device)
    raise ArgumentTypeError(f"{op.name}: {argument} must be an array or a graph tensor, got {type(value).__name__}")
