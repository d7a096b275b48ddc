"""What the ops give without computing: shapes and dtypes by recurra's own rules, for fake and meta tensors.

T, N and whatever else is symbolic in the data is unknown to the rules, so no guard is made: a program that was traced
once holds for all sizes, and the kernels check the real ones.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from .._dtypes import as_dtype
from .._op import UNKNOWN, ShapedType
from ..ops import _rules
from ._ops import ALL, LIBRARY, TorchOp

# The arguments of which the rules must know the sizes.
_WEIGHTS = ("recurrent_weight", "input_weight", "bias", "peephole", "secondary_bias")


def _type(op: TorchOp, name: str, tensor: torch.Tensor) -> ShapedType:
    shape = tuple(tensor.shape)
    if name not in _WEIGHTS:
        shape = tuple(UNKNOWN if isinstance(n, torch.SymInt) else n for n in shape)
    return ShapedType.trusted(shape, as_dtype(tensor.dtype, op.name))


def _fake(op: TorchOp) -> Callable[..., list[torch.Tensor]]:
    def run(*tensors: torch.Tensor | None, descriptor: str) -> list[torch.Tensor]:
        given = op.given(tensors)
        options = op.descriptor(descriptor)
        types = {name: _type(op, name, t) for name, t in given.items()}
        s = _rules.check(op.name, types, op.pair.gates, options.directions)
        source = given["source"]
        steps, batch, _ = source.shape
        if op.is_gradient:
            return [
                torch.empty_like(given[n], memory_format=torch.contiguous_format) for n in op.pair.order if n in given
            ]
        wide = {"h": s.D * s.H, "c": s.D * s.H, "z": s.D * s.G * s.H}
        wanted = op.wanted(descriptor, ())
        return [
            source.new_empty((steps, batch, wide[name]))
            for name, is_wanted in zip(op.pair.results, wanted, strict=True)
            if is_wanted
        ]

    return run


for _each in ALL:
    torch.library.register_fake(f"recurra::{_each.name}", _fake(_each), lib=LIBRARY)
