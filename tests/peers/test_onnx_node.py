"""The vectors with which ONNX checks its backends: LSTM, GRU and RNN nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from oracle.agreement import assert_agree, tol
import pytest

from peers.mapping import Arrays
from peers.onnx_form import Node, run
from peers.vectors import DATA

CASES = sorted((DATA / "onnx_node").glob("test_*"))


def read(case: Path) -> tuple[Node, Arrays]:
    """The node of a one-node model, and its outputs."""
    (node,) = onnx.load(case / "model.onnx").graph.node
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    attributes = {name: value.decode() if isinstance(value, bytes) else value for name, value in attributes.items()}
    inputs, outputs = (_arrays(case, side) for side in ("input", "output"))
    # An output without a name is absent, and has no file.
    names = [name for name in node.output if name]
    return (
        Node(node.op_type, attributes, dict(zip(node.input, inputs, strict=True))),
        dict(zip(names, outputs, strict=True)),
    )


def _arrays(case: Path, side: str) -> list[np.ndarray]:
    paths = sorted((case / "test_data_set_0").glob(f"{side}_*.pb"))
    return [numpy_helper.to_array(onnx.load_tensor(path)) for path in paths]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.removeprefix("test_"))
def test_nodes_give_what_onnx_says(case: Path) -> None:
    node, wanted = read(case)
    got = run(node)
    T = node.time_major["X"].shape[0]
    length = node.inputs["W"].shape[2] + node.inputs["R"].shape[2]
    for name, value in wanted.items():
        assert value.dtype == np.float32
        assert_agree(name, got[name], value, tol("float32", length, T, backward=False))


def test_all_nodes_are_there() -> None:
    operators = [read(case)[0].operator for case in CASES]
    assert [operators.count(name) for name in ("LSTM", "GRU", "RNN")] == [6, 6, 6]
