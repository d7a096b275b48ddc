"""How the kernels in csrc/ want the arrays of a dtype, and where results come from."""

from __future__ import annotations

from functools import lru_cache
import math
from typing import Any

import numpy as np

from .._arrays import Array
from .._dtypes import DType, as_dtype, float32
from ._cells import Cell
from ._extension import native

# Results from this size on come from the kernels' own memory, which is kept when they are gone: the system would clear
# each page again.
_POOLED_BYTES = 1 << 20


class Memory:
    """The dtype in which the kernels take a call's arrays, and results in it."""

    __slots__ = ("_cast", "_pack", "_size", "computed", "dtype", "forward", "gradient", "is_plain", "stack", "view")

    def __init__(self, dtype: DType, has_bfloat16: bool) -> None:
        # Half precision is computed in float32: in the kernels where they can, else around them.
        is_native = not dtype.is_half or (has_bfloat16 and dtype == "bfloat16")
        taken = dtype if is_native else float32
        self.forward, self.gradient, self._pack, self.stack = (
            getattr(native, f"{f}_{taken}") for f in ("forward", "gradient", "pack", "Stack")
        )
        self._cast = None if is_native else dtype.numpy
        self.dtype = taken.numpy
        self._size: int = self.dtype.itemsize
        # NumPy's bfloat16 is a type that the kernels cannot ask for: they get the bits.
        self.view = np.dtype(np.uint16) if taken == "bfloat16" else None
        self.is_plain = self.view is None and self._cast is None
        # What the kernels compute in: a stream's states are kept in it.
        self.computed = dtype.compute.numpy

    def taken(self, array: Array) -> Array:
        """An array as the kernels take it: of this dtype and the machine's byte order, contiguous."""
        ready = np.ascontiguousarray(array, dtype=self.dtype)
        return ready if self.view is None else ready.view(self.view)

    def new(self, shape: tuple[int, ...]) -> Array:
        """Memory for a result, of which the kernels write every element."""
        dtype = self.dtype if self.view is None else self.view
        size = math.prod(shape) * self._size
        if size < _POOLED_BYTES:
            return np.empty(shape, dtype)
        return native.empty(size).view(dtype).reshape(shape)

    def packed(self, cell: Cell, recurrent_weight: Array, input_weight: Array | None, inputs: int) -> Any:
        """The weights of a cell as the kernels read them, for sources of so many channels."""
        weights = (None if w is None else self.taken(w) for w in (recurrent_weight, input_weight))
        return self._pack(cell.spec, self.new((0, 0, inputs)), *weights)

    def given(self, array: Array) -> Array:
        """A result in the dtype of the call."""
        if self.view is not None:
            return array.view(self.dtype)
        return array if self._cast is None else array.astype(self._cast)


@lru_cache(maxsize=8)
def _memory(dtype: DType, has_bfloat16: bool) -> Memory:
    return Memory(dtype, has_bfloat16)


def memory_of(dtype: Any) -> Memory:
    """The memory for arrays of a dtype on the instruction set of now."""
    known = as_dtype(dtype)
    return _memory(known, known.is_half and native.has_bfloat16())
