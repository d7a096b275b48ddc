"""Where a stream stands: h and c of every layer, and the memory that its steps work in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import hashlib
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from . import _arrays, _file
from ._arrays import Array
from ._backends import _memory, _native_calls
from ._errors import ArgumentError, ArgumentTypeError, DTypeError, FileFormatError, ShapeError

if TYPE_CHECKING:
    from ._stream import Stream
    from ._stream_layers import Layer

FORMAT, VERSION = "recurra-stream-state", 1
# Rows of frames that are projected at a time, and steps: enough to read the input weights rarely, and few enough that
# what goes from layer to layer stays in the caches.
_ROWS, _STEPS = 512, 32


class StreamState:
    """Where a batch of sequences stands in a stream: h and c of every layer. One thread at a time may use it.

    Made by `Stream.state`. A copy, also one by Python's `copy`, goes on from the same point; `save` and `load` are for
    other processes, since a state cannot be pickled.
    """

    __slots__ = (
        "__weakref__",
        "_batch",
        "_initial",
        "_layers",
        "_memory",
        "_result_shapes",
        "_stack",
        "_step",
        "_stream",
    )
    _stream: Stream
    _layers: Sequence[Layer]
    _batch: int
    _memory: _memory.Memory
    _stack: Any
    _step: Any
    _initial: list[list[Array]]  # what the states begin with: h and c of every layer
    _result_shapes: tuple[tuple[int, ...], ...]  # of a step, by the rank of its frame

    def __init__(self, *_: Any, **__: Any) -> None:
        raise ArgumentTypeError("StreamState: a state must be made by stream.state(), got a direct call")

    def _add(self, layer: Layer) -> list[Array]:
        """Put a layer on the stack; what its states begin with."""
        s, wide, arrays = layer.sizes, (self._batch, layer.sizes.H), layer.arrays
        taken = self._memory.taken
        bias, mask, params = (arrays.get(name or "") for name in ("bias", "mask", layer.cell.params))
        if bias is not None:
            bias = taken(np.broadcast_to(bias.reshape(-1), (s.G * s.H,)))
        if mask is not None:
            mask = taken(np.broadcast_to(mask[0] if mask.ndim == 3 else mask, wide))
        if params is not None:
            params = taken(params)
        has_input_weight = "input_weight" in layer.types
        self._stack.add(layer.cell.spec, layer.packed, s.I, s.H, has_input_weight, bias, mask, params)
        names = ("init_state", "init_cell") if s.G == 4 else ("init_state",)
        return [self._as_state(arrays.get(name), wide) for name in names]

    def _as_state(self, array: Array | None, wide: tuple[int, int]) -> Array:
        made = np.zeros(wide, self._memory.computed)
        if array is not None:
            made[...] = array.reshape(array.shape[-2:])
        return made

    @property
    def stream(self) -> Stream:
        """The stream that it belongs to."""
        return self._stream

    @property
    def batch(self) -> int:
        """How many sequences it holds side by side."""
        return self._batch

    def __repr__(self) -> str:
        return f"<StreamState of {self._stream!r}, batch {self._batch}>"

    def __copy__(self) -> StreamState:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> StreamState:
        return self.copy()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise ArgumentTypeError(f"StreamState: a state must be written by save, got a request to pickle {self!r}")

    def _block(self, where: str, frames: Array, out: Array, resets: Array | None) -> None:
        """Run steps; [T, N, I] and [T, N, H] as the kernels take them."""
        try:
            self._stack.block(frames, out, resets)
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
            h, c: [N, H] of the stream's dtype or that of `state.h`, or a sequence with one for each layer.

        Raises:
            ShapeError, DTypeError, ArgumentError, ArgumentTypeError: an argument breaks a rule.
        """
        states = self._states("set")
        for which, (name, given) in enumerate((("h", h), ("c", c))):
            if given is None:
                continue
            if which == 1 and len(self._initial[0]) == 1:
                raise ArgumentError(f"StreamState.set: c must be None: {self._stream.op} has no cell, got one")
            layers = given if isinstance(given, list | tuple) else [given]
            if len(layers) != len(states):
                raise ArgumentError(
                    f"StreamState.set: {name} must have one entry for each layer, {len(states)}, got {len(layers)}"
                )
            for arrays, value in zip(states, layers, strict=True):
                arrays[which][...] = self._checked(name, value, arrays[which])
        self._put("set", states)

    def _checked(self, name: str, value: Any, like: Array) -> Array:
        array = _arrays.readable("StreamState.set", name, value)
        dtypes = dict.fromkeys((self._stream.dtype, str(like.dtype)))
        if str(_arrays.dtype_of(array)) not in dtypes:
            raise DTypeError(f"StreamState.set: {name} must be {' or '.join(dtypes)}, got {_arrays.dtype_of(array)}")
        if array.shape != like.shape:
            raise ShapeError(
                f"StreamState.set: {name} must have shape [N, H] = {list(like.shape)}, got {list(array.shape)}"
            )
        return array

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
        is_array = _arrays.is_array(rows)
        try:
            chosen = _arrays.readable("StreamState.reset", "rows", rows) if is_array else np.asarray(rows)
        except ValueError:  # lists of different lengths
            chosen = np.empty((0, 0))
        if chosen.ndim == 1 and not chosen.size and not is_array:
            chosen = chosen.astype(np.int64)
        if chosen.dtype == np.bool_ and chosen.ndim == 1:
            if len(chosen) != self._batch:
                raise ArgumentError(
                    f"StreamState.reset: rows must be {self._batch} booleans, one for each row, got {len(chosen)}"
                )
            return chosen
        if chosen.dtype.kind not in "iu" or chosen.ndim > 1:
            raise ArgumentTypeError(f"StreamState.reset: rows must be None, rows, or booleans, got {rows!r}")
        chosen = np.atleast_1d(chosen)
        if ((chosen < 0) | (chosen >= self._batch)).any():
            raise ArgumentError(
                f"StreamState.reset: rows must be below the batch, {self._batch}, and from 0 on, got {rows!r}"
            )
        return chosen

    def copy(self) -> StreamState:
        """Another state of the same stream that stands where this one does."""
        states = self._states("copy")
        other = new_state(self._stream, self._layers, self._batch, self._memory)
        other._put("copy", states)
        return other

    # ---- files

    def save(self, path: Any) -> None:
        """Write the state to a file (safetensors). The file appears under its name only when it is whole."""
        from safetensors.numpy import save as to_bytes

        tensors = _named(self._states("save"))
        told = {"format": FORMAT, "version": str(VERSION), "op": self._stream.op, "sha256": _digest(tensors)}
        content = to_bytes(tensors, told)
        with _file.whole(path) as file:
            file.write(content)

    def load(self, path: Any) -> None:
        """Go to where a saved state stood; it must be of a stream of the same op and sizes, and of the same batch.

        Raises:
            FileFormatError: the file is damaged, newer than this version, or something else.
            ShapeError, DTypeError: the file's state does not fit this one, which stays as it was.
        """
        op, tensors = _read(path)
        if op != self._stream.op:
            raise FileFormatError(f"StreamState.load: the file must hold a state of {self._stream.op}, got one of {op}")
        states = self._states("load")
        wanted = _named(states)
        if tensors.keys() != wanted.keys():
            got = ", ".join(sorted(tensors)) or "nothing"
            raise FileFormatError(f"StreamState.load: the file must hold {', '.join(wanted)}, got {got}")
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


