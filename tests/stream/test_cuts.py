"""However frames are cut into steps and blocks, and whatever the number of threads, the results have the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from recurra._backends import _native_calls
from stream.streams import OPS, Layers, assert_same_bits, assert_same_states, layers, run_in_cuts

T = 70  # more than twice what a stream takes at a time
CUTS = ([0], [1], [2], [31, 0, 33], [32], [5, 0, 0, 40, 3], [64, 6])


def check(made: Layers, N: int, monkeypatch: pytest.MonkeyPatch, resets: np.ndarray | None = None) -> None:
    frames = made.frames(T, N)
    monkeypatch.setattr(_native_calls, "_exact_threads", 1)
    stream = made.stream()
    whole_state = stream.state(N)
    whole = stream.block(frames, whole_state, resets=resets)
    for i, cuts in enumerate(CUTS):
        if resets is not None and 0 in cuts:
            continue
        monkeypatch.setattr(_native_calls, "_exact_threads", 1 + i % 3)
        state = stream.state(N)
        assert_same_bits(run_in_cuts(stream, state, frames, cuts, resets), whole)
        assert_same_states(state, whole_state)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("N", [1, 2, 3, 7])
def test_every_cut_gives_the_same_bits(isa: str, op: str, N: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for I, H in [(1, 1), (1, 5), (3, 8), (7, 31), (40, 17), (None, 33), (2, 130)]:
        check(layers(op, I, [H], N, seed=H), N, monkeypatch)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_every_cut_of_every_dtype_gives_the_same_bits(
    isa: str, op: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for I, hidden in [(1, [5]), (9, [31, 6])]:
        check(layers(op, I, hidden, 3, dtype), 3, monkeypatch)


@pytest.mark.parametrize("op", OPS)
def test_every_cut_through_several_layers_and_resets_gives_the_same_bits(
    isa: str, op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resets = np.random.default_rng(0).random((T, 5)) < 0.1
    made = layers(op, 6, [13, 40, 3], 5)
    check(made, 5, monkeypatch)
    check(made, 5, monkeypatch, resets)


def test_rows_do_not_depend_on_their_neighbours() -> None:
    """A row of a batch has the bits that it has alone."""
    made = layers("gru", 6, [31, 9], 17, is_full=False)
    stream, frames = made.stream(), made.frames(20, 17)
    together = stream.block(frames, stream.state(17))
    for n in (0, 5, 16):
        assert_same_bits(np.ascontiguousarray(together[:, [n]]), stream.block(frames[:, [n]], stream.state(1)))


def test_many_rows_take_fewer_steps_at_a_time_and_give_the_same_bits() -> None:
    made = layers("lstm", 3, [8, 5], 700, is_full=False)
    stream, frames = made.stream(), made.frames(5, 700)
    got = stream.block(frames, stream.state(700))
    state = stream.state(700)
    assert_same_bits(np.stack([stream.step(f, state) for f in frames]), got)
