"""A step takes no memory, packs nothing, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
import gc
import tracemalloc
from typing import Any

from contract.test_section7_memory import resident
import numpy as np
import pytest

import recurra
from recurra._backends import _native_calls
from stream.streams import NUMPY, OPS, layers


def count_allocations(step: Any, calls: int) -> int:
    """The most memory of Python that the calls held at once."""
    gc.collect()
    tracemalloc.start()
    try:
        step()
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(calls):
            step()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def least_growth(work: Callable[[], Any]) -> int:
    """Bytes that the work leaves behind each time. Other parts of a process may take some MiB, but not every time."""
    grown = []
    for _ in range(3):
        before = resident()
        work()
        grown.append(resident() - before)
    return min(grown)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_step_with_out_takes_no_memory(op: str, dtype: str) -> None:
    H = 1000  # an array of that size would show
    made = layers(op, 3, [8, H], 1, dtype)
    stream, frame, out = made.stream(), made.frames(1, 1)[0], np.empty((1, H), NUMPY[dtype])
    state = stream.state(1)
    assert count_allocations(lambda: stream.step(frame, state, out), 100) < 1000


@pytest.mark.parametrize("threads", [1, 2])
def test_memory_stays_level_over_100_000_steps(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native_calls, "_exact_threads", threads)
    made = layers("gru", 8, [16, 16], 1)
    stream, frame, out = made.stream(), made.frames(1, 1)[0], np.empty((1, 16), np.float32)
    state = stream.state(1)

    def steps() -> None:
        for _ in range(100_000 if threads == 1 else 5_000):
            stream.step(frame, state, out)

    assert least_growth(steps) < 2**20


def test_nothing_is_left_by_steps_without_out_blocks_states_and_errors() -> None:
    made = layers("lstm", 8, [64, 64], 4)
    stream, frames = made.stream(), made.frames(40, 4)
    wrong = frames[0].astype(np.float64)
    kept = stream.state(4)

    def everything() -> None:
        state = stream.state(4)
        stream.step(frames[0], state)
        stream.block(frames, state.copy())
        state.reset([1])
        state.set(state.h, state.c)
        with pytest.raises(recurra.DTypeError):
            stream.step(wrong, kept)
        made.stream()

    for _ in range(100):
        everything()
    objects = len(gc.get_objects())
    # A state of these sizes takes 100 KiB: 1,000 would be 100 MiB.
    assert least_growth(lambda: [everything() for _ in range(1000)]) < 6 * 2**20
    assert len(gc.get_objects()) - objects < 100


def test_a_batch_that_no_memory_holds_is_a_memory_error() -> None:
    stream = layers("lstm", 8, [64], 1, is_full=False).stream()
    with pytest.raises(MemoryError):
        stream.state(2**37)
    state = stream.state(1)
    assert np.isfinite(stream.step(np.ones((1, 8), np.float32), state)).all()
