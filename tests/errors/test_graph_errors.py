"""Every message of building, differentiating, running and compiling a graph."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

from errors.mistakes import ANY, Mistake, check, unsaid
from errors.models import (
    DTYPES,
    ONES,
    Model,
    broken,
    compile_as,
    compile_with,
    draw_in_a_block,
    fed_with_variable,
    feed_both,
    feed_integers,
    foreign_executable_feed,
    gradient,
    gradient_without_rule,
    misname,
    misplace,
    placeholder,
    retype,
    retype_a_feed,
    run_with,
    swap,
    traced_assignment,
    traced_draw,
    twice_compiled,
)
from errors.recurrent_calls import gradient_of_mask
from errors.wrong_building import WRONG_BUILDING
import recurra
from recurra import (
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    GradientError,
    GraphError,
    ShapedType,
    ShapeError,
    UnsupportedError,
)

FILES = [
    *("_ir.py", "_op.py", "_operators.py", "_dtypes.py", "_arrays.py"),
    *("_graph.py", "_executable.py", "_autodiff.py", "_plan.py", "_verify.py"),
]
GRADIENTS = [
    Mistake(
        "gradient of a number",
        lambda: gradient(of=3),
        ArgumentTypeError,
        "gradients: of must be a tensor of the graph, got 3",
    ),
    Mistake(
        "gradient with respect to nothing",
        lambda: gradient(with_=None),
        ArgumentTypeError,
        "gradients: with_ must be a sequence of tensors, got None",
    ),
    Mistake(
        "gradient with respect to a stranger",
        lambda: gradient(with_=[placeholder(2)]),
        GraphError,
        "gradients: with_ must be of this graph, got <Tensor p float32[2]> of another",
    ),
    Mistake(
        "gradient of a comparison",
        lambda: (lambda m: m.graph.gradients(m.x > 0, m.x))(Model()),
        GradientError,
        f"gradients: of must be floating, got <Tensor {ANY} bool[-1, 3]>",
    ),
    Mistake(
        "gradient with respect to integers",
        lambda: (lambda m: m.graph.gradients(m.y, m.graph.constant(1)))(Model()),
        GradientError,
        f"gradients: with_ must be floating, got <Tensor {ANY} int64[]>",
    ),
    Mistake(
        "gradient of the mask",
        gradient_of_mask,
        GradientError,
        "lstm: mask has no gradient: MPSGraph defines none (it is a constant of the call, such as a dropout mask), "
        "got a request for it at layer",
    ),
    Mistake(
        "gradient through an op that has none",
        gradient_without_rule,
        GradientError,
        "mystery: has no gradient, got a request for it at box",
    ),
]

RUNNING = [
    Mistake(
        "feeds in a list",
        lambda: run_with(feeds=[ONES]),
        ArgumentTypeError,
        "run: feeds must be a dictionary from placeholders to arrays, got list",
    ),
    Mistake(
        "feed without a tensor",
        lambda: run_with(feeds={"x": ONES}),
        ArgumentTypeError,
        "run: feeds must be a tensor of the graph, got 'x'",
    ),
    Mistake(
        "feed of another graph",
        lambda: run_with(feeds={placeholder(2): ONES}),
        GraphError,
        "run: feeds must be of this graph, got <Tensor p float32[2]> of another",
    ),
    Mistake(
        "feed of a variable",
        fed_with_variable,
        GraphError,
        "run: feeds must be placeholders, got <Tensor w float32[3]>, made by variable",
    ),
    Mistake(
        "no feed",
        lambda: run_with(feeds={}),
        GraphError,
        "run: feeds must hold every placeholder that the targets need, got none for <Tensor x float32[-1, 3]>",
    ),
    Mistake(
        "feed of None",
        lambda: Model().run(None),
        ArgumentTypeError,
        "run: the feed of x must be an array, got NoneType",
    ),
    Mistake(
        "feed of words",
        lambda: Model().run([["a", "b", "c"]]),
        ArgumentTypeError,
        "run: the feed of x must hold numbers that float32 can, got [['a', 'b', 'c']]",
    ),
    Mistake(
        "feed of another dtype",
        lambda: Model().run(np.ones((2, 3))),
        DTypeError,
        "run: the feed of x must be float32, got float64",
    ),
    Mistake(
        "feed of objects",
        lambda: Model().run(np.ones((2, 3), object)),
        DTypeError,
        f"run: the feed of x: dtype must be one of {DTYPES}, got dtype('O')",
    ),
    Mistake(
        "feed of another size",
        lambda: Model().run(np.ones((2, 4), np.float32)),
        ShapeError,
        "run: the feed of x must have shape [-1, 3], got [2, 4]",
    ),
    Mistake(
        "feed of another rank",
        lambda: Model().run(ONES),
        ShapeError,
        "run: the feed of x must have shape [-1, 3], got [3]",
    ),
    Mistake(
        "feeds of two libraries",
        lambda: feed_both(ONES, torch.ones(3)),
        DeviceError,
        "run: arrays must be of one library, got numpy and torch",
    ),
    Mistake(
        "draw without a seed under a tracer",
        traced_draw,
        GraphError,
        "run: random ops must have a seed where the run is traced, got one without: it would draw once, and every "
        "later call would repeat it",
    ),
    Mistake(
        "numbers in words fed",
        lambda: Model().run([["1", "2", "3"]]),
        ArgumentTypeError,
        "run: the feed of x must hold numbers that float32 can, got [['1', '2', '3']]",
    ),
    Mistake(
        "fractions fed for integers",
        lambda: feed_integers([1.5, 2]),
        ArgumentTypeError,
        "run: the feed of p must hold numbers that int32 can, got [1.5, 2]",
    ),
    Mistake(
        "targets without an order",
        lambda: run_with(targets={Model().y}),
        ArgumentTypeError,
        "run: targets must have an order for the results, got a set",
    ),
    Mistake(
        "results of a run into a list",
        lambda: run_with(results=[]),
        ArgumentTypeError,
        "run: results must be a dictionary or None, got list",
    ),
    Mistake(
        "results of an executable into a dictionary",
        lambda: Model().compiled().run([[[1, 2, 3]]], results={}),
        ArgumentTypeError,
        "run: results must be a list or None, got dict",
    ),
    Mistake(
        "placeholder compiled twice",
        twice_compiled,
        GraphError,
        "compile: feeds must name each placeholder once, got <Tensor p float32[3]> twice",
    ),
    Mistake(
        "types of inputs by name",
        lambda: Model().compiled().output_types({"x": ShapedType((2, 3))}),
        ArgumentTypeError,
        "output_types: input_types must be a list of types, got dict",
    ),
    Mistake(
        "pickle of a graph",
        lambda: pickle.dumps(Model().graph),
        GraphError,
        "Graph: graphs are saved by compile(...).save(path), got a copy or a pickle of one",
    ),
    Mistake(
        "copy of a tensor",
        lambda: copy.deepcopy(Model().y),
        GraphError,
        "Graph: graphs are saved by compile(...).save(path), got a copy or a pickle of one",
    ),
    Mistake(
        "assignment under a tracer",
        traced_assignment,
        GraphError,
        "run: variables must not be assigned where the run is traced, got an assignment to w: make the new value a "
        "target, and assign it outside",
    ),
    Mistake(
        "no target",
        lambda: run_with(targets=[]),
        GraphError,
        "run: targets must name something to compute, got neither targets nor operations",
    ),
    Mistake(
        "target that is a number",
        lambda: run_with(targets=3),
        ArgumentTypeError,
        "run: targets must be a sequence of tensors, got 3",
    ),
    Mistake(
        "target that is an operation",
        lambda: run_with(targets=[Model().y.op]),
        ArgumentTypeError,
        "run: targets must be a tensor of the graph, got <Operation y (multiply)>",
    ),
    Mistake(
        "target of another graph",
        lambda: run_with(targets=Model().y),
        GraphError,
        "run: targets must be of this graph, got <Tensor y float32[-1, 3]> of another",
    ),
    Mistake(
        "operation outside of a list",
        lambda: run_with(target_operations=Model().node()),
        ArgumentTypeError,
        f"run: target_operations must be a sequence of operations, got <Operation {ANY} (assign)>",
    ),
    Mistake(
        "operation of another graph",
        lambda: run_with(target_operations=[Model().node()]),
        GraphError,
        f"run: target_operations must be of this graph, got <Operation {ANY} (assign)> of another",
    ),
]

COMPILING = [
    Mistake(
        "compile without feeds",
        lambda: compile_with(feeds=None),
        ArgumentTypeError,
        "compile: feeds must be a sequence of tensors, got None",
    ),
    Mistake(
        "compile for a word",
        lambda: compile_as("float32[2, 3]"),
        ArgumentTypeError,
        "compile: types must be ShapedType or (shape, dtype), got 'float32[2, 3]'",
    ),
    Mistake(
        "compile for another size",
        lambda: compile_as(((2, 4), "float32")),
        ShapeError,
        "compile: the type of x must have shape [-1, 3], got [2, 4]",
    ),
    Mistake(
        "compile for another rank",
        lambda: compile_as(ShapedType((2, 3, 1))),
        ShapeError,
        "compile: the type of x must have shape [-1, 3], got [2, 3, 1]",
    ),
    Mistake(
        "compile for another dtype",
        lambda: compile_as(np.ones((2, 3))),
        DTypeError,
        "compile: the type of x must be float32, got float64",
    ),
    Mistake(
        "compile for a device by number",
        lambda: compile_with(device=0),
        ArgumentTypeError,
        "compile: device must be a string such as 'cuda:0' or None, got 0",
    ),
    Mistake(
        "inputs of another executable",
        foreign_executable_feed,
        GraphError,
        "run: inputs must be placeholders of this executable, got <Tensor p float32[3]>",
    ),
    Mistake(
        "inputs without a placeholder",
        lambda: Model().compiled().run({}),
        GraphError,
        "run: inputs must hold every placeholder, got none for <Tensor x float32[-1, 3]>",
    ),
    Mistake(
        "too many inputs",
        lambda: Model().compiled().run([ONES, ONES]),
        GraphError,
        "run: inputs must hold 1 arrays, one per placeholder, got 2",
    ),
    Mistake(
        "input outside of a list",
        lambda: Model().compiled().run(ONES),
        ArgumentTypeError,
        "run: inputs must be a list or dictionary of arrays, got ndarray",
    ),
    Mistake(
        "array of NumPy for a device",
        lambda: Model().compiled(device="cuda:0").run([np.ones((2, 3), np.float32)]),
        DeviceError,
        "run: inputs must be torch tensors for device 'cuda:0', got numpy",
    ),
    Mistake(
        "device that torch does not know",
        lambda: Model().compiled(device="abacus").run([torch.ones(2, 3)]),
        DeviceError,
        f"run: device must be one that torch has here, got 'abacus': {ANY}",
    ),
    Mistake(
        "types of another number",
        lambda: Model().compiled().output_types([]),
        GraphError,
        "output_types: input_types must be a list of 1 types, got 0",
    ),
    Mistake(
        "type that does not fit",
        lambda: Model().compiled().specialize([((2, 4), "float32")]),
        ShapeError,
        "specialize: the type of x must have shape [-1, 3], got [2, 4]",
    ),
    Mistake(
        "operation out of place",
        lambda: broken(misplace),
        GraphError,
        "verify: operations must stay where they were made, got <Operation y (multiply)> elsewhere",
    ),
    Mistake(
        "operation that reads itself",
        lambda: broken(swap),
        GraphError,
        "verify: inputs must be made before they are read, got <Tensor y float32[-1, 3]> in <Operation y (multiply)>",
    ),
    Mistake(
        "output of another type",
        lambda: broken(retype),
        GraphError,
        "verify: outputs of <Operation y (multiply)> must be as inferred, (float32[-1, 3],), got (float64[3],)",
    ),
    Mistake(
        "output without a name",
        lambda: broken(misname),
        GraphError,
        "verify: outputs of <Operation y (multiply)> must have a name each, got 1 and ('a', 'b')",
    ),
    Mistake(
        "block for another dtype",
        lambda: broken(retype_a_feed),
        GraphError,
        f"verify: feeds of blocks must have the dtype of <Tensor {ANY} int64[]>, got int32[]",
    ),
    Mistake(
        "block that draws",
        lambda: broken(draw_in_a_block),
        GraphError,
        "verify: blocks must not draw without a seed (give a seed, or pass a state on), got "
        f"<Operation {ANY} (run_seed)>",
    ),
]

# _arrays.py says these for whoever reads values.
READING = [
    Mistake(
        "weight that is no array",
        lambda: recurra.Stream.lstm(3),
        ArgumentTypeError,
        "Stream.lstm: recurrent_weight must be an array, got int",
    ),
    Mistake(
        "sparse weight",
        lambda: recurra.Stream.lstm(torch.eye(4).to_sparse()),
        UnsupportedError,
        "Stream.lstm: recurrent_weight must be a dense array whose values are known (not under jit, grad or vmap), "
        "got Tensor",
    ),
]
MISTAKES = [*READING, *WRONG_BUILDING, *GRADIENTS, *RUNNING, *COMPILING]


@pytest.mark.parametrize("mistake", MISTAKES, ids=Mistake.id)
def test_message_says_what_is_wrong(mistake: Mistake) -> None:
    check(mistake)


def test_no_message_is_without_a_mistake() -> None:
    assert unsaid(FILES, MISTAKES) == []
