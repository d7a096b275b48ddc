"""A trained recurrent net, frame by frame: weights packed once, states updated in place."""

from __future__ import annotations

from collections.abc import Mapping
import sys
from typing import Any, NoReturn

import numpy as np

from . import _arrays
from ._arrays import Array
from ._backends import _extension, _memory
from ._errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    GradientError,
    ShapeError,
    UnsupportedError,
)
from ._stream_layers import Layer, layers_of
from ._stream_state import StreamState, new_state

# More numbers than any memory holds: a batch beyond is a mistake, and sizes could overflow.
_MOST = 2**48


class Stream:
    """Recurrent layers that are fed frame by frame, in microseconds.

    The weights are copied and packed once, here. A state belongs to one sequence of frames, or a batch of them; states
    of one stream may be used from several threads at once, each by one thread at a time. On NumPy arrays of float32 or
    float64, a step with `out` takes no memory and packs nothing.

    However the frames are cut into steps and blocks, and whatever the number of threads, the results are the same, bit
    for bit. They equal those of the op to a few units in the last place. Half precision is computed in float32; the
    states are kept in float32 from step to step.

    A stream records no gradients. It is made for the instruction set of the day, and stays on it. Copying one gives
    the same stream, since nothing can change it; it cannot be pickled.

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

    __slots__ = ("__weakref__", "_dtype", "_layers", "_memory", "_plain")
    _layers: tuple[Layer, ...]
    _memory: _memory.Memory
    _dtype: Any  # of the arrays that the kernels take
    _plain: Any  # the type of the arrays that they take as they are, or None

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
        """A stream of LSTM layers. The arrays may be of any library, on any device; they are copied.

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
        self._layers = layers_of(op, where, named, descriptor)
        self._memory = _memory.memory_of(self.dtype)
        self._dtype = self._memory.dtype
        self._plain = np.ndarray if self._memory.is_plain else None
        return self

    def __copy__(self) -> Stream:
        return self

    def __deepcopy__(self, memo: Any) -> Stream:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise ArgumentTypeError(
            f"Stream: a stream must be made from its weights in each process (StreamState.save keeps where it stands), "
            f"got a request to pickle {self!r}"
        )

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
        most = _MOST // max(layer.sizes.I + layer.sizes.G * layer.sizes.H for layer in self._layers)
        if not 0 <= batch <= most:
            raise ArgumentError(f"Stream.state: batch must be a number of sequences from 0 to {most}, got {batch}")
        for layer in self._layers:
            layer.check("Stream.state", int(batch))
        return new_state(self, self._layers, int(batch), self._memory)

    def step(self, frame: Array, state: StreamState, out: Array | None = None) -> Array:
        """One step of every sequence: the top layer's h after it; the state moves on.

        Args:
            frame: [N, I], or [I] for a batch of one.
            state: of this stream.
            out: where the result goes, of NumPy or torch: contiguous, of the result's shape and dtype, apart from the
                frame's memory. With it, a step on NumPy arrays of float32 or float64 takes no memory.

        Returns:
            h, [N, H] (or [H]), `out` if given, of the frame's library.

        Raises:
            RecurraError: an argument breaks a rule, or the state is in use by another thread. The state has not moved.
        """
        # The straight way, with the least possible around it; whatever is unusual, or wrong, goes the other way.
        plain = self._plain
        try:
            if type(frame) is plain and state._stream is self and (out is None or type(out) is plain):
                result = out
                if result is None:
                    result = np.empty(state._result_shapes[frame.ndim - 1], self._dtype)
                state._step(frame, result)
                return result
        except (AttributeError, IndexError, TypeError, ValueError):
            pass
        except RuntimeError:
            raise state._in_use("Stream.step") from None
        shared = None if plain is None else _shared(frame, out)
        if shared is None:
            return self._run("Stream.step", (1, 2), frame, state, None, out)
        result = self.step(shared[0], state, shared[1])
        return sys.modules["torch"].from_numpy(result) if out is None else out

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
            RecurraError: an argument breaks a rule, or the state is in use by another thread. The state has not moved.
        """
        return self._run("Stream.block", (3,), frames, state, resets, out)

    def _run(self, where: str, ranks: tuple[int, ...], frames: Any, state: Any, resets: Any, out: Any) -> Array:
        """Check everything, then do it."""
        if not isinstance(state, StreamState) or state.stream is not self:
            raise ArgumentTypeError(f"{where}: state must be a state of this stream (stream.state()), got {state!r}")
        source = self._on_cpu(where, "frame" if 1 in ranks else "frames", frames)
        shape = (*self._frame_shape(where, ranks, source, state.batch), self.hidden_sizes[-1])
        target = None if out is None else self._target(where, out, shape, source)
        is_direct = target is not None and self._plain is not None and target.dtype == self._dtype
        result: Array = target if is_direct else self._memory.new(shape)
        flags = None if resets is None else _flags(where, resets, source.shape)
        rows = (source.shape[0] if 3 in ranks else 1, state.batch)
        taken = self._memory.taken(source).reshape(*rows, self.input_size)
        state._block(where, taken, result.reshape(*rows, shape[-1]), flags)
        if target is None and isinstance(frames, np.ndarray):
            return self._memory.given(result)
        if target is None:
            return _arrays.convert(self._memory.given(result), _arrays.namespace(frames), _arrays.device_of(frames))
        if not is_direct:
            target[...] = self._memory.given(result)
        return out

    def _on_cpu(self, where: str, name: str, array: Any) -> Array:
        """An array as a NumPy array of the same memory, of the stream's dtype."""
        if _arrays.is_array(array):
            device = _arrays.device_of(array)
            if device is not None and getattr(device, "type", "cpu") != "cpu":
                raise DeviceError(f"{where}: {name} must be in the CPU's memory, got an array on {device}")
            if _arrays.is_torch(array) and array.requires_grad and sys.modules["torch"].is_grad_enabled():
                raise GradientError(
                    f"{where}: {name} must need no gradient, which a stream does not record (torch.no_grad, or "
                    f"detach), got a tensor that requires one"
                )
        values = _arrays.readable(where, name, array)
        if str(_arrays.dtype_of(array)) != self.dtype:
            raise DTypeError(
                f"{where}: {name} must have the dtype of the weights, {self.dtype}, got {_arrays.dtype_of(array)}"
            )
        return values

    def _target(self, where: str, out: Any, shape: tuple[int, ...], source: Array) -> Array:
        """The array that results go into, in NumPy."""
        if not isinstance(out, np.ndarray) and not _arrays.is_torch(out):
            raise ArgumentTypeError(
                f"{where}: out must be a NumPy array or a tensor of torch, got {type(out).__name__}"
            )
        # Asked first: of a tensor in pieces, there may be no view.
        is_contiguous = out.flags.c_contiguous if isinstance(out, np.ndarray) else out.is_contiguous()
        if not is_contiguous:
            raise ArgumentError(f"{where}: out must be contiguous, got an array with gaps or in another order")
        target = self._on_cpu(where, "out", out)
        if target.shape != shape:
            raise ShapeError(f"{where}: out must have shape {list(shape)}, got {list(target.shape)}")
        if not target.flags.writeable:
            raise ArgumentError(f"{where}: out must be writable, got an array that is read-only")
        if np.shares_memory(source, target):
            raise ArgumentError(f"{where}: out must not share memory with the frames, got two that do")
        return target

    def _frame_shape(self, where: str, ranks: tuple[int, ...], source: Array, batch: int) -> tuple[int, ...]:
        """The shape of the frames without channels."""
        shape = source.shape
        one_row = ranks == (1, 2) and len(shape) == 1 and batch == 1
        fits = len(shape) == ranks[-1] and shape[-2] == batch
        if not (one_row or fits) or shape[-1] != self.input_size:
            name, form = ("frame", "[N, I]") if 1 in ranks else ("frames", "[T, N, I]")
            wanted = f"[{'T, ' if 3 in ranks else ''}{batch}, {self.input_size}]"
            raise ShapeError(f"{where}: {name} must have shape {form} = {wanted}, got {list(shape)}")
        return tuple(shape[:-1])


