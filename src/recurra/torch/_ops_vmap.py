"""How the ops run under `torch.vmap`: the mapped axis becomes part of the batch, or each of its elements a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._ops import ALL, LIBRARY, TorchOp

# Weights: with one set of them for the whole batch, the mapped axis can be folded into N.
_WEIGHTS = ("recurrent_weight", "input_weight", "bias", "peephole", "secondary_bias")
# Where N stands in the others, counted from the end.
_BATCH_AXIS = {"init_state": -2, "init_cell": -2, "mask": -2, "lengths": -1, "resets": -1}


def _rule(op: TorchOp) -> Callable[..., Any]:
    def run(info: Any, in_dims: Sequence[Any], *tensors: torch.Tensor | None, descriptor: str) -> Any:
        mapped = {n: d for n, d in zip(op.arguments, in_dims, strict=False) if isinstance(d, int)}
        given = op.given(tensors)
        # Gradients of weights are sums over N, and each element of the mapped axis has its own.
        if op.is_gradient or any(n in mapped for n in _WEIGHTS):
            return _one_by_one(op, info.batch_size, mapped, given, descriptor)
        return _folded(op, info.batch_size, mapped, given, descriptor)

    return run


def _one_by_one(op: TorchOp, size: int, mapped: dict[str, int], given: dict[str, Any], descriptor: str) -> Any:
    calls = [
        op.overload(
            *[t.select(mapped[n], b) if n in mapped else t for n, t in _all(op, given)],
            descriptor=descriptor,
        )
        for b in range(size)
    ]
    if not calls:
        raise RuntimeError(f"{op.name}: the axis that vmap maps over must have a size of at least 1, got 0")
    results = [torch.stack(list(column)) for column in zip(*calls, strict=True)]
    return results, [0] * len(results)


def _folded(op: TorchOp, size: int, mapped: dict[str, int], given: dict[str, Any], descriptor: str) -> Any:
    batch = given["source"].movedim(mapped["source"], 0).shape[2] if "source" in mapped else given["source"].shape[1]
    folded = {n: t if n in _WEIGHTS else _fold(n, t, mapped.get(n), size, batch) for n, t in given.items()}
    results = op.overload(*[t for _, t in _all(op, folded)], descriptor=descriptor)
    return [y.unflatten(1, (size, batch)) for y in results], [1] * len(results)


def _fold(name: str, tensor: torch.Tensor, mapped: int | None, size: int, batch: int) -> torch.Tensor:
    """The tensor with N = size * batch: the mapped axis stands before N, and both become one."""
    tensor = tensor.unsqueeze(0) if mapped is None else tensor.movedim(mapped, 0)
    if name == "mask" and tensor.ndim < 3:  # a mask without a batch of its own
        tensor = tensor.reshape(tensor.shape[0], *(1,) * (3 - tensor.ndim), *tensor.shape[1:])
    axis = tensor.ndim + _BATCH_AXIS.get(name, -2)
    own = tensor.movedim(0, axis - 1)
    shape = list(own.shape)
    shape[axis - 1 : axis + 1] = [size, batch]
    return own.expand(shape).flatten(axis - 1, axis)


def _all(op: TorchOp, given: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(name, given.get(name)) for name in op.arguments]


for _each in ALL:
    torch.library.register_vmap(f"recurra::{_each.name}", _rule(_each), lib=LIBRARY)
