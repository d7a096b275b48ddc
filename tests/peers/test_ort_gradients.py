"""ONNX Runtime's training ops: the saved gates of a forward pass, and gradients from gates that are given.

In the LSTM vector of the gradient op the gates are arbitrary numbers, so every way of using them shows.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from peers.mapping import ONNX, RECURRA, from_onnx, reordered
from peers.vectors import DATA, Vector, read_vectors
import recurra

VECTORS = {v.operator: v for v in read_vectors(DATA / "ort_training_grad" / "lstm_gru_grad.jsonl")}
DESCRIPTORS = {"lstm": recurra.LSTMDescriptor(training=True), "gru": recurra.GRUDescriptor(training=True)}

both_ops = pytest.mark.parametrize("op", ["lstm", "gru"])


def assert_same_digits(name: str, got: np.ndarray, wanted: np.ndarray, atol: float = 0.0) -> None:
    """The vectors have six significant digits; float32 adds an error of its own."""
    np.testing.assert_allclose(got, wanted, rtol=5e-6 + 2.0**-20, atol=atol, err_msg=name)


def one_direction(sequence: np.ndarray) -> np.ndarray:
    """[T, 1, N, channels] as [T, N, channels]."""
    return sequence[:, 0]


def gates(sequence: np.ndarray, op: str) -> np.ndarray:
    """Saved gates in recurra's order."""
    return reordered(one_direction(sequence), ONNX[op], RECURRA[op], 2)


def rows(gradient: np.ndarray, op: str) -> np.ndarray:
    """The gradient of a weight, [1, G*H, ...], with its rows in recurra's order."""
    return reordered(gradient[0], ONNX[op], RECURRA[op], 0)


def weights(vector: Vector, op: str) -> dict[str, Any]:
    """The weights as the ops take them; biases of zeros where a gradient op does not ask for them."""
    W, R = vector.inputs["weights"], vector.inputs["recurrence_weights"]
    return from_onnx(op, W, R, vector.inputs.get("bias", np.zeros((1, 2 * R.shape[1]), R.dtype)))


@both_ops
def test_training_states_are_those_of_onnx_runtime(op: str) -> None:
    vector = VECTORS[f"{op.upper()}Training"]
    call = getattr(recurra, op)
    out = call(vector.inputs["input_tensor"], **weights(vector, op), descriptor=DESCRIPTORS[op])
    wanted = vector.outputs
    sequences = {"h": "HAll", "c": "CAll"} if op == "lstm" else {"h": "HAll"}
    for ours, theirs in sequences.items():
        # GRU: h is of the order of 1 - z, with z close to 1, so it is no better than an eps of 1.
        atol = 2.0**-22 if op == "gru" else 0.0
        assert_same_digits(ours, getattr(out, ours), one_direction(wanted[theirs]), atol)
        assert_same_digits(f"last {ours}", getattr(out, ours)[-1], wanted[f"final_{ours}"][0], atol)
    assert_same_digits("gates", out.z, gates(wanted["iofc" if op == "lstm" else "zrh"], op))


def saved(vector: Vector, op: str) -> dict[str, np.ndarray]:
    if op == "lstm":
        return {
            "z_state": gates(vector.inputs["iofc"], op),
            "cell_output_fwd": one_direction(vector.inputs["CAll"]),
        }
    return {"z_state": gates(vector.inputs["zrh"], op), "output_fwd": one_direction(vector.inputs["HAll"])}


def gradients(vector: Vector, op: str, source: np.ndarray, arguments: dict[str, Any]) -> Any:
    call = getattr(recurra, f"{op}_gradients")
    dh = one_direction(vector.inputs["grad_HAll"])
    return call(source, **arguments, source_gradient=dh, **saved(vector, op), descriptor=DESCRIPTORS[op])


@both_ops
def test_gradients_are_those_of_onnx_runtime(op: str) -> None:
    vector = VECTORS[f"{op.upper()}Grad"]
    got, wanted = gradients(vector, op, vector.inputs["input_tensor"], weights(vector, op)), vector.outputs
    assert_same_digits("source", got.source, wanted["dX"])
    # A gate close to 1 has the slope 1 - y*y, of which float32 keeps the digits down to an eps of 1: ONNX Runtime's
    # least entries are off by that, while ours, with the square and the difference in one FMA, are not.
    theirs = {"input_weight": wanted["dW"], "bias": np.split(wanted["dB"], 2, 1)[0]}
    if op == "gru":
        theirs["recurrent_weight"] = wanted["dR"]
    np.testing.assert_array_equal(*np.split(wanted["dB"], 2, 1))  # of the input and of the recurrent bias
    for name, value in theirs.items():
        atol = 2.0**-24 * float(np.abs(value).max())
        assert_same_digits(name, getattr(got, name), rows(value, op), atol)


@both_ops
def test_gradients_in_float32_are_those_in_float64(op: str) -> None:
    vector = VECTORS[f"{op.upper()}Grad"]
    double = dataclasses.replace(vector, inputs={k: v.astype(np.float64) for k, v in vector.inputs.items()})
    got, wanted = (gradients(v, op, v.inputs["input_tensor"], weights(v, op)) for v in (vector, double))
    for name in got._fields:
        assert_same_digits(name, getattr(got, name), getattr(wanted, name))


def test_lstm_weight_gradient_differs_only_in_where_h_comes_from() -> None:
    """ONNX Runtime is given h, MPSGraph is not: it must take h = o * tanh(c), which the arbitrary gates break."""
    vector = VECTORS["LSTMGrad"]
    R = weights(vector, "lstm")["recurrent_weight"]
    z, c = saved(vector, "lstm").values()
    projected = gradients(vector, "lstm", np.zeros_like(z), {"recurrent_weight": R})
    da = projected.source  # [T, N, 4*H]
    given = one_direction(vector.inputs["HAll"])
    made = z[:, :, 3 * c.shape[2] :] * np.tanh(c)
    assert np.abs(made - given).max() > 0.1

    def of(h: np.ndarray) -> np.ndarray:
        """The gradient of R when these are the outputs; the state before the first step is zero."""
        return np.einsum("tng,tnh->gh", da[1:], h[:-1])

    assert_same_digits("given h", of(given), rows(vector.outputs["dR"], "lstm"))
    assert_same_digits("made h", projected.recurrent_weight, of(made))


def test_all_vectors_are_there() -> None:
    assert list(VECTORS) == ["LSTMTraining", "LSTMGrad", "GRUTraining", "GRUGrad"]
