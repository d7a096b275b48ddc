"""PackedSequence in and out: a module's call on rows of their own lengths, in the order in which they are packed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from .._errors import ArgumentError
from . import _checks
from ._errors import ModuleShapeError

if TYPE_CHECKING:
    from ._recurrent import Recurrent

Tensor: TypeAlias = Any


def forward(
    module: Recurrent, packed: Any, hx: Any, lengths: Any, resets: Any, return_cells: Any, return_gates: Any
) -> Any:
    """`module.forward` on a PackedSequence. States and `resets` are in the order of the user's rows."""
    where = module._name
    if lengths is not None:
        raise ArgumentError(f"{where}: lengths must be None for a PackedSequence, which has its own, got {lengths!r}")
    if packed.data.dim() != 2:
        raise ModuleShapeError(f"{where}: input must have packed data of rank 2, [rows, I], got {packed.data.dim()}")
    module._check_channels(packed.data)
    data, batch_sizes, to_packed, to_user = packed
    # The rows stay in the packed order: states are small, and x is not.
    x, own = pad_packed_sequence(PackedSequence(data, batch_sizes))
    initial = module._initial(hx, x, True)
    if initial is not None and to_packed is not None:
        initial = tuple(state.index_select(1, to_packed) for state in initial)
    if resets is not None:
        resets = _checks.resets(where, resets, x, True, module.batch_first)
        resets = resets if to_packed is None else resets.index_select(1, to_packed)
    is_ragged = bool(own[-1] != own[0])
    results = module._run(x, initial, own.to(x.device) if is_ragged else None, resets, return_cells, return_gates)
    y, last, cells, gates = results
    if to_user is not None:
        last = tuple(state.index_select(1, to_user) for state in last)

    def laid_out(sequence: Tensor) -> Any:
        return PackedSequence(pack_padded_sequence(sequence, own).data, batch_sizes, to_packed, to_user)

    return module._returned(laid_out, y, last, cells, gates, return_cells, return_gates)
