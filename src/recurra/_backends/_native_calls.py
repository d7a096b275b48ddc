"""From the arguments of an op to those of the kernels in csrc/: contiguous arrays, of one shape for each argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from operator import itemgetter
from typing import Any

import numpy as np

from .. import _arrays
from .._arrays import Array, Namespace
from .._op import Attrs, Op, ShapedType
from ..ops import _rules
from ..ops._rules import Sizes
from . import _threads
from ._cells import Cell, cell_of
from ._memory import Memory, memory_of
from ._packed import PackedWeights

# For tests: teams of exactly so many threads, whatever the size of the call.
_exact_threads: int | None = None

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


# Those after them that a gradient has too, and its results.
_GIVEN = (
    "output_fwd",
    "cell_output_fwd",
    "z_state",
    "source_gradient",
    "cell_sequence_gradient",
    "state_gradient",
    "cell_gradient",
)
_RESULTS = ("source", "recurrent_weight", "input_weight", "bias", "init_state", "init_cell", "")
_WEIGHTS = ("recurrent_weight", "input_weight")


def _ordered(arrays: Mapping[str, Array], cell: Cell, s: Sizes, memory: Memory) -> list[Array | None]:
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


def _state(arrays: Mapping[str, Array], name: str, wide: tuple[int, int], memory: Memory) -> Array | None:
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


def team() -> int:
    """How many threads a call may have, as the kernels want to be told."""
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
        self._packed: PackedWeights | None = None
        dtype = named["source"].dtype
        positions = _positions(named, cell, s)
        # Where the inputs are the arguments of C++ as they are: how to pick them, None for those that are absent.
        self._memory: Memory | None = None
        if positions is not None and not dtype.is_half:
            self._memory, self._picked = memory_of(dtype), _picking(positions, len(named))

    def keeping(self, steady: Sequence[bool], store: dict[str, Any]) -> Forward:
        """This kernel, with its weights packed once if they are steady."""
        weights = [steady[self._slots.index(n)] for n in _WEIGHTS if n in self._slots]
        if not all(weights):
            return self
        kept = copy(self)
        kept._packed = store.setdefault("packed", PackedWeights())
        return kept

    def __call__(self, xp: Namespace, *inputs: Array) -> tuple[Array | None, ...]:
        """The results that are wanted, None for the others."""
        memory = self._memory or memory_of(inputs[self._slots.index("source")].dtype)
        made = [None if shape is None else memory.new(shape) for shape in self._shapes]
        results = made if len(made) == 3 else (made[0], None, made[1])
        packed = self._packed_weights(memory, inputs)
        if self._memory is not None:
            try:
                memory.forward(self._cell.spec, team(), *self._picked((*inputs, None)), *results, packed)
                return tuple(made)
            except TypeError:  # an array is not contiguous, or has the bytes of another machine
                pass
        ordered = _ordered(dict(zip(self._slots, inputs, strict=True)), self._cell, self._sizes, memory)
        memory.forward(self._cell.spec, team(), *ordered, *results, packed)
        return tuple(None if y is None else memory.given(y) for y in made)

    def _packed_weights(self, memory: Memory, inputs: Sequence[Array]) -> Any | None:
        if self._packed is None:
            return None
        R, W = (inputs[self._slots.index(n)] if n in self._slots else None for n in _WEIGHTS)
        return self._packed.of(self._cell, memory, R, W, self._sizes.I, self._sizes.T * self._sizes.N)


def _picking(positions: Sequence[int | None], count: int) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Picks these of `count` inputs and one None behind them, which stands for those that are absent."""
    return itemgetter(*(count if i is None else i for i in positions))


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
        # As in Forward; and the results in the order of C++, and where each of the op's stands among them.
        self._memory: Memory | None = None
        dtype, s = named["source"].dtype, self._sizes
        positions, places = _positions(named, self._cell, s), {name: i for i, name in enumerate(named)}
        states = [named[n].shape for n in ("state_gradient", "cell_gradient") if n in named]
        order = [name or self._cell.params or "" for name in _RESULTS]
        # A secondary bias that plays no part is none of C++'s results.
        has_all = not dtype.is_half and all(name in order for name in self._names)
        if positions is not None and has_all and all(shape == (s.N, s.D * s.H) for shape in states):
            self._memory = memory_of(dtype)
            self._picked = _picking([*positions, *(places.get(name) for name in _GIVEN)], len(named))
            self._shapes = [named[name].shape if name in self._names else None for name in order]
            self._order = [order.index(name) for name in self._names]

    def __call__(self, xp: Namespace, *inputs: Array) -> tuple[Array, ...]:
        """The gradients in the op's order, each in its input's shape."""
        memory = self._memory
        if memory is not None:
            made = [None if shape is None else memory.new(shape) for shape in self._shapes]
            try:
                memory.gradient(self._cell.spec, team(), *self._picked((*inputs, None)), *made)
                return tuple(made[i] for i in self._order)
            except TypeError:  # as in Forward
                pass
        return self._unlike(xp, *inputs)

    def _unlike(self, xp: Namespace, *inputs: Array) -> tuple[Array, ...]:
        """The same for inputs that must be made like the arguments of C++."""
        arrays, cell = dict(zip(self._slots, inputs, strict=True)), self._cell
        memory, s = memory_of(arrays["source"].dtype), self._sizes
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
            cell.spec, team(), *_ordered(arrays, cell, s, memory),
            *(_taken(arrays, n, memory) for n in ("output_fwd", "cell_output_fwd", "z_state")),
            *(_taken(arrays, n, memory) for n in ("source_gradient", "cell_sequence_gradient")),
            *(_state(arrays, n, (s.N, wide), memory) for n in ("state_gradient", "cell_gradient")),
            *(found.get(name) for name in sizes),
        )  # fmt: skip
        return tuple(self._in_shape(xp, name, arrays[name], found.get(name), memory) for name in self._names)

    @staticmethod
    def _in_shape(xp: Namespace, name: str, like: Array, found: Array | None, memory: Memory) -> Array:
        """A gradient in the shape of its input."""
        if found is None:  # a secondary bias that plays no part
            return np.zeros_like(like)
        value = memory.given(found)
        if name == "bias" and like.size == 1:
            value = value.sum(dtype=np.float64 if value.dtype == np.float64 else np.float32).astype(value.dtype)
        elif name in ("init_state", "init_cell") and like.shape[-2] == 1 and value.shape[0] != 1:
            summed = value.sum(axis=0, keepdims=True, dtype=_arrays.dtype_of(like).compute.numpy)
            value = summed.astype(value.dtype)
        return np.asarray(value).reshape(like.shape)


def _taken(arrays: Mapping[str, Array], name: str, memory: Memory) -> Array | None:
    array = arrays.get(name)
    return None if array is None else memory.taken(array)
