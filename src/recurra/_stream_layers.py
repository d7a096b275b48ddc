"""The layers of a stream: arguments of the ops, one set for each layer, checked, copied and packed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _arrays
from ._arrays import Array
from ._backends import _cells, _memory
from ._errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from ._op import UNKNOWN, ShapedType
from .ops import _rules
from .ops._descriptor import Descriptor, snapshot
from .ops.gru import GRUDescriptor
from .ops.gru.build import warn_of_idle_bias
from .ops.lstm import LSTMDescriptor
from .ops.rnn import SingleGateRNNDescriptor

_DESCRIPTORS: dict[str, type[Descriptor]] = {
    "lstm": LSTMDescriptor,
    "gru": GRUDescriptor,
    "single_gate_rnn": SingleGateRNNDescriptor,
}
# Options that a stream cannot have, and why.
_REFUSED = {
    "bidirectional": "the backward direction begins at the end of the sequence, which a stream does not know",
    "reverse": "it begins at the end of the sequence, which a stream does not know",
    "training": "a stream keeps no training state",
    "produce_cell": "state.c has the cell",
}


@dataclass(frozen=True)
class Layer:
    """One layer's weights, ready: packed, and the small ones as the kernels take them."""

    op: str
    cell: _cells.Cell
    sizes: _rules.Sizes
    packed: Any
    types: Mapping[str, ShapedType]
    arrays: Mapping[str, Array]  # bias, mask, parameters and initial states, memory of its own

    def check(self, where: str, batch: int) -> None:
        """Refuse a batch that the initial states or the mask do not have."""
        source = ShapedType((1, batch, self.sizes.I), self.types["source"].dtype)
        _rules.check(where, {**self.types, "source": source}, self.cell.gates, 1)


def layers_of(op: str, where: str, named: Mapping[str, Any], descriptor: Any) -> tuple[Layer, ...]:
    """The layers, from arguments for one or lists of them for several."""
    is_list = isinstance(named["recurrent_weight"], list | tuple)
    made: list[Layer] = []
    for i, (given, options) in enumerate(_per_layer(where, named, descriptor)):
        made.append(_layer(op, f"{where}: layer {i}" if is_list else where, given, options, made))
    return tuple(made)


def _per_layer(where: str, named: Mapping[str, Any], descriptor: Any) -> list[tuple[dict[str, Any], Any]]:
    """The arguments of each layer."""
    first = named["recurrent_weight"]
    if not isinstance(first, list | tuple):
        return [({k: v for k, v in named.items() if v is not None}, descriptor)]
    if not first:
        raise ArgumentError(f"{where}: recurrent_weight must have an entry for each layer, got none")
    everything = {**named, "descriptor": descriptor}
    for name, value in everything.items():
        if value is None or (name == "descriptor" and isinstance(value, Descriptor)):
            everything[name] = [value] * len(first)
        elif not isinstance(value, list | tuple) or len(value) != len(first):
            got = f"{len(value)} entries" if isinstance(value, list | tuple) else type(value).__name__
            raise ArgumentError(f"{where}: {name} must be a list of {len(first)}, one for each layer, got {got}")
    return [
        ({k: everything[k][i] for k in named if everything[k][i] is not None}, everything["descriptor"][i])
        for i in range(len(first))
    ]


def _layer(op: str, where: str, given: Mapping[str, Any], descriptor: Any, below: Sequence[Layer]) -> Layer:
    options: Any = snapshot(where, descriptor, _DESCRIPTORS[op])
    for field, reason in _REFUSED.items():
        if getattr(options, field, False):
            raise ArgumentError(f"{where}: descriptor.{field} must be False: {reason}, got True")
    if op == "gru":
        warn_of_idle_bias(where, given.get("secondary_bias"), options, stacklevel=6)
    if "recurrent_weight" not in given:
        raise ArgumentTypeError(f"{where}: recurrent_weight must be an array, got None")
    # Copies: what the user does to the arrays later is none of the stream's business.
    arrays = {name: np.array(_arrays.readable(where, name, value)) for name, value in given.items()}
    types = _types(where, arrays)
    cell = _cells.cell_of(options)
    sizes = _rules.check(where, types, cell.gates, 1)
    _check_fit(where, sizes, types["source"].dtype, below)
    R, W = arrays.pop("recurrent_weight"), arrays.pop("input_weight", None)
    packed = _memory.memory_of(types["source"].dtype).packed(cell, R, W, sizes.I)
    return Layer(op, cell, sizes, packed, types, arrays)


def _types(where: str, arrays: Mapping[str, Array]) -> dict[str, ShapedType]:
    """The types of the arguments and of a source; what the rules of the ops cannot say in a stream's words."""
    types = {name: ShapedType(a.shape, _arrays.dtype_of(a)) for name, a in arrays.items()}
    dtype = types["recurrent_weight"].dtype
    if not dtype.is_float:
        raise DTypeError(f"{where}: recurrent_weight must be float32, float64, float16 or bfloat16, got {dtype}")
    for name, type_ in types.items():
        if type_.dtype != dtype and not (name == "mask" and type_.dtype == "bool"):
            raise DTypeError(f"{where}: {name} must have the dtype of recurrent_weight, {dtype}, got {type_.dtype}")
    columns = types["input_weight"].shape[-1:] if "input_weight" in types else ()
    if columns == (0,):
        raise ShapeError(f"{where}: input_weight must have at least 1 column, got {list(types['input_weight'].shape)}")
    mask = types["mask"].shape if "mask" in types else ()
    if len(mask) >= 3 and mask[0] != 1:
        raise ShapeError(f"{where}: mask must have no time axis in a stream, [N, H], got {list(mask)}")
    return {"source": ShapedType((1, UNKNOWN, UNKNOWN), dtype), **types}


def _check_fit(where: str, sizes: _rules.Sizes, dtype: Any, below: Sequence[Layer]) -> None:
    """Refuse a layer that cannot take what the one below it gives."""
    if not below:
        return
    given = below[-1].types["source"].dtype
    if given != dtype:
        raise DTypeError(f"{where}: recurrent_weight must have the dtype of the layer below, {given}, got {dtype}")
    if below[-1].sizes.H != sizes.I:
        raise ShapeError(
            f"{where}: input_weight must take what the layer below gives, {below[-1].sizes.H} channels, got {sizes.I}"
        )
