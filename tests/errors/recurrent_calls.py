"""The recurrent ops on good arguments of which some are replaced by bad ones."""

from __future__ import annotations

from typing import Any

import numpy as np

import recurra
from recurra import Graph, GRUDescriptor, LSTMDescriptor, SingleGateRNNDescriptor

T, N, I, H = 5, 2, 3, 8
FORWARD = {"lstm": recurra.lstm, "gru": recurra.gru, "single_gate_rnn": recurra.single_gate_rnn}
GATES = {"lstm": 4, "gru": 3, "single_gate_rnn": 1}
BOTH = {
    "lstm": LSTMDescriptor(bidirectional=True),
    "gru": GRUDescriptor(bidirectional=True),
    "single_gate_rnn": SingleGateRNNDescriptor(bidirectional=True),
}
RESET_AFTER = GRUDescriptor(reset_after=True)
ABSENT = object()


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


def forward(op: str, directions: int = 1, **changed: Any) -> Any:
    """The op on good arguments, of which some are replaced or added; ABSENT takes one away."""
    rows = GATES[op] * H
    given: dict[str, Any] = {
        "source": zeros(T, N, I),
        "recurrent_weight": zeros(2, rows, H) if directions == 2 else zeros(rows, H),
        "input_weight": zeros(directions * rows, I),
        "descriptor": BOTH[op] if directions == 2 else None,
    } | changed
    return FORWARD[op](**{k: v for k, v in given.items() if v is not ABSENT})


def lstm(directions: int = 1, **changed: Any) -> Any:
    return forward("lstm", directions, **changed)


def gru(directions: int = 1, **changed: Any) -> Any:
    return forward("gru", directions, **changed)


def rnn(directions: int = 1, **changed: Any) -> Any:
    return forward("single_gate_rnn", directions, **changed)


def lstm_gradients(**changed: Any) -> Any:
    state = {"source_gradient": zeros(T, N, H), "z_state": zeros(T, N, 4 * H), "cell_output_fwd": zeros(T, N, H)}
    given = {"source": zeros(T, N, 4 * H), "recurrent_weight": zeros(4 * H, H), **state} | changed
    return recurra.lstm_gradients(**given)


def gru_gradients(**changed: Any) -> Any:
    state = {"source_gradient": zeros(T, N, H), "z_state": zeros(T, N, 3 * H), "output_fwd": zeros(T, N, H)}
    given = {"source": zeros(T, N, 3 * H), "recurrent_weight": zeros(3 * H, H), **state} | changed
    return recurra.gru_gradients(**given)


def rnn_gradients(**changed: Any) -> Any:
    state = {"source_gradient": zeros(T, N, H), "z_state": zeros(T, N, H)}
    given = {"source": zeros(T, N, H), "recurrent_weight": zeros(H, H), **state} | changed
    return recurra.single_gate_rnn_gradients(**given)


def in_graph(unknown: str, shape: tuple[int | None, ...], dtype: str = "float32") -> Any:
    """`lstm` on a placeholder with unknown sizes in place of one argument."""
    return lstm(**{unknown: Graph().placeholder(shape, dtype)})


def run_with_lengths(lengths: list[int]) -> Any:
    graph = Graph()
    source, given = graph.placeholder([None, N, I]), graph.placeholder([N], "int32")
    out = lstm(source=source, lengths=given)
    return graph.run({source: zeros(T, N, I), given: np.asarray(lengths, np.int32)}, out.h)


def of_two_graphs() -> Any:
    return lstm(source=Graph().placeholder([T, N, I], name="x"), bias=Graph().placeholder([4 * H], name="b"))


def gradient_of_mask() -> Any:
    graph = Graph()
    mask = graph.placeholder([N, H])
    out = graph.lstm(zeros(T, N, I), zeros(4 * H, H), input_weight=zeros(4 * H, I), mask=mask, name="layer")
    return graph.gradients(out.h, mask)
