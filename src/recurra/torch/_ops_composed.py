"""The reference in the place of a kernel: derivatives that no kernel offers, of gradient ops and of training states.

Where somebody may differentiate the result again, it is made of torch's own operations. Otherwise it is one op,
`recurra::composed_gradients`, so that a program that torch traces does not depend on the number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import _C
from torch.autograd import forward_ad

from .. import _arrays, _op
from .._ir import type_of
from ..ops._composed import composed_vjp
from ._ops import BY_NAME, LIBRARY, TorchOp

Tensors = Sequence[torch.Tensor | None]


def composed(op: TorchOp, text: str, tensors: Tensors, cotangents: Tensors) -> Tensors:
    """The gradients of the op's inputs, from its reference; None for those that have none."""
    if all(c is None for c in cotangents):
        return [None] * len(tensors)
    given = op.given(tensors)
    leaves = _differentiable(given)
    recorded = torch.is_grad_enabled() or _C._are_functorch_transforms_active() or forward_ad._current_level >= 0
    if recorded:
        found = _recorded(op, text, given, leaves, cotangents)
    else:
        found = torch.ops.recurra.composed_gradients.default(op.name, tensors, cotangents, descriptor=text)
    by_input = dict(zip(leaves, found, strict=True))
    return [by_input.get(name) for name in op.arguments[: len(tensors)]]


def _differentiable(given: dict[str, Any]) -> list[str]:
    return [name for name, t in given.items() if t.is_floating_point() and name != "mask"]


def _recorded(op: TorchOp, text: str, given: dict[str, Any], leaves: list[str], cotangents: Tensors) -> Sequence[Any]:
    is_given = [c is not None for c in cotangents]

    def results(*values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = reference(op, text, {**given, **dict(zip(leaves, values, strict=True))})
        return tuple(y for y, wanted in zip(outputs, is_given, strict=True) if wanted)

    _, pull = torch.func.vjp(results, *[given[name] for name in leaves])
    return pull(tuple(c for c in cotangents if c is not None))  # type: ignore[no-any-return]


def reference(op: TorchOp, text: str, given: dict[str, Any]) -> list[Any]:
    """The op's results as torch's own operations, recorded one by one."""
    record, values = op.record, list(given.values())
    attrs = {"slots": tuple(given), "descriptor": op.descriptor(text)}
    if record.check_values is not None and not _C._are_functorch_transforms_active():  # no values inside torch.func
        record.check_values(*values, **attrs)
    xp = _arrays.namespace(*values)
    for listener in _op.LISTENERS:
        refusals = (("cpu", "forward mode and higher derivatives follow the reference"),)
        listener(record, [type_of(v) for v in values], _op.Choice(record.reference, "reference", refusals, xp))
    found = record.reference(xp, *values, **attrs, wanted=op.wanted(text, tuple(given)))
    return [y for y in found if y is not None]


def _kernel(op: str, tensors: Tensors, cotangents: Tensors, *, descriptor: str) -> list[torch.Tensor]:
    torch_op = BY_NAME[op]
    given = torch_op.given(tensors)
    attrs = {"slots": tuple(given), "descriptor": torch_op.descriptor(descriptor)}
    # Those that are not wanted have no cotangents, but are outputs of the record all the same.
    wanted, here = torch_op.wanted(descriptor, tuple(given)), iter(cotangents)
    found = composed_vjp(torch_op.record, list(given.values()), [next(here) if w else None for w in wanted], attrs)
    by_input = dict(zip(given, found, strict=True))
    return [by_input[name].clone(memory_format=torch.contiguous_format) for name in _differentiable(given)]


def _fake(op: str, tensors: Tensors, cotangents: Tensors, *, descriptor: str) -> list[torch.Tensor]:
    given = BY_NAME[op].given(tensors)
    return [torch.empty_like(given[n], memory_format=torch.contiguous_format) for n in _differentiable(given)]


LIBRARY.define(
    "composed_gradients(str op, Tensor?[] tensors, Tensor?[] cotangents, *, str descriptor) -> Tensor[]",
    tags=(torch.Tag.pt2_compliant_tag,),
)
LIBRARY.impl("composed_gradients", _kernel, "CompositeExplicitAutograd")
torch.library.register_fake("recurra::composed_gradients", _fake, lib=LIBRARY)
