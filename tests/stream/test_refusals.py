"""Every message of streams and their states, and what else is refused."""

from __future__ import annotations

from collections.abc import Callable
import pathlib
import pickle
import tempfile
from typing import Any
import warnings

from errors.mistakes import ANY, Mistake, check, unsaid
import jax
import numpy as np
import pytest
from safetensors.numpy import save_file
import torch

import recurra
from recurra import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    FileFormatError,
    GradientError,
    GRUDescriptor,
    LSTMDescriptor,
    ShapeError,
    Stream,
    StreamState,
    UnsupportedError,
)
from recurra._backends import _extension

FILES = ["_stream.py", "_stream_layers.py", "_stream_state.py"]
H, I, N = 4, 3, 2


def zeros(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.zeros(shape, dtype)


R, W = zeros(4 * H, H), zeros(4 * H, I)
STREAM = Stream.lstm(R, input_weight=W)
GRU = Stream.gru(zeros(3 * H, H), input_weight=zeros(3 * H, I))


def lstm(*args: Any, **kwargs: Any) -> Callable[[], Stream]:
    return lambda: Stream.lstm(*args, **kwargs)


def step(frame: Any, out: Any = None, state: Any = None, stream: Stream = STREAM) -> Callable[[], Any]:
    return lambda: stream.step(frame, stream.state(N) if state is None else state, out)


def block(frames: Any, **kwargs: Any) -> Callable[[], Any]:
    return lambda: STREAM.block(frames, STREAM.state(N), **kwargs)


def put(**kwargs: Any) -> Callable[[], Any]:
    return lambda: STREAM.state(N).set(**kwargs)


def reset(rows: Any) -> Callable[[], Any]:
    return lambda: STREAM.state(N).reset(rows)


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def without_extension() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_extension, "native", None)
        return Stream.lstm(R)


class Busy:
    """A stack that another thread is in (test_threads.py has real ones)."""

    def __getattr__(self, name: str) -> Any:
        def refuse(*_: object) -> None:
            raise RuntimeError("in use")

        return refuse


def busy(use: Callable[[StreamState], Any]) -> Callable[[], Any]:
    def make() -> Any:
        state = STREAM.state(N)
        state._stack = Busy()
        state._step = state._stack.step
        return use(state)

    return make


def overlapping() -> Any:
    memory = zeros(2, 3, N, H)
    stream = Stream.single_gate_rnn(zeros(H, H), input_weight=zeros(H, H))
    return stream.block(memory[0], stream.state(N), out=memory.reshape(-1)[8 : 8 + 3 * N * H].reshape(3, N, H))


def in_place() -> Any:
    stream, frame = Stream.single_gate_rnn(zeros(H, H), input_weight=zeros(H, H)), zeros(N, H)
    return stream.step(frame, stream.state(N), out=frame)


def traced() -> Any:
    return jax.jit(lambda frame: STREAM.step(frame, STREAM.state(N)))(zeros(N, I))


def loading(change: Callable[[dict[str, Any], dict[str, str]], None], state: Any = None) -> Callable[[], Any]:
    """Load a state after somebody changed its file; the checksum is that of what was saved."""

    def make() -> Any:
        from safetensors import safe_open

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "state")
            STREAM.state(N).save(path)
            with safe_open(path, framework="np") as file:
                told, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            change(tensors, told)
            save_file(tensors, path, told)
            (STREAM.state(N) if state is None else state()).load(path)

    return make


def loading_bytes() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "state")
        path.write_bytes(b"no state")
        STREAM.state(N).load(path)


def unchanged(tensors: dict[str, Any], told: dict[str, str]) -> None:
    pass


