"""From the arguments of an op to those of the kernels in csrc/: contiguous arrays, of one shape for each argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
import math
from typing import Any

import numpy as np

from .. import _arrays
from .._arrays import Array, Namespace
from .._dtypes import DType, as_dtype, float32
from .._op import Attrs, Op, ShapedType
from ..ops import _rules
from ..ops._rules import Sizes
from ..ops.activations import Activation, ActivationFunction
from ..ops.gru import GRUDescriptor
from ..ops.lstm import LSTMDescriptor
from ..ops.rnn import SingleGateRNNDescriptor
from . import _threads
from ._extension import native

# Per op: its number in csrc/kernels.h, and its gates in the order of the cell.
_CELLS: dict[type, tuple[int, str]] = {
    SingleGateRNNDescriptor: (0, "a"),
    LSTMDescriptor: (1, "ifzo"),
    GRUDescriptor: (2, "zro"),
}
# Results from this size on come from the kernels' own memory, which is kept when they are gone: the system would clear
# each page again.
_POOLED_BYTES = 1 << 20
# For tests: teams of exactly so many threads, whatever the size of the call.
_exact_threads: int | None = None


def _activation(function: ActivationFunction) -> tuple[int, float, float]:
    return int(Activation[function.name.upper()]), function.alpha, function.beta


class Cell:
    """A descriptor as C++ sees it: the cell, and the slot of each of its gates in the stacked weights."""

    __slots__ = ("directions", "gates", "params", "spec")

    def __init__(self, descriptor: Any) -> None:
        number, gates = _CELLS[type(descriptor)]
        if number == 0:
            functions, order = {"a": descriptor.function}, ("a",)
        else:
            functions, order = descriptor.functions, descriptor.gate_order
        self.spec = native.CellSpec(
            number,
            [_activation(functions[g]) for g in gates],
            _activation(functions["g"]) if number == 1 else (0, 0.0, 0.0),
            number == 1 and descriptor.peephole_output == "current",
            number == 2 and descriptor.reset_after,
            number == 2 and descriptor.flip_z,
            descriptor.reverse,
            [order.index(g) for g in gates],
        )
        self.gates, self.directions = len(gates), descriptor.directions
        # Which input has the cell's parameters per unit.
        self.params = {1: "peephole", 2: "secondary_bias" if number == 2 and descriptor.reset_after else ""}.get(number)


class _Memory:
    """The dtype in which the kernels take a call's arrays, and results in it."""

    __slots__ = ("_cast", "dtype", "forward", "gradient", "is_plain", "view")

    def __init__(self, dtype: DType, has_bfloat16: bool) -> None:
        # Half precision is computed in float32: in the kernels where they can, else around them.
        is_native = not dtype.is_half or (has_bfloat16 and dtype == "bfloat16")
        taken = dtype if is_native else float32
        self.forward, self.gradient = (getattr(native, f"{f}_{taken}") for f in ("forward", "gradient"))
        self._cast = None if is_native else dtype.numpy
        self.dtype = taken.numpy
        # NumPy's bfloat16 is a type that the kernels cannot ask for: they get the bits.
        self.view = np.dtype(np.uint16) if taken == "bfloat16" else None
        self.is_plain = self.view is None and self._cast is None

    def taken(self, array: Array) -> Array:
        """An array as the kernels take it: of this dtype and the machine's byte order, contiguous."""
        ready = np.ascontiguousarray(array, dtype=self.dtype)
        return ready if self.view is None else ready.view(self.view)

    def new(self, shape: tuple[int, ...]) -> Array:
        """Memory for a result, of which the kernels write every element."""
        dtype = self.dtype if self.view is None else self.view
        count = math.prod(shape)
        if count * dtype.itemsize < _POOLED_BYTES:
            return np.empty(shape, dtype)
        return native.empty(count * dtype.itemsize).view(dtype).reshape(shape)

    def given(self, array: Array) -> Array:
        """A result in the dtype of the call."""
        if self.view is not None:
            return array.view(self.dtype)
        return array if self._cast is None else array.astype(self._cast)


