"""Every message of cond, while_loop and for_loop."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
import torch

from errors.mistakes import ANY, Mistake, check, unsaid
from errors.models import ONES, Model
from recurra import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    GradientError,
    Graph,
    GraphError,
    ShapeError,
    UnsupportedError,
    ops,
)

FILES = ["ops/control_flow.py", "ops/_blocks.py", "ops/_block_types.py"]


def cond(predicate: Any = None, then: Any = None, other: Any = None, **options: Any) -> Any:
    """`cond` of a model. Its blocks are functions of the model; what is not given is right."""
    model = Model()
    chooser = model.graph.placeholder([], "bool", "p") if predicate is None else predicate
    blocks = [(lambda: model.x) if b is None else partial(b, model) if callable(b) else b for b in (then, other)]
    return model.graph.cond(chooser, *blocks, **options)


def while_loop(initial: Any = None, before: Any = None, after: Any = None) -> Any:
    model = Model()
    going = np.asarray(True)
    return model.graph.while_loop(
        model.x if initial is None else initial, before or (lambda *a: (going, a)), after or (lambda *a: a)
    )


def for_loop(*bounds: Any, body: Any = None, initial: Any = None) -> Any:
    model = Model()
    return model.graph.for_loop(
        *(bounds or (0, 2, 1)), model.x if initial is None else initial, body or (lambda i, *a: a)
    )


def not_by_itself(**given: Any) -> Any:
    model = Model()
    return model.graph.for_loop(**given, initial_body_arguments=model.x, body=lambda i, x: x)


def doing(act: Any) -> Any:
    """A loop whose body does something that bodies do not do."""
    model = Model()

    def body(i: Any, x: Any) -> Any:
        act(model)
        return x

    return model.graph.for_loop(0, 2, 1, model.x, body)


def wait(model: Model) -> None:
    with model.graph.control_dependencies([model.y]):
        ops.exp(model.x)


def step_of_zero() -> Any:
    graph = Graph()
    step = graph.placeholder([], "int32")
    out = graph.for_loop(0, 3, step, ONES, lambda i, x: x)
    return graph.run({step: np.int32(0)}, out)


def without_values(make: Any) -> Any:
    """Run on torch's device that keeps no values."""
    graph = Graph()
    x = graph.placeholder([])
    return graph.run({x: torch.zeros((), device="meta")}, make(graph, x))


def traced(make: Any) -> Any:
    graph = Graph()
    x = graph.placeholder([None])
    out = make(graph, x)
    return jax.jit(lambda fed: graph.run({x: fed}, out))(jax.numpy.ones(2))


def gradient(make: Any) -> Any:
    model = Model()
    out = make(model.graph, model.y)
    return model.graph.gradients(out, model.x)


