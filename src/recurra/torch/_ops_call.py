"""From the arguments of a function to a call of torch's dispatcher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from .._errors import ArgumentTypeError, DeviceError
from ..ops._call import INTEGRAL, from_list, required
from ..ops._descriptor import Descriptor
from . import (
    _ops_autograd as _ops_autograd,
    _ops_fake as _ops_fake,
    _ops_kernel as _ops_kernel,
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
