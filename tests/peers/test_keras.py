"""Keras's GRU, of both kinds, by a transcription of the step that its documentation describes. Keras is not needed."""

from __future__ import annotations

import numpy as np
from oracle.agreement import assert_agree, tol
import pytest

from peers.mapping import from_keras_gru
import recurra


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def keras_gru(
    x: np.ndarray,  # [N, T, I]: Keras has the batch first
    h: np.ndarray,  # [N, H]
    kernel: np.ndarray,  # [I, 3*H], gates z, r, h
    recurrent_kernel: np.ndarray,  # [H, 3*H]
    bias: np.ndarray | None,  # [2, 3*H] with reset_after, else [3*H]
    reset_after: bool,
) -> np.ndarray:
    """The outputs, [N, T, H]."""
    H = h.shape[1]
    of_input, of_state = (0, 0) if bias is None else bias if reset_after else (bias, 0)
    outputs = []
    for x_t in x.swapaxes(0, 1):
        x_z, x_r, x_h = np.split(x_t @ kernel + of_input, 3, 1)
        if reset_after:
            h_z, h_r, h_h = np.split(h @ recurrent_kernel + of_state, 3, 1)
            z, r = sigmoid(x_z + h_z), sigmoid(x_r + h_r)
            candidate = np.tanh(x_h + r * h_h)
        else:
            h_z, h_r = np.split(h @ recurrent_kernel[:, : 2 * H], 2, 1)
            z, r = sigmoid(x_z + h_z), sigmoid(x_r + h_r)
            candidate = np.tanh(x_h + (r * h) @ recurrent_kernel[:, 2 * H :])
        h = z * h + (1 - z) * candidate
        outputs.append(h)
    return np.stack(outputs, 1)


@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "go_backwards"])
@pytest.mark.parametrize("use_bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("reset_after", [True, False], ids=["reset_after", "reset_before"])
def test_gru_is_that_of_keras(reset_after: bool, use_bias: bool, backwards: bool) -> None:
    rng = np.random.default_rng([reset_after, use_bias, backwards])
    N, T, I, H = 3, 7, 4, 5
    x, h = rng.standard_normal((N, T, I)), rng.standard_normal((N, H))
    kernel, recurrent_kernel = rng.standard_normal((I, 3 * H)), rng.standard_normal((H, 3 * H))
    bias = rng.standard_normal((2, 3 * H) if reset_after else 3 * H) if use_bias else None
    # go_backwards gives the outputs in the order in which they were computed; recurra leaves them with their inputs.
    order = slice(None, None, -1) if backwards else slice(None)
    wanted = keras_gru(x[:, order], h, kernel, recurrent_kernel, bias, reset_after)[:, order].swapaxes(0, 1)
    out = recurra.gru(
        x.swapaxes(0, 1),
        **from_keras_gru(kernel, recurrent_kernel, bias, reset_after),
        init_state=h,
        descriptor=recurra.GRUDescriptor(reset_after=reset_after, reverse=backwards),
    )
    assert_agree("h", out.h, wanted, tol("float64", 3 * H, T, backward=False))
