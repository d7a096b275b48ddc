"""Running a graph: feeds, targets, libraries, memory."""

from __future__ import annotations

from concurrent.futures import Future
import gc
import weakref

import array_api_strict
import jax
import numpy as np
import pytest
import torch

import recurra
from recurra import _op, ops

FLOATS = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def doubled():
    graph = recurra.Graph()
    x = graph.placeholder([None, 3], name="x")
    return graph, x, x + x


def test_a_single_target_gives_an_array_and_a_list_gives_a_list(doubled) -> None:
    graph, x, y = doubled
    np.testing.assert_array_equal(graph.run({x: FLOATS}, y), 2 * FLOATS)
    first, second = graph.run({x: FLOATS}, [y, x])
    np.testing.assert_array_equal(first, 2 * FLOATS)
    np.testing.assert_array_equal(second, FLOATS)
    assert isinstance(graph.run({x: FLOATS}, [y]), list)


def test_results_dictionary_is_filled(doubled) -> None:
    graph, x, y = doubled
    found: dict = {}
    graph.run({x: FLOATS}, [y], results=found)
    assert list(found) == [y]
    np.testing.assert_array_equal(found[y], 2 * FLOATS)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (np.asarray, np.ndarray),
        (torch.from_numpy, torch.Tensor),
        (jax.numpy.asarray, jax.Array),
        (array_api_strict.asarray, type(array_api_strict.asarray(0.0))),
    ],
    ids=["numpy", "torch", "jax", "array_api_strict"],
)
def test_results_are_of_the_library_of_the_feeds(doubled, make, kind) -> None:
    graph, x, y = doubled
    z = y * graph.variable(np.float32([1, 2, 3]), name="scale") + graph.constant(np.float32(1))
    result = graph.run({x: make(FLOATS.copy())}, z)
    assert isinstance(result, kind)
    np.testing.assert_array_equal(np.asarray(result), 2 * FLOATS * [1, 2, 3] + 1)


def test_one_graph_serves_libraries_in_turn(doubled) -> None:
    graph, x, y = doubled
    z = y * graph.constant(FLOATS[0])
    for make in (np.asarray, torch.from_numpy, jax.numpy.asarray, np.asarray):
        np.testing.assert_array_equal(np.asarray(graph.run({x: make(FLOATS.copy())}, z)), 2 * FLOATS * FLOATS[0])


def test_lists_and_numbers_are_fed_as_numpy(doubled) -> None:
    graph, x, y = doubled
    np.testing.assert_array_equal(graph.run({x: [[1, 2, 3]]}, y), [[2, 4, 6]])


def test_rank_zero_results_are_arrays(doubled) -> None:
    graph, x, y = doubled
    total = graph.run({x: FLOATS}, y.sum())
    assert isinstance(total, np.ndarray)
    assert total.shape == ()
    assert float(total) == 30


def test_intermediate_tensors_are_targets(doubled) -> None:
    graph, x, y = doubled
    z = ops.exp(y)
    assert len(graph.run({x: FLOATS}, [y, z])) == 2


def test_a_graph_runs_under_jax_jit_and_keeps_nothing_of_the_trace(doubled) -> None:
    graph, x, y = doubled
    z = (y * graph.constant(FLOATS[0]) + graph.variable(FLOATS[1])).sum()
    run = jax.jit(lambda a: graph.run({x: a}, z))
    eager = float(graph.run({x: FLOATS}, z))
    assert float(run(FLOATS)) == eager
    assert float(graph.run({x: jax.numpy.asarray(FLOATS)}, z)) == eager
    slope = jax.grad(lambda a: graph.run({x: a}, z))(jax.numpy.asarray(FLOATS))
    np.testing.assert_array_equal(slope, np.broadcast_to(2 * FLOATS[0], (2, 3)))


def test_torch_autograd_goes_through_a_run(doubled) -> None:
    graph, x, y = doubled
    fed = torch.from_numpy(FLOATS.copy()).requires_grad_()
    graph.run({x: fed}, (y * y).sum()).backward()
    np.testing.assert_array_equal(fed.grad, 8 * FLOATS)


def test_dead_nodes_do_not_run(doubled, monkeypatch) -> None:
    graph, x, y = doubled
    dead = ops.exp(y)
    executable = graph.compile([x], y)
    assert [line.split()[1] for line in executable.explain().splitlines()[2:]] == ["add"]
    assert dead.name not in executable.explain()


