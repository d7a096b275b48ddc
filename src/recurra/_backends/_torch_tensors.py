"""Torch's CPU tensors as NumPy arrays of the same memory, where nothing but their values matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import sys
from typing import Any

import ml_dtypes
import numpy as np

from .. import _arrays
from .._arrays import Array, Namespace


def refusal(device: Any, inputs: Sequence[Array] | None) -> str | None:
    """Why the native kernels cannot take these tensors (or, before they are known, tensors on this device)."""
    if device is not None and device.type != "cpu":
        return f"has kernels for CPU tensors only, not for {device}"
    if inputs is None:
        return None
    torch = sys.modules["torch"]
    if torch.compiler.is_compiling():
        return "torch.compile follows the reference only"
    plain = (torch.Tensor, torch.nn.Parameter)
    # Tensors under vmap, grad, jvp, fake tensors, and other subclasses: each must see the ops one by one.
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    if torch.autograd.forward_ad._current_level >= 0 or any(type(t) not in plain or wrapped(t) for t in inputs):
        return "tensors under a transformation follow the reference only"
    if torch.is_grad_enabled() and any(t.requires_grad for t in inputs):
        return "autograd records the reference only (torch.no_grad, or the gradient ops)"
    if any(t.layout is not torch.strided for t in inputs):
        return "has kernels for dense tensors only"
    return None


class Kernel:
    """A kernel for NumPy arrays, for tensors; the reference for tensors that it cannot take."""

    def __init__(self, kernel: Callable[..., Any], reference: Callable[..., Any]) -> None:
        self._kernel, self._reference = kernel, reference
        # The steady inputs that came last, and as what: the kernel must see the same arrays for the same tensors.
        self._steady: list[int] = []
        self._last: dict[int, tuple[Array, Array]] = {}

    def keeping(self, steady: Sequence[bool], store: dict[str, Any]) -> Kernel:
        """As `Forward.keeping`."""
        if not hasattr(self._kernel, "keeping"):
            return self
        kept = Kernel(self._kernel.keeping(steady, store), self._reference)
        kept._steady = [i for i, is_steady in enumerate(steady) if is_steady]
        kept._last = store.setdefault("tensors", {})
        return kept

    def __call__(self, xp: Namespace, *inputs: Array) -> Any:
        if refusal(inputs[0].device, inputs) is not None:
            return self._reference(xp, *inputs)
        arrays = [_arrays.to_numpy(t) for t in inputs]
        for i in self._steady:
            tensor, array = self._last.get(i, (None, None))
            if tensor is inputs[i]:
                arrays[i] = array
            else:
                self._last[i] = (inputs[i], arrays[i])
        outputs = self._kernel(np, *arrays)
        return tuple(None if y is None else _tensor(y) for y in outputs)


def _tensor(array: Array) -> Array:
    torch = sys.modules["torch"]
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
