"""Reverse mode, graph to graph: the gradients of a program are more operations of the same program."""

from __future__ import annotations

from collections.abc import Sequence

from ._errors import GradientError
from ._ir import Operation, Program, Tensor, apply
from ._op import NoGradient


def gradients(
    program: Program, of: Sequence[Tensor], seeds: Sequence[Tensor | None], with_: Sequence[Tensor]
) -> list[Tensor | None]:
    """For each tensor of `with_`, the sum of `seed * d of / d tensor`; None where `of` does not depend on it.

    Raises:
        GradientError: an op on the way has no gradient, or none with respect to the input that matters.
    """
    found: dict[Tensor, Tensor] = {}
    for tensor, seed in zip(of, seeds, strict=True):
        if seed is not None:
            _accumulate(found, tensor, seed)
    on_the_way = _depending_on(program, with_)
    last = max((t.op.position for t in of), default=-1)
    # A copy, because every vjp appends operations.
    for operation in reversed(program.operations[: last + 1]):
        cotangents = tuple(found.get(t) for t in operation.output_tensors)
        inputs = operation.input_tensors
        if all(c is None for c in cotangents) or not any(t in on_the_way for t in inputs):
            continue
        for tensor, gradient in zip(inputs, _vjp(operation, cotangents), strict=True):
            if gradient is None or tensor not in on_the_way or not _differentiable(tensor):
                continue
            if isinstance(gradient, NoGradient):
                raise GradientError(
                    f"{operation.kind.name}: {gradient.reason}, got a request for it at {operation.name}"
                )
            _accumulate(found, tensor, gradient)
    return [found.get(t) for t in with_]


def _differentiable(tensor: Tensor) -> bool:
    return tensor.dtype.kind in ("float", "complex")


def _depending_on(program: Program, roots: Sequence[Tensor]) -> set[Tensor]:
    """The roots and all tensors that are computed from them."""
    reached = set(roots)
    first = min((t.op.position for t in roots), default=0)
    for operation in program.operations[first:]:
        if any(t in reached for t in operation.input_tensors):
            reached.update(operation.output_tensors)
    return reached


def _vjp(operation: Operation, cotangents: tuple[Tensor | None, ...]) -> Sequence[Tensor | NoGradient | None]:
    op = operation.kind
    if op.vjp is None:
        raise GradientError(f"{op.name}: has no gradient, got a request for it at {operation.name}")
    return op.vjp(operation.input_tensors, operation.output_tensors, cotangents, **operation.attrs)


def _accumulate(found: dict[Tensor, Tensor], tensor: Tensor, gradient: Tensor) -> None:
    found[tensor] = apply("add", found[tensor], gradient) if tensor in found else gradient