def new_state(stream: Stream, layers: Sequence[Layer], batch: int, memory: _memory.Memory) -> StreamState:
    """A state of these layers, at its beginning."""
    self = object.__new__(StreamState)
    self._stream, self._layers, self._batch, self._memory = stream, layers, batch, memory
    self._stack = memory.stack(batch, max(1, min(_STEPS, _ROWS // max(batch, 1))), _native_calls.team())
    self._initial = [self._add(layer) for layer in layers]
    self._step = self._stack.step
    hidden = layers[-1].sizes.H
    self._result_shapes = ((hidden,), (batch, hidden))
    self.reset()
    return self


def _named(states: Sequence[Sequence[Array]]) -> dict[str, Array]:
    """The arrays of all layers under the names that they have in a file."""
    return {f"{i}.{name}": a for i, arrays in enumerate(states) for name, a in zip("hc", arrays, strict=False)}


def _digest(tensors: Mapping[str, Array]) -> str:
    """What tells whether a file's tensors are those that were written."""
    found = hashlib.sha256()
    for name, array in sorted(tensors.items()):
        found.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _read(path: Any) -> tuple[str, dict[str, Array]]:
    """The op and the tensors of a file that `save` wrote."""
    from safetensors import safe_open

    where = "StreamState.load: the file must"
    try:
        with safe_open(path, framework="np") as file:
            told = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except OSError:  # it is not there, or not to be read
        raise
    except Exception as error:  # safetensors answers damage with what it meets
        raise FileFormatError(f"{where} be one that save wrote, got a damaged one: {error}") from error
    if told.get("format") != FORMAT:
        raise FileFormatError(f"{where} be a stream's state, got {told.get('format')!r}")
    version = told.get("version", "")
    if not version.isdecimal() or int(version) > VERSION:
        raise FileFormatError(f"{where} have version {VERSION} or lower, got {version!r}; update recurra")
    if told.get("sha256") != _digest(tensors):
        raise FileFormatError(f"{where} hold the state that was saved, got a wrong checksum")
    return told.get("op", ""), tensors
