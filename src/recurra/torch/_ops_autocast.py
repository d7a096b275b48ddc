"""The ops under `torch.autocast`: like torch's own recurrent layers, they run in the lower precision.

Whatever is a float of at most 32 bits is cast to autocast's dtype; the kernels accumulate in float32 all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import _C

from ._ops import ALL, LIBRARY, TorchOp

_KEYS = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}


def _autocast(op: TorchOp, device: str) -> Callable[..., Any]:
    excluded = _C.DispatchKeySet(getattr(_C.DispatchKey, _KEYS[device]))

    def run(*tensors: torch.Tensor | None, descriptor: str) -> Any:
        dtype = torch.get_autocast_dtype(device)
        with _C._ExcludeDispatchKeyGuard(excluded):
            return op.overload(*[_cast(t, dtype) for t in tensors], descriptor=descriptor)

    return run


def _cast(tensor: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    if tensor is None or not tensor.is_floating_point() or tensor.dtype == torch.float64:
        return tensor
    return tensor.to(dtype)


for _each in ALL:
    for _device, _key in _KEYS.items():
        LIBRARY.impl(_each.name, _autocast(_each, _device), _key)
