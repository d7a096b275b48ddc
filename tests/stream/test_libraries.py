"""Frames and weights of every array library, in every layout; and `out`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from recurrent.calls import FROM_NUMPY
import torch

import recurra
from recurra._backends import _native_calls
from stream.streams import NUMPY, OPS, assert_same_bits, layers

DTYPES = ("float64", "float32", "float16", "bfloat16")


def bits(array: Any) -> np.ndarray:
    """The array in NumPy."""
    if isinstance(array, torch.Tensor):
        return (
            array.view(torch.int16).numpy().view(ml_dtypes.bfloat16) if array.dtype == torch.bfloat16 else array.numpy()
        )
    return np.asarray(array)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("where", ["numpy", "read-only numpy", "torch", "jax", "array_api_strict"])
def test_results_are_of_the_library_of_the_frames(where: str, dtype: str) -> None:
    if where == "array_api_strict" and dtype in ("float16", "bfloat16"):
        pytest.skip("the standard has no half precision")
    made = layers("lstm", 5, [9, 6], 1, dtype)
    stream, frames = made.stream(), made.frames(6, 1)
    wanted = stream.block(frames, stream.state(1))
    with jax.enable_x64(True):
        given = FROM_NUMPY[where](frames)
        assert str(given.dtype).rsplit(".", 1)[-1] == dtype
        state = stream.state(1)
        found = [
            stream.step(given[0, ...], state),
            stream.step(given[1, 0, ...], state),
            stream.block(given[2:, ...], state),
        ]
        for result in found:
            assert type(result) is type(given)
            assert result.dtype == given.dtype
        assert found[1].shape == (6,)
        joined = np.concatenate([bits(found[0]), bits(found[1])[None], bits(found[2])[:, 0]])
    assert_same_bits(joined, wanted[:, 0])


@pytest.mark.parametrize("where", ["torch", "jax", "array_api_strict"])
def test_weights_may_be_of_any_library(where: str) -> None:
    made = layers("gru", 5, [9], 2)
    frames = made.frames(6, 2)
    wanted = made.stream()
    made.arguments[0] = {name: FROM_NUMPY[where](array) for name, array in made.arguments[0].items()}
    stream = made.stream()
    assert_same_bits(stream.block(frames, stream.state(2)), wanted.block(frames, wanted.state(2)))


def test_weights_of_a_torch_module_are_taken_with_their_gradients_left_behind() -> None:
    module = torch.nn.LSTM(5, 9)
    stream = recurra.Stream.lstm(
        module.weight_hh_l0, input_weight=module.weight_ih_l0, bias=module.bias_ih_l0 + module.bias_hh_l0
    )
    x = torch.randn(7, 2, 5)
    with torch.no_grad():
        wanted = module(x)[0]
    assert torch.allclose(stream.block(x, stream.state(2)), wanted, atol=1e-6)


LAYOUTS = {
    "steps of two": lambda f: np.repeat(f, 2, axis=0)[::2],
    "columns of a wider array": lambda f: np.concatenate([f, f], axis=-1)[..., : f.shape[-1]],
    "Fortran's order": np.asfortranarray,
    "backwards": lambda f: np.ascontiguousarray(f[..., ::-1])[..., ::-1],
    "the bytes of another machine": lambda f: f.astype(f.dtype.newbyteorder()),
    "not aligned": lambda f: np.frombuffer(b"x" + f.tobytes(), np.uint8)[1:].view(f.dtype).reshape(f.shape),
    "a subclass": lambda f: (
        f.view(np.recarray) if f.dtype.names else np.asarray(f).view(type("Own", (np.ndarray,), {}))
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_frames_of_every_layout_give_the_same_bits(layout: str, dtype: str) -> None:
    made = layers("lstm", 5, [9], 3, dtype)
    stream, frames = made.stream(), made.frames(4, 3)
    wanted = stream.block(frames, stream.state(3))
    given = LAYOUTS[layout](frames)
    assert_same_bits(np.asarray(stream.block(given, stream.state(3))), wanted)
    state = stream.state(3)
    steps = [np.asarray(stream.step(LAYOUTS[layout](frame), state)) for frame in frames]
    assert_same_bits(np.stack(steps), wanted)


def target(where: str, dtype: str, shape: tuple[int, ...]) -> Any:
    return FROM_NUMPY[where](np.full(shape, np.nan, NUMPY[dtype]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("where", ["numpy", "torch"])
@pytest.mark.parametrize("frames_where", ["numpy", "torch"])
def test_results_go_into_out(where: str, frames_where: str, dtype: str) -> None:
    made = layers("lstm", 5, [9], 1, dtype)
    stream, frames = made.stream(), made.frames(4, 1)
    wanted = stream.block(frames, stream.state(1))
    given = FROM_NUMPY[frames_where](frames)
    out = target(where, dtype, wanted.shape)
    assert stream.block(given, stream.state(1), out=out) is out
    assert_same_bits(bits(out), wanted)
    state = stream.state(1)
    for t, frame in enumerate(given):
        one, row = target(where, dtype, (1, 9)), target(where, dtype, (9,))
        assert stream.step(frame, state.copy(), out=one) is one
        assert stream.step(frame[0], state, out=row) is row
        assert_same_bits(bits(one)[0], wanted[t, 0])
        assert_same_bits(bits(row), wanted[t, 0])


def test_out_of_another_byte_order_is_filled() -> None:
    made = layers("lstm", 5, [9], 1)
    stream, frames = made.stream(), made.frames(1, 1)
    out = np.full((1, 9), np.nan, np.dtype("f4").newbyteorder())
    stream.step(frames[0], stream.state(1), out=out)
    np.testing.assert_array_equal(out, stream.step(frames[0], stream.state(1)))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_nothing_is_written_around_out_nor_into_the_frames(
    isa: str, op: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native_calls, "_exact_threads", threads)
    for dtype in ("float32", "float64"):
        for N, hidden in [(1, [1]), (1, [130]), (3, [5]), (2, [17, 31]), (5, [33, 1])]:
            made = layers(op, 7, hidden, N, dtype)
            stream, frames, H = made.stream(), made.frames(34, N), hidden[-1]
            given = frames.copy()
            for T in (1, 34):
                guarded = np.full(T * N * H + 64, np.nan, dtype)
                out = guarded[32:-32].reshape(T, N, H)
                result = stream.block(frames[:T], stream.state(N), out=out)
                assert np.isfinite(result).all()
                assert np.isnan(guarded[:32]).all()
                assert np.isnan(guarded[-32:]).all()
            guarded = np.full(N * H + 64, np.nan, dtype)
            stream.step(frames[0], stream.state(N), out=guarded[32:-32].reshape(N, H))
            assert np.isfinite(guarded[32:-32]).all()
            assert np.isnan(guarded[:32]).all()
            assert np.isnan(guarded[-32:]).all()
            np.testing.assert_array_equal(frames, given)


def test_the_end_of_the_frames_memory_is_not_passed() -> None:
    """Frames end where a page ends, behind which nothing may be read."""
    mmap = pytest.importorskip("mmap")
    ctypes = pytest.importorskip("ctypes")
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mprotect"):
        pytest.skip("needs a system with mprotect")
    page = mmap.PAGESIZE
    for op in OPS:
        for I, H in [(1, 1), (3, 5), (17, 31), (None, 9)]:
            made = layers(op, I, [H], 1)
            memory = mmap.mmap(-1, 3 * page)
            start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            assert libc.mprotect(ctypes.c_void_p(start + 2 * page), page, 0) == 0
            values, frames = np.frombuffer(memory, np.float32)[: 2 * page // 4], made.frames(4, 1)
            at_end = values[-frames.size :].reshape(frames.shape)
            at_end[...] = frames
            stream = made.stream()
            assert_same_bits(stream.block(at_end, stream.state(1)), stream.block(frames, stream.state(1)))
            out = values[-H:].reshape(1, H)
            wanted = stream.step(frames[0], stream.state(1))
            assert_same_bits(stream.step(frames[0], stream.state(1), out=out), wanted)
            assert libc.mprotect(ctypes.c_void_p(start + 2 * page), page, mmap.PROT_READ | mmap.PROT_WRITE) == 0
            del values, at_end, out


@pytest.mark.parametrize("N", [0, 2])
def test_a_block_without_steps_gives_nothing_and_moves_nothing(N: int) -> None:
    made = layers("gru", 5, [9, 6], N)
    stream = made.stream()
    state = stream.state(N)
    before = state.h
    empty = stream.block(np.zeros((0, N, 5), np.float32), state, resets=np.zeros((0, N), bool))
    assert empty.shape == (0, N, 6)
    assert stream.block(np.zeros((0, N, 5), np.float32), state, out=empty) is empty
    for one, two in zip(before, state.h, strict=True):
        np.testing.assert_array_equal(one, two)
    assert stream.step(np.zeros((N, 5), np.float32), state).shape == (N, 6)


def test_resets_may_be_lists_and_arrays_of_any_library() -> None:
    made = layers("gru", 5, [9], 2)
    stream, frames = made.stream(), made.frames(3, 2)
    resets = np.array([[False, False], [True, False], [False, True]])
    wanted = stream.block(frames, stream.state(2), resets=resets)
    assert not np.array_equal(wanted, stream.block(frames, stream.state(2)))
    for given in (resets.tolist(), torch.from_numpy(resets), jnp.asarray(resets), np.asfortranarray(resets)):
        assert_same_bits(stream.block(frames, stream.state(2), resets=given), wanted)
