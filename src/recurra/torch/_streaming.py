"""A module's weights as a `recurra.Stream`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._errors import UnsupportedError
from .._stream import Stream
from . import _layer
from ._kind import Kind
from ._layer import Weights


def stream(
    where: str, kind: Kind, layers: Sequence[Sequence[Weights]], initial: Sequence[Any] | None, proj_size: int
) -> Stream:
    """A stream of these layers; `initial` has h_0 and c_0, [num_layers, H] each, or is None for zeros."""
    if kind.bidirectional:
        raise UnsupportedError(
            f"{where}.stream: bidirectional must be False: the backward direction begins at the end of the sequence, "
            f"which a stream does not know, got True"
        )
    if proj_size:
        raise UnsupportedError(f"{where}.stream: proj_size must be 0: a stream has no projections, got {proj_size}")
    with torch.no_grad():
        named = [_layer.op_weights(kind, weights) for weights in layers]
        if initial is not None:
            for name, state in zip(("init_state", "init_cell"), initial, strict=False):
                for i, layer in enumerate(named):
                    layer[name] = state[i : i + 1]
    arguments = {name: [layer[name] for layer in named] for name in named[0]}
    descriptor = kind.descriptor()
    if kind.has_cell:
        descriptor.produce_cell = False  # a stream's state has it anyway
    made: Stream = getattr(Stream, kind.op)(arguments.pop("recurrent_weight"), descriptor=descriptor, **arguments)
    return made