@lru_cache(maxsize=8)
def _memory(dtype: DType, has_bfloat16: bool) -> _Memory:
    return _Memory(dtype, has_bfloat16)


def _memory_of(source: Array) -> _Memory:
    dtype = as_dtype(source.dtype)
    return _memory(dtype, dtype.is_half and native.has_bfloat16())


# The arguments of C++ from `source` to `resets`; the cell's parameters go by the name of their input.
_ORDER = (
    "source",
    "recurrent_weight",
    "input_weight",
    "bias",
    "init_state",
    "init_cell",
    "mask",
    "",
    "lengths",
    "resets",
)


def _ordered(arrays: Mapping[str, Array], cell: Cell, s: Sizes, memory: _Memory) -> list[Array | None]:
    """These arguments from inputs of every legal shape, dtype and layout."""
    wide = (s.N, s.D * s.H)
    found: list[Array | None] = []
    for name in _ORDER:
        array = arrays.get(name or cell.params or "")
        if array is None:
            found.append(None)
        elif name in ("init_state", "init_cell"):
            found.append(_state(arrays, name, wide, memory))
        elif name in ("lengths", "resets"):
            found.append(np.ascontiguousarray(array, dtype=np.int64 if name == "lengths" else np.bool_))
        elif name == "bias" and array.size == 1:
            found.append(memory.taken(np.broadcast_to(array.reshape(-1), (s.D * s.G * s.H,))))
        else:
            found.append(memory.taken(_mask(array, wide) if name == "mask" else array))
    return found


def _state(arrays: Mapping[str, Array], name: str, wide: tuple[int, int], memory: _Memory) -> Array | None:
    array = arrays.get(name)
    if array is None:
        return None
    if array.shape != wide:
        array = np.broadcast_to(array.reshape(array.shape[-2:]), wide)
    return memory.taken(array)


def _mask(mask: Array, wide: tuple[int, int]) -> Array:
    if mask.ndim == 3 and mask.shape[0] == 1:
        mask = mask[0]
    if mask.ndim and mask.shape[-1] not in (1, wide[1]):
        mask = np.concatenate([mask, mask], axis=-1)  # the same for both directions
    return np.broadcast_to(mask, (*mask.shape[:-2], *wide))


_cells: dict[Any, Cell] = {}


def cell_of(descriptor: Any) -> Cell:
    """The cell of a descriptor; made once for each that is different."""
    key = (type(descriptor), *vars(descriptor).values())
    found = _cells.get(key)
    if found is None:
        if len(_cells) > 1000:
            _cells.clear()
        found = _cells[key] = Cell(descriptor)
    return found


def _team() -> int:
    return _threads.get_num_threads() if _exact_threads is None else -_exact_threads


class Forward:
    """The kernel of a forward op for inputs of certain types."""

    def __init__(self, types: Sequence[ShapedType], attrs: Attrs) -> None:
        self._slots = attrs["slots"]
        cell = self._cell = cell_of(attrs["descriptor"])
        counts = (1, 1, 4) if cell.gates == 4 else (1, cell.gates)
        named = dict(zip(self._slots, types, strict=True))
        self._sizes = s = _rules.check("cpu", named, cell.gates, cell.directions)
        wanted = attrs.get("wanted") or (True,) * len(counts)
        self._shapes = [(s.T, s.N, s.D * s.H * k) if w else None for k, w in zip(counts, wanted, strict=True)]
        self._positions = _positions(named, cell, s)

    def __call__(self, xp: Namespace, *inputs: Array) -> tuple[Array | None, ...]:
        """The results that are wanted, None for the others."""
        memory = _memory_of(inputs[self._slots.index("source")])
        made = [None if shape is None else memory.new(shape) for shape in self._shapes]
        results = made if len(made) == 3 else (made[0], None, made[1])
        run = memory.forward
        team = _team()
        if self._positions is not None and memory.is_plain:
            ordered: Any = [None if i is None else inputs[i] for i in self._positions]
            try:
                run(self._cell.spec, team, *ordered, *results)
                return tuple(made)
            except TypeError:  # an array is not contiguous, or has the bytes of another machine
                pass
        ordered = _ordered(dict(zip(self._slots, inputs, strict=True)), self._cell, self._sizes, memory)
        run(self._cell.spec, team, *ordered, *results)
        return tuple(None if y is None else memory.given(y) for y in made)


