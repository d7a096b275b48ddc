"""Calls with every argument given and no state zero, beside what the oracle says about them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from oracle.cases import Case, reference_results
from oracle.forward import DEFAULTS, gate_order
from recurrent.calls import Results, distance, run, tolerance

OPS = ("single_gate_rnn", "lstm", "gru")


def full_case(
    op: str,
    T: int = 4,
    N: int = 3,
    I: int = 2,
    H: int = 3,
    *,
    without: Iterable[str] = (),
    **options: Any,
) -> Case:
    """A case with every float argument but the mask, in its plain shape, all of them random and none zero."""
    rng = np.random.default_rng([T, N, I, H])
    D, G = (2 if options.get("bidirectional") else 1), len(gate_order(op, DEFAULTS[op] | options))

    def normal(*shape: int) -> np.ndarray:
        return 0.5 * rng.standard_normal(shape)

    inputs: dict[str, Any] = {
        "source": 2 * normal(T, N, I),
        "recurrent_weight": normal(2, G * H, H) if D == 2 else normal(G * H, H),
        "input_weight": normal(D * G * H, I),
        "bias": normal(D * G * H),
        "init_state": normal(N, D * H),
    }
    gradients_in = {"source_gradient": normal(T, N, D * H), "state_gradient": normal(N, D * H)}
    if op == "lstm":
        inputs |= {"init_cell": normal(N, D * H), "peephole": normal(2, 4 * H) if D == 2 else normal(4 * H)}
        gradients_in |= {"cell_gradient": normal(N, D * H), "cell_sequence_gradient": normal(T, N, D * H)}
    if op == "gru" and options.get("reset_after"):
        inputs |= {"secondary_bias": normal(D * H)}
    if op == "single_gate_rnn":
        options = {"activation": "tanh"} | options  # relu has a kink at 0
    kept = {name: value for name, value in inputs.items() if name not in without}
    return Case(op, 0, options, {"input_weight": None, **kept}, gradients_in)


def assert_agrees(case: Case, where: str = "numpy", dtype: str = "float64") -> tuple[Results, Results]:
    """Results and gradients in a library are those of the oracle; they are returned."""
    found = run(case, where, dtype)
    wanted = reference_results(case.rounded(dtype))
    for got, expected, backward in zip(found, wanted, (False, True), strict=True):
        assert got.keys() == expected.keys()
        for name, value in got.items():
            assert distance(value, expected[name]) <= tolerance(case, dtype, backward), f"{name} of {case}"
    return found