def _shared(frame: Any, out: Any) -> tuple[Array, Array | None] | None:
    """Tensors of torch as NumPy arrays of the same memory, quickly; None where it takes more than a look."""
    torch = sys.modules.get("torch")
    if torch is None or type(frame) is not torch.Tensor or not (out is None or type(out) is torch.Tensor):
        return None
    try:
        return frame.numpy(), None if out is None else out.numpy()
    except (RuntimeError, TypeError):  # it needs a gradient, is on a device, sparse, of bfloat16, …
        return None


def _flags(where: str, resets: Any, shape: tuple[int, ...]) -> Array:
    """Resets as the kernels take them, from an array or lists."""
    if isinstance(resets, list | tuple):
        try:
            flags = np.array(resets, dtype=None if resets else np.bool_)
        except ValueError:  # lists of different lengths
            raise ArgumentTypeError(f"{where}: resets must hold booleans, got {resets!r}") from None
    else:
        flags = _arrays.readable(where, "resets", resets)
    if flags.dtype != np.bool_:
        raise DTypeError(f"{where}: resets must be bool, got {flags.dtype}; write resets != 0")
    if flags.shape != shape[:2]:
        raise ShapeError(f"{where}: resets must have shape [T, N] = {list(shape[:2])}, got {list(flags.shape)}")
    return np.ascontiguousarray(flags)
