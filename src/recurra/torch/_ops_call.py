"""From the arguments of a function to a call of torch's dispatcher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

import numpy as np
import torch

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
        ArgumentTypeError: an argument is not a tensor.
        DeviceError: it is on another device than source.
    """
    op = BY_NAME[name]
    source = named["source"]
    required(name, "source", source)
    required(name, "recurrent_weight", named["recurrent_weight"])
    tensors = [named[n] for n in op.arguments]
    for i, tensor in enumerate(tensors):
        if tensor is not None and not (isinstance(tensor, torch.Tensor) and tensor.device == source.device):
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
    if not isinstance(source, torch.Tensor):
        raise ArgumentTypeError(f"{op.name}: source must be a tensor, got {type(source).__name__}")
    if isinstance(value, torch.Tensor):
        raise DeviceError(
            f"{op.name}: {argument} must be on the device of source, {source.device}, got {value.device}; "
            f"write {argument}.to({str(source.device)!r})"
        )
    if argument in INTEGRAL and isinstance(value, list | tuple | np.ndarray):
        array = from_list(op.name, argument, value) if isinstance(value, list | tuple) else value
        return torch.as_tensor(array, device=source.device)
    raise ArgumentTypeError(f"{op.name}: {argument} must be a tensor, got {type(value).__name__}")
