"""What computes the ops on plain tensors: the backends of recurra, asked once for each kind of call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from .. import _op
from .._backends import _torch_tensors
from .._ir import choice_now, compute
from ._ops import ALL, LIBRARY, TorchOp

Run = Callable[[Sequence[torch.Tensor]], tuple[Any, ...]]


class _Ready(NamedTuple):
    """What a call on tensors of the same types found out before."""

    backends: list[Any]
    run: Run


_ready: dict[Any, _Ready] = {}


def _kernel(op: TorchOp) -> Callable[..., list[torch.Tensor]]:
    name = op.name

    def run(*tensors: torch.Tensor | None, descriptor: str) -> list[torch.Tensor]:
        # Nothing here is recorded: derivatives are the business of _ops_autograd.
        values = [t.detach() if t.requires_grad else t for t in tensors if t is not None]
        key = (
            *(name, descriptor, values[0].device, *[t is None for t in tensors]),
            *[t.shape for t in values],
            *[t.dtype for t in values],
        )
        found = _ready.get(key)
        if found is None or found.backends is not _op.BACKENDS or _op.LISTENERS:
            if len(_ready) > 500:
                _ready.clear()
            found = _ready[key] = _Ready(_op.BACKENDS, _chosen(op, op.given(tensors), values, descriptor))
        return [y for y in found.run(values) if y is not None]

    return run


def _chosen(op: TorchOp, given: dict[str, Any], values: Sequence[torch.Tensor], text: str) -> Run:
    """Who computes the op for inputs of these types."""
    record, slots = op.record, tuple(given)
    attrs = {"slots": slots, "descriptor": op.descriptor(text)}
    choice = choice_now(record, values, attrs, op.wanted(text, slots))
    kernel = choice.kernel
    if isinstance(kernel, _torch_tensors.Kernel) and "lengths" not in given:
        return lambda values: kernel.on_values(*values)
    return lambda values: compute(record, values, attrs, choice)


for _each in ALL:
    LIBRARY.impl(_each.name, _kernel(_each), "CompositeExplicitAutograd")
