"""The native kernels (csrc/) for NumPy arrays and torch's CPU tensors: whole calls in C++, forward and backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import array_api_compat

from .._arrays import Array, Namespace
from .._op import Attrs, Kernel, Op, Refusal, ShapedType
from . import _extension, _native_calls, _torch_tensors

_FORWARD = ("single_gate_rnn", "lstm", "gru")
_GRADIENTS = tuple(f"{name}_gradients" for name in _FORWARD)


class CpuBackend:
    """Offers the six recurrent ops on NumPy arrays and torch's CPU tensors."""

    name = "cpu"

    def offer(
        self,
        op: Op,
        types: Sequence[ShapedType],
        attrs: Attrs,
        xp: Namespace,
        device: Any = None,
        inputs: Sequence[Array] | None = None,
    ) -> Kernel | Refusal:
        """A kernel for these inputs, or the reason why there is none."""
        if op.name not in _FORWARD and op.name not in _GRADIENTS:
            return Refusal("has kernels for the recurrent ops only")
        if _extension.native is None:
            return Refusal("the extension recurra._native is not built")
        is_torch = array_api_compat.is_torch_namespace(xp)
        if is_torch:
            reason = _torch_tensors.refusal(device, inputs)
            if reason is not None:
                return Refusal(reason)
        elif not array_api_compat.is_numpy_namespace(xp):
            return Refusal("has kernels for NumPy arrays and torch's CPU tensors only")
        kernel: Any
        if op.name in _FORWARD:
            kernel = _native_calls.Forward(types, attrs)
        else:
            kernel = _native_calls.Gradients(op, types, attrs)
        return _torch_tensors.Kernel(kernel, op, attrs) if is_torch else kernel
