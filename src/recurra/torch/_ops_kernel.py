"""What computes the ops on plain tensors: the backends of recurra, asked once for each kind of call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import _op
from .._ir import choice_now, compute
from ._ops import ALL, LIBRARY, TorchOp

# The choice for a call on tensors of the same types, made before.
_ready: dict[Any, tuple[dict[str, Any], _op.Choice]] = {}


def _kernel(op: TorchOp) -> Callable[..., list[torch.Tensor]]:
    record = op.record

    def run(*tensors: torch.Tensor | None, descriptor: str) -> list[torch.Tensor]:
        # Nothing here is recorded: derivatives are the business of _ops_autograd.
        given = {
            name: t.detach() if t.requires_grad else t
            for name, t in zip(op.arguments, tensors, strict=False)
            if t is not None
        }
        values = list(given.values())
        key = (
            record.name,
            descriptor,
            *given,
            *[v.shape for v in values],
            *[v.dtype for v in values],
            values[0].device,
        )
        found = None if _op.LISTENERS else _ready.get(key)
        if found is None:
            attrs = {"slots": tuple(given), "descriptor": op.descriptor(descriptor)}
            choice = choice_now(record, values, attrs, op.wanted(descriptor, tuple(given)))
            if len(_ready) > 500:
                _ready.clear()
            found = _ready[key] = (attrs, choice)
        return [y for y in compute(record, values, *found) if y is not None]

    return run


for _each in ALL:
    LIBRARY.impl(_each.name, _kernel(_each), "CompositeExplicitAutograd")
