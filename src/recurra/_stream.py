"""A trained recurrent net, frame by frame: weights packed once, states updated in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _arrays
from ._arrays import Array
from ._backends import _cells, _extension, _memory
from ._errors import ArgumentError, ArgumentTypeError, DeviceError, DTypeError, ShapeError, UnsupportedError
from ._op import UNKNOWN, ShapedType
from ._stream_state import StreamState
from .ops import _rules
from .ops._descriptor import Descriptor, snapshot
from .ops.gru import GRUDescriptor
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


class Stream:
    """Recurrent layers that are fed frame by frame, in microseconds.

    The weights are copied and packed once, here. A state belongs to one sequence of frames, or a batch of them; states
    of one stream may be used from several threads at once, each by one thread at a time. A step with `out` takes no
    memory and packs nothing.

    However the frames are cut into steps and blocks, and whatever the number of threads, the results are the same, bit
    for bit. They equal those of the op to a few units in the last place. Half precision is computed in float32, and
    so are the states from step to step.

    Make one with `Stream.lstm`, `Stream.gru` or `Stream.single_gate_rnn`. Their arguments are those of the op, for one
    layer, or lists with one entry per layer; `init_state` and `init_cell` are what a state begins with.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> W, R = (0.3 * rng.standard_normal((32, n), dtype=np.float32) for n in (5, 8))
        >>> stream = Stream.lstm(R, input_weight=W)
        >>> state = stream.state(batch=1)
        >>> stream.step(np.ones((1, 5), np.float32), state).shape
        (1, 8)
        >>> stream.block(np.ones((100, 1, 5), np.float32), state).shape
        (100, 1, 8)
    """

    __slots__ = ("_dtype", "_is_plain", "_layers", "_memory", "_where")
    _layers: tuple[Layer, ...]
    _memory: _memory.Memory
    _dtype: Any
    _is_plain: bool
    _where: str

    def __init__(self, *_: Any, **__: Any) -> None:
        raise ArgumentTypeError(
            "Stream: a stream must be made by Stream.lstm, Stream.gru or Stream.single_gate_rnn, got a direct call"
        )

    @classmethod
    def lstm(
        cls,
        recurrent_weight: Any,
        *,
        input_weight: Any = None,
        bias: Any = None,
        init_state: Any = None,
        init_cell: Any = None,
        mask: Any = None,
        peephole: Any = None,
        descriptor: Any = None,
    ) -> Stream:
        """A stream of LSTM layers.

        Args:
            recurrent_weight: [4H, H], or a list with one for each layer; then the others are lists too, or None.
            input_weight, bias, mask, peephole: as for `lstm`; the mask has no time axis.
            init_state, init_cell: what a state begins with and goes back to; zeros when absent.
            descriptor: the options of all layers, or a list.

        Returns:
            A stream.

        Raises:
            ShapeError, DTypeError, DeviceError, ArgumentError, ArgumentTypeError: an argument breaks a rule.
            UnsupportedError: recurra was installed without its compiled part.
        """
        return cls._made(
            "lstm",
            {
                "recurrent_weight": recurrent_weight,
                "input_weight": input_weight,
                "bias": bias,
                "init_state": init_state,
                "init_cell": init_cell,
                "mask": mask,
                "peephole": peephole,
            },
            descriptor,
        )

    @classmethod
    def gru(
        cls,
        recurrent_weight: Any,
        *,
        input_weight: Any = None,
        bias: Any = None,
        init_state: Any = None,
        mask: Any = None,
        secondary_bias: Any = None,
        descriptor: Any = None,
    ) -> Stream:
        """A stream of GRU layers; the arguments are those of `gru` and of `Stream.lstm`."""
        return cls._made(
            "gru",
            {
                "recurrent_weight": recurrent_weight,
                "input_weight": input_weight,
                "bias": bias,
                "init_state": init_state,
                "mask": mask,
                "secondary_bias": secondary_bias,
            },
            descriptor,
        )

    @classmethod
    def single_gate_rnn(
        cls,
        recurrent_weight: Any,
        *,
        input_weight: Any = None,
        bias: Any = None,
        init_state: Any = None,
        mask: Any = None,
        descriptor: Any = None,
    ) -> Stream:
        """A stream of single-gate layers; the arguments are those of `single_gate_rnn` and of `Stream.lstm`."""
        return cls._made(
            "single_gate_rnn",
            {
                "recurrent_weight": recurrent_weight,
                "input_weight": input_weight,
                "bias": bias,
                "init_state": init_state,
                "mask": mask,
            },
            descriptor,
        )

    @classmethod
    def _made(cls, op: str, named: Mapping[str, Any], descriptor: Any) -> Stream:
        where = f"Stream.{op}"
        if _extension.native is None:
            raise UnsupportedError(f"{where}: the extension recurra._native must be built (pip install .), got none")
        self = object.__new__(cls)
        self._where = where
        layers: list[Layer] = []
        for i, (arrays, options) in enumerate(_per_layer(where, named, descriptor)):
            layers.append(_layer(op, where if not isinstance(named["recurrent_weight"], list | tuple)
                                 else f"{where}: layer {i}", arrays, options, layers))  # fmt: skip
        self._layers = tuple(layers)
        self._memory = _memory.memory_of(layers[0].types["source"].dtype)
        self._is_plain, self._dtype = self._memory.is_plain, self._memory.dtype
        return self

    @property
    def op(self) -> str:
        """The op of its layers."""
        return self._layers[0].op

    @property
    def dtype(self) -> str:
        """The dtype of frames and results."""
        return str(self._layers[0].types["source"].dtype)

    @property
    def input_size(self) -> int:
        """I: the channels of a frame."""
        return self._layers[0].sizes.I

    @property
    def hidden_sizes(self) -> tuple[int, ...]:
        """H of each layer; results have the last one."""
        return tuple(layer.sizes.H for layer in self._layers)

    def __repr__(self) -> str:
        sizes = " -> ".join(str(n) for n in (self.input_size, *self.hidden_sizes))
        return f"<Stream {self.op} {sizes} {self.dtype}>"

    def state(self, batch: int = 1) -> StreamState:
        """A new state for so many sequences side by side, at its beginning.

        It uses as many threads as `set_num_threads` says now, where they gain anything.

        Raises:
            ArgumentError, ArgumentTypeError: `batch` is not a number from 0 on.
            ShapeError: the initial states or the mask were given for another batch.
        """
        if isinstance(batch, bool) or not isinstance(batch, int | np.integer):
            raise ArgumentTypeError(f"Stream.state: batch must be an integer, got {batch!r}")
        if batch < 0:
            raise ArgumentError(f"Stream.state: batch must be a number of sequences from 0 on, got {batch}")
        for layer in self._layers:
            layer.check(self._where, int(batch))
        return StreamState(self, self._layers, int(batch), self._memory)

    def step(self, frame: Array, state: StreamState, out: Array | None = None) -> Array:
        """One step of every sequence: the top layer's h after it; the state moves on.

        Args:
            frame: [N, I], or [I] for a batch of one.
            state: of this stream.
            out: where the result goes, contiguous, of its shape and dtype, apart from the frame's memory. With it, a
                step takes no memory.

        Returns:
            h, [N, H] (or [H]), `out` if given, of the frame's library.

        Raises:
            ShapeError, DTypeError, DeviceError, ArgumentError, ArgumentTypeError: an argument breaks a rule.
        """
        # The straight way, with the least possible around it; whatever is unusual, or wrong, goes the other way.
        try:
            if self._is_plain and state.stream is self:
                result = np.empty(state.frame_shape, self._dtype) if out is None else out
                state.run(frame, result)
                return result
        except (AttributeError, TypeError, ValueError):
            pass
        return self._run("Stream.step", (1, 2), frame, state, None, out)

    def block(
        self, frames: Array, state: StreamState, *, resets: Array | None = None, out: Array | None = None
    ) -> Array:
        """Several steps of every sequence: the top layer's h after each; the state moves on.

        Args:
            frames: [T, N, I].
            state: of this stream.
            resets: bool [T, N]: states become zeros before that step, as the op's `resets` says (not `init_state`).
            out: where the result goes, as for `step`.

        Returns:
            h, [T, N, H].

        Raises:
            ShapeError, DTypeError, DeviceError, ArgumentError, ArgumentTypeError: an argument breaks a rule.
        """
        return self._run("Stream.block", (3,), frames, state, resets, out)

    def _run(self, where: str, ranks: tuple[int, ...], frames: Any, state: Any, resets: Any, out: Any) -> Array:
        """Check everything, then do it."""
        if not isinstance(state, StreamState) or state.stream is not self:
            raise ArgumentTypeError(f"{where}: state must be a state of this stream (stream.state()), got {state!r}")
        source = self._on_cpu(where, "frame" if 1 in ranks else "frames", frames)
        shape = self._frame_shape(where, ranks, source, state.batch)
        result = self._memory.new((*shape, self.hidden_sizes[-1]))
        target = None
        if out is not None:
            target = self._on_cpu(where, "out", out)
            if target.shape != result.shape:
                raise ShapeError(f"{where}: out must have shape {list(result.shape)}, got {list(target.shape)}")
            if np.may_share_memory(source, target):
                raise ArgumentError(f"{where}: out must not share memory with the frames, got two that do")
            if not target.flags.writeable:
                raise ArgumentError(f"{where}: out must be writable, got an array that is read-only")
        flags = None if resets is None else _resets(where, resets, source.shape)
        state.guarded_run(where, self._memory.taken(source), result, flags)
        given = self._memory.given(result)
        if target is not None:
            target[...] = given
            return out
        return _arrays.convert(given, _arrays.namespace(frames), _arrays.device_of(frames))

    def _on_cpu(self, where: str, name: str, array: Any) -> Array:
        """An array as a NumPy array of the same memory, of the stream's dtype."""
        if not _arrays.is_array(array):
            raise ArgumentTypeError(f"{where}: {name} must be an array, got {type(array).__name__}")
        device = _arrays.device_of(array)
        if device is not None and getattr(device, "type", "cpu") != "cpu":
            raise DeviceError(f"{where}: {name} must be in the CPU's memory, got an array on {device}")
        if str(_arrays.dtype_of(array)) != self.dtype:
            raise DTypeError(
                f"{where}: {name} must have the dtype of the weights, {self.dtype}, got {_arrays.dtype_of(array)}"
            )
        return _arrays.to_numpy(array)

    def _frame_shape(self, where: str, ranks: tuple[int, ...], source: Array, batch: int) -> tuple[int, ...]:
        """The shape of the frames without channels."""
        shape = source.shape
        one_row = ranks == (1, 2) and len(shape) == 1 and batch == 1
        fits = len(shape) == ranks[-1] and shape[-2] == batch
        if not (one_row or fits) or shape[-1] != self.input_size:
            name, form = ("frame", "[N, I]") if 1 in ranks else ("frames", "[T, N, I]")
            wanted = [*(["T"] if 3 in ranks else []), batch, self.input_size]
            raise ShapeError(f"{where}: {name} must have shape {form} = {wanted}, got {list(shape)}".replace("'", ""))
        return tuple(shape[:-1])


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
    arrays = {name: _own(where, name, value) for name, value in given.items()}
    if "recurrent_weight" not in arrays:
        raise ArgumentTypeError(f"{where}: recurrent_weight must be an array, got None")
    cell = _cells.cell_of(options)
    dtype = _arrays.dtype_of(arrays["recurrent_weight"])
    types = {name: ShapedType(a.shape, _arrays.dtype_of(a)) for name, a in arrays.items()}
    types = {"source": ShapedType((1, UNKNOWN, UNKNOWN), dtype), **types}
    sizes = _rules.check(where, types, cell.gates, 1)
    if below and (below[-1].sizes.H, below[-1].types["source"].dtype) != (sizes.I, dtype):
        raise ShapeError(
            f"{where}: input_weight must take what the layer below gives, {below[-1].sizes.H} channels of "
            f"{below[-1].types['source'].dtype}, got {sizes.I} of {dtype}"
        )
    R, W = arrays.pop("recurrent_weight"), arrays.pop("input_weight", None)
    packed = _memory.memory_of(dtype).packed(cell, R, W, sizes.I)
    return Layer(op, cell, sizes, packed, types, arrays)


def _own(where: str, name: str, value: Any) -> Array:
    """A copy in NumPy: what the user does to the array later is none of the stream's business."""
    if not _arrays.is_array(value):
        raise ArgumentTypeError(f"{where}: {name} must be an array, got {type(value).__name__}")
    return np.array(_arrays.to_numpy(value))


def _resets(where: str, resets: Any, shape: tuple[int, ...]) -> Array:
    flags = _arrays.to_numpy(resets) if _arrays.is_array(resets) else np.asarray(resets)
    if flags.dtype != np.bool_:
        raise DTypeError(f"{where}: resets must be bool, got {flags.dtype}; write resets != 0")
    if flags.shape != shape[:2]:
        raise ShapeError(f"{where}: resets must have shape [T, N] = {list(shape[:2])}, got {list(flags.shape)}")
    return np.ascontiguousarray(flags)
