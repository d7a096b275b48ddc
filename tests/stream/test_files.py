"""States in files: whole or not there, and refused when something is wrong with them."""

from __future__ import annotations

import os
import pathlib

import numpy as np
import pytest

import recurra
from recurra import FileFormatError
from stream.streams import OPS, assert_same_bits, assert_same_states, layers


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_a_loaded_state_goes_on_with_the_same_bits(op: str, dtype: str, tmp_path: pathlib.Path) -> None:
    made = layers(op, 5, [9, 6], 3, dtype)
    stream, frames = made.stream(), made.frames(10, 3)
    state = stream.state(3)
    stream.block(frames[:5], state)
    state.save(tmp_path / "state")
    other = made.stream().state(3)  # as in another process
    other.load(str(tmp_path / "state"))
    assert_same_states(other, state)
    assert_same_bits(other.stream.block(frames[5:], other), stream.block(frames[5:], state))


def test_an_empty_batch_is_saved_too(tmp_path: pathlib.Path) -> None:
    stream = layers("gru", 5, [9], 0).stream()
    stream.state(0).save(tmp_path / "state")
    stream.state(0).load(tmp_path / "state")


def test_nothing_but_the_file_is_left_and_a_failure_leaves_the_old_one(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = layers("gru", 5, [9], 2).stream()
    state = stream.state(2)
    state.save(tmp_path / "state")
    assert os.listdir(tmp_path) == ["state"]
    old = (tmp_path / "state").read_bytes()
    state.set(np.ones((2, 9), np.float32))

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        state.save(tmp_path / "state")
    assert os.listdir(tmp_path) == ["state"]
    assert (tmp_path / "state").read_bytes() == old


def test_a_file_that_is_not_there_is_pythons_error(tmp_path: pathlib.Path) -> None:
    state = layers("gru", 5, [9], 2).stream().state(2)
    with pytest.raises(FileNotFoundError):
        state.load(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError):
        state.save(tmp_path / "no folder" / "state")


def test_every_damage_is_refused_and_leaves_the_state_as_it_was(tmp_path: pathlib.Path) -> None:
    """Each byte changed, and each end cut off."""
    made = layers("lstm", 2, [3], 1)
    stream = made.stream()
    state, path = stream.state(1), tmp_path / "state"
    stream.block(made.frames(3, 1), state)
    state.save(path)
    whole = path.read_bytes()
    other = stream.state(1)
    before = other.copy()
    files = [whole[:i] + bytes([whole[i] ^ flip]) + whole[i + 1 :] for i in range(len(whole)) for flip in (1, 128)]
    files += [whole[:i] for i in range(0, len(whole), 7)] + [whole + b"x"]
    harmless = 0
    for content in files:
        path.write_bytes(content)
        try:
            other.load(path)
        except FileFormatError as error:
            assert str(error).startswith("StreamState.load: the file must")  # noqa: PT017 - many, and some are harmless
            assert_same_states(other, before)
        else:
            # White space of the header, and the like: what was saved is there nevertheless.
            harmless += 1
            assert_same_states(other, state)
            other.reset()
    assert harmless < len(files) / 10


def test_a_state_of_another_stream_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "state"
    layers("lstm", 5, [9], 2).stream().state(2).save(path)
    for wrong, error in [
        (layers("gru", 5, [9], 2), recurra.FileFormatError),
        (layers("lstm", 5, [8], 2), recurra.ShapeError),
        (layers("lstm", 5, [9], 3), recurra.ShapeError),
        (layers("lstm", 5, [9, 9], 2), recurra.FileFormatError),
        (layers("lstm", 5, [9], 2, "float64"), recurra.DTypeError),
    ]:
        state = wrong.stream().state(3 if wrong.arguments[0]["init_state"].shape[0] == 3 else 2)
        before = state.copy()
        with pytest.raises(error, match=r"^StreamState\.load: "):
            state.load(path)
        assert_same_states(state, before)
