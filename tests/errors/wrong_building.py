"""Mistakes in building a graph: tensors, shapes, dtypes, constants, variables."""

from __future__ import annotations

import array_api_strict
import numpy as np
import torch

from errors.mistakes import ANY, Mistake
from errors.models import (
    DTYPES,
    ONES,
    Model,
    assign,
    constant,
    enter,
    load,
    placeholder,
    state_of_twins,
    traced_constant,
)
from recurra import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    Graph,
    GraphError,
    ShapedType,
    ShapeError,
    ops,
)

BUILDING = [
    Mistake(
        "truth value of a tensor",
        lambda: bool(placeholder(2)),
        GraphError,
        "bool: a graph tensor has no truth value before the graph runs (select may help), got <Tensor p float32[2]>",
    ),
    Mistake(
        "tensor as an array",
        lambda: np.asarray(placeholder(2)),
        GraphError,
        "array: a graph tensor has no values before the graph runs (graph.run gives them), got <Tensor p float32[2]>",
    ),
    Mistake(
        "unpacking a tensor",
        lambda: list(placeholder(2)),
        ArgumentTypeError,
        "iter: a graph tensor cannot be iterated (use unstack, split or an index), got <Tensor p float32[2]>",
    ),
    Mistake(
        "number compared by ==",
        lambda: placeholder(2) == 0,
        ArgumentTypeError,
        "equal: == says whether two tensors are the same one (ops.equal compares values), got <Tensor p float32[2]> "
        "beside a number",
    ),
    Mistake(
        "array compared by !=",
        lambda: placeholder(3) != ONES,
        ArgumentTypeError,
        "equal: == says whether two tensors are the same one (ops.equal compares values), got <Tensor p float32[3]> "
        "beside an array of numpy",
    ),
    Mistake(
        "tensors of two graphs",
        lambda: placeholder(2) + placeholder(2),
        GraphError,
        "add: inputs must be tensors of one graph, got <Tensor p float32[2]> of another",
    ),
    Mistake(
        "tensor of another graph for a method",
        lambda: Graph().lstm(placeholder(5, 2, 3), np.ones((4, 1))),
        GraphError,
        "lstm: source must be of this graph, got <Tensor p float32[5, 2, 3]> of another",
    ),
    Mistake(
        "word beside a tensor",
        lambda: placeholder(2) + "one",
        ArgumentTypeError,
        "add: inputs must be tensors, arrays or numbers, got 'one'",
    ),
    Mistake(
        "fraction beside integers",
        lambda: placeholder(2, dtype="int32") * 0.5,
        DTypeError,
        "multiply: a float does not fit beside int32, got 0.5; cast first",
    ),
    Mistake(
        "whole number beyond floats",
        lambda: placeholder(2) + 10**400,
        DTypeError,
        f"add: a number beside float32 must lie in its range, got {10**400}",
    ),
    Mistake(
        "constant out of range",
        lambda: constant([1, 300], dtype="int8"),
        ArgumentTypeError,
        "constant: value must be an array or numbers that int8 can hold, got [1, 300]",
    ),
    Mistake(
        "constant with a fraction for integers",
        lambda: constant(1.5, dtype="int32"),
        ArgumentTypeError,
        "constant: value must be an array or numbers that int32 can hold, got 1.5",
    ),
    Mistake(
        "complex constant for floats",
        lambda: constant([1j], dtype="float32"),
        ArgumentTypeError,
        "constant: value must be an array or numbers that float32 can hold, got [1j]",
    ),
    Mistake(
        "constant of nothing for floats",
        lambda: constant([1.0, None], dtype="float32"),
        ArgumentTypeError,
        "constant: value must be an array or numbers that float32 can hold, got [1.0, None]",
    ),
    Mistake(
        "number out of range",
        lambda: placeholder(2, dtype="uint8") - 256,
        DTypeError,
        "subtract: a number beside uint8 must lie in its range, got 256",
    ),
    Mistake(
        "numbers alone",
        lambda: ops.add(1, 2),
        ArgumentTypeError,
        "add: inputs must be graph tensors or arrays, got 1",
    ),
    Mistake(
        "two libraries",
        lambda: ops.add(ONES, torch.ones(3)),
        DeviceError,
        "add: arrays must be of one library, got numpy and torch",
    ),
    Mistake(
        "two devices",
        lambda: ops.add(torch.ones(3), torch.ones(3, device="meta")),
        DeviceError,
        "add: arrays must be on one device, got cpu and meta",
    ),
    Mistake(
        "array of words",
        lambda: ops.add(np.asarray(["a"]), np.asarray(["b"])),
        DTypeError,
        f"add: dtype must be one of {DTYPES}, got dtype('<U1')",
    ),
    Mistake(
        "dtype that the library lacks",
        lambda: ops.cast(array_api_strict.asarray([1.0]), "bfloat16"),
        DTypeError,
        "cast: dtype must be one that array_api_strict has, got bfloat16",
    ),
    Mistake(
        "unknown dtype",
        lambda: placeholder(2, dtype="flaot32"),
        DTypeError,
        f"placeholder: dtype must be one of {DTYPES}, got 'flaot32'",
    ),
    Mistake(
        "dtype that NumPy cannot even read",
        lambda: ShapedType((2,), "(3"),
        DTypeError,
        f"ShapedType: dtype must be one of {DTYPES}, got '(3'",
    ),
    Mistake(
        "no dtype",
        lambda: placeholder(2, dtype=None),
        DTypeError,
        f"placeholder: dtype must be one of {DTYPES}, got None",
    ),
    Mistake(
        "list as dtype",
        lambda: placeholder(2, dtype=["float32"]),
        DTypeError,
        f"placeholder: dtype must be one of {DTYPES}, got ['float32']",
    ),
    Mistake(
        "no shape",
        lambda: Graph().placeholder(None),
        ArgumentTypeError,
        "placeholder: shape must be given (write None for each unknown size), got None",
    ),
    Mistake(
        "shape of words",
        lambda: placeholder("T", 3),
        ArgumentTypeError,
        "placeholder: shape must hold integers, -1 or None, got 'T' in ('T', 3)",
    ),
    Mistake(
        "fraction in a shape",
        lambda: placeholder(2.0),
        ArgumentTypeError,
        "placeholder: shape must hold integers, -1 or None, got 2.0 in (2.0,)",
    ),
    Mistake(
        "truth value in a shape",
        lambda: placeholder(True),
        ArgumentTypeError,
        "placeholder: shape must hold integers, -1 or None, got True in (True,)",
    ),
    Mistake(
        "array in a shape",
        lambda: ShapedType((ONES,)),
        ArgumentTypeError,
        f"ShapedType: shape must hold integers, -1 or None, got array({ANY}) in {ANY}",
    ),
    Mistake(
        "number as a shape",
        lambda: Graph().placeholder(2.5),
        ArgumentTypeError,
        "placeholder: shape must be a sequence of integers, got 2.5",
    ),
    Mistake(
        "size beyond all machines",
        lambda: placeholder(2, 2**63),
        ShapeError,
        f"placeholder: sizes in shape must be 0 or more (-1 or None: known at run time), got (2, {2**63})",
    ),
    Mistake(
        "negative size",
        lambda: placeholder(2, -2),
        ShapeError,
        "placeholder: sizes in shape must be 0 or more (-1 or None: known at run time), got (2, -2)",
    ),
    Mistake(
        "name is a number",
        lambda: Graph().placeholder([2], name=7),
        ArgumentTypeError,
        "placeholder: name must be a string or None, got 7",
    ),
    Mistake(
        "constant of a tensor",
        lambda: constant(placeholder(2)),
        ArgumentTypeError,
        "constant: value must be an array or numbers, got <Tensor p float32[2]>",
    ),
    Mistake(
        "constant of rows of different lengths",
        lambda: constant([[1], [2, 3]]),
        ArgumentTypeError,
        "constant: value must be an array or numbers, got [[1], [2, 3]]",
    ),
    Mistake(
        "constant of a word",
        lambda: constant("one"),
        ArgumentTypeError,
        "constant: value must be an array or numbers, got 'one'",
    ),
    Mistake(
        "constant under a tracer",
        traced_constant,
        ArgumentTypeError,
        f"constant: value must be known when the graph is built, got {ANY}, which is traced; use a placeholder",
    ),
    Mistake(
        "constant of unknown size",
        lambda: constant(0, shape=[None]),
        ShapeError,
        "constant: shape must be static, got [-1]",
    ),
    Mistake(
        "constant that does not fill its shape",
        lambda: constant([1, 2, 3], shape=[2, 2]),
        ShapeError,
        "constant: shape must hold a value of shape [3], got [2, 2]",
    ),
    Mistake(
        "constant of an unknown dtype",
        lambda: constant(1, dtype="int128"),
        DTypeError,
        f"constant: value: dtype must be one of {DTYPES}, got 'int128'",
    ),
]

