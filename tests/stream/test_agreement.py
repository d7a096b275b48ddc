"""A stream gives what the op gives, on every option, size, dtype, instruction set and number of threads.

The bound is the one that all tests of the ops derive from the dtype and the length of the sums: the two may take the
sums of a product in another order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from oracle.agreement import tol
from oracle.cases import Case, case, reference_results
import pytest
from recurrent.calls import arguments, descriptor, distance, tolerance

from recurra._backends import _native_calls
from stream.streams import MAKE, OPS, Layers, layers, run_in_cuts

DTYPES = ("float64", "float32", "float16", "bfloat16")


def check(made: Layers, T: int, N: int, resets: np.ndarray | None = None) -> None:
    frames = made.frames(T, N)
    stream = made.stream()
    got = stream.block(frames, stream.state(N), resets=resets).astype(np.float64)
    wanted = made.op_on(frames, resets).astype(np.float64)
    length = max(given["recurrent_weight"].shape[1] for given in made.arguments) + made.input_size
    allowed = tol(made.dtype, length, T * len(made.arguments), False)
    error = distance(got, wanted)
    assert error <= allowed, f"off by {error:.1e}, allowed {allowed:.1e}: {stream}, N={N}, {made.descriptors}"


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("H", [1, 5, 8, 31, 128, 130])
def test_every_size_agrees_with_the_op(isa: str, op: str, H: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for N in (0, 1, 3, 17):
        for seed, (I, threads) in enumerate([(1, 1), (7, 2), (40, 3), (None, 2)]):
            monkeypatch.setattr(_native_calls, "_exact_threads", threads)
            check(layers(op, I, [H], N, seed=seed), 5, N)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hidden", [[9], [5, 33], [40, 8, 1]], ids=str)
def test_every_dtype_and_several_layers_agree_with_the_op(isa: str, op: str, dtype: str, hidden: list[int]) -> None:
    for N in (1, 3):
        check(layers(op, 11, hidden, N, dtype), 37, N)
        check(layers(op, 11, hidden, N, dtype, is_full=False), 37, N)


@pytest.mark.parametrize("op", OPS)
def test_resets_in_a_block_agree_with_the_op(isa: str, op: str) -> None:
    T, N = 45, 5
    resets = np.random.default_rng(3).random((T, N)) < 0.2
    resets[0, 1] = True  # drops the initial state
    for hidden in ([31], [16, 5]):
        check(layers(op, 6, hidden, N), T, N, resets)


def as_stream(drawn: Case, dtype: str) -> Any:
    """The stream of an oracle case, or None where the case is none for a stream."""
    if drawn.options["bidirectional"] or drawn.options["reverse"] or drawn.inputs["lengths"] is not None:
        return None
    mask = drawn.inputs["mask"]
    if mask is not None and mask.ndim == 3 and mask.shape[0] != 1:
        return None
    given = arguments(drawn.inputs, "numpy", dtype)
    source, resets = given.pop("source"), given.pop("resets", None)
    options = descriptor(drawn)
    options.training = False
    return MAKE[drawn.op](**given, descriptor=options), source, resets


@pytest.mark.filterwarnings("ignore:Stream.gru. secondary_bias is used only:recurra.RecurraWarning")
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_option_agrees_with_the_oracle(isa: str, op: str, dtype: str) -> None:
    """Biases, masks and states of every legal shape, both GRUs, peepholes, all activations in all places."""
    count = 0
    for seed in range(500):
        drawn = case(op, seed).rounded(dtype)
        made = as_stream(drawn, dtype)
        if made is None or (dtype == "float32" and 0 < drawn.kink_distance < 1e-6):
            continue
        count += 1
        stream, source, resets = made
        wanted = reference_results(drawn)[0]["h"]
        bound = 1e-9 if dtype == "float64" else tolerance(drawn, dtype, False)
        for cuts in ([1000], [1, 2]) if resets is not None else ([1000], [0], [1, 0, 2]):
            state = stream.state(source.shape[1])
            got = run_in_cuts(stream, state, source, cuts, resets) if len(source) else stream.block(source, state)
            error = distance(got.astype(np.float64), wanted)
            assert error <= bound, f"off by {error:.1e}, allowed {bound:.1e}\n{drawn}"
    assert count > 60


def test_frames_that_are_not_numbers_stay_in_their_row() -> None:
    """NaN and infinity in one row of the batch: the others do not notice, and a reset of that row heals it."""
    made = layers("lstm", 5, [9, 12], 3)
    stream, frames = made.stream(), made.frames(6, 3)
    clean = stream.block(frames, stream.state(3))
    frames[2, 1, 0], frames[2, 1, 3] = np.nan, np.inf
    state = stream.state(3)
    got = stream.block(frames[:4], state)
    np.testing.assert_array_equal(got[:, [0, 2]], clean[:4, [0, 2]])
    assert np.isnan(got[2:, 1]).all()
    state.reset(1)
    rest = stream.block(frames[4:], state)
    np.testing.assert_array_equal(rest[:, [0, 2]], clean[4:, [0, 2]])
    assert np.isfinite(rest).all()
