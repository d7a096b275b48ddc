"""Weights that a graph keeps, constants and variables, are packed once for the native kernels, and never stale."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from recurrent.calls import FORWARD

import recurra
from recurra import Executable, Graph
from recurra._backends import _memory

GATES = {"single_gate_rnn": 1, "lstm": 4, "gru": 3}
OPS = tuple(GATES)
RNG = np.random.default_rng(5)


def weights(op: str, I: int, H: int, dtype: str = "float32") -> tuple[np.ndarray, np.ndarray]:
    return tuple((0.3 * RNG.standard_normal((GATES[op] * H, n))).astype(dtype) for n in (H, I))


@pytest.fixture
def packings(monkeypatch) -> list[int]:
    """How often weights were packed ahead of a call."""
    found: list[int] = []
    packed = _memory.Memory.packed

    def counted(self, *arguments):
        found.append(1)
        return packed(self, *arguments)

    monkeypatch.setattr(_memory.Memory, "packed", counted)
    return found


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("kind", ["constant", "variable"])
@pytest.mark.parametrize("op", OPS)
def test_steady_weights_are_packed_once_whatever_the_shapes(op: str, kind: str, library: str, packings) -> None:
    R, W = weights(op, 5, 9)
    graph = Graph()
    x = graph.placeholder([None, None, 5])
    held = [getattr(graph, kind)(w) for w in (R, W)]
    executable = graph.compile([x], FORWARD[op](x, held[0], input_weight=held[1]).h)
    for T, N in ((7, 3), (7, 3), (7, 3), (2, 40), (1, 1), (1, 1)):
        source = RNG.standard_normal((T, N, 5)).astype(np.float32)
        if library == "torch":
            torch = pytest.importorskip("torch")
            got = executable.run([torch.from_numpy(source)]).numpy()
        else:
            got = executable.run([source])
        np.testing.assert_allclose(got, FORWARD[op](source, R, input_weight=W).h, rtol=2e-6, atol=1e-6)
    assert len(packings) == 1


@pytest.mark.parametrize("T", [1, 6])
@pytest.mark.parametrize("op", OPS)
def test_every_run_gives_the_same_bits(op: str, T: int) -> None:
    R, W = weights(op, 5, 9)
    graph = Graph()
    x = graph.placeholder([None, None, 5])
    executable = graph.compile([x], FORWARD[op](x, graph.variable(R), input_weight=graph.variable(W)).h)
    source = RNG.standard_normal((T, 2, 5)).astype(np.float32)
    first = executable.run([source])
    for _ in range(4):
        np.testing.assert_array_equal(executable.run([source]), first)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_an_assigned_weight_is_seen_at_once(dtype: str) -> None:
    R, W = weights("lstm", 3, 4, dtype)
    graph = Graph()
    x = graph.placeholder([5, 2, 3], dtype)
    variable = graph.variable(R)
    out = graph.lstm(x, variable, input_weight=graph.constant(W)).h
    double = graph.assign(variable, variable + variable)
    source = RNG.standard_normal((5, 2, 3)).astype(R.dtype)
    for factor in (1, 2, 4):
        for _ in range(3):  # the third run has packed weights
            wanted = recurra.lstm(source, (factor * R).astype(R.dtype), input_weight=W).h
            np.testing.assert_array_equal(graph.run({x: source}, out), wanted)
        graph.run({}, [], [double])


def test_a_training_loop_packs_nothing_ahead(packings) -> None:
    R, W = weights("gru", 3, 4)
    graph = Graph()
    x = graph.placeholder([5, 2, 3])
    held = [graph.variable(R), graph.variable(W)]
    loss = graph.gru(x, held[0], input_weight=held[1]).h.mean()
    steps = [graph.apply_sgd(0.1, v, d) for v, d in graph.gradients(loss, held).items()]
    for _ in range(5):
        graph.run({x: np.ones((5, 2, 3), np.float32)}, loss, steps)
    assert packings == []


def test_runs_of_several_threads_agree() -> None:
    R, W = weights("lstm", 6, 17)
    graph = Graph()
    x = graph.placeholder([None, 2, 6])
    executable = graph.compile([x], graph.lstm(x, graph.constant(R), input_weight=graph.constant(W)).h)
    source = RNG.standard_normal((30, 2, 6)).astype(np.float32)
    wanted = recurra.lstm(source, R, input_weight=W).h
    with ThreadPoolExecutor(4) as pool:
        for T, got in pool.map(lambda i: (i % 30 + 1, executable.run([source[: i % 30 + 1]])), range(200)):
            np.testing.assert_allclose(got, wanted[:T], rtol=2e-6, atol=1e-6)


def test_another_instruction_set_gets_its_own_packing(monkeypatch, tmp_path) -> None:
    R, W = weights("lstm", 6, 17)
    graph = Graph()
    x = graph.placeholder([4, 3, 6])
    graph.compile([x], graph.lstm(x, graph.constant(R), input_weight=graph.constant(W)).h).save(tmp_path / "m.recurra")
    executable = Executable.load(tmp_path / "m.recurra")
    source = RNG.standard_normal((4, 3, 6)).astype(np.float32)
    wanted = [executable.run([source]) for _ in range(3)][-1]
    monkeypatch.setenv("RECURRA_ISA", "generic")
    for _ in range(3):
        np.testing.assert_allclose(executable.run([source]), wanted, rtol=2e-6, atol=1e-6)
