"""The numeric cases of the Web Platform Tests for WebNN's lstm and gru."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from oracle.agreement import assert_agree, tol
import pytest

from peers.onnx_form import Node, run
from peers.vectors import DATA, read_array

CASES = json.loads((DATA / "webnn" / "webnn_rnn.json").read_text())["cases"]


def as_onnx(case: dict[str, Any]) -> Node:
    """WebNN's default gate orders, weights and activations are ONNX's; it keeps the two biases apart."""
    assert case["layout"] == {"lstm": "iofg", "gru": "zrn"}[case["op"]]
    renamed = {"input": "X", "weight": "W", "recurrentWeight": "R", "peephole": "P"}
    inputs = {ours: read_array(case[theirs]) for theirs, ours in renamed.items() if theirs in case}
    inputs["B"] = np.concatenate([read_array(case["bias"]), read_array(case["recurrentBias"])], 1)
    attributes = {
        "direction": {"forward": "forward", "backward": "reverse"}[case["direction"]],
        "activations": case["activations"],
        "linear_before_reset": case.get("resetAfter", False),
    }
    return Node(case["op"].upper(), attributes, inputs)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_cases_give_what_the_web_platform_tests_say(case: dict[str, Any]) -> None:
    node = as_onnx(case)
    got = run(node)
    found = {"h": got["Y_h"], "c": got.get("Y_c"), "sequence": got["Y"], "sequence_t1": got["Y"][-1]}
    length = node.inputs["W"].shape[2] + node.inputs["R"].shape[2]
    for name, value in case["expected"].items():
        wanted = np.array(value, np.float32).reshape(found[name].shape)
        assert_agree(name, found[name], wanted, tol("float32", length, case["steps"], backward=False))


def test_all_cases_are_there() -> None:
    names = ["lstm_steps1_relu", "lstm_steps2_backward_relu", "gru_steps1_relu", "gru_steps2_backward_relu"]
    assert [case["name"] for case in CASES] == names
