"""ONNX's LSTM, GRU and RNN, computed with recurra: attributes and inputs by ONNX's names in, outputs by name out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
import re
from typing import Any

import numpy as np

from peers.mapping import Arrays, from_onnx
import recurra

OPS = {"LSTM": "lstm", "GRU": "gru", "RNN": "single_gate_rnn"}
DEFAULT_ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
# Alpha and beta of the activations that have them, as ONNX defaults them.
PARAMETERS = {
    "affine": (1.0, 0.0),
    "leaky_relu": (0.01,),
    "thresholded_relu": (1.0,),
    "scaled_tanh": (1.0, 1.0),
    "hard_sigmoid": (0.2, 0.5),
    "elu": (1.0,),
}


@dataclass(frozen=True)
class Node:
    """One node: its operator ("LSTM", "GRU" or "RNN"), its attributes, and its inputs by ONNX's names."""

    operator: str
    attributes: Mapping[str, Any]
    inputs: Arrays

    @property
    def directions(self) -> int:
        return 2 if self.attributes.get("direction") == "bidirectional" else 1

    @property
    def batch_first(self) -> bool:
        return bool(self.attributes.get("layout", 0))

    @property
    def time_major(self) -> Arrays:
        """The inputs as layout=0 has them."""
        swapped = ("X", "initial_h", "initial_c") if self.batch_first else ()
        return {name: x.swapaxes(0, 1) if name in swapped else x for name, x in self.inputs.items()}

    @property
    def activations(self) -> list[list[Any]]:
        """Of each direction, in recurra's terms: a name, or (name, alpha, beta)."""
        default = DEFAULT_ACTIVATIONS[self.operator] * self.directions
        names = [_snake(name) for name in self.attributes.get("activations", default)]
        given = [iter(self.attributes.get(f"activation_{letter}", ())) for letter in ("alpha", "beta")]
        # Each activation takes from the two lists what it needs; what they lack has a default.
        found = [
            (name, *(next(values, value) for values, value in zip(given, PARAMETERS[name], strict=False)))
            if name in PARAMETERS
            else name
            for name in names
        ]
        each = len(found) // self.directions
        return [found[:each], found[each:]][: self.directions]


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def run(node: Node) -> Arrays:
    """Y, Y_h and (LSTM) Y_c of a node: one call of the op, or two where the directions have different activations.

    clip and input_forget have no counterpart in recurra, and are not looked at: see test_ort_vectors.
    """
    directions = node.activations
    if len(directions) == 2 and directions[0] != directions[1]:
        parts = [_call(node, directions[d], slice(d, d + 1), ("forward", "reverse")[d]) for d in range(2)]
    else:
        parts = [_call(node, directions[0], slice(None), node.attributes.get("direction", "forward"))]
    outputs = {name: np.concatenate([part[name] for part in parts], -3) for name in parts[0]}
    if node.batch_first:  # [T, D, N, H] as [N, T, D, H], [D, N, H] as [N, D, H]
        outputs = {name: np.moveaxis(y, -2, 0) for name, y in outputs.items()}
    return outputs


def _call(node: Node, activations: list[Any], own: slice, direction: str) -> Arrays:
    """The outputs, in layout=0, of the directions that the slice takes."""
    op = OPS[node.operator]
    inputs = {name: x if name in ("X", "sequence_lens") else x[own] for name, x in node.time_major.items()}
    states = {"initial_h": "init_state", "initial_c": "init_cell"}
    linear_before_reset = bool(node.attributes.get("linear_before_reset", 0))
    arguments = {
        **from_onnx(op, *(inputs.get(name) for name in "WRBP"), linear_before_reset=linear_before_reset),
        **{ours: np.concatenate(inputs[name], 1) for name, ours in states.items() if name in inputs},
    }
    lengths = inputs.get("sequence_lens")
    descriptor = _descriptor(op, activations, linear_before_reset, direction)
    out = getattr(recurra, op)(inputs["X"], **arguments, lengths=lengths, descriptor=descriptor)
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    h, *c = (np.stack(np.split(y, len(backwards), 2), 1) for y in out)  # [T, N, D*H] as [T, D, N, H]
    outputs = {"Y": h, "Y_h": last_visited(h, backwards, lengths)}
    return {**outputs, "Y_c": last_visited(c[0], backwards, lengths)} if c else outputs


def _descriptor(op: str, activations: list[Any], linear_before_reset: bool, direction: str) -> Any:
    options = {"reverse": direction == "reverse", "bidirectional": direction == "bidirectional"}
    if op == "single_gate_rnn":
        return recurra.SingleGateRNNDescriptor(**options, activation=activations[0])
    if op == "gru":
        return recurra.GRUDescriptor(
            **options,
            reset_after=linear_before_reset,
            update_gate_activation=activations[0],
            reset_gate_activation=activations[0],
            output_gate_activation=activations[1],
        )
    return recurra.LSTMDescriptor(
        **options,
        produce_cell=True,
        input_gate_activation=activations[0],
        forget_gate_activation=activations[0],
        output_gate_activation=activations[0],
        cell_gate_activation=activations[1],
        activation=activations[2],
        peephole_output="current",
    )


def last_visited(sequence: np.ndarray, backwards: list[bool], lengths: np.ndarray | None) -> np.ndarray:
    """[D, N, H] of [T, D, N, H]: step 0 going back, else the last one that a row has; zeros for a row without steps."""
    T, D, N, H = sequence.shape
    steps = [T] * N if lengths is None else lengths
    last = np.zeros((D, N, H), sequence.dtype)
    for d in range(D):
        for n in range(N):
            if steps[n] > 0:
                last[d, n] = sequence[0 if backwards[d] else steps[n] - 1, d, n]
    return last
