"""What can be done with a state: look, set, reset, copy; and that it stands on its own."""

from __future__ import annotations

from collections.abc import Callable
import copy
import gc
from typing import Any
import weakref

import numpy as np
import pytest
from recurrent.calls import FORWARD

import recurra
from stream.streams import OPS, assert_same_bits, assert_same_states, layers

N = 4


def moved(op: str = "lstm", dtype: str = "float32") -> tuple[recurra.Stream, recurra.StreamState, np.ndarray]:
    """A stream of two layers, a state that some frames have moved, and further frames."""
    made = layers(op, 5, [9, 6], N, dtype)
    stream, frames = made.stream(), made.frames(12, N)
    state = stream.state(N)
    stream.block(frames[:6], state)
    return stream, state, frames[6:]


@pytest.mark.parametrize("op", OPS)
def test_a_new_state_stands_at_the_initial_states(op: str) -> None:
    made = layers(op, 5, [9, 6], N)
    state = made.stream().state(N)
    for i, given in enumerate(made.arguments):
        np.testing.assert_array_equal(state.h[i], given["init_state"])
        if op == "lstm":
            np.testing.assert_array_equal(state.c[i], given["init_cell"])
    assert len(state.h) == 2
    assert len(state.c) == (2 if op == "lstm" else 0)


def test_without_initial_states_it_stands_at_zeros() -> None:
    state = layers("lstm", 5, [9], N, is_full=False).stream().state(N)
    assert not state.h[0].any()
    assert not state.c[0].any()


def test_one_initial_row_serves_every_row() -> None:
    made = layers("gru", 5, [9], 1)
    del made.arguments[0]["mask"]
    state = made.stream().state(7)
    np.testing.assert_array_equal(state.h[0], np.repeat(made.arguments[0]["init_state"], 7, axis=0))


@pytest.mark.parametrize("op", OPS)
def test_h_is_the_last_result(op: str) -> None:
    stream, state, frames = moved(op)
    result = stream.step(frames[0], state)
    np.testing.assert_array_equal(state.h[-1], result)


def test_h_and_c_are_copies() -> None:
    _, state, _ = moved()
    before = state.copy()
    for array in (*state.h, *state.c):
        array[:] = 7
    assert_same_states(state, before)


ROWS: list[tuple[str, Any, list[int]]] = [
    ("a row", 2, [2]),
    ("a NumPy integer", np.int16(0), [0]),
    ("a list", [0, 3], [0, 3]),
    ("a row twice", [1, 1], [1]),
    ("a tuple", (3,), [3]),
    ("an array", np.array([1, 2]), [1, 2]),
    ("unsigned", np.array([1], np.uint8), [1]),
    ("booleans", [False, True, False, True], [1, 3]),
    ("boolean array", np.array([True, False, False, False]), [0]),
    ("none of them", [], []),
    ("an empty array", np.zeros(0, np.int64), []),
    ("a range", range(4), [0, 1, 2, 3]),
]


