"""The vectors of ONNX Runtime's own CPU tests of LSTM, GRU and RNN."""

from __future__ import annotations

from collections import Counter

import numpy as np
from oracle.agreement import assert_agree
import pytest

from peers.onnx_form import Node, run
from peers.vectors import DATA, Vector, read_vectors
import recurra

VECTORS = [v for operator in ("lstm", "gru", "rnn") for v in read_vectors(DATA / "ort_gtest" / f"{operator}.jsonl")]

# The numbers were written with six decimals or more, not always rounded.
DECIMALS = 1e-6
FEWER_DECIMALS = {("LSTM", 49): 5e-6, ("LSTM", 50): 5e-6}  # five decimals

# Elements of Y that ONNX Runtime does not compute: 1.31.1 gives these, and so does float64. Its own tests allow 1e-4.
MISPRINTS = {("LSTM", 64): {(1, 1, 0, 0): -0.0435632}, ("LSTM", 66): {(1, 1, 0, 0): -0.0435632}}


def reason_against(vector: Vector) -> str | None:
    """Why the ops of recurra cannot say this node; None where they can."""
    if vector.attributes.get("input_forget", 0):
        return "input_forget makes the forget gate 1 - i; in recurra every gate has weights of its own"
    if vector.attributes.get("clip", 999) < 999:  # no pre-activation of these tests comes near 999
        return "clip limits the pre-activations; recurra has no such option, as MPSGraph has none"
    return None


def node(vector: Vector) -> Node:
    return Node(vector.operator, vector.attributes, vector.inputs)


EXPRESSIBLE = [v for v in VECTORS if v.must_succeed and reason_against(v) is None]
INEXPRESSIBLE = [v for v in VECTORS if reason_against(v) is not None]
INVALID = [v for v in VECTORS if not v.must_succeed]


@pytest.mark.parametrize("vector", EXPRESSIBLE, ids=str)
def test_nodes_give_what_onnx_runtime_says(vector: Vector) -> None:
    got = run(node(vector))
    place = vector.operator, vector.number
    wanted = {name: value.copy() for name, value in vector.outputs.items()}
    for element, value in MISPRINTS.get(place, {}).items():
        assert abs(wanted["Y"][element] - value) > 5e-5, "the vector was corrected: take it out of MISPRINTS"
        wanted["Y"][element] = value
    for name, value in wanted.items():
        assert_agree(name, got[name], value, FEWER_DECIMALS.get(place, DECIMALS))


def test_no_vector_is_left_out_without_a_reason() -> None:
    assert len(EXPRESSIBLE) == 144
    assert [(v.operator, v.number) for v in INEXPRESSIBLE] == [
        ("LSTM", number) for number in (23, 24, 25, 26, 33, 34, 35, 36)
    ]
    reasons = Counter((reason_against(v) or "").split()[0] for v in INEXPRESSIBLE)
    assert reasons == {"clip": 6, "input_forget": 2}
    assert [(v.operator, v.number) for v in INVALID] == list(REFUSALS)
    assert len(VECTORS) == 144 + 8 + 4


@pytest.mark.parametrize("vector", INEXPRESSIBLE, ids=str)
def test_vectors_left_out_would_not_agree(vector: Vector) -> None:
    """Otherwise they could be run."""
    got = run(node(vector))
    assert max(np.abs(got[name] - value).max() for name, value in vector.outputs.items()) > 1e-3


REFUSALS = {
    ("LSTM", 67): (recurra.ShapeError, r"input_weight must have shape \[4\*H, I\] = \[8, 2\], got \[12, 2\]"),
    ("RNN", 18): (recurra.ShapeError, r"lengths must have shape \[N\] = \[2\], got \[1\]"),
    ("RNN", 19): (recurra.ArgumentError, r"lengths must lie in \[0, T\] = \[0, 3\], got 5"),
    ("RNN", 21): (recurra.ArgumentError, "activation: must be one of .*, got 'invalid_activation'"),
}


@pytest.mark.parametrize("vector", INVALID, ids=str)
def test_nodes_that_onnx_runtime_refuses_are_refused(vector: Vector) -> None:
    error, message = REFUSALS[vector.operator, vector.number]
    with pytest.raises(error, match=message):
        run(node(vector))