BUILDING = [
    Mistake(
        "predicate that is a truth value",
        lambda: cond(True),
        ArgumentTypeError,
        "cond: predicate must be a tensor of the graph, got True",
    ),
    Mistake("predicate of numbers", lambda: cond(ONES[0]), DTypeError, "cond: predicate must be bool, got float32"),
    Mistake(
        "predicate of three",
        lambda: cond(ONES > 0),
        ShapeError,
        "cond: predicate must have one element, got [3]",
    ),
    Mistake(
        "predicate of another graph",
        lambda: cond(Graph().placeholder([], "bool", "p")),
        GraphError,
        "cond: predicate must be of this graph, got <Tensor p bool[]> of another",
    ),
    Mistake(
        "tensor for a block",
        lambda: cond(then=Graph().placeholder([2], name="x")),
        ArgumentTypeError,
        "cond: then_block must be a function, got <Tensor x float32[2]>",
    ),
    Mistake(
        "block that returns nothing",
        lambda: cond(other=lambda m: None),
        ArgumentTypeError,
        "cond: else_block's result must be a tensor or a list of tensors, got None",
    ),
    Mistake(
        "block that returns an empty list",
        lambda: cond(then=lambda m: []),
        ArgumentTypeError,
        "cond: then_block's result must be a tensor or a list of tensors, got []",
    ),
    Mistake(
        "block that returns a number",
        lambda: cond(then=lambda m: [m.x, 2.5]),
        ArgumentTypeError,
        "cond: then_block's result must be a tensor of the graph, got 2.5",
    ),
    Mistake(
        "branches with another number of results",
        lambda: cond(other=lambda m: [m.x, m.y]),
        GraphError,
        "cond: else_block must return 1 tensors, got 2",
    ),
    Mistake(
        "branches of two dtypes",
        lambda: cond(other=lambda m: m.x > 0),
        DTypeError,
        "cond: else_block must return float32[-1, 3] as result 0, got bool[-1, 3]",
    ),
    Mistake(
        "branches of two sizes",
        lambda: cond(then=lambda m: [m.y, m.w], other=lambda m: [m.x, m.w[:2]]),
        ShapeError,
        "cond: else_block must return float32[3] as result 1, got float32[2]",
    ),
    Mistake(
        "branches of two ranks",
        lambda: cond(other=lambda m: m.x.sum(1)),
        ShapeError,
        "cond: else_block must return float32[-1, 3] as result 0, got float32[-1]",
    ),
    Mistake(
        "name that is a number",
        lambda: cond(name=3),
        ArgumentTypeError,
        "cond: name must be a string or None, got 3",
    ),
    Mistake(
        "loop on nothing",
        lambda: while_loop([]),
        ArgumentTypeError,
        "while_loop: initial_inputs must be a tensor or a list of tensors, got []",
    ),
    Mistake(
        "loop on a number",
        lambda: for_loop(initial=[1.5]),
        ArgumentTypeError,
        "for_loop: initial_body_arguments must be a tensor of the graph, got 1.5",
    ),
    Mistake(
        "before_block without a predicate",
        lambda: while_loop(before=lambda x: x),
        ArgumentTypeError,
        "while_loop: before_block must return a predicate and the results, got <Tensor placeholder_3 float32[-1, 3]>",
    ),
    Mistake(
        "predicate of the loop that is a number",
        lambda: while_loop(before=lambda x: (1, x)),
        ArgumentTypeError,
        "while_loop: before_block's predicate must be a tensor of the graph, got 1",
    ),
    Mistake(
        "predicate of the loop with three elements",
        lambda: while_loop(before=lambda x: (x > 0, x)),
        ShapeError,
        "while_loop: predicate must have one element, got [-1, 3]",
    ),
    Mistake(
        "after_block with another number of results",
        lambda: while_loop(after=lambda x: [x, x]),
        GraphError,
        "while_loop: after_block must return 1 tensors, got 2",
    ),
    Mistake(
        "body that changes the dtype",
        lambda: for_loop(body=lambda i, x: x.astype("float64")),
        DTypeError,
        "for_loop: body must return float32[-1, 3] as result 0, got float64[-1, 3]",
    ),
    Mistake(
        "body that changes a known size",
        lambda: for_loop(body=lambda i, x: x[:, :2]),
        ShapeError,
        "for_loop: body must return float32[-1, 3] as result 0, got float32[-1, 2]",
    ),
    Mistake(
        "loop without bounds",
        lambda: not_by_itself(),
        ArgumentTypeError,
        "for_loop: bounds must be all of lower_bound, upper_bound, step, or number_of_iterations, got none",
    ),
    Mistake(
        "loop with bounds of both kinds",
        lambda: not_by_itself(step=1, number_of_iterations=3),
        ArgumentTypeError,
        "for_loop: bounds must be all of lower_bound, upper_bound, step, or number_of_iterations, "
        "got step and number_of_iterations",
    ),
    Mistake(
        "fraction as a bound",
        lambda: for_loop(0, 2.5, 1),
        DTypeError,
        "for_loop: a float does not fit beside int32, got 2.5; cast first",
    ),
    Mistake(
        "word as a bound",
        lambda: for_loop(0, "3", 1),
        ArgumentTypeError,
        "for_loop: inputs must be tensors, arrays or numbers, got '3'",
    ),
    Mistake(
        "floating bounds",
        lambda: for_loop(ONES[0], ONES[0], ONES[0]),
        DTypeError,
        "for_loop: lower_bound must be int32 or int64, got float32",
    ),
    Mistake(
        "bounds of two dtypes",
        lambda: for_loop(np.int32(0), np.int64(3), 1),
        DTypeError,
        "for_loop: upper_bound must be int32, got int64",
    ),
    Mistake(
        "three bounds in one",
        lambda: for_loop(0, np.asarray([3, 4, 5]), 1),
        ShapeError,
        "for_loop: upper_bound must have one element, got [3]",
    ),
    Mistake(
        "step back",
        lambda: for_loop(3, 0, -1),
        ArgumentError,
        "for_loop: step must be positive, got -1",
    ),
]

