"""Torch's CPU tensors as NumPy arrays of the same memory, where nothing but their values matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import sys
from typing import Any

import ml_dtypes
import numpy as np

from .. import _arrays
from .._arrays import Array, Namespace
from .._op import Attrs, Op


def refusal(device: Any, inputs: Sequence[Array] | None) -> str | None:
    """Why the native kernels cannot take these tensors (or, before they are known, tensors on this device)."""
    if device is not None and device.type != "cpu":
        return f"has kernels for CPU tensors only, not for {device}"
    torch = sys.modules["torch"]
    if inputs is not None and any(t.layout is not torch.strided for t in inputs):
        return "has kernels for dense tensors only"
    return None


class Kernel:
    """A kernel for NumPy arrays, for tensors."""

    def __init__(self, kernel: Callable[..., Any], op: Op, attrs: Attrs) -> None:
        self._kernel, self._op, self._attrs = kernel, op, attrs
        # The steady inputs that came last, and as what: the kernel must see the same arrays for the same tensors.
        self._steady: list[int] = []
        self._last: dict[int, tuple[Array, Array]] = {}

    def keeping(self, steady: Sequence[bool], store: dict[str, Any]) -> Kernel:
        """As `Forward.keeping`."""
        if not hasattr(self._kernel, "keeping"):
            return self
        kept = Kernel(self._kernel.keeping(steady, store), self._op, self._attrs)
        kept._steady = [i for i, is_steady in enumerate(steady) if is_steady]
        kept._last = store.setdefault("tensors", {})
        return kept

    def __call__(self, xp: Namespace, *inputs: Array) -> Any:
        """The results, for whatever tensors a graph is fed: torch must see one op of its own where more than values
        matters, and that op comes back to `on_values`."""
        if _are_values(inputs):
            return self.on_values(*inputs)
        from ..torch._ops_call import call_in_slots

        return call_in_slots(self._op.name, self._attrs, inputs)

    def on_values(self, *inputs: Array) -> tuple[Array | None, ...]:
        """The results of plain tensors."""
        arrays = [_array(t) for t in inputs]
        for i in self._steady:
            tensor, array = self._last.get(i, (None, None))
            if tensor is inputs[i]:
                arrays[i] = array
            else:
                self._last[i] = (inputs[i], arrays[i])
        return tuple([None if y is None else _tensor(y) for y in self._kernel(np, *arrays)])


def _are_values(inputs: Sequence[Array]) -> bool:
    torch = sys.modules["torch"]
    plain = (torch.Tensor, torch.nn.Parameter)
    # Tensors under vmap, grad, jvp, fake tensors, and other subclasses are more than their values.
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    if torch.compiler.is_compiling() or torch.autograd.forward_ad._current_level >= 0:
        return False
    if any(type(t) not in plain or wrapped(t) for t in inputs):
        return False
    return not (torch.is_grad_enabled() and any(t.requires_grad for t in inputs))


def _array(tensor: Array) -> Array:
    try:
        return tensor.numpy()
    except (RuntimeError, TypeError):  # it requires a gradient, is bfloat16, or the negative of its memory
        return _arrays.to_numpy(tensor)


def _tensor(array: Array) -> Array:
    torch = sys.modules["torch"]
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
