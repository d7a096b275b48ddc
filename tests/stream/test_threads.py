"""Streams used by several threads and processes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import recurra
from recurra._backends import _native_calls
from stream.streams import OPS, assert_same_bits, layers


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("op", OPS)
def test_threads_with_states_of_their_own_get_what_one_gets(
    op: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native_calls, "_exact_threads", threads)
    made = layers(op, 33, [65, 40], 2)
    stream, frames = made.stream(), [made.frames(40, 2, seed=i) for i in range(8)]

    def run(given: np.ndarray) -> np.ndarray:
        state = stream.state(2)
        return np.concatenate([np.stack([stream.step(f, state) for f in given[:20]]), stream.block(given[20:], state)])

    alone = [run(given) for given in frames]
    with ThreadPoolExecutor(4) as pool:
        for got, wanted in zip(pool.map(run, frames), alone, strict=True):
            assert_same_bits(got, wanted)


def long_step() -> tuple[recurra.Stream, recurra.StreamState, np.ndarray]:
    """A step of some milliseconds, in which other threads run."""
    stream = layers("lstm", 512, [512], 256, is_full=False).stream()
    return stream, stream.state(256), np.ones((4, 256, 512), np.float32)


MEANWHILE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "Stream.step": lambda stream, state, frames: stream.step(frames[0], state),
    "Stream.block": lambda stream, state, frames: stream.block(frames, state),
    "StreamState.h": lambda stream, state, frames: state.h,
    "StreamState.c": lambda stream, state, frames: state.c,
    "StreamState.set": lambda stream, state, frames: state.set(np.ones((256, 512), np.float32)),
    "StreamState.reset": lambda stream, state, frames: state.reset(),
    "StreamState.copy": lambda stream, state, frames: state.copy(),
    "StreamState.save": lambda stream, state, frames: state.save(os.devnull),
}


@pytest.mark.parametrize("where", MEANWHILE)
def test_a_state_that_is_in_use_is_refused_and_stays_sound(where: str) -> None:
    stream, state, frames = long_step()
    wanted = stream.block(frames, stream.state(256))
    begun, found = threading.Event(), []

    def work() -> None:
        begun.set()
        found.append(stream.block(frames, state))

    for _ in range(50):
        state.reset()
        found.clear()
        begun.clear()
        worker = threading.Thread(target=work)
        worker.start()
        begun.wait()
        refused = None
        while worker.is_alive() and refused is None:
            try:
                MEANWHILE[where](stream, state, frames)
            except recurra.ArgumentError as error:
                refused = str(error)
            else:
                break  # it came before the worker, or behind it
        worker.join()
        if refused is not None:
            break
    else:
        pytest.fail("never met the worker in 50 tries")
    assert refused == f"{where}: state must be used by one thread at a time, got one that is in use"
    assert_same_bits(found[0], wanted)
    state.reset()
    assert_same_bits(stream.block(frames, state), wanted)


def test_the_number_of_threads_is_that_of_the_day_the_state_was_made() -> None:
    made = layers("gru", 40, [70], 3)
    stream, frames = made.stream(), made.frames(40, 3)
    try:
        recurra.set_num_threads(2)
        two = stream.state(3)
        recurra.set_num_threads(1)
        assert_same_bits(stream.block(frames, two), stream.block(frames, stream.state(3)))
    finally:
        recurra.set_num_threads(None)


FORK = """
import os, numpy as np, recurra
from recurra._backends import _native_calls
_native_calls._exact_threads = 2
R = np.random.default_rng(0).normal(size=(4 * 96, 96)).astype("f") * 0.1
stream = recurra.Stream.lstm(R)
state = stream.state(9)
frames = np.ones((7, 9, 4 * 96), np.float32)
stream.block(frames, state)  # the parent has a team by now
wanted = stream.block(frames, state.copy())
child = os.fork()
if child == 0:
    same = np.array_equal(stream.block(frames, state), wanted)
    new = stream.state(9)
    stream.block(frames, new)
    os._exit(0 if same and np.array_equal(stream.block(frames, new), wanted) else 3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(int(np.array_equal(stream.block(frames, state), wanted)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_a_forked_child_goes_on_by_itself() -> None:
    """In a process of its own: JAX, which other tests load, warns of forks."""
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["0", "1"], done.stderr