VARIABLES = [
    Mistake(
        "variable of nothing",
        lambda: Graph().variable(None),
        ArgumentTypeError,
        "variable: value must be an array or numbers, got None",
    ),
    Mistake(
        "assign to a placeholder",
        lambda: Model().graph.assign(3, ONES),
        ArgumentTypeError,
        "assign: variable must be a tensor of the graph, got 3",
    ),
    Mistake(
        "read a placeholder",
        lambda: (lambda m: m.graph.read_variable(m.x))(Model()),
        GraphError,
        "read_variable: variable must be a variable, got <Tensor x float32[-1, 3]>, made by placeholder",
    ),
    Mistake(
        "step of a variable of another graph",
        lambda: Graph().apply_sgd(0.1, Model().w, ONES),
        GraphError,
        "apply_sgd: variable must be of this graph, got <Tensor w float32[3]> of another",
    ),
    Mistake(
        "assign another dtype",
        lambda: assign(np.ones(3)),
        DTypeError,
        "assign: value must have the variable's dtype, float32, got float64",
    ),
    Mistake(
        "assign another shape",
        lambda: assign([1, 2]),
        ShapeError,
        "assign: value must have the variable's shape, [3], got [2]",
    ),
    Mistake(
        "assign a word",
        lambda: assign("one"),
        ArgumentTypeError,
        "assign: value must be an array or numbers that float32 can hold, got 'one'",
    ),
    Mistake(
        "variable from a placeholder",
        lambda: (lambda m: m.graph.variable_from_tensor(m.x))(Model()),
        GraphError,
        "variable_from_tensor: value must be a constant, got <Tensor x float32[-1, 3]>, made by placeholder",
    ),
    Mistake(
        "two variables of one name",
        state_of_twins,
        GraphError,
        "state_dict: variables must have names of their own, got two named 'w'",
    ),
    Mistake(
        "state with other names",
        lambda: load({"v": ONES, 3: ONES}),
        GraphError,
        "load_state_dict: state must name every variable and nothing else, got none for ['w'] and unknown ['v', 3]",
    ),
    Mistake(
        "state that is a list",
        lambda: load([ONES]),
        ArgumentTypeError,
        f"load_state_dict: state must be a dictionary from names to arrays, got [array({ANY})]",
    ),
    Mistake(
        "state of another shape",
        lambda: load({"w": [1, 2]}),
        ShapeError,
        "load_state_dict: the value of w must have shape [3], got [2]",
    ),
    Mistake(
        "state of another dtype",
        lambda: load({"w": np.ones(3)}),
        DTypeError,
        "load_state_dict: the value of w must be float32, got float64",
    ),
    Mistake(
        "state of words",
        lambda: load({"w": "one"}),
        ArgumentTypeError,
        "load_state_dict: the value of w must be an array or numbers that float32 can hold, got 'one'",
    ),
    Mistake(
        "negative seed",
        lambda: Graph(seed=-1),
        ArgumentError,
        "Graph: seed must be an integer of 0 or more, got -1",
    ),
    Mistake(
        "dependency that is a number",
        lambda: enter([3]),
        ArgumentTypeError,
        "control_dependencies: operations must be operations or tensors of the graph, got 3",
    ),
    Mistake(
        "dependency outside of a list",
        lambda: enter(Model().node()),
        ArgumentTypeError,
        f"control_dependencies: operations must be a sequence, got <Operation {ANY} (assign)>",
    ),
    Mistake(
        "dependency of another graph",
        lambda: enter([Model().y]),
        GraphError,
        "control_dependencies: operations must be of this graph, got <Tensor y float32[-1, 3]> of another",
    ),
]

WRONG_BUILDING = [*BUILDING, *VARIABLES]
