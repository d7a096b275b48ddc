"""What goes with control flow: gradients, files, explain, and blocks that fail."""

from __future__ import annotations

from functools import partial
import itertools
import json
import pathlib
from typing import Any
import zipfile

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch

from graph.libraries import RUNS, Run
import recurra
from recurra import Graph, _verify, ops

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> Run:
    return RUNS[request.param]


# ---- gradients ----------------------------------------------------------------------------------------------------


def test_gradients_inside_a_block_are_those_of_the_graph(run: Run) -> None:
    """Steps of gradient descent in a loop reach the bottom of a parabola."""
    graph = Graph()
    x = graph.placeholder([3])

    def body(i: Any, a: Any) -> Any:
        loss = ops.square(a - x).sum()
        return a - 0.25 * graph.gradients(loss, [a])[a]

    out = graph.for_loop(0, 20, 1, ops.zeros_like(x), body)
    np.testing.assert_allclose(run(graph, {x: X[1]}, [out])[0], X[1], rtol=1e-5)


def test_other_librarys_gradients_go_through_a_run() -> None:
    graph = Graph()
    x = graph.placeholder([3])
    y = graph.for_loop(0, 3, 1, x, lambda i, a: a * x)  # x ** 4
    y = graph.cond(ops.reduce_sum(x) > 0, lambda: y, lambda: -y).sum()
    point = np.float32([1, 2, -0.5])
    fed = torch.from_numpy(point.copy()).requires_grad_()
    graph.run({x: fed}, y).backward()
    np.testing.assert_allclose(fed.grad, 4 * point**3, rtol=1e-6)
    slope = jax.grad(lambda fed: graph.run({x: fed}, y))
    for differentiate in (slope, jax.jit(slope)):
        np.testing.assert_allclose(differentiate(jnp.asarray(point)), 4 * point**3, rtol=1e-6)


def test_jax_maps_over_a_branch_and_a_loop() -> None:
    graph = Graph()
    x = graph.placeholder([])
    y = graph.cond(x > 0, lambda: x, lambda: x * -10)
    y = graph.while_loop(y, lambda a: (a < 8, a), lambda a: a * 2)
    got = jax.vmap(lambda fed: graph.run({x: fed}, y))(jnp.asarray([-1.0, 1.0, 3.0]))
    assert got.tolist() == [10, 8, 12]


@pytest.mark.parametrize("op", ["cond", "while_loop", "for_loop"])
def test_a_gradient_through_control_flow_is_refused_and_past_it_is_zero(op: str) -> None:
    graph = Graph()
    x, unused = graph.placeholder([3]), graph.placeholder([3])
    y = {
        "cond": lambda: graph.cond(ops.reduce_sum(x) > 0, lambda: x, lambda: -x),
        "while_loop": lambda: graph.while_loop(x, lambda a: (ops.reduce_sum(a) < 9, a), lambda a: a + 1),
        "for_loop": lambda: graph.for_loop(0, 3, 1, x, lambda i, a: a * 2),
    }[op]()
    with pytest.raises(
        recurra.GradientError, match=rf"^{op}: has no gradient \(.* has one.*\), got a request for it at "
    ):
        graph.gradients(y.sum(), [x])
    slope = graph.gradients(y.sum(), [unused])[unused]
    assert graph.run({x: X[0], unused: X[0]}, slope).tolist() == [0, 0, 0]


# ---- files, explain, exceptions -----------------------------------------------------------------------------------


def model() -> tuple[Graph, Any, list[Any]]:
    """Blocks in blocks, with constants, a variable and a recurrent op in them."""
    graph = Graph()
    x = graph.placeholder([None, 2, 4], name="x")
    R = graph.variable(np.full((4, 1), 0.3, np.float32), "R")
    table = np.float32([0.5, 1.5]).astype(ml_dtypes.bfloat16)

    def body(i: Any, a: Any) -> Any:
        h = recurra.lstm(a, R, descriptor=recurra.LSTMDescriptor(activation=("elu", 0.5))).h
        scale = graph.constant(table)[1].astype("float32")
        return graph.cond(ops.reduce_sum(h) > 0, lambda: a * scale + h, lambda: a - R[0] * graph.constant(0.1))

    looped = graph.for_loop(0, 3, 1, x, body)
    until = graph.while_loop([looped], lambda a: (ops.reduce_max(ops.absolute(a)) < 20, a), lambda a: a * 2 + R[0])
    return graph, x, [looped, until]


def test_a_loaded_executable_keeps_its_blocks(tmp_path: pathlib.Path) -> None:
    graph, x, targets = model()
    executable = graph.compile([x], targets)
    executable.save(tmp_path / "one")
    loaded = recurra.Executable.load(tmp_path / "one")
    loaded.save(tmp_path / "two")
    again = recurra.Executable.load(tmp_path / "two")
    rng = np.random.default_rng(5)
    for sign in (1, -1):
        fed = sign * np.abs(rng.normal(size=(3, 2, 4))).astype(np.float32)
        wanted = executable.run([fed])
        for other in (loaded, again):
            for mine, its in zip(wanted, other.run([fed]), strict=True):
                np.testing.assert_array_equal(mine, its)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert loaded.explain() == executable.explain()


def body_of(described: dict[str, Any]) -> list[dict[str, Any]]:
    """The operations in the body of the loop of a described graph."""
    loop = next(o for o in described["operations"] if o["op"] == "for_loop")
    return loop["attrs"]["body"]["$block"]["operations"]


