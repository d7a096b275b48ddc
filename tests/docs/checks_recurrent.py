"""Checks of the map's rows about the recurrent operations: the 20 overloads, the descriptors, the activations."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from oracle.cases import Case, reference_results
from oracle.forward import DEFAULTS

from docs.mpsgraph_rows import Check, Row
import recurra

T, N, I, H = 4, 3, 2, 5
GATES = {"single_gate_rnn": 1, "lstm": 4, "gru": 3}
DESCRIPTORS = {
    "single_gate_rnn": recurra.SingleGateRNNDescriptor,
    "lstm": recurra.LSTMDescriptor,
    "gru": recurra.GRUDescriptor,
}
OPTIONAL = {
    "single_gate_rnn": ("input_weight", "bias", "init_state", "mask"),
    "lstm": ("input_weight", "bias", "init_state", "init_cell", "mask", "peephole"),
    "gru": ("input_weight", "bias", "init_state", "mask", "secondary_bias"),
}
# Contract 1.2: the order of the gradients. A nil input has no entry.
ORDER = {
    "single_gate_rnn": ("source", "recurrent_weight", "input_weight", "bias", "init_state"),
    "lstm": ("source", "recurrent_weight", "input_weight", "bias", "peephole", "init_state", "init_cell"),
    "gru": ("source", "recurrent_weight", "input_weight", "bias", "init_state", "secondary_bias"),
}
RESULTS: dict[str, list[tuple[dict[str, bool], tuple[str, ...]]]] = {
    "single_gate_rnn": [({}, ("h",)), ({"training": True}, ("h", "z"))],
    "lstm": [
        ({}, ("h",)),
        ({"produce_cell": True}, ("h", "c")),
        ({"training": True}, ("h", "c", "z")),
        ({"training": True, "produce_cell": True}, ("h", "c", "z")),
    ],
    "gru": [({}, ("h",)), ({"training": True}, ("h", "z"))],
}
GRADIENTS_IN = ("source_gradient", "state_gradient", "cell_gradient")
SAVED = {"z_state": "z", "cell_output_fwd": "c", "output_fwd": "h"}


def overload(row: Row) -> None:
    """The call of the row, with exactly the overload's parameters, in one direction and in two.

    Every optional one is also None in turn. Results are compared with the oracle, and with the full call.
    """
    assert row.arguments == ["source", *row.labels], "the call has other parameters than the overload"
    op = row.path[1].removesuffix("_gradients")
    given = [name for name in row.labels if name in OPTIONAL[op]]
    for directions in (1, 2):
        for absent in (None, *given):
            _compare(row, op, [name for name in given if name != absent], directions)


def _compare(row: Row, op: str, given: list[str], directions: int) -> None:
    case = _case(op, given, directions, row.labels)
    forward, backward = reference_results(case)
    inputs = {name: value for name, value in case.inputs.items() if value is not None}
    everything = {**dict.fromkeys(OPTIONAL[op]), **inputs}
    if row.path[1] == op:
        for flags, names in RESULTS[op]:
            options = DESCRIPTORS[op](**case.options, **flags)
            short, full = _both(row, options, inputs, everything)
            assert short._fields == names
            assert len(short) == len(names)
            _same(short, full, [forward[name] for name in names])
        return
    options = DESCRIPTORS[op](**case.options, training=True)
    results = getattr(recurra, op)(**inputs, descriptor=options)
    saved = {name: getattr(results, SAVED[name]) for name in row.labels if name in SAVED}
    coming = {name: value for name, value in case.gradients_in.items() if value is not None}
    none = dict.fromkeys(name for name in case.gradients_in if name != "cell_sequence_gradient")
    short, full = _both(row, options, {**inputs, **saved, **coming}, {**everything, **saved, **none, **coming})
    names = tuple(name for name in ORDER[op] if name in inputs)
    assert short._fields == names
    assert len(short) == len(names)
    assert [array.shape for array in short] == [inputs[name].shape for name in names]
    _same(short, full, [backward[name] for name in names])


def _case(op: str, given: list[str], directions: int, labels: list[str]) -> Case:
    """A case of the oracle with these optional inputs, and with those incoming gradients that the overload has."""
    rng = np.random.default_rng([directions, len(given), len(labels)])
    gates, wide = GATES[op], directions * H
    weight = (2, gates * H, H) if directions == 2 else (gates * H, H)
    shapes = {
        "source": (T, N, I if "input_weight" in given else directions * gates * H),
        "recurrent_weight": weight,
        "input_weight": (directions * gates * H, I),
        "bias": (directions * gates * H,),
        "init_state": (N, wide),
        "init_cell": (N, wide),
        "mask": (N, wide),
        "peephole": (2, 4 * H) if directions == 2 else (4 * H,),
        "secondary_bias": (wide,),
        "lengths": (),
        "resets": (),
        "source_gradient": (T, N, wide),
        "state_gradient": (N, wide),
        "cell_gradient": (N, wide),
        "cell_sequence_gradient": (),
    }

    def drawn(name: str, wanted: bool) -> np.ndarray | None:
        return 0.5 * rng.standard_normal(shapes[name]) if wanted else None

    names = ["source", "recurrent_weight", *OPTIONAL[op], "lengths", "resets"]
    coming = [*GRADIENTS_IN[: 3 if op == "lstm" else 2], *(["cell_sequence_gradient"] if op == "lstm" else [])]
    options = {k: v for k, v in DEFAULTS[op].items() if k not in ("training", "produce_cell")}
    options["bidirectional"] = directions == 2
    if op == "gru":
        options["reset_after"] = "secondary_bias" in given
    return Case(
        op,
        0,
        options,
        {name: drawn(name, name in (*given, "source", "recurrent_weight")) for name in names},
        {name: drawn(name, name in labels) for name in coming},
    )


def _both(row: Row, options: Any, short: dict[str, Any], full: dict[str, Any]) -> tuple[Any, Any]:
    """The results of the overload as a method of a graph, and those of the full call on arrays."""
    g = recurra.Graph()
    feeds = {g.placeholder(array.shape, array.dtype, name): array for name, array in short.items()}
    named = {tensor.name: tensor for tensor in feeds}
    absent = {name: None for name in row.arguments if name not in (*named, "descriptor", "name")}
    made = row(g, **named, **absent, descriptor=options, name="layer")
    assert made[0].op.name == "layer"
    arrays = g.run(feeds, list(made))
    full = {**full, "source_gradient": full.get("source_gradient")} if "source_gradient" in row.labels else full
    return type(made)(*arrays), getattr(recurra, row.path[1])(**full, descriptor=options)


def _same(short: Any, full: Any, expected: list[np.ndarray]) -> None:
    for got, other, wanted in zip(short, full, expected, strict=True):
        assert np.array_equal(got, other)
        assert np.allclose(got, wanted, rtol=1e-10, atol=1e-12)


def descriptor(op: str) -> Check:
    """The class has Apple's fields, in snake_case, with Apple's defaults, and nothing beside but what is recurra's."""

    def check(row: Row) -> None:
        made = row()
        assert type(made) is DESCRIPTORS[op]
        fields = {field.name: getattr(made, field.name) for field in dataclasses.fields(made)}
        assert (
            {name: str(value) if name.endswith("activation") else value for name, value in fields.items()}
            == {
                "produce_cell": False,
                **DEFAULTS[op],
            }
            if op == "lstm"
            else DEFAULTS[op]
        )

    return check


def activation(row: Row) -> None:
    wanted = ["none", "relu", "tanh", "sigmoid", "hard_sigmoid"]
    assert [str(row.target(raw)) for raw in range(5)] == wanted


CHECKS: dict[str, Check] = {
    **dict.fromkeys(("R1", "R2", "R3", "RG1", "RG2", "RG3", "RG4"), overload),
    **dict.fromkeys(("L1", "L2", "L3", "LG1", "LG2", "LG3", "LG4"), overload),
    **dict.fromkeys(("G1", "G2", "G3", "GG1", "GG2", "GG3"), overload),
    "MPSGraphSingleGateRNNDescriptor": descriptor("single_gate_rnn"),
    "MPSGraphLSTMDescriptor": descriptor("lstm"),
    "MPSGraphGRUDescriptor": descriptor("gru"),
    "MPSGraphRNNActivation": activation,
}