def test_intermediate_memory_goes_with_its_last_reader(monkeypatch) -> None:
    """At most the values that are still to be read are alive: here two of twenty."""
    graph = recurra.Graph()
    x = graph.placeholder([4])
    y = x
    for _ in range(20):
        y = ops.tanh(y)
    alive: list[weakref.ref] = []
    most = 0

    class Watched(np.ndarray):
        pass

    real = _op.OPS["tanh"].reference

    def watching(xp, value):
        nonlocal most
        made = real(xp, value).view(Watched)
        alive.append(weakref.ref(made))
        gc.collect()
        most = max(most, sum(r() is not None for r in alive))
        return made

    class Watcher:
        name = "watcher"

        def offer(self, op, types, attrs, xp, *_):
            return watching

    monkeypatch.setattr(_op, "BACKENDS", [Watcher()])
    graph.run({x: np.ones(4, np.float32)}, y)
    assert len(alive) == 20
    assert most == 2


def test_values_of_which_only_the_shape_is_read_are_forgotten() -> None:
    """The gradient of a broadcast sum needs x's shape only: exp(x)'s memory is gone when the slope is computed."""
    graph = recurra.Graph()
    x = graph.placeholder([None, 3])
    y = ops.exp(x)
    z = (y + graph.placeholder([None, 3], name="other")).sum()
    slope = graph.gradients(z, [y])[y]
    executable = graph.compile(graph.placeholder_tensors, slope)
    last = [s for s in executable._plan.steps if s.operation.kind.name == "sum_to_shape_of"]
    assert last
    shrunk = {slot for step in executable._plan.steps for slot in step.shrinks}
    assert executable._plan._slot_of[y] in shrunk
    np.testing.assert_array_equal(executable.run([FLOATS, FLOATS]), np.ones((2, 3)))


def test_inputs_and_results_share_no_memory_with_the_graph(doubled) -> None:
    graph, x, _ = doubled
    given = FLOATS.copy()
    v = graph.variable(given, "v")
    c = graph.constant(given)
    given[:] = -1
    for target in (v, ops.reshape(v, [6]), ops.transpose(c), graph.read_variable(v), c[0], ops.identity(v)):
        result = graph.run({}, target)
        result[...] = 99
    np.testing.assert_array_equal(graph.run({}, v), FLOATS)
    np.testing.assert_array_equal(graph.run({}, c), FLOATS)
    fed = FLOATS.copy()
    graph.run({x: fed}, ops.reshape(x, [-1]))[:] = 99
    np.testing.assert_array_equal(fed, FLOATS)


def test_torch_results_share_no_memory_with_the_graph() -> None:
    graph = recurra.Graph()
    v = graph.variable(torch.ones(3), "v")
    graph.run({}, ops.reshape(v, [3, 1])).fill_(99)
    assert graph.run({}, v).tolist() == [1, 1, 1]


def test_run_async_gives_a_future(doubled) -> None:
    graph, x, y = doubled
    futures = [graph.run_async({x: FLOATS * i}, y) for i in range(5)]
    assert all(isinstance(f, Future) for f in futures)
    for i, future in enumerate(futures):
        np.testing.assert_array_equal(future.result(10), 2 * i * FLOATS)


def test_run_async_brings_errors_to_the_result(doubled) -> None:
    graph, x, y = doubled
    with pytest.raises(recurra.ShapeError, match="the feed of x must have shape"):
        graph.run_async({x: FLOATS.T.copy()}, y).result(10)


def test_caches_stay_bounded() -> None:
    graph = recurra.Graph()
    x = graph.placeholder([None])
    y = x * 2.0
    executable = graph.compile([x], y)
    for n in range(100):
        executable.run([np.ones(n, np.float32)])
    assert len(executable._plan._specializations) <= 16
    for _ in range(100):
        graph.run({x: np.ones(2, np.float32)}, x + 1.0)
    assert len(graph._plans) <= 64


def test_kernels_of_a_backend_are_used_and_refusals_are_told(doubled, monkeypatch) -> None:
    class Picky:
        name = "picky"

        def offer(self, op, types, attrs, xp, *_):
            if types[0].shape[0] > 2:
                return _op.Refusal("more than 2 rows")
            return lambda xp, a, b: a + b + 1000

    monkeypatch.setattr(_op, "BACKENDS", [Picky()])
    graph, x, y = doubled
    np.testing.assert_array_equal(graph.run({x: FLOATS}, y), 2 * FLOATS + 1000)
    tall = np.ones((3, 3), np.float32)
    np.testing.assert_array_equal(graph.run({x: tall}, y), 2 * tall)
    assert "picky: more than 2 rows" in graph.compile({x: ([3, 3], "float32")}, y).explain()
    assert "picky: more than 2 rows" in recurra.explain(ops.add, tall, tall)
    assert "picky" in recurra.explain(ops.add, FLOATS, FLOATS).splitlines()[2]
