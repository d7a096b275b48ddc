"""Layers on top of each other: in one graph, each with its own weights and states."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from recurrent.calls import FORWARD, descriptor

from contract.full_cases import OPS
from contract.stacks import build, expected, stack
import recurra

EXACT = 1e-11  # float64 through some layers


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("op", OPS)
def test_every_layer_starts_from_its_own_state(op: str, bidirectional: bool) -> None:
    """PR #95137: layer 1 was given the initial state of layer 0, and tests passed because all states were zero."""
    layers = stack(op, 3, bidirectional=bidirectional)
    states = [layers.parameters(layer)["init_state"] for layer in range(3)]
    assert all(np.abs(states[a] - states[b]).max() > 0.1 for a, b in [(0, 1), (0, 2), (1, 2)])
    outputs, gradients = expected(layers)
    built = build(layers)
    found = built.graph.run({built.x: layers.source}, [*built.outputs, *built.gradients.values()])
    for layer, (got, wanted) in enumerate(zip(found, outputs, strict=False)):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=EXACT, err_msg=f"h of layer {layer}")
    for key, got in zip(built.gradients, found[3:], strict=True):
        np.testing.assert_allclose(got, gradients[key], rtol=0, atol=EXACT, err_msg=f"{key[1]} of layer {key[0]}")


@pytest.mark.parametrize("depth", [3, 4])
@pytest.mark.parametrize("op", OPS)
def test_gradients_of_deep_stacks_are_right_inside_one_graph(op: str, depth: int, tmp_path: pathlib.Path) -> None:
    """#125803, PR #130038: an optimisation of reshapes spoiled weight gradients from three layers on."""
    layers = stack(op, depth)
    _, gradients = expected(layers)
    built = build(layers)
    targets = list(built.gradients.values())
    compiled = built.graph.compile([built.x], targets)
    compiled.save(tmp_path / "stack")
    ways = {
        "run": built.graph.run({built.x: layers.source}, targets),
        "compiled": compiled.run([layers.source]),
        "loaded": recurra.Executable.load(tmp_path / "stack").run([layers.source]),
    }
    for way, found in ways.items():
        for key, got in zip(built.gradients, found, strict=True):
            wanted = gradients[key]
            np.testing.assert_allclose(got, wanted, rtol=0, atol=EXACT, err_msg=f"{key[1]} of layer {key[0]}, {way}")
            assert np.abs(wanted).max() > 1e-6  # a gradient that is lost on the way is no agreement


@pytest.mark.parametrize("op", OPS)
def test_layers_in_one_graph_are_layers_run_one_by_one(op: str) -> None:
    """PR #90909: an LSTM of several layers in one graph was numerically wrong, and had to be run layer by layer."""
    layers = stack(op, 3)
    built = build(layers)
    together = built.graph.run({built.x: layers.source}, built.outputs)
    h = layers.source
    for layer, case in enumerate(layers.layers):
        h = FORWARD[op](h, **layers.parameters(layer), descriptor=descriptor(case)).h
        np.testing.assert_array_equal(together[layer], h)
