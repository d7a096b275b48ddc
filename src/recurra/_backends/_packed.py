"""Weights that come again and again: packed once."""

from __future__ import annotations

from typing import Any

from .._arrays import Array
from ._cells import Cell
from ._extension import native
from ._memory import Memory


class PackedWeights:
    """The weights of one kernel in the order of csrc/, packed when the same arrays come for the second time.

    Whoever uses it vouches that an array keeps its values as long as it is the same object. Weights that are new in
    every call, as in training, are never packed here: the call itself does it, on all threads.
    """

    __slots__ = ("_state",)

    def __init__(self) -> None:
        # The arrays that came last, with the memory they were taken in, and their packed form: replaced as a whole, so
        # that calls from several threads see what belongs together.
        self._state: tuple[Any, Any, Any, Any] = (None, None, None, None)

    def of(
        self, cell: Cell, memory: Memory, recurrent_weight: Array, input_weight: Array | None, inputs: int, rows: int
    ) -> Any | None:
        """The packed form, or None where the call had better pack for itself.

        A call on a few rows would not pack, and sum in another order: it gets the packed form at once, so that its
        results are the same from the first call on, bit for bit.
        """
        last_recurrent, last_input, last_memory, packed = self._state
        if recurrent_weight is not last_recurrent or input_weight is not last_input or memory is not last_memory:
            packed = None
            self._state = (recurrent_weight, input_weight, memory, None)
            if rows > native.rows_in_place:
                return None
        if packed is None:
            packed = memory.packed(cell, recurrent_weight, input_weight, inputs)
            self._state = (recurrent_weight, input_weight, memory, packed)
        return packed
