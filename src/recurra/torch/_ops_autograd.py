"""How the ops are differentiated: backward is the gradient op, and beyond that the reference is composed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import _C
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd import Function, forward_ad

from .._errors import GradientError
from ._ops import LIBRARY, PAIRS, TorchOp
from ._ops_composed import Tensors, composed, reference
from ._ops_text import with_training


class _Forward(Function):  # type: ignore[misc]
    """A forward op with its training state, which backward needs; the caller takes the results that were asked for."""

    @staticmethod
    def forward(ctx: Any, op: TorchOp, keyset: Any, text: str, *tensors: torch.Tensor | None) -> Any:
        ctx.op, ctx.text, ctx.count = op, text, len(tensors)
        ctx.set_materialize_grads(False)
        results = _below_node(op, keyset, tensors, text)
        ctx.save_for_backward(*tensors, *results)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        saved = ctx.saved_tensors  # once: checkpointing allows no second look
        found = _forward_vjp(ctx.op, ctx.text, saved[: ctx.count], saved[ctx.count :], cotangents)
        return (None, None, None, *_needed(found, ctx.needs_input_grad[3:]))


class _Gradients(Function):  # type: ignore[misc]
    """A gradient op, which is differentiated by its reference."""

    @staticmethod
    def forward(ctx: Any, op: TorchOp, keyset: Any, text: str, *tensors: torch.Tensor | None) -> Any:
        ctx.op, ctx.text = op, text
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        return tuple(_below_node(op, keyset, tensors, text))

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        found = composed(ctx.op, ctx.text, ctx.saved_tensors, cotangents)
        return (None, None, None, *_needed(found, ctx.needs_input_grad[3:]))


def _apply(function: type[Function], *args: Any) -> Any:
    """A node of autograd, made at the level that the dispatcher is at.

    `Function.apply` would enter torch.func's levels from the top once more: the dispatcher has done that.
    """
    make = super(Function, function).apply
    if not _C._are_functorch_transforms_active():
        return make(*args)
    with enable_single_level_autograd_function():
        return make(*args)


def _needed(gradients: Tensors, needs: Sequence[bool]) -> list[torch.Tensor | None]:
    return [g if n else None for g, n in zip(gradients, needs, strict=True)]


def _below(op: TorchOp, keyset: Any, tensors: Tensors, text: str) -> list[torch.Tensor]:
    """The op without autograd."""
    with _C._AutoDispatchBelowAutograd():
        return op.overload.redispatch(keyset & _C._after_autograd_keyset, *tensors, descriptor=text)  # type: ignore[no-any-return]


def _below_node(op: TorchOp, keyset: Any, tensors: Tensors, text: str) -> list[torch.Tensor]:
    """The same inside of a node, where torch has switched derivatives off: the outer levels of torch.func want them."""
    if not _C._are_functorch_transforms_active():
        return _below(op, keyset, tensors, text)
    with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
        return _below(op, keyset, tensors, text)


def _forward_vjp(op: TorchOp, text: str, tensors: Tensors, results: Tensors, cotangents: Tensors) -> Tensors:
    if all(c is None for c in cotangents):
        return [None] * len(tensors)
    if cotangents[-1] is not None:  # of the training state: the gradient op has no input for it
        return composed(op, text, tensors, cotangents)
    given = op.given(tensors)
    by_name = dict(zip(op.pair.results, results, strict=True))
    by_cotangent = dict(zip(op.pair.results, cotangents, strict=True))
    named = {
        **given,
        "source_gradient": by_cotangent["h"],
        "cell_sequence_gradient": by_cotangent.get("c"),
        "z_state": by_name["z"],
        "cell_output_fwd": by_name.get("c"),
        "output_fwd": by_name["h"],
    }
    gradient_op = next(g for f, g in PAIRS if f is op)
    found = gradient_op.overload(*[named.get(name) for name in gradient_op.arguments], descriptor=text)
    by_input = dict(zip([name for name in op.pair.order if name in given], found, strict=True))
    return [by_input.get(name) for name in op.arguments[: len(tensors)]]


def _has_tangent(tensor: torch.Tensor | None) -> bool:
    """Whether forward mode differentiates through this."""
    return tensor is not None and forward_ad.unpack_dual(tensor).tangent is not None


def _refuse_mask(op: TorchOp, mask: torch.Tensor | None) -> None:
    if mask is not None and (mask.requires_grad or (forward_ad._current_level >= 0 and _has_tangent(mask))):
        raise GradientError(
            f"{op.name}: mask must not require a gradient (MPSGraph defines none: it is a constant of the call, such "
            "as a dropout mask; write mask.detach()), got one that does"
        )


def _autograd(op: TorchOp) -> Callable[..., Any]:
    mask_at = op.arguments.index("mask")

    def run(keyset: Any, *tensors: torch.Tensor | None, descriptor: str) -> Any:
        is_forward_mode = forward_ad._current_level >= 0 and any(_has_tangent(t) for t in tensors)
        is_recorded = torch.is_grad_enabled() and _C._any_requires_grad(*tensors)
        if not is_forward_mode and not is_recorded:
            return _below(op, keyset, tensors, descriptor)
        _refuse_mask(op, tensors[mask_at] if mask_at < len(tensors) else None)
        if is_forward_mode:
            return reference(op, descriptor, op.given(tensors))
        if op.is_gradient:
            return _apply(_Gradients, op, keyset, descriptor, *tensors)
        text = with_training(op.name, op.pair.kind, descriptor)
        results = _apply(_Forward, op, keyset, text, *tensors)
        wanted = op.wanted(descriptor, ())
        return [y for y, is_wanted in zip(results, wanted, strict=True) if is_wanted]

    return run


for _pair in PAIRS:
    for _each in _pair:
        LIBRARY.impl(_each.name, _autograd(_each), "Autograd", with_keyset=True)