def in_block(described: dict[str, Any], kind: str, which: int = 0) -> dict[str, Any]:
    return [o for o in body_of(described) if o["op"] == kind][which]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: in_block(g, "constant").update(op="assign"), "infer"),
        (lambda g: body_of(g).append({**body_of(g)[0], "op": "run_seed", "attrs": {}}), "blocks must not draw"),
        (lambda g: in_block(g, "lstm").update(inputs=[[99, 0], [99, 0]]), "a reference to operation 99 of"),
        (lambda g: in_block(g, "placeholder", 1)["attrs"].update(type={"$type": [[], "int64"]}), "have the dtype of"),
        (lambda g: in_block(g, "cond")["attrs"].update(then_block=None), "infer"),
    ],
    ids=["assign", "draw", "nowhere", "dtype", "no block"],
)
def test_a_file_with_a_wrong_block_is_refused(tmp_path: pathlib.Path, change: Any, message: str) -> None:
    graph, x, targets = model()
    graph.compile([x], targets).save(tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m") as archive:
        described, weights = json.loads(archive.read("graph.json")), archive.read("weights.safetensors")
    change(described)
    with zipfile.ZipFile(tmp_path / "m", "w") as archive:
        archive.writestr("graph.json", json.dumps(described))
        archive.writestr("weights.safetensors", weights)
    with pytest.raises(recurra.FileFormatError, match=f"must hold a valid graph, got one with .*{message}"):
        recurra.Executable.load(tmp_path / "m")


def test_explain_shows_each_of_them_in_a_line() -> None:
    graph, x, targets = model()
    lines = graph.compile([x], targets).explain().splitlines()[2:]
    assert [line.split()[1] for line in lines] == ["for_loop", "while_loop"]


def test_repeated_runs_do_not_prepare_blocks_again() -> None:
    graph, x, targets = model()
    feed = np.ones((3, 2, 4), np.float32)
    graph.run({x: feed}, targets)
    block = targets[0].op.attrs["body"]
    ready = dict(block.plan._specializations)
    graph.run({x: feed}, targets)
    assert ready
    assert dict(block.plan._specializations) == ready


class Oops(Exception):
    pass


def stumbling(graph: Graph, x: Any, leaked: list[Any]) -> Any:
    """A block that makes all kinds of things, a block of its own too, and fails."""

    def block(*_: Any) -> Any:
        graph.variable(np.float32(1), "inside")
        leaked.append(graph.cond(x > 0, lambda: x * 2, lambda: x) + 1)
        with graph.control_dependencies([leaked[-1]]):
            raise Oops

    return block


@pytest.mark.parametrize("op", ["then", "else", "before", "after", "body", "deep"])
def test_an_exception_in_a_block_leaves_the_graph_as_it_was(op: str) -> None:
    graph = Graph()
    x = graph.placeholder([])
    v = graph.variable(np.float32(3), "v")
    p = x > 0
    leaked: list[Any] = []
    bad = stumbling(graph, x, leaked)
    call = {
        "then": lambda: graph.cond(p, bad, lambda: x),
        "else": lambda: graph.cond(p, lambda: x, bad),
        "before": lambda: graph.while_loop(np.float32([1]), bad, lambda a: a),
        "after": lambda: graph.while_loop(np.float32([1]), lambda a: (p, a), bad),
        "body": lambda: graph.for_loop(0, 2, 1, np.float32([1]), bad),
        "deep": lambda: graph.for_loop(0, 2, 1, x, lambda i, a: graph.cond(a > 0, lambda: a, bad)),
    }[op]
    made = list(graph.operations), dict(graph.variables)
    with pytest.raises(Oops):
        call()
    assert (graph.operations, graph.variables) == made
    _verify.verify(graph)
    assert (x + v).op.control_dependencies == ()
    with pytest.raises(recurra.GraphError, match="of another"):
        leaked[0] + x
    assert float(graph.run({x: 2.0}, graph.cond(p, lambda: x + v, lambda: v))) == 5


def test_a_tensor_of_a_block_stays_in_it() -> None:
    graph = Graph()
    x = graph.placeholder([2])
    kept: list[Any] = []

    def body(i: Any, a: Any) -> Any:
        kept.extend([a, a * 2])
        return kept[-1]

    graph.for_loop(0, 2, 1, x, body)
    for tensor in kept:
        with pytest.raises(recurra.GraphError, match=r"run: targets must be of this graph, got .* of another"):
            graph.run({x: [1, 2]}, tensor)
        with pytest.raises(recurra.GraphError, match="else_block's result must be of this graph"):
            graph.cond(np.asarray(True), lambda: x, lambda tensor=tensor: tensor)


def test_every_form_of_the_bounds_is_one_of_two() -> None:
    """With any other combination of them, for_loop says what it wants."""
    names = ("lower_bound", "upper_bound", "step", "number_of_iterations")
    graph = Graph()
    x = graph.placeholder([])
    for values in itertools.product((None, 1), repeat=4):
        given = {n: v for n, v in zip(names, values, strict=True) if v is not None}
        call = partial(graph.for_loop, initial_body_arguments=x, body=lambda i, a: a, **given)
        if values in ((1, 1, 1, None), (None, None, None, 1)):
            assert isinstance(call(), recurra.Tensor)
        else:
            with pytest.raises(recurra.ArgumentTypeError, match=f"got {' and '.join(given) or 'none'}$"):
                call()