IN_BLOCKS = [
    Mistake(
        "assignment in a block",
        lambda: doing(lambda m: m.graph.assign(m.w, ONES)),
        GraphError,
        f"for_loop: body must not assign variables (assign its results), got <Operation {ANY} (assign)>",
    ),
    Mistake(
        "read in a block",
        lambda: doing(lambda m: m.graph.read_variable(m.w, "now")),
        GraphError,
        "for_loop: body must not read variables (read them before it), got <Operation now (read_variable)>",
    ),
    Mistake(
        "variable of a block",
        lambda: doing(lambda m: m.graph.variable(ONES, "v")),
        GraphError,
        "for_loop: body must not make variables (make them before it), got <Operation v (variable)>",
    ),
    Mistake(
        "placeholder of a block",
        lambda: doing(lambda m: m.graph.placeholder([2], name="late")),
        GraphError,
        "for_loop: body must not make placeholders (make them before it), got <Operation late (placeholder)>",
    ),
    Mistake(
        "draw in a block",
        lambda: doing(lambda m: ops.dropout(m.x, 0.5)),
        GraphError,
        "for_loop: body must not draw without a seed (give a seed, or pass a state on), "
        f"got <Operation {ANY} (run_seed)>",
    ),
    Mistake(
        "waiting in a block",
        lambda: doing(wait),
        GraphError,
        f"for_loop: body must not wait for operations of the graph (the whole may wait), got <Operation {ANY} (exp)>",
    ),
]

RUNNING = [
    Mistake("step of zero", step_of_zero, ArgumentError, "for_loop: step must be positive, got 0"),
    Mistake(
        "predicate without a value",
        lambda: without_values(lambda g, x: g.cond(x > 0, lambda: x, lambda: -x)),
        UnsupportedError,
        "cond: predicate must have a value that can be read, got one under a tracer",
    ),
    Mistake(
        "predicate of a loop without a value",
        lambda: without_values(lambda g, x: g.while_loop(x, lambda x: (x > 0, x), lambda x: x)),
        UnsupportedError,
        "while_loop: predicate must have a value that can be read, got one under a tracer",
    ),
    Mistake(
        "bounds without values",
        lambda: without_values(lambda g, x: g.for_loop(0, 2, 1, x, lambda i, x: x)),
        UnsupportedError,
        "for_loop: lower_bound must have a value that can be read, got one under a tracer",
    ),
    Mistake(
        "branches of two sizes under a tracer",
        lambda: traced(lambda g, x: g.cond(x[0] > 0, lambda: x, lambda: x[:1])),
        ShapeError,
        "cond: sizes must not change where the run is traced, got [float32[2]] and [float32[1]]",
    ),
    Mistake(
        "growing under a tracer",
        lambda: traced(lambda g, x: g.for_loop(0, 2, 1, x, lambda i, x: ops.concat([x, x], 0))),
        ShapeError,
        "for_loop: sizes must not change where the run is traced, got [float32[2]] and [float32[4]]",
    ),
]

GRADIENTS = [
    Mistake(
        "gradient through a branch",
        lambda: gradient(lambda g, y: g.cond(np.asarray(True), lambda: y, lambda: y * 2, "either")),
        GradientError,
        "cond: has no gradient (select has one, and computes both sides), got a request for it at either",
    ),
    Mistake(
        "gradient through a while loop",
        lambda: gradient(lambda g, y: g.while_loop(y, lambda y: (np.asarray(False), y), lambda y: y, "loop")),
        GradientError,
        "while_loop: has no gradient (a Python loop that makes the iterations one by one has one), "
        "got a request for it at loop",
    ),
    Mistake(
        "gradient through a for loop",
        lambda: gradient(lambda g, y: g.for_loop(0, 2, 1, y, lambda i, y: y * 2, "loop")),
        GradientError,
        "for_loop: has no gradient (a Python loop that makes the iterations one by one has one), "
        "got a request for it at loop",
    ),
]

MISTAKES = [*BUILDING, *IN_BLOCKS, *RUNNING, *GRADIENTS]


@pytest.mark.parametrize("mistake", MISTAKES, ids=Mistake.id)
def test_message_says_what_is_wrong(mistake: Mistake) -> None:
    check(mistake)


def test_no_message_is_without_a_mistake() -> None:
    assert unsaid(FILES, MISTAKES) == []
