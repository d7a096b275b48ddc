"""cond, while_loop and for_loop against plain Python, on every library and under jax.jit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from graph.libraries import RUNS, Run
import recurra
from recurra import Graph, _op, _verify, ops

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> Run:
    return RUNS[request.param]


# ---- cond ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [-2, 0, 3])
def test_cond_gives_what_the_branch_of_the_predicate_gives(run: Run, number: int) -> None:
    graph = Graph()
    x, n = graph.placeholder([None, 3]), graph.placeholder([], "int32")
    scale, offset = graph.constant(np.float32([1, 2, 3])), graph.variable(np.float32(5))
    y, z = graph.cond(n > 0, lambda: (x * scale, x + offset), lambda: [x - offset, x])
    got = run(graph, {x: X, n: number}, [y, z])
    wanted = (X * [1, 2, 3], X + 5) if number > 0 else (X - 5, X)
    for value, expected in zip(got, wanted, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_cond_runs_one_branch_only(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    class Watcher:
        name = "watcher"

        def offer(self, op: Any, types: Any, attrs: Any, xp: Any, *_: Any) -> Any:
            def kernel(xp: Any, *inputs: Any) -> Any:
                ran.append(op.name)
                return op.reference(xp, *inputs, **attrs)

            return kernel

    graph = Graph()
    x = graph.placeholder([])
    y = graph.cond(x > 0, lambda: ops.exp(x), lambda: ops.tanh(x))
    monkeypatch.setattr(_op, "BACKENDS", [Watcher()])
    graph.run({x: 1.0}, y)
    assert ran == ["greater", "cond", "exp"]
    ran.clear()
    graph.run({x: -1.0}, y)
    assert ran == ["greater", "cond", "tanh"]


def test_a_predicate_may_keep_the_axes_of_a_reduction(run: Run) -> None:
    graph = Graph()
    x = graph.placeholder([2, 3])
    is_positive = ops.reduce_min(x) > 0
    assert is_positive.shape == (1, 1)
    y = graph.cond(is_positive, lambda: x, lambda: -x)
    assert run(graph, {x: X}, [y])[0].tolist() == (-X).tolist()


def test_branches_may_differ_in_sizes_that_are_unknown() -> None:
    graph = Graph()
    x, first = graph.placeholder([None]), graph.placeholder([], "bool")
    y = graph.cond(first, lambda: x[:1], lambda: x)
    assert y.shape == (-1,)
    for value in (True, False):
        assert graph.run({x: [4, 5], first: value}, y).tolist() == ([4] if value else [4, 5])
    traced = jax.jit(lambda p: graph.run({x: jnp.asarray([4.0, 5.0]), first: p}, y))
    with pytest.raises(recurra.ShapeError, match=r"cond: sizes must not change where the run is traced, got .*1.*2"):
        traced(True)


# ---- while_loop ---------------------------------------------------------------------------------------------------


def collatz(graph: Graph, start: Any) -> Any:
    """The steps to 1, and the largest number on the way: a cond inside of a while_loop."""

    def before(n: Any, steps: Any, largest: Any) -> Any:
        return ops.not_equal(n, 1), [n, steps, ops.maximum(largest, n)]

    def after(n: Any, steps: Any, largest: Any) -> Any:
        is_even = ops.equal(n % 2, 0)
        # Half of an even number, without a division of integers.
        half = graph.while_loop([n, n * 0], lambda n, h: (h + h < n, [n, h]), lambda n, h: [n, h + 1])[1]
        return [graph.cond(is_even, lambda: half, lambda: 3 * n + 1), steps + 1, largest]

    return graph.while_loop([start, start * 0, start], before, after)


@pytest.mark.parametrize("start", [1, 6, 7])
def test_nested_loops_and_branches_agree_with_python(run: Run, start: int) -> None:
    n, steps, largest = start, 0, start
    while n != 1:
        n, steps = n // 2 if n % 2 == 0 else 3 * n + 1, steps + 1
        largest = max(largest, n)
    graph = Graph()
    x = graph.placeholder([], "int32")
    got = run(graph, {x: start}, collatz(graph, x))
    assert [int(v) for v in got] == [1, steps, largest]


def test_while_loop_gives_what_came_with_the_false_predicate(run: Run) -> None:
    """Three results of one input; the last are computed, although the loop does not go on."""
    graph = Graph()
    x, limit = graph.placeholder([]), graph.placeholder([])
    results = graph.while_loop(x, lambda x: (x < limit, [x, x * x, x > 5]), lambda x, square, big: square + 1)
    assert [t.dtype for t in results] == ["float32", "float32", "bool"]
    got = run(graph, {x: 1, limit: 20}, results)  # 1, 2, 5, 26
    assert [float(v) for v in got] == [26, 26 * 26, True]
    got = run(graph, {x: 30, limit: 20}, results)
    assert [float(v) for v in got] == [30, 900, True]


def test_a_single_result_comes_back_alone() -> None:
    graph = Graph()
    x = graph.placeholder([])
    assert isinstance(graph.cond(x > 0, lambda: x, lambda: -x), recurra.Tensor)
    assert isinstance(graph.cond(x > 0, lambda: [x], lambda: -x), list)
    assert isinstance(graph.while_loop([x], lambda x: (x < 0, x), lambda x: x), recurra.Tensor)
    assert isinstance(graph.while_loop(x, lambda x: (x < 0, [x]), lambda x: x), list)
    assert isinstance(graph.for_loop(0, 1, 1, x, lambda i, x: [x]), recurra.Tensor)
    assert isinstance(graph.for_loop(0, 1, 1, [x], lambda i, x: x), list)


# ---- for_loop -----------------------------------------------------------------------------------------------------


def digits(graph: Graph, *bounds: Any) -> Any:
    """The indices written one behind another: a number that tells all of them and their order."""
    return graph.for_loop(*bounds, graph.constant(np.float32(1)), lambda i, seen: seen * 10 + i.astype("float32"))


BOUNDS = [(0, 4, 1), (1, 6, 2), (2, 6, 4), (5, 5, 1), (7, 3, 2), (-2, 2, 3)]


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_for_loop_visits_the_indices_of_a_range(run: Run, bounds: tuple[int, int, int]) -> None:
    wanted = 1
    for i in range(*bounds):
        wanted = wanted * 10 + i
    graph = Graph()
    fed = [graph.placeholder([], "int32", name) for name in "abc"]
    as_numbers, as_tensors = digits(graph, *bounds), digits(graph, *fed)
    unused = graph.placeholder([])  # decides the library
    got = run(graph, {**dict(zip(fed, bounds, strict=True)), unused: 0}, [as_numbers, as_tensors])
    assert [float(v) for v in got] == [wanted, wanted]


@pytest.mark.parametrize("count", [0, 1, 5, -3])
def test_for_loop_counts_iterations(run: Run, count: int) -> None:
    graph = Graph()
    n = graph.placeholder([1], "int32")
    found = graph.for_loop(
        number_of_iterations=n,
        initial_body_arguments=[n * 0, n * 0],
        body=lambda i, total, last: [total + i, last * 0 + i],
    )
    got = run(graph, {n: [count]}, found)
    indices = range(count)
    assert [int(v.reshape(())) for v in got] == [sum(indices), max(indices, default=0)]


def test_the_index_has_the_dtype_of_the_bounds() -> None:
    graph = Graph()
    seen = []

    def body(i: Any, x: Any) -> Any:
        seen.append(i.type)
        return x

    x, n = graph.placeholder([]), graph.placeholder([1], "int64")
    graph.for_loop(0, 3, 1, x, body)
    graph.for_loop(0, n, 1, x, body)
    graph.for_loop(number_of_iterations=np.int32(3), initial_body_arguments=x, body=body)
    assert [repr(t) for t in seen] == ["int32[]", "int64[]", "int32[]"]


def test_int64_goes_round_where_jax_has_no_64_bits() -> None:
    graph = Graph()
    x = graph.placeholder([])
    count, _ = graph.while_loop([graph.constant(0), x], lambda n, x: (x < 100, [n, x]), lambda n, x: [n + 1, x * 2])
    total = graph.for_loop(0, graph.constant(4), 1, graph.constant(10), lambda i, n: n + i)
    assert count.dtype == total.dtype == "int64"
    for name in ("jax", "jit"):
        assert [int(v) for v in RUNS[name](graph, {x: 3}, [count, total])] == [6, 16]


def test_loops_in_loops_agree_with_python(run: Run) -> None:
    """The inner loop reads arguments of the outer one, its index, and tensors of the graph."""
    graph = Graph()
    x = graph.placeholder([2, 3])

    def row(i: Any, total: Any) -> Any:
        return graph.for_loop(i, 4, 1, total, lambda j, inner: inner * 0.5 + x * (i + j).astype("float32") + total)

    wanted = X * 0
    for i in range(3):
        inner = wanted
        for j in range(i, 4):
            inner = inner * 0.5 + X * (i + j) + wanted
        wanted = inner
    got = run(graph, {x: X}, [graph.for_loop(0, 3, 1, x * 0, row)])
    np.testing.assert_allclose(got[0], wanted, rtol=1e-5)


# ---- what blocks read ---------------------------------------------------------------------------------------------


def test_captures_are_inputs_and_blocks_leave_nothing_in_the_graph() -> None:
    graph = Graph()
    x, y, p = graph.placeholder([2]), graph.placeholder([2]), graph.placeholder([], "bool")
    before = list(graph.operations)
    out = graph.cond(p, lambda: x + y, lambda: x * 2.0)
    assert graph.operations == [*before, out.op]
    assert out.op.input_tensors == (p, x, y)
    _verify.verify(graph)


def test_what_no_result_needs_is_not_captured() -> None:
    graph = Graph()
    x, other = graph.placeholder([2]), graph.placeholder([2])

    def body(i: Any, a: Any) -> Any:
        ops.exp(other)
        return a + 1

    out = graph.for_loop(0, 2, 1, x, body)
    assert other not in out.op.input_tensors
    assert graph.run({x: [1, 2]}, out).tolist() == [3, 4]


def test_a_captured_variable_has_its_value_of_the_start_of_the_run() -> None:
    graph = Graph()
    v = graph.variable(np.float32(1), "v")
    assigned = graph.assign(v, v + 10)
    x = graph.constant(np.float32(0))
    with graph.control_dependencies([assigned]):
        direct = graph.for_loop(0, 3, 1, x, lambda i, x: x + v)
        read = graph.read_variable(v)
        later = graph.for_loop(0, 3, 1, x, lambda i, x: x + read)
    assert [float(a) for a in graph.run({}, [direct, later])] == [3, 33]
    assert float(graph.run({}, v)) == 11


def test_a_result_can_be_assigned() -> None:
    graph = Graph()
    v = graph.variable(np.float32([1, 2]), "v")
    step = graph.assign(v, graph.for_loop(0, 3, 1, v, lambda i, a: a * 2))
    graph.run({}, [], [step])
    graph.run({}, [], [step])
    assert graph.run({}, v).tolist() == [64, 128]


def test_results_share_no_memory_with_the_graph_or_each_other() -> None:
    graph = Graph()
    v, one = graph.variable(np.float32([1, 2]), "v"), graph.constant(1)
    yes = ops.equal(one, 1)
    outs = [
        graph.cond(yes, lambda: v, lambda: v * 2),
        graph.while_loop(v, lambda a: (ops.not_equal(one, 1), a), lambda a: a),
        *graph.for_loop(0, 0, 1, [v, v], lambda i, a, b: [a, b]),
        *graph.for_loop(0, 2, 1, [v, v], lambda i, a, b: [a + 1, a + 1]),
        *graph.for_loop(0, 2, 1, [v, v], lambda i, a, b: (lambda c: [c, ops.reshape(c, [2])])(a + 1)),
    ]
    for i in range(len(outs)):
        values = graph.run({}, outs)
        kept = [a.copy() for a in values]
        values[i][...] = 99
        for j in range(len(outs)):
            assert j == i or values[j].tolist() == kept[j].tolist()
        assert graph.run({}, v).tolist() == [1, 2]


def test_arrays_may_stand_where_tensors_do() -> None:
    graph = Graph()
    x = graph.placeholder([2])
    out = graph.for_loop(np.int32(0), np.int32(2), np.int32(1), np.ones(2, np.float32), lambda i, a: a + x)
    either = graph.cond(np.asarray(False), lambda: x, lambda: np.zeros(2, np.float32))
    assert [a.tolist() for a in graph.run({x: [1, 2]}, [out, either])] == [[3, 5], [0, 0]]


def test_a_recurrent_op_runs_step_by_step_in_a_loop(run: Run) -> None:
    """One step of an LSTM per iteration, with the state going round, is the LSTM over the sequence."""
    T, N, I, H = 4, 2, 3, 5
    rng = np.random.default_rng(3)
    x_value, R, W = (rng.normal(size=s).astype(np.float32) * 0.5 for s in ((T, N, I), (4 * H, H), (4 * H, I)))
    graph = Graph()
    x, R_v = graph.placeholder([None, None, I], name="x"), graph.variable(R, "R")
    options = recurra.LSTMDescriptor(produce_cell=True)

    def step(t: Any, h: Any, c: Any) -> Any:
        now = ops.gather(x, ops.expand_dims(t, 0), 0)  # [1, N, I]
        hs, cs = graph.lstm(now, R_v, input_weight=W, init_state=h, init_cell=c, descriptor=options)
        return [hs[0], cs[0]]

    zero = np.zeros((N, H), np.float32)
    h, c = graph.for_loop(0, T, 1, [zero, zero], step)
    assert h.shape == (N, H)
    got = run(graph, {x: x_value}, [h, c])
    whole = recurra.lstm(x_value, R, input_weight=W, descriptor=options)
    np.testing.assert_allclose(got[0], whole.h[-1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got[1], whole.c[-1], rtol=1e-5, atol=1e-6)


def test_a_state_that_goes_round_draws_anew_in_every_iteration(run: Run) -> None:
    graph = Graph()
    x = graph.placeholder([3])

    def body(i: Any, total: Any, state: Any) -> Any:
        noise, state = ops.random_with_state([3], state)
        return [total + noise * (i + 1).astype("float32"), state]

    total, _ = graph.for_loop(0, 3, 1, [x, ops.random_state(7, graph)], body)
    state, wanted = ops.random_state(7), np.zeros(3, np.float32)
    for i in range(3):
        noise, state = ops.random_with_state([3], state)
        wanted += noise * (i + 1)
    np.testing.assert_allclose(run(graph, {x: np.zeros(3)}, [total])[0], wanted, rtol=1e-6)


# ---- sizes --------------------------------------------------------------------------------------------------------


def test_a_size_that_is_unknown_may_grow() -> None:
    graph = Graph()
    x = graph.placeholder([None])
    grown = graph.for_loop(0, 3, 1, x, lambda i, a: ops.concat([a, a[:1] + i.astype("float32")], 0))
    doubled = graph.while_loop(x, lambda a: (ops.shape_of(a)[0] < 9, a), lambda a: ops.concat([a, a], 0))
    assert grown.shape == doubled.shape == (-1,)
    for make in (np.asarray, torch.tensor, jnp.asarray):
        got = graph.run({x: make(np.float32([1, 2, 3]))}, [grown, doubled])
        assert [a.tolist() for a in got] == [[1, 2, 3, 1, 2, 3], [1, 2, 3] * 4]
    exe = graph.compile([x], [grown])
    assert exe.output_types([((3,), "float32")]) == [recurra.ShapedType((None,))]
    for tensor, op in ((grown, "for_loop"), (doubled, "while_loop")):
        traced = jax.jit(lambda fed, tensor=tensor: graph.run({x: fed}, tensor))
        with pytest.raises(recurra.ShapeError, match=f"{op}: sizes must not change where the run is traced"):
            traced(jnp.ones(3))


def test_a_size_that_changes_makes_those_unknown_that_follow_it() -> None:
    graph = Graph()
    x = graph.placeholder([None])
    outs = graph.for_loop(0, 3, 1, [x, x, x], lambda i, a, b, c: [ops.concat([a, a], 0), a, b])
    exe = graph.compile([x], outs)
    assert exe.output_types([((3,), "float32")]) == [recurra.ShapedType((None,))] * 3
    assert [a.shape for a in exe.run([np.ones(3, np.float32)])] == [(24,), (12,), (6,)]


def test_a_size_that_stays_is_known_when_the_feeds_are() -> None:
    graph = Graph()
    x = graph.placeholder([None, 3])
    out = graph.for_loop(0, 3, 1, x, lambda i, a: ops.tanh(a) + x)
    exe = graph.compile([x], [out])
    assert exe.output_types() == [recurra.ShapedType((None, 3))]
    assert exe.output_types([((4, 3), "float32")]) == [recurra.ShapedType((4, 3))]


def test_a_known_size_is_kept_to_when_it_turns_out_otherwise() -> None:
    """Nobody knows before the run how many indices non_zero_indices gives, so they may be as many as asked for."""
    graph = Graph()
    x, p = graph.placeholder([3]), graph.placeholder([], "bool")

    def found(a: Any) -> Any:
        return ops.reshape(ops.non_zero_indices(a), [-1]).astype("float32")

    loop = graph.for_loop(0, 1, 1, x, lambda i, a: found(a))
    repeat = graph.while_loop([x, p], lambda a, p: (p, a), lambda a: [found(a), ops.not_equal(p, p)])
    either = graph.cond(p, lambda: x, lambda: found(x))
    assert loop.shape == repeat.shape == either.shape == (3,)
    wanted = [0, 1, 2]
    assert graph.run({x: [1, 1, 1], p: True}, [loop, repeat])[0].tolist() == wanted
    assert graph.run({x: [1, 1, 1], p: True}, repeat).tolist() == wanted
    assert graph.run({x: [1, 1, 1], p: False}, either).tolist() == wanted
    for target, p_value, block in ((loop, True, "body"), (repeat, True, "after_block"), (either, False, "else_block")):
        with pytest.raises(
            recurra.ShapeError, match=rf"{block} must return float32\[3\] as result 0, got float32\[1\]"
        ):
            graph.run({x: [1, 0, 0], p: p_value}, target)
