"""The pages' tables of weights from elsewhere: what they convert gives what the other library gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
import onnxruntime
import pytest
import torch

from docs import pages
import recurra

T, N, I, H = 5, 3, 2, 4
OPS = pages.ROOT / "docs" / "ops"


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def _onnx(kind: str, gates: int, extra: dict[str, np.ndarray], **attributes: Any) -> tuple[np.ndarray, tuple[Any, ...]]:
    """h [T, N, H] of ONNX Runtime, and x, W, R, B of the node, without their axis of directions."""
    x, W, R, B = _normal(T, N, I), _normal(gates * H, I), _normal(gates * H, H), _normal(2 * gates * H)
    given = {"X": x, "W": W[None], "R": R[None], "B": B[None], **extra}
    places = {"X": 0, "W": 1, "R": 2, "B": 3, "P": 7}
    inputs = [next((name for name in given if places[name] == i), "") for i in range(max(map(places.get, given)) + 1)]
    node = helper.make_node(kind, inputs, ["Y"], hidden_size=H, **attributes)
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for name, value in given.items()],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [T, 1, N, H])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["Y"], given)[0][:, 0], (x, W, R, B)


def test_lstm_weights_of_onnx_with_peephole() -> None:
    P = _normal(3 * H)
    wanted, (x, W, R, B) = _onnx("LSTM", 4, {"P": P[None]})
    convert = pages.run(OPS / "lstm.md")["from_onnx"]
    assert np.allclose(recurra.lstm(x, **convert(W, R, B, P)).h, wanted, atol=1e-5)


@pytest.mark.parametrize("linear_before_reset", [0, 1])
def test_gru_weights_of_onnx(linear_before_reset: int) -> None:
    wanted, (x, W, R, B) = _onnx("GRU", 3, {}, linear_before_reset=linear_before_reset)
    convert = pages.run(OPS / "gru.md")["from_onnx"]
    assert np.allclose(recurra.gru(x, **convert(W, R, B, linear_before_reset)).h, wanted, atol=1e-5)


def test_rnn_weights_of_onnx() -> None:
    wanted, (x, W, R, B) = _onnx("RNN", 1, {})
    options = recurra.SingleGateRNNDescriptor(activation="tanh")
    h = recurra.single_gate_rnn(x, R, input_weight=W, bias=B[:H] + B[H:], descriptor=options).h
    assert np.allclose(h, wanted, atol=1e-5)


@pytest.mark.parametrize(("op", "kind"), [("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU)])
def test_weights_of_torch_with_states(op: str, kind: Any) -> None:
    layer = kind(I, H)
    x, h0, c0 = (torch.from_numpy(_normal(*shape)) for shape in ((T, N, I), (1, N, H), (2, 1, N, H)))
    arguments = pages.run(OPS / f"{op}.md")["from_torch"](layer)
    if op == "lstm":
        got = recurra.lstm(x, init_state=h0, init_cell=c0[0], **arguments).h
        wanted = layer(x, (h0, c0[0]))[0]
    else:
        got, wanted = recurra.gru(x, init_state=h0, **arguments).h, layer(x, h0)[0]
    assert torch.allclose(got, wanted, atol=1e-5)


def test_block_lstm_rows_need_no_permutation() -> None:
    """Rows i, z, f, o are those of the default order with the middle blocks exchanged."""
    x, R = _normal(T, N, 4 * H), _normal(4 * H, H)
    exchanged = [
        np.concatenate([i, z, f, o], axis) for axis, (i, f, z, o) in ((2, np.split(x, 4, 2)), (0, np.split(R, 4)))
    ]
    last = recurra.lstm(*exchanged, descriptor=recurra.LSTMDescriptor(forget_gate_last=True)).h
    assert np.allclose(last, recurra.lstm(x, R).h, atol=1e-6)