def _positions(types: Mapping[str, ShapedType], cell: Cell, s: Sizes) -> list[int | None] | None:
    """Which input is which argument of C++, if each has its one shape and dtype already."""
    wide = (s.N, s.D * s.H)
    plain: dict[str, list[tuple[int, ...]]] = {
        "init_state": [wide],
        "init_cell": [wide],
        "mask": [wide, (s.T, *wide)],
        "bias": [(s.D * s.G * s.H,)],
    }
    for name, type_ in types.items():
        if type_.shape not in plain.get(name, [type_.shape]) or (name == "mask" and not type_.dtype.is_float):
            return None
        if name == "lengths" and type_.dtype != "int64":
            return None
    places = {name: i for i, name in enumerate(types)}
    return [places.get(name or cell.params or "") for name in _ORDER]


class Gradients:
    """The kernel of a gradient op for inputs of certain types."""

    def __init__(self, op: Op, types: Sequence[ShapedType], attrs: Attrs) -> None:
        self._slots = attrs["slots"]
        self._cell = cell_of(attrs["descriptor"])
        named = dict(zip(self._slots, types, strict=True))
        self._sizes = _rules.check("cpu", named, self._cell.gates, self._cell.directions)
        self._names = op.output_names({k: attrs[k] for k in ("slots", "descriptor")})

    def __call__(self, xp: Namespace, *inputs: Array) -> tuple[Array, ...]:
        """The gradients in the op's order, each in its input's shape."""
        arrays, cell = dict(zip(self._slots, inputs, strict=True)), self._cell
        memory, s = _memory_of(arrays["source"]), self._sizes
        wide = s.D * s.H
        sizes: dict[str, tuple[int, ...]] = {
            "source": (s.T, s.N, s.I),
            "recurrent_weight": (wide * s.G, s.H),
            "input_weight": (wide * s.G, s.I),
            "bias": (wide * s.G,),
            "init_state": (s.N, wide),
            "init_cell": (s.N, wide),
            cell.params or "": (wide * (4 if s.G == 4 else 1),),
        }
        found = {name: memory.new(size) for name, size in sizes.items() if name in arrays}
        memory.gradient(
            cell.spec, _team(), *_ordered(arrays, cell, s, memory),
            *(_taken(arrays, n, memory) for n in ("output_fwd", "cell_output_fwd", "z_state")),
            *(_taken(arrays, n, memory) for n in ("source_gradient", "cell_sequence_gradient")),
            *(_state(arrays, n, (s.N, wide), memory) for n in ("state_gradient", "cell_gradient")),
            *(found.get(name) for name in sizes),
        )  # fmt: skip
        return tuple(self._in_shape(xp, name, arrays[name], found.get(name), memory) for name in self._names)

    @staticmethod
    def _in_shape(xp: Namespace, name: str, like: Array, found: Array | None, memory: _Memory) -> Array:
        """A gradient in the shape of its input."""
        if found is None:  # a secondary bias that plays no part
            return np.zeros_like(like)
        value = memory.given(found)
        if name == "bias" and like.size == 1:
            value = value.sum(dtype=np.float64 if value.dtype == np.float64 else np.float32).astype(value.dtype)
        elif name in ("init_state", "init_cell") and like.shape[-2] == 1 and value.shape[0] != 1:
            summed = value.sum(axis=0, keepdims=True, dtype=_arrays.dtype_of(like).compute.numpy)
            value = summed.astype(value.dtype)
        return np.reshape(value, like.shape)


def _taken(arrays: Mapping[str, Array], name: str, memory: _Memory) -> Array | None:
    array = arrays.get(name)
    return None if array is None else memory.taken(array)