@pytest.mark.parametrize(("rows", "meant"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_reset_takes_rows_in_every_form(rows: Any, meant: list[int]) -> None:
    stream, state, frames = moved()
    beginning, before = stream.state(N), state.copy()
    state.reset(rows)
    for now, start, old in zip((*state.h, *state.c), (*beginning.h, *beginning.c), (*before.h, *before.c), strict=True):
        for n in range(N):
            np.testing.assert_array_equal(now[n], (start if n in meant else old)[n])
    # The rows go on as if nothing had happened to the others.
    later, fresh, old = (stream.block(frames, s) for s in (state, beginning, before))
    for n in range(N):
        np.testing.assert_array_equal(later[:, n], (fresh if n in meant else old)[:, n])


def test_reset_of_all_goes_to_the_beginning() -> None:
    stream, state, _ = moved()
    state.reset()
    assert_same_states(state, stream.state(N))


@pytest.mark.parametrize("op", OPS)
def test_a_stream_goes_on_where_the_op_stopped_and_hands_back(op: str) -> None:
    made = layers(op, 5, [9], N)
    given, frames = made.arguments[0], made.frames(30, N)
    whole = made.op_on(frames)
    stream = made.stream()
    state = stream.state(N)
    descriptor = made.descriptors[0].copy()
    if op == "lstm":
        descriptor.produce_cell = True
    first = FORWARD[op](frames[:10], **given, descriptor=descriptor)
    if op == "lstm":
        state.set(first.h[-1], first.c[-1])
    else:
        state.set(first.h[-1])
    middle = stream.block(frames[10:20], state)
    given = {**given, "init_state": state.h[0], **({"init_cell": state.c[0]} if op == "lstm" else {})}
    last = FORWARD[op](frames[20:], **given, descriptor=descriptor).h
    np.testing.assert_allclose(np.concatenate([first.h, middle, last]), whole, rtol=0, atol=2e-6)


def test_set_takes_one_and_leaves_the_other() -> None:
    _, state, _ = moved()
    h, c = state.h, state.c
    new = [np.full_like(a, 0.5) for a in c]
    state.set(c=new)
    for got, wanted in zip((*state.h, *state.c), (*h, *new), strict=True):
        np.testing.assert_array_equal(got, wanted)
    state.set()
    np.testing.assert_array_equal(state.c[0], new[0])


def test_a_failed_set_changes_nothing() -> None:
    _, state, _ = moved()
    before = state.copy()
    with pytest.raises(recurra.ShapeError):
        state.set([np.ones((N, 9), np.float32), np.ones((N, 6), np.float32)], [np.ones((N, 9), np.float32)] * 2)
    assert_same_states(state, before)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_states_of_half_precision_are_float32_and_take_both(dtype: str) -> None:
    made = layers("gru", 5, [9], N, dtype)
    stream = made.stream()
    state, half = stream.state(N), made.frames(1, N)[0, :, :1]
    assert state.h[0].dtype == np.float32
    for h in (np.repeat(half, 9, axis=1), np.full((N, 9), 1 / 3, np.float32)):
        state.set(h)
        np.testing.assert_array_equal(state.h[0], h.astype(np.float32))


@pytest.mark.parametrize(
    "copied", [lambda s: s.copy(), copy.copy, copy.deepcopy], ids=["copy", "copy.copy", "deepcopy"]
)
def test_a_copy_goes_on_by_itself(copied: Callable[[Any], Any]) -> None:
    stream, state, frames = moved()
    other = copied(state)
    assert_same_states(other, state)
    before = state.copy()
    got = stream.block(frames, other)
    assert_same_states(state, before)
    assert_same_bits(stream.block(frames, state), got)


def test_a_copied_model_keeps_stream_and_state_together() -> None:
    stream, state, frames = moved()
    model = copy.deepcopy({"stream": stream, "state": state})
    assert copy.copy(stream) is model["stream"] is stream
    assert_same_bits(model["stream"].block(frames, model["state"]), stream.block(frames, state))


def test_a_state_outlives_the_name_of_its_stream() -> None:
    made = layers("lstm", 5, [9], 1)
    frames = made.frames(3, 1)
    stream = made.stream()
    wanted = stream.block(frames, stream.state(1))
    state = stream.state(1)
    del stream
    gc.collect()
    assert_same_bits(state.stream.block(frames, state), wanted)


def test_the_kernels_keep_what_they_read() -> None:
    """The bound method alone keeps weights, mask and parameters alive."""
    made = layers("lstm", 64, [64], 1)
    frames, out = made.frames(1, 1)[0], np.empty((1, 64), np.float32)
    stream = made.stream()
    wanted = stream.step(frames, stream.state(1))
    step = stream.state(1)._step
    del stream
    gc.collect()
    clutter = [np.full(n, np.nan, np.float32) for n in (64, 256, 64 * 256, 2 * 64 * 256) for _ in range(50)]
    step(frames, out)
    assert_same_bits(out, wanted)
    assert clutter


def test_nothing_keeps_a_stream_and_a_state_alive() -> None:
    made = layers("lstm", 5, [9], 1)
    stream = made.stream()
    state = stream.state(1)
    alive = weakref.ref(stream), weakref.ref(state)
    del stream, state
    assert alive[0]() is None
    assert alive[1]() is None


def test_weights_are_copied() -> None:
    made = layers("lstm", 5, [9, 6], N)
    frames = made.frames(4, N)
    stream = made.stream()
    wanted = stream.block(frames, stream.state(N))
    state = stream.state(N)
    for given in made.arguments:
        for array in given.values():
            array[...] = np.nan
    made.descriptors[0].forget_gate_last = not made.descriptors[0].forget_gate_last
    assert_same_bits(stream.block(frames, state), wanted)
    assert_same_bits(stream.block(frames, stream.state(N)), wanted)


def test_what_a_stream_says_of_itself() -> None:
    stream, state, _ = moved()
    assert (stream.op, stream.dtype, stream.input_size, stream.hidden_sizes) == ("lstm", "float32", 5, (9, 6))
    assert repr(stream) == "<Stream lstm 5 -> 9 -> 6 float32>"
    assert repr(state) == "<StreamState of <Stream lstm 5 -> 9 -> 6 float32>, batch 4>"
    assert (state.stream, state.batch) == (stream, 4)
    for read_only in ("stream", "batch"):
        with pytest.raises(AttributeError):
            setattr(state, read_only, 3)


def test_a_stream_stays_on_the_instruction_set_that_it_was_made_for(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for dtype in ("float32", "bfloat16"):
        made = layers("gru", 7, [33, 5], 2, dtype)
        frames = made.frames(5, 2)
        stream = made.stream()
        state = stream.state(2)
        wanted = stream.block(frames, state.copy())
        for other in ("x86-64-v2", "generic", "z80"):
            monkeypatch.setenv("RECURRA_ISA", other)
            assert_same_bits(stream.block(frames, stream.state(2)), wanted)
            assert_same_bits(stream.block(frames, state.copy()), wanted)
        monkeypatch.setenv("RECURRA_ISA", isa)
