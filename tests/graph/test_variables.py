"""Variables, assignments, control dependencies, state dictionaries, randomness."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import torch

import recurra
from recurra import ops


@pytest.fixture
def counter():
    graph = recurra.Graph()
    v = graph.variable(np.float32(1), name="v")
    return graph, v, graph.assign(v, v + 1.0, name="increment")


def test_an_assignment_happens_only_where_it_is_targeted(counter) -> None:
    graph, v, increment = counter
    assert graph.run({}, v) == 1
    assert graph.run({}, v) == 1
    graph.run({}, [], [increment])
    assert graph.run({}, v) == 2


def test_a_variable_read_directly_has_the_value_from_the_start_of_the_run(counter) -> None:
    graph, v, increment = counter
    assert graph.run({}, v, [increment]) == 1
    assert graph.run({}, v * 10.0, [increment]) == 20
    assert graph.run({}, v) == 3


def test_read_variable_sees_the_assignments_made_before_it(counter) -> None:
    graph, v, increment = counter
    after = graph.read_variable(v)
    graph.assign(v, v * 100.0)
    assert graph.run({}, after, [increment]) == 2
    assert graph.run({}, after) == 2


def test_control_dependencies_make_operations_run_first(counter) -> None:
    graph, v, increment = counter
    with graph.control_dependencies([increment]):
        after = graph.read_variable(v)
        twice = after * 2.0
    assert graph.run({}, twice) == 4
    assert graph.run({}, v) == 2
    outside = graph.read_variable(v)
    assert graph.run({}, outside) == 2


def test_assignments_to_one_variable_happen_in_program_order() -> None:
    graph = recurra.Graph()
    v = graph.variable(np.float32(1))
    first = graph.assign(v, graph.read_variable(v) + 1.0)
    second = graph.assign(v, graph.read_variable(v) * 10.0)
    graph.run({}, [], [second, first])
    assert graph.run({}, v) == 20


def test_a_run_that_fails_changes_nothing(counter) -> None:
    graph, v, increment = counter
    x = graph.placeholder([None, 2, 4], name="x")
    lengths = graph.placeholder([None], "int32")
    out = graph.lstm(x, np.zeros((4, 1), np.float32), lengths=lengths)
    with pytest.raises(recurra.ArgumentError, match="lengths must lie in"):
        graph.run({x: np.ones((3, 2, 4), np.float32), lengths: np.int32([4, 1])}, out.h, [increment])
    assert graph.run({}, v) == 1


def test_an_assigned_feed_is_copied() -> None:
    graph = recurra.Graph()
    v, x = graph.variable(np.zeros(3, np.float32)), graph.placeholder([3])
    keep = graph.assign(v, x)
    fed = np.ones(3, np.float32)
    result = graph.run({x: fed}, ops.identity(x), [keep])
    fed[:] = 5
    result[:] = 7
    assert graph.run({}, v).tolist() == [1, 1, 1]


def test_an_assigned_result_that_is_also_returned_is_copied() -> None:
    graph = recurra.Graph()
    v = graph.variable(np.zeros(3, np.float32))
    new = v + 1.0
    result = graph.run({}, ops.reshape(new, [3, 1]), [graph.assign(v, new)])
    result[:] = 7
    assert graph.run({}, v).tolist() == [1, 1, 1]


def test_assign_takes_arrays_and_numbers() -> None:
    graph = recurra.Graph()
    v = graph.variable(np.zeros(2), name="v")
    graph.run({}, [], [graph.assign(v, np.array([1.0, 2.0]))])
    assert graph.run({}, v).tolist() == [1, 2]
    scalar = graph.variable(np.float32(0))
    graph.run({}, [], [graph.assign(scalar, 4)])
    assert graph.run({}, scalar) == 4


def test_apply_sgd_writes_the_variable() -> None:
    graph = recurra.Graph()
    v = graph.variable(np.float32([1, 2]))
    step = graph.apply_sgd(0.5, v, graph.gradients((v * v).sum(), [v])[v])
    graph.run({}, [], [step])
    assert graph.run({}, v).tolist() == [0, 0]


def test_variable_from_tensor_begins_with_a_constant() -> None:
    graph = recurra.Graph()
    v = graph.variable_from_tensor(graph.constant([1.5, 2.5]))
    assert graph.run({}, v).tolist() == [1.5, 2.5]


def test_state_dict_goes_round() -> None:
    def build() -> tuple[recurra.Graph, recurra.Tensor]:
        graph = recurra.Graph()
        a, b = graph.variable(np.zeros((2, 2), np.float32), "a"), graph.variable(np.zeros(2, np.float32), "b")
        return graph, a @ ops.reshape(b, [2, 1])

    one, y = build()
    one.load_state_dict({"a": [[1, 2], [3, 4]], "b": np.float32([5, 6])})
    state = one.state_dict()
    other, z = build()
    other.load_state_dict(state)
    np.testing.assert_array_equal(other.run({}, z), one.run({}, y))
    state["a"][:] = 0
    assert one.state_dict()["a"][0, 0] == 1


def test_load_state_dict_changes_nothing_when_one_value_does_not_fit() -> None:
    graph = recurra.Graph()
    graph.variable(np.zeros(2, np.float32), "a")
    graph.variable(np.zeros(2, np.float32), "b")
    with pytest.raises(recurra.ShapeError, match="load_state_dict"):
        graph.load_state_dict({"a": np.ones(2, np.float32), "b": np.ones(3, np.float32)})
    assert graph.state_dict()["a"].tolist() == [0, 0]


def test_variables_follow_the_library_of_the_feeds_and_back() -> None:
    graph = recurra.Graph()
    v, x = graph.variable(np.float32([1, 1])), graph.placeholder([2])
    add = graph.assign(v, v + x)
    graph.run({x: torch.ones(2)}, v)
    moved = graph.variables[v.op]
    graph.run({x: torch.ones(2)}, v + x)
    assert graph.variables[v.op] is moved, "moved to torch once, not in every run"
    graph.run({x: torch.ones(2)}, [], [add])
    assert isinstance(graph.state_dict()[v.name], torch.Tensor)
    graph.run({x: np.ones(2, np.float32)}, [], [add])
    assert graph.run({}, v).tolist() == [3, 3]


def test_a_library_that_narrows_a_variable_does_not_narrow_the_graphs() -> None:
    """JAX without x64 has no float64."""
    graph = recurra.Graph()
    v, x = graph.variable(np.float64([1, 2])), graph.placeholder([2])
    graph.run({x: jax.numpy.ones(2)}, ops.cast(v, "float32") + x)
    assert graph.state_dict()[v.name].dtype == np.float64


def test_random_ops_draw_anew_in_every_run_and_repeat_with_the_graphs_seed() -> None:
    def draws(seed: int | None) -> list[np.ndarray]:
        graph = recurra.Graph(seed=seed)
        noise = ops.random_uniform([4], graph=graph)
        return [graph.run({}, noise) for _ in range(3)]

    free = draws(None)
    assert not np.array_equal(free[0], free[1])
    assert not np.array_equal(draws(None)[0], free[0])
    np.testing.assert_array_equal(draws(7), draws(7))
    assert not np.array_equal(draws(7)[0], draws(7)[1])


def test_random_ops_without_a_seed_are_refused_under_jit() -> None:
    graph = recurra.Graph()
    x = graph.placeholder([4])
    y = x + ops.random_uniform([4], graph=graph)
    with pytest.raises(recurra.GraphError, match="random ops must have a seed where the run is traced"):
        jax.jit(lambda a: graph.run({x: a}, y))(np.ones(4, np.float32))
    z = x + ops.random_uniform([4], seed=3, graph=graph)
    np.testing.assert_allclose(
        jax.jit(lambda a: graph.run({x: a}, z))(np.ones(4, np.float32)), graph.run({x: np.ones(4, np.float32)}, z)
    )


def test_seed_begins_the_draws_again() -> None:
    graph = recurra.Graph()
    noise = ops.random_uniform([4], graph=graph)
    graph.seed(3)
    first = graph.run({}, noise)
    graph.run({}, noise)
    graph.seed(3)
    np.testing.assert_array_equal(graph.run({}, noise), first)


@pytest.mark.parametrize("transform", [jax.jit, jax.grad, jax.vmap])
def test_a_run_under_a_transformation_of_jax_assigns_nothing(transform, counter) -> None:
    graph, v, increment = counter
    x = graph.placeholder([])
    scaled = graph.assign(v, v * x)
    for operation in (increment, scaled):
        with pytest.raises(recurra.GraphError, match="variables must not be assigned where the run is traced"):
            transform(lambda fed, o=operation: graph.run({x: fed}, x * x, [o]))(
                np.ones(2 if transform is jax.vmap else (), np.float32)
            )
    with pytest.raises(recurra.GraphError, match="variables must not be assigned where the run is traced"):
        jax.jit(lambda: graph.run({}, v * 1, [increment]))()
    assert graph.run({}, v) == 1


def test_a_run_under_vmap_of_torch_assigns_nothing(counter) -> None:
    graph, v, _ = counter
    x = graph.placeholder([])
    scaled = graph.assign(v, v * x)
    with pytest.raises(recurra.GraphError, match="variables must not be assigned where the run is traced"):
        torch.func.vmap(lambda fed: graph.run({x: fed}, x * x, [scaled]))(torch.ones(2))
    assert graph.run({}, v) == 1


def test_variables_keep_no_record_of_autograd(counter) -> None:
    graph, v, _ = counter
    x = graph.placeholder([])
    scaled = graph.assign(v, v * x)
    fed = torch.tensor(3.0, requires_grad=True)
    for _ in range(2):
        result = graph.run({x: fed}, v * x, [scaled])
    assert torch.autograd.grad(result, fed)[0] == 3
    assert not graph.state_dict()["v"].requires_grad
    assert graph.run({}, v) == 9


def test_numbers_keep_their_values_in_every_dtype() -> None:
    graph = recurra.Graph()
    for value, dtype in (([0, 1], "bool"), ([True, False], "float16"), ([1.0, -2.0], "int8"), (2**63, "uint64")):
        made = graph.run({}, graph.constant(value, dtype=dtype))
        assert str(made.dtype) == dtype
        np.testing.assert_array_equal(made.astype(object), np.array(value, dtype=object))
    infinite = graph.run({}, [graph.constant([1e9], dtype="float16"), graph.constant(np.float32(1)) * 1e39])
    assert all(np.isinf(v).all() for v in infinite)
