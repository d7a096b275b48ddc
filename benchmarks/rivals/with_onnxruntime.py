"""ONNX Runtime: one node, weights in the model (packed when the session is made), inference only."""

from __future__ import annotations

from typing import Any

from cases import Case
from inputs import Numbers
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import onnxruntime

from rivals import Rival, Unavailable

NODES = {"lstm": "LSTM", "gru": "GRU", "rnn": "RNN"}
# Where ONNX's blocks stand among torch's: i, o, f, c of i, f, g, o; z, r, h of r, z, n.
BLOCKS = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}


def model(case: Case, given: Numbers) -> bytes:
    """The case as an ONNX model with inputs X, h0 and (LSTM) c0 and output Y, [T, D, N, H]."""

    def reordered(weight: Any) -> Any:
        parts = np.split(weight, case.G)
        return np.concatenate([parts[i] for i in BLOCKS[case.op]])

    def constant(name: str, per_direction: list[Any]) -> Any:
        return numpy_helper.from_array(np.stack(per_direction), name)

    B = [np.concatenate([reordered(i), reordered(s)]) for i, s in zip(given.b_input, given.b_state, strict=True)]
    weights = [
        constant("W", [reordered(w) for w in given.W]),
        constant("R", [reordered(r) for r in given.R]),
        constant("B", B),
    ]
    state = ["h0", "c0"] if case.op == "lstm" else ["h0"]
    node = helper.make_node(
        NODES[case.op],
        ["X", "W", "R", "B", "", *state],
        ["Y"],
        hidden_size=case.H,
        direction="bidirectional" if case.bidirectional else "forward",
        **({"linear_before_reset": 1} if case.op == "gru" else {}),
    )

    def value(name: str, *shape: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    D, T, N, I, H = case.D, case.T, case.N, case.I, case.H
    inputs = [value("X", T, N, I), *(value(name, D, N, H) for name in state)]
    graph = helper.make_graph([node], "case", inputs, [value("Y", T, D, N, H)], weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    return made.SerializeToString()


def named(Y: Any) -> dict[str, Any]:
    return {"y": np.concatenate([Y[:, d] for d in range(Y.shape[1])], axis=-1)}


def inputs_of(case: Case, given: Numbers) -> dict[str, Any]:
    return {"X": given.x, "h0": given.h0, **({"c0": given.c0} if case.op == "lstm" else {})}


def refuse(case: Case, library: str) -> None:
    """Raise for what neither of the two that read ONNX can do here."""
    if case.trains:
        raise Unavailable(f"{library} does inference only")
    if case.options:
        raise Unavailable(f"ONNX has no {', '.join(case.options)} as recurra's")


def offer(case: Case, given: Numbers, variant: str, threads: int) -> Rival:
    refuse(case, "onnxruntime")
    if case.dtype != "float32":
        raise Unavailable(f"onnxruntime has no {case.dtype} kernels on CPUs")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Its threads spin within a call, and not on into the turn of the next rival.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(model(case, given), options, providers=["CPUExecutionProvider"])
    feed = inputs_of(case, given)
    return Rival(lambda: session.run(["Y"], feed)[0], named)
