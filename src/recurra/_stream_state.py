"""Where a stream stands: h and c of every layer, and the memory that its steps work in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _arrays, _file
from ._arrays import Array
from ._backends import _memory, _native_calls
from ._errors import ArgumentError, ArgumentTypeError, DTypeError, FileFormatError, ShapeError

if TYPE_CHECKING:
    from ._stream import Layer, Stream

FORMAT, VERSION = "recurra-stream-state", "1"
# Steps that a block takes at a time: enough to read the input weights rarely, and few enough to stay in the caches.
_STEPS = 32


class StreamState:
    """The state of a batch of sequences in a stream. Made by `Stream.state`; one thread at a time may use it."""

    __slots__ = ("_initial", "_kept", "_layers", "_memory", "_stack", "batch", "frame_shape", "run", "stream")

    def __init__(self, stream: Stream, layers: Sequence[Layer], batch: int, memory: _memory.Memory) -> None:
        self.stream, self.batch, self._layers, self._memory = stream, batch, tuple(layers), memory
        self._stack = memory.stack(batch, _STEPS, _native_calls.team())
        self._kept: list[Any] = []  # what the kernels read as long as the stack lives
        self._initial = [self._add(layer) for layer in layers]
        self.frame_shape = (batch, layers[-1].sizes.H)
        self.run = self._stack.run
        self.reset()

    def _add(self, layer: Layer) -> list[Array]:
        """Put a layer on the stack; what its states begin with."""
        s, wide, arrays = layer.sizes, (self.batch, layer.sizes.H), layer.arrays
        taken = self._memory.taken
        bias, mask, params = (arrays.get(name or "") for name in ("bias", "mask", layer.cell.params))
        if bias is not None:
            bias = taken(np.broadcast_to(bias.reshape(-1), (s.G * s.H,)))
        if mask is not None:
            mask = taken(np.broadcast_to(mask[0] if mask.ndim == 3 else mask, wide))
        if params is not None:
            params = taken(params)
        self._kept += [layer.packed, bias, mask, params]
        has_input_weight = "input_weight" in layer.types
        self._stack.add(layer.cell.spec, layer.packed, s.I, s.H, has_input_weight, bias, mask, params)
        names = ("init_state", "init_cell") if s.G == 4 else ("init_state",)
        return [self._as_state(arrays.get(name), wide) for name in names]

    def _as_state(self, array: Array | None, wide: tuple[int, int]) -> Array:
        made = np.zeros(wide, self._memory.computed)
        if array is not None:
            made[...] = array.reshape(array.shape[-2:])
        return made

    def __repr__(self) -> str:
        return f"<StreamState of {self.stream!r}, batch {self.batch}>"

    def guarded_run(self, where: str, frames: Array, out: Array, resets: Array | None) -> None:
        """Run steps; frames and out as the kernels take them."""
        try:
            self._stack.run(frames, out, resets)
        except RuntimeError:
            raise self._in_use(where) from None

    def _in_use(self, where: str) -> ArgumentError:
        return ArgumentError(f"{where}: state must be used by one thread at a time, got one that is in use")

    # ---- the states as arrays

    @property
    def h(self) -> tuple[Array, ...]:
        """Copies of h of every layer, [N, H] each; float32 in half precision."""
        return tuple(arrays[0] for arrays in self._states("h"))

    @property
    def c(self) -> tuple[Array, ...]:
        """Copies of the cell of every LSTM layer, [N, H] each; empty for other ops."""
        return tuple(arrays[1] for arrays in self._states("c") if len(arrays) == 2)

    def _states(self, what: str) -> list[list[Array]]:
        found = []
        for i, initial in enumerate(self._initial):
            arrays = [np.empty_like(a) for a in initial]
            try:
                self._stack.get(i, arrays[0], arrays[1] if len(arrays) == 2 else None)
            except RuntimeError:
                raise self._in_use(f"StreamState.{what}") from None
            found.append(arrays)
        return found

    def _put(self, what: str, states: Sequence[Sequence[Array]]) -> None:
        for i, arrays in enumerate(states):
            try:
                self._stack.put(i, arrays[0], arrays[1] if len(arrays) == 2 else None)
            except RuntimeError:
                raise self._in_use(f"StreamState.{what}") from None

    def set(self, h: Any = None, c: Any = None) -> None:
        """Set the states, for instance to those after a call of the op; None leaves one as it is.

        Args:
            h, c: [N, H], or a sequence with one for each layer.

        Raises:
            ShapeError, DTypeError, ArgumentError, ArgumentTypeError: an argument breaks a rule.
        """
        states = self._states("set")
        for which, (name, given) in enumerate((("h", h), ("c", c))):
            if given is None:
                continue
            if which == 1 and len(self._initial[0]) == 1:
                raise ArgumentError(f"StreamState.set: c must be None: {self.stream.op} has no cell, got one")
            layers = given if isinstance(given, list | tuple) else [given]
            if len(layers) != len(states):
                raise ArgumentError(
                    f"StreamState.set: {name} must have one entry for each layer, {len(states)}, got {len(layers)}"
                )
            for arrays, value in zip(states, layers, strict=True):
                arrays[which][...] = self._checked(name, value, arrays[which])
        self._put("set", states)

    @staticmethod
    def _checked(name: str, value: Any, like: Array) -> Array:
        if not _arrays.is_array(value):
            raise ArgumentTypeError(f"StreamState.set: {name} must be an array, got {type(value).__name__}")
        if not _arrays.dtype_of(value).is_float:
            raise DTypeError(f"StreamState.set: {name} must be floating, got {_arrays.dtype_of(value)}")
        if tuple(value.shape) != like.shape:
            raise ShapeError(
                f"StreamState.set: {name} must have shape [N, H] = {list(like.shape)}, got {list(value.shape)}"
            )
        return _arrays.to_numpy(value)

    def reset(self, rows: Any = None) -> None:
        """Back to the beginning, for all rows of the batch or some.

        Args:
            rows: None for all; a row, a sequence of rows, or booleans, one for each row.

        Raises:
            ArgumentError: there is no such row.
            ArgumentTypeError: `rows` is something else.
        """
        if rows is None:
            self._put("reset", self._initial)
            return
        chosen = self._rows(rows)
        states = self._states("reset")
        for arrays, initial in zip(states, self._initial, strict=True):
            for array, beginning in zip(arrays, initial, strict=True):
                array[chosen] = beginning[chosen]
        self._put("reset", states)

    def _rows(self, rows: Any) -> Array:
        chosen = _arrays.to_numpy(rows) if _arrays.is_array(rows) else np.asarray(rows)
        if chosen.dtype == np.bool_ and chosen.ndim == 1:
            if chosen.shape != (self.batch,):
                raise ArgumentError(
                    f"StreamState.reset: rows must be {self.batch} booleans, one for each row, got {len(chosen)}"
                )
            return chosen
        if chosen.size == 0 and chosen.ndim == 1:
            return np.zeros(0, np.int64)
        if chosen.dtype.kind not in "iu" or chosen.ndim > 1:
            raise ArgumentTypeError(f"StreamState.reset: rows must be None, rows, or booleans, got {rows!r}")
        wrong = chosen[(chosen < 0) | (chosen >= self.batch)] if chosen.ndim else chosen
        if (chosen.ndim and wrong.size) or (not chosen.ndim and not 0 <= int(chosen) < self.batch):
            raise ArgumentError(f"StreamState.reset: rows must be from 0 to {self.batch - 1}, got {rows!r}")
        return np.atleast_1d(chosen)

    def copy(self) -> StreamState:
        """Another state of the same stream that stands where this one does."""
        other = StreamState(self.stream, self._layers, self.batch, self._memory)
        other._put("copy", self._states("copy"))
        return other

    # ---- files

    def save(self, path: Any) -> None:
        """Write the state to a file (safetensors). The file appears under its name only when it is whole."""
        from safetensors.numpy import save as to_bytes

        tensors = {f"{i}.{name}": a for i, arrays in enumerate(self._states("save")) for name, a in zip("hc", arrays)}  # noqa: B905
        content = to_bytes(tensors, {"format": FORMAT, "version": VERSION, "op": self.stream.op})
        with _file.whole(path) as file:
            file.write(content)

    def load(self, path: Any) -> None:
        """Go to where a saved state stood; it must be of a stream of the same op and sizes, and of the same batch.

        Raises:
            FileFormatError: the file is damaged, newer than this version, or something else.
            ShapeError, DTypeError: the file's state does not fit this one, which stays as it was.
        """
        op, tensors = _read(path)
        if op != self.stream.op:
            raise FileFormatError(f"StreamState.load: the file must hold a state of {self.stream.op}, got one of {op}")
        states = self._states("load")
        wanted = {f"{i}.{name}": a for i, arrays in enumerate(states) for name, a in zip("hc", arrays)}  # noqa: B905
        if tensors.keys() != wanted.keys():
            raise FileFormatError(
                f"StreamState.load: the file must hold {len(states)} layers, got {', '.join(sorted(tensors)) or 'none'}"
            )
        for name, array in wanted.items():
            found = tensors[name]
            if found.shape != array.shape:
                raise ShapeError(
                    f"StreamState.load: {name} must have shape [N, H] = {list(array.shape)}, got {list(found.shape)}"
                )
            if found.dtype != array.dtype:
                raise DTypeError(f"StreamState.load: {name} must be {array.dtype}, got {found.dtype}")
            array[...] = found
        self._put("load", states)


def _read(path: Any) -> tuple[str, dict[str, Array]]:
    """The op and the tensors of a file that `save` wrote."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            told = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except SafetensorError as error:
        raise FileFormatError(
            f"StreamState.load: the file must be one that save wrote, got a damaged one: {error}"
        ) from None
    if told.get("format") != FORMAT:
        raise FileFormatError(f"StreamState.load: the file must be a stream's state, got {told.get('format')!r}")
    if told.get("version") != VERSION:
        raise FileFormatError(
            f"StreamState.load: the file must be of version {VERSION}, got {told.get('version')!r}: it is newer"
        )
    return told.get("op", ""), tensors
