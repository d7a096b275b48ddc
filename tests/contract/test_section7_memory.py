"""Memory: what a call takes it gives back, a cache has an end, and inference keeps nothing for training."""

from __future__ import annotations

from collections.abc import Callable
import gc
import pathlib
import tracemalloc
from typing import Any

import numpy as np
import pytest
from recurrent.calls import BACKWARD, DESCRIPTORS, FORWARD, saved_state

from contract.full_cases import OPS
from recurra import Graph

GATES = {"single_gate_rnn": 1, "lstm": 4, "gru": 3}
T, N, I, H = 4, 16, 8, 64  # one h has 16 KiB: one that is kept per call would be 32 MiB after 2,000
CALLS, WARM_UP = 2000, 200
SLACK = 6 * 2**20  # what the allocators of Python and C may round up, well below one array per call
STATM = pathlib.Path("/proc/self/statm")
every_op = pytest.mark.parametrize("op", OPS)


def resident() -> int:
    """Bytes of memory that this process holds."""
    gc.collect()
    if STATM.exists():
        return int(STATM.read_text().split()[1]) * 4096
    import psutil  # where there is no /proc

    return int(psutil.Process().memory_info().rss)


def growth(call: Callable[[int], object], warm_up: int, calls: int) -> tuple[int, int]:
    """How many bytes and how many of Python's objects the calls after the first ones leave behind."""
    for i in range(warm_up):
        call(i)
    bytes_before, objects_before = resident(), len(gc.get_objects())
    for i in range(warm_up, warm_up + calls):
        call(i)
    return resident() - bytes_before, len(gc.get_objects()) - objects_before


def arrays(op: str, T: int, N: int, I: int, H: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {
        "source": (T, N, I),
        "recurrent_weight": (GATES[op] * H, H),
        "input_weight": (GATES[op] * H, I),
        "bias": (GATES[op] * H,),
    }
    return {name: (0.1 * rng.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}


def eager(op: str) -> Callable[[int], object]:
    given, descriptor = arrays(op, T, N, I, H), DESCRIPTORS[op](training=True)

    def call(_: int) -> object:
        out = FORWARD[op](**given, descriptor=descriptor)
        return BACKWARD[op](**given, source_gradient=out.h, **saved_state(op, out), descriptor=descriptor)

    return call


def in_graph(op: str, steps_of: Callable[[int], int], N: int, I: int, H: int) -> Callable[[int], object]:
    """A training step of a layer whose number of steps and rows is known at run time."""
    graph, given = Graph(), arrays(op, 512, N, I, H)
    x = graph.placeholder([None, None, I])
    p = {name: graph.variable(value) for name, value in given.items() if name != "source"}
    loss = FORWARD[op](x, **p).h.mean()
    gradients = graph.gradients(loss, list(p.values()))
    steps = [graph.apply_sgd(0.1, variable, gradient) for variable, gradient in gradients.items()]
    return lambda i: graph.run({x: given["source"][: steps_of(i)]}, loss, steps)


@pytest.mark.parametrize("way", ["eager", "graph"])
@every_op
def test_memory_is_flat_over_two_thousand_calls(op: str, way: str) -> None:
    """#145374, PR #145503: an object that was never released made memory grow until there was none."""
    call = eager(op) if way == "eager" else in_graph(op, lambda _: T, N, I, H)
    # An allocator may take some MiB once, whenever it likes; what calls leave behind grows with every call.
    grown = [growth(call, WARM_UP, CALLS) for _ in range(2)]
    assert min(more_bytes for more_bytes, _ in grown) < SLACK
    assert min(more_objects for _, more_objects in grown) < CALLS / 20


def test_memory_is_flat_over_five_hundred_lengths() -> None:
    """#164299, transformers #33717: a cache of compiled graphs grew with every new shape."""
    call = in_graph("single_gate_rnn", lambda i: i + 1, N=2, I=2, H=4)
    more_bytes, more_objects = growth(call, 100, 400)
    assert more_bytes < SLACK
    assert more_objects < 400  # less than one for each new length


def test_gradients_of_gradients_keep_a_few_shapes_only() -> None:
    """#164299 for derivatives of second order, which are made anew for every shape."""
    graph = Graph()
    x = graph.placeholder([2, None, 2])
    R, W = graph.variable(np.full((4, 4), 0.1, np.float32)), graph.variable(np.full((4, 2), 0.1, np.float32))
    h = FORWARD["single_gate_rnn"](x, R, input_weight=W).h
    first = graph.gradients((h * h).sum(), [W])[W]
    second = graph.gradients((first * first).sum(), [R])[R]
    source = np.ones((2, 200, 2), np.float32)
    _, more_objects = growth(lambda i: graph.run({x: source[:, : i + 1]}, second), 80, 60)
    assert more_objects < 60 * 20  # a program has hundreds


@every_op
def test_inference_keeps_no_training_state(op: str) -> None:
    """PR #192727: without training there is no need for a saved state."""
    steps, rows, hidden = 64, 8, 32
    given = arrays(op, steps, rows, 4, hidden)
    peaks = {}
    for training in (False, True):
        descriptor = DESCRIPTORS[op](training=training)
        FORWARD[op](**given, descriptor=descriptor)  # the first call of a process remembers this and that
        tracemalloc.start()
        out: Any = FORWARD[op](**given, descriptor=descriptor)
        peaks[training] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(out) == (1 if not training else 3 if op == "lstm" else 2)
    state = 4 * steps * rows * hidden * GATES[op]  # bytes
    assert peaks[True] - peaks[False] >= state