FILE = "StreamState.load: the file must "
DENSE = "must be a dense array whose values are known (not under jit, grad or vmap), got "
MISTAKES = [
    # ---- making a stream
    Mistake("direct call", lambda: Stream(R), ArgumentTypeError,
            "Stream: a stream must be made by Stream.lstm, Stream.gru or Stream.single_gate_rnn, got a direct call"),
    Mistake("no extension", without_extension, UnsupportedError,
            "Stream.lstm: the extension recurra._native must be built (pip install .), got none"),
    Mistake("no layers", lstm([]), ArgumentError,
            "Stream.lstm: recurrent_weight must have an entry for each layer, got none"),
    Mistake("lists of different lengths", lstm([R, R], input_weight=[W]), ArgumentError,
            "Stream.lstm: input_weight must be a list of 2, one for each layer, got 1 entries"),
    Mistake("one array for several layers", lstm([R, R], input_weight=W), ArgumentError,
            "Stream.lstm: input_weight must be a list of 2, one for each layer, got ndarray"),
    Mistake("wrong descriptors", lstm([R, R], descriptor="fast"), ArgumentError,
            "Stream.lstm: descriptor must be a list of 2, one for each layer, got str"),
    Mistake("no weight", lstm(None), ArgumentTypeError,
            "Stream.lstm: recurrent_weight must be an array, got None"),
    Mistake("a weight that is missing in a list", lstm([R, None]), ArgumentTypeError,
            "Stream.lstm: layer 1: recurrent_weight must be an array, got None"),
    Mistake("no array", lstm(R, bias=0.5), ArgumentTypeError,
            "Stream.lstm: bias must be an array, got float"),
    Mistake("descriptor of another op", lstm(R, descriptor=GRUDescriptor()), ArgumentTypeError,
            "Stream.lstm: descriptor must be a LSTMDescriptor or None, got GRUDescriptor"),
    *(Mistake(f"descriptor.{field}", lstm(R, descriptor=LSTMDescriptor(**{field: True})), ArgumentError,
              f"Stream.lstm: descriptor.{field} must be False: {reason}, got True")
      for field, reason in [
          ("bidirectional", "the backward direction begins at the end of the sequence, which a stream does not know"),
          ("reverse", "it begins at the end of the sequence, which a stream does not know"),
          ("training", "a stream keeps no training state"),
          ("produce_cell", "state.c has the cell")]),
    Mistake("weight of integers", lstm(zeros(4 * H, H, dtype="int64")), DTypeError,
            "Stream.lstm: recurrent_weight must be float32, float64, float16 or bfloat16, got int64"),
    Mistake("weights of two dtypes", lstm(R, input_weight=W.astype("float64")), DTypeError,
            "Stream.lstm: input_weight must have the dtype of recurrent_weight, float32, got float64"),
    Mistake("weights of another op", lstm(zeros(3 * H, H)), ShapeError,
            "Stream.lstm: recurrent_weight must have shape [4*H, H] = [16, 4], got [12, 4] (GRU weights have 3 gates; "
            "did you mean gru?)"),
    Mistake("no columns", lstm(R, input_weight=zeros(4 * H, 0)), ShapeError,
            "Stream.lstm: input_weight must have at least 1 column, got [16, 0]"),
    Mistake("mask over time", lstm(R, mask=zeros(5, N, H)), ShapeError,
            "Stream.lstm: mask must have no time axis in a stream, [N, H], got [5, 2, 4]"),
    Mistake("layers that do not fit", lstm([R, zeros(20, 5)], input_weight=[W, zeros(20, 7)]), ShapeError,
            "Stream.lstm: layer 1: input_weight must take what the layer below gives, 4 channels, got 7"),
    Mistake("layers of two dtypes", lstm([R, R.astype("float64")], input_weight=[W, zeros(16, 4, dtype="float64")]),
            DTypeError,
            "Stream.lstm: layer 1: recurrent_weight must have the dtype of the layer below, float32, got float64"),
    Mistake("traced weights", lambda: jax.jit(lambda w: Stream.lstm(w).step)(R), UnsupportedError,
            "Stream.lstm: recurrent_weight " + DENSE + "DynamicJaxprTracer"),
    Mistake("pickled stream", lambda: pickle.dumps(STREAM), ArgumentTypeError,
            "Stream: a stream must be made from its weights in each process (StreamState.save keeps where it stands), "
            "got a request to pickle <Stream lstm 3 -> 4 float32>"),
    # ---- making a state
    Mistake("direct call of a state", lambda: StreamState(STREAM), ArgumentTypeError,
            "StreamState: a state must be made by stream.state(), got a direct call"),
    Mistake("batch that is no integer", lambda: STREAM.state(1.5), ArgumentTypeError,
            "Stream.state: batch must be an integer, got 1.5"),
    Mistake("batch of True", lambda: STREAM.state(True), ArgumentTypeError,
            "Stream.state: batch must be an integer, got True"),
    Mistake("negative batch", lambda: STREAM.state(-1), ArgumentError,
            f"Stream.state: batch must be a number of sequences from 0 to {2**48 // 19}, got -1"),
    Mistake("huge batch", lambda: STREAM.state(2**62), ArgumentError,
            f"Stream.state: batch must be a number of sequences from 0 to {2**48 // 19}, got {2**62}"),
    Mistake("initial state of another batch", lambda: Stream.lstm(R, init_state=zeros(5, H)).state(3), ShapeError,
            "Stream.state: init_state must have shape [N, H] = [3, 4], got [5, 4]"),
    Mistake("pickled state", lambda: pickle.dumps(STREAM.state(N)), ArgumentTypeError,
            "StreamState: a state must be written by save, got a request to pickle "
            "<StreamState of <Stream lstm 3 -> 4 float32>, batch 2>"),
    # ---- steps and blocks
    Mistake("no state", step(zeros(N, I), state="s"), ArgumentTypeError,
            "Stream.step: state must be a state of this stream (stream.state()), got 's'"),
    Mistake("state of another stream", step(zeros(N, I), state=GRU.state(N)), ArgumentTypeError,
            "Stream.step: state must be a state of this stream (stream.state()), got "
            "<StreamState of <Stream gru 3 -> 4 float32>, batch 2>"),
    Mistake("frame that is a list", step([[0.0] * I] * N), ArgumentTypeError,
            "Stream.step: frame must be an array, got list"),
    Mistake("frame of another dtype", step(zeros(N, I, dtype="float64")), DTypeError,
            "Stream.step: frame must have the dtype of the weights, float32, got float64"),
    Mistake("frame on another device", step(torch.zeros(N, I, device="meta")), DeviceError,
            "Stream.step: frame must be in the CPU's memory, got an array on meta"),
    Mistake("frame that needs a gradient", step(torch.zeros(N, I, requires_grad=True)), GradientError,
            "Stream.step: frame must need no gradient, which a stream does not record (torch.no_grad, or detach), "
            "got a tensor that requires one"),
    Mistake("sparse frame", step(torch.zeros(N, I).to_sparse()), UnsupportedError,
            "Stream.step: frame " + DENSE + "Tensor"),
    Mistake("frame under vmap", lambda: torch.vmap(lambda f: step(f)())(torch.zeros(5, N, I)), UnsupportedError,
            "Stream.step: frame " + DENSE + "Tensor"),
    Mistake("frame under jit", traced, UnsupportedError,
            "Stream.step: frame " + DENSE + "DynamicJaxprTracer"),
    Mistake("frame with other channels", step(zeros(N, I + 1)), ShapeError,
            "Stream.step: frame must have shape [N, I] = [2, 3], got [2, 4]"),
    Mistake("frame of another batch", step(zeros(N + 1, I)), ShapeError,
            "Stream.step: frame must have shape [N, I] = [2, 3], got [3, 3]"),
    Mistake("a row for a batch of two", step(zeros(I)), ShapeError,
            "Stream.step: frame must have shape [N, I] = [2, 3], got [3]"),
    Mistake("frame without axes", step(zeros()), ShapeError,
            "Stream.step: frame must have shape [N, I] = [2, 3], got []"),
    Mistake("frames in a step", step(zeros(5, N, I), out=zeros(5, N, H)), ShapeError,
            "Stream.step: frame must have shape [N, I] = [2, 3], got [5, 2, 3]"),
    Mistake("a frame in a block", block(zeros(N, I)), ShapeError,
            "Stream.block: frames must have shape [T, N, I] = [T, 2, 3], got [2, 3]"),
    Mistake("frames of another batch", block(zeros(5, 7, I)), ShapeError,
            "Stream.block: frames must have shape [T, N, I] = [T, 2, 3], got [5, 7, 3]"),
    Mistake("out that is a list", step(zeros(N, I), out=[]), ArgumentTypeError,
            "Stream.step: out must be a NumPy array or a tensor of torch, got list"),
    Mistake("out of jax", step(zeros(N, I), out=jax.numpy.zeros((N, H))), ArgumentTypeError,
            "Stream.step: out must be a NumPy array or a tensor of torch, got ArrayImpl"),
    Mistake("out with gaps", step(zeros(N, I), out=zeros(N, 2 * H)[:, :H]), ArgumentError,
            "Stream.step: out must be contiguous, got an array with gaps or in another order"),
    Mistake("tensor with gaps", step(zeros(N, I), out=torch.zeros(H, N).T), ArgumentError,
            "Stream.step: out must be contiguous, got an array with gaps or in another order"),
    Mistake("out of another shape", step(zeros(N, I), out=zeros(N, I)), ShapeError,
            "Stream.step: out must have shape [2, 4], got [2, 3]"),
    Mistake("out of another rank", step(zeros(N, I), out=zeros(N * H)), ShapeError,
            "Stream.step: out must have shape [2, 4], got [8]"),
    Mistake("out of another dtype", step(zeros(N, I), out=zeros(N, H, dtype="float64")), DTypeError,
            "Stream.step: out must have the dtype of the weights, float32, got float64"),
    Mistake("out that is read-only", step(zeros(N, I), out=read_only(zeros(N, H))), ArgumentError,
            "Stream.step: out must be writable, got an array that is read-only"),
    Mistake("out that needs a gradient", step(zeros(N, I), out=torch.zeros(N, H, requires_grad=True)), GradientError,
            "Stream.step: out must need no gradient, which a stream does not record (torch.no_grad, or detach), "
            "got a tensor that requires one"),
    Mistake("a step in place", in_place, ArgumentError,
            "Stream.step: out must not share memory with the frames, got two that do"),
    Mistake("a block into its frames", overlapping, ArgumentError,
            "Stream.block: out must not share memory with the frames, got two that do"),
    Mistake("resets that are no array", block(zeros(2, N, I), resets=1), ArgumentTypeError,
            "Stream.block: resets must be an array, got int"),
    Mistake("ragged resets", block(zeros(2, N, I), resets=[[True], [True, False]]), ArgumentTypeError,
            "Stream.block: resets must hold booleans, got [[True], [True, False]]"),
    Mistake("resets of integers", block(zeros(2, N, I), resets=np.ones((2, N), int)), DTypeError,
            "Stream.block: resets must be bool, got int64; write resets != 0"),
    Mistake("resets of another shape", block(zeros(2, N, I), resets=np.ones((N + 1, 2), bool)), ShapeError,
            "Stream.block: resets must have shape [T, N] = [2, 2], got [3, 2]"),
    # ---- states
    *(Mistake(f"{where} in use", busy(use), ArgumentError,
              f"{where}: state must be used by one thread at a time, got one that is in use")
      for where, use in [
          ("Stream.step", lambda state: STREAM.step(zeros(N, I), state)),
          ("Stream.block", lambda state: STREAM.block(zeros(1, N, I), state)),
          ("StreamState.h", lambda state: state.h),
          ("StreamState.reset", lambda state: state.reset())]),
    Mistake("cell of a GRU", lambda: GRU.state(N).set(c=zeros(N, H)), ArgumentError,
            "StreamState.set: c must be None: gru has no cell, got one"),
    Mistake("states of two layers", put(h=[zeros(N, H)] * 2), ArgumentError,
            "StreamState.set: h must have one entry for each layer, 1, got 2"),
    Mistake("state that is a number", put(h=0.0), ArgumentTypeError,
            "StreamState.set: h must be an array, got float"),
    Mistake("state of another dtype", put(c=zeros(N, H, dtype="float64")), DTypeError,
            "StreamState.set: c must be float32, got float64"),
    Mistake("state of another shape", put(h=zeros(1, H)), ShapeError,
            "StreamState.set: h must have shape [N, H] = [2, 4], got [1, 4]"),
    Mistake("too few booleans", reset([True]), ArgumentError,
            "StreamState.reset: rows must be 2 booleans, one for each row, got 1"),
    Mistake("a name", reset("first"), ArgumentTypeError,
            "StreamState.reset: rows must be None, rows, or booleans, got 'first'"),
    Mistake("True", reset(True), ArgumentTypeError,
            "StreamState.reset: rows must be None, rows, or booleans, got True"),
    Mistake("fractions", reset([0.5]), ArgumentTypeError,
            "StreamState.reset: rows must be None, rows, or booleans, got [0.5]"),
    Mistake("rows in two axes", reset([[0, 1]]), ArgumentTypeError,
            "StreamState.reset: rows must be None, rows, or booleans, got [[0, 1]]"),
    Mistake("ragged rows", reset([[0, 1], [2]]), ArgumentTypeError,
            "StreamState.reset: rows must be None, rows, or booleans, got [[0, 1], [2]]"),
    Mistake("a row too far", reset([0, 2]), ArgumentError,
            "StreamState.reset: rows must be below the batch, 2, and from 0 on, got [0, 2]"),
    Mistake("a row from the end", reset(-1), ArgumentError,
            "StreamState.reset: rows must be below the batch, 2, and from 0 on, got -1"),
    # ---- files
    Mistake("no file of ours", loading_bytes, FileFormatError,
            FILE + f"be one that save wrote, got a damaged one: {ANY}"),
    Mistake("another format", loading(lambda tensors, told: told.update(format="pt")), FileFormatError,
            FILE + "be a stream's state, got 'pt'"),
    Mistake("newer version", loading(lambda tensors, told: told.update(version="2")), FileFormatError,
            FILE + "have version 1 or lower, got '2'; update recurra"),
    Mistake("no version", loading(lambda tensors, told: told.pop("version") and None), FileFormatError,
            FILE + "have version 1 or lower, got ''; update recurra"),
    Mistake("other numbers", loading(lambda tensors, told: tensors.update({"0.h": zeros(N, H) + 1})), FileFormatError,
            FILE + "hold the state that was saved, got a wrong checksum"),
    Mistake("state of another op", loading(unchanged, lambda: GRU.state(N)), FileFormatError,
            FILE + "hold a state of gru, got one of lstm"),
    Mistake("state of fewer layers", loading(unchanged, Stream.lstm([R, R], input_weight=[W, R]).state),
            FileFormatError,
            FILE + "hold 0.h, 0.c, 1.h, 1.c, got 0.c, 0.h"),
    Mistake("state of another batch", loading(unchanged, lambda: STREAM.state(3)), ShapeError,
            "StreamState.load: 0.h must have shape [N, H] = [3, 4], got [2, 4]"),
    Mistake("state of another dtype in a file",
            loading(unchanged, lambda: Stream.lstm(R.astype("float64")).state(N)), DTypeError,
            "StreamState.load: 0.h must be float64, got float32"),
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=Mistake.id)
def test_mistakes_are_told_in_four_parts(mistake: Mistake) -> None:
    check(mistake)


def test_every_message_is_tested() -> None:
    assert not unsaid(FILES, MISTAKES)


def test_a_refused_frame_leaves_the_state_where_it_was() -> None:
    stream = Stream.lstm(R + 0.1, input_weight=W + 0.1)
    state = stream.state(N)
    stream.step(zeros(N, I) + 1, state)
    before = state.h[0]
    for wrong in (zeros(N, I + 1), zeros(N, I, dtype="float64"), [1.0]):
        with pytest.raises(recurra.RecurraError):
            stream.step(wrong, state)
    np.testing.assert_array_equal(state.h[0], before)


def test_a_secondary_bias_that_plays_no_part_is_told_at_the_users_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Stream.gru(zeros(3 * H, H), secondary_bias=zeros(H))
    assert [w.category for w in caught] == [recurra.RecurraWarning]
    assert str(caught[0].message).startswith("Stream.gru: secondary_bias is used only with reset_after")
    assert caught[0].filename == __file__


def test_torch_frames_may_need_gradients_where_none_are_recorded() -> None:
    with torch.no_grad():
        assert step(torch.zeros(N, I, requires_grad=True))().shape == (N, H)
