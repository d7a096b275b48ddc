"""Checks of the map's rows about graphs, tensors, running, executables and data types."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
import tempfile
from typing import Any

import numpy as np
import pytest
import torch

from docs.mpsgraph_rows import Check, Row
import recurra
from recurra import ops

ONES = np.ones((2, 3), np.float32)


def small() -> tuple[Any, Any, Any, Any]:
    """A graph with y = 2 x + v, its placeholder x [-1, 3], its variable v (5), and y."""
    g = recurra.Graph()
    x = g.placeholder([-1, 3], name="x")
    v = g.variable(np.float32(5), name="v")
    return g, x, v, x * 2 + v


def executable() -> Any:
    g, x, _, y = small()
    return g.compile([x], [y])


# ---- building -----------------------------------------------------------------------------------------------------


def graph(row: Row) -> None:
    assert row().operations == []


def placeholder_tensors(row: Row) -> None:
    g, x, _, _ = small()
    other = g.placeholder([])
    assert row.read(g) == [x, other]


def placeholder(row: Row) -> None:
    g = recurra.Graph()
    for unknown in (-1, None):
        x = row(g, [unknown, 3], "float64", "source")
        assert (x.shape, x.dtype, x.name) == ((-1, 3), recurra.float64, "source")
    assert g.run({x: np.ones((7, 3))}, x).shape == (7, 3)


def placeholder_of_float32(row: Row) -> None:
    x = row(recurra.Graph(), [2], name="source")
    assert (x.dtype, x.name) == (recurra.float32, "source")


def unranked(row: Row) -> None:
    with pytest.raises(recurra.ArgumentTypeError, match="shape must be given"):
        recurra.Graph().placeholder(None)


def constant(row: Row) -> None:
    g = recurra.Graph()
    data, number = row(g, np.arange(6.0), (2, 3), "float32"), row(g, 7, (2, 3), "int32")
    values = g.run({}, [data, number])
    assert [v.dtype for v in values] == [np.float32, np.int32]
    assert values[0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert values[1].tolist() == [[7, 7, 7], [7, 7, 7]]


def constant_scalar(row: Row) -> None:
    g = recurra.Graph()
    value = g.run({}, row(g, 2.5, dtype="float16"))
    assert (value.shape, value.dtype, float(value)) == ((), np.float16, 2.5)


def variable(row: Row) -> None:
    g = recurra.Graph()
    v = row(g, [1, 2], "weights", "float32")
    assert (v.shape, v.dtype, v.name) == ((2,), recurra.float32, "weights")
    assert g.run({}, v).tolist() == [1, 2]


def variable_from_tensor(row: Row) -> None:
    g = recurra.Graph()
    v = row(g, g.constant(ONES), "copy")
    g.run({}, (), [g.assign(v, v + 1)])
    assert g.run({}, v).tolist() == (ONES + 1).tolist()
    with pytest.raises(recurra.GraphError, match="must be a constant"):
        row(g, v + 1, "copy")


def read(row: Row) -> None:
    g, _, v, _ = small()
    before = row(g, v, "before")
    assignment = g.assign(v, v + 1)
    after = row(g, v, "after")
    assert before.name == "before"
    assert [float(a) for a in g.run({}, [before, after], [assignment])] == [5, 6]


def assign(row: Row) -> None:
    g, _, v, _ = small()
    assignment = row(g, v, g.constant(np.float32(8)), "to 8")
    assert isinstance(assignment, recurra.Operation)
    assert assignment.name == "to 8"
    assert float(g.run({}, v)) == 5, "it happens only where it is wanted"
    g.run({}, (), [assignment])
    assert float(g.run({}, v)) == 8


def control_dependencies(row: Row) -> None:
    g, _, v, _ = small()
    assignment = g.assign(v, v + 1)
    with row(g, [assignment]):
        after = g.read_variable(v)
    assert [float(g.run({}, after)) for _ in range(2)] == [6, 7]


def gradients(row: Row) -> None:
    g, x, v, y = small()
    found = row(g, y, [x, v], "d")
    assert list(found) == [x, v]
    values = g.run({x: ONES}, [found[x], found[v]])
    assert values[0].tolist() == [[2, 2, 2], [2, 2, 2]], "a primary tensor with several elements is their sum"
    assert float(values[1]) == 6
    assert found[x].name.startswith("d/")


def refuses_gradient(g: Any, of: Any, x: Any) -> None:
    with pytest.raises(recurra.GradientError, match="has no gradient"):
        g.gradients(of, x)


def cond(row: Row) -> None:
    g, x, v, y = small()
    made = row(g, v > 0, lambda: [x, y], lambda: [y, x], "either")
    assert made[0].op.name == "either"
    assert [a.tolist() for a in g.run({x: ONES}, made)] == [ONES.tolist(), (2 * ONES + 5).tolist()]
    refuses_gradient(g, made[0], [x])


def while_loop(row: Row) -> None:
    g, _, v, _ = small()
    made = row(g, [v], lambda a: (a < 100, [a, a + 1]), lambda a, b: [a + b], "until")
    assert made[0].op.name == "until"
    assert [float(a) for a in g.run({}, made)] == [191, 192]  # 5, 11, 23, 47, 95, 191
    refuses_gradient(g, made[0], [v])


def for_loop_of_a_number(row: Row) -> None:
    g, _, v, _ = small()
    body = {"initial_body_arguments": [v], "body": lambda i, a: [a * 2 + i.astype("float32")]}
    made = row(g, number_of_iterations=g.constant(np.int32(3)), name="three", **body)
    assert made[0].op.name == "three"
    assert float(g.run({}, made[0])) == 44  # 5, 10, 21, 44
    refuses_gradient(g, made[0], [v])


def for_loop(row: Row) -> None:
    g, _, v, _ = small()
    made = row(g, 2, g.constant(np.int32(7)), 2, [v], lambda i, a: [a * 10 + i.astype("float32")], "evens")
    assert made[0].op.name == "evens"
    assert float(g.run({}, made[0])) == 5246
    refuses_gradient(g, made[0], [v])


def absent(*names: str) -> Check:
    """No method and no op of these names: when they come, the row is to be changed."""

    def check(row: Row) -> None:
        for name in names:
            for owner in (recurra, recurra.Graph, recurra.Executable, ops):
                assert not hasattr(owner, name), f"{name} is there"

    return check


def refuses(name: str, *keywords: str, owner: Any = recurra.Graph) -> Check:
    """The method takes no argument of these names, which would be where a queue or a descriptor goes."""

    def check(row: Row) -> None:
        for keyword in keywords:
            with pytest.raises(TypeError, match=keyword):
                getattr(owner, name)(None, **{keyword: None})

    return check


# ---- tensors and operations ---------------------------------------------------------------------------------------


def attribute(of: Callable[..., Any], wanted: Callable[..., Any]) -> Check:
    """The attribute that the row names, of what `of` picks from the small graph, is what `wanted` says."""

    def check(row: Row) -> None:
        made = small()
        assert row.read(of(*made)) == wanted(*made)

    return check


def control_attribute(row: Row) -> None:
    g, _, v, _ = small()
    assignment = g.assign(v, v + 1)
    with g.control_dependencies([assignment]):
        inside = v + 2
    assert row.read(inside.op) == (assignment,)


def tensor_data(row: Row) -> None:
    g, x, _, y = small()
    assert not hasattr(recurra, "TensorData")
    assert isinstance(g.run({x: ONES}, y), np.ndarray)
    assert isinstance(g.run({x: torch.ones(2, 3)}, y), torch.Tensor)


def shaped_type(row: Row) -> None:
    found = row((None, 3), "float16")
    assert (found.shape, found.dtype) == ((-1, 3), recurra.float16)


def device(row: Row) -> None:
    g, x, _, y = small()
    assert row(g, [x], y, device="cpu").run([torch.ones(2, 3)]).device == torch.device("cpu")
    with pytest.raises(recurra.DeviceError, match="torch tensors"):
        row(g, [x], y, device="cuda:0").run([ONES])


# ---- running ------------------------------------------------------------------------------------------------------


def run(row: Row) -> None:
    g, x, v, y = small()
    assert [a.tolist() for a in row(g, {x: ONES}, [y, x], [g.assign(v, 0)])] == [(2 * ONES + 5).tolist(), ONES.tolist()]
    assert float(g.run({}, v)) == 0


def run_into(row: Row) -> None:
    g, x, v, y = small()
    results: dict[Any, Any] = {}
    row(g, {x: ONES}, [y], [g.assign(v, 0)], results=results)
    assert results[y].tolist() == (2 * ONES + 5).tolist()


def run_async(row: Row) -> None:
    g, x, v, y = small()
    future = row(g, {x: ONES}, [y], [g.assign(v, 0)])
    assert isinstance(future, Future)
    assert future.result(timeout=60)[0].tolist() == (2 * ONES + 5).tolist()


def compile_(row: Row) -> None:
    g, x, v, y = small()
    exe = row(g, {x: recurra.ShapedType((2, 3))}, [y], [g.assign(v, 0)], device=None)
    assert isinstance(exe, recurra.Executable)
    assert exe.run([ONES])[0].tolist() == (2 * ONES + 5).tolist()
    assert float(g.run({}, v)) == 0
    with pytest.raises(recurra.ShapeError, match=r"\[2, 3\]"):
        exe.run([ONES[:1]])


# ---- executables --------------------------------------------------------------------------------------------------


def feed_tensors(row: Row) -> None:
    g, x, _, y = small()
    assert row.read(g.compile([x], [y])) == (x,)


def target_tensors(row: Row) -> None:
    g, x, _, y = small()
    assert row.read(g.compile([x], [y, x])) == (y, x)


def exe_run(row: Row) -> None:
    results: list[Any] = []
    assert row(executable(), [ONES], results=results)[0].tolist() == results[0].tolist() == (2 * ONES + 5).tolist()


def exe_run_async(row: Row) -> None:
    assert row(executable(), [ONES]).result(timeout=60)[0].tolist() == (2 * ONES + 5).tolist()


def specialize(row: Row) -> None:
    exe = executable()
    assert row(exe, [((4, 3), "float32")]) is None
    with pytest.raises(recurra.ShapeError, match=r"\[4, 2\]"):
        row(exe, [((4, 2), "float32")])


def output_types(row: Row) -> None:
    assert row(executable(), [((4, 3), "float32")]) == [recurra.ShapedType((4, 3), "float32")]


def save(row: Row) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        row(executable(), path)
        assert path.read_bytes()[:2] == b"PK"


def load(row: Row) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        executable().save(path)
        assert row(path).run([ONES])[0].tolist() == (2 * ONES + 5).tolist()


def core_ml(row: Row) -> None:
    assert not hasattr(recurra, "coreml")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mlpackage"
        path.write_bytes(b"not of ours")
        with pytest.raises(recurra.FileFormatError, match=r"Executable\.save wrote"):
            recurra.Executable.load(path)


# ---- data types ---------------------------------------------------------------------------------------------------


def dtype(name: str) -> Check:
    """A placeholder, a run and a constant of the dtype."""

    def check(row: Row) -> None:
        assert row.target == name
        g = recurra.Graph()
        x = g.placeholder([2], row.target)
        array = np.asarray([0, 1], row.target.numpy)
        assert x.dtype == row.target
        assert g.run({x: array}, ops.identity(x)).dtype == array.dtype

    return check


def complex64(row: Row) -> None:
    dtype("complex64")(row)
    x = np.asarray([1j, 2], np.complex64)
    assert ops.concat([x, x], 0).tolist() == [1j, 2, 1j, 2]
    assert ops.equal(x, 1j * x).tolist() == [False, False]
    assert ops.select(np.asarray([True, False]), x, -x).tolist() == [1j, -2]
    with pytest.raises(recurra.DTypeError, match="got complex64"):
        ops.add(x, x)


def no_dtype(*names: str) -> Check:
    def check(row: Row) -> None:
        for name in names:
            with pytest.raises(recurra.DTypeError, match="must be one of"):
                recurra.Graph().placeholder([1], name)

    return check


CHECKS: dict[str, Check] = {
    "init()": graph,
    "options": absent("options"),
    "placeholderTensors": placeholder_tensors,
    "placeholder(shape:dataType:name:)": placeholder,
    "placeholder(shape:name:)": placeholder_of_float32,
    "placeholder(shape: nil, …)": unranked,
    "constant(_:shape:dataType:)": constant,
    "constant(_:dataType:)": constant_scalar,
    "variable(with:shape:dataType:name:)": variable,
    "variableFromTensor(_:name:)": variable_from_tensor,
    "read(_:name:)": read,
    "assign(_:tensor:name:)": assign,
    "controlDependency(with:dependentBlock:name:)": control_dependencies,
    "gradients(of:with:name:)": gradients,
    "if(_:then:else:name:)": cond,
    "while(initialInputs:before:after:name:)": while_loop,
    "for(numberOfIterations:initialBodyArguments:body:name:)": for_loop_of_a_number,
    "for(lowerBound:upperBound:step:initialBodyArguments:body:name:)": for_loop,
    "call(symbolName:inputTensors:outputTypes:name:)": absent("call"),
    "MPSGraphTensor.shape": attribute(lambda g, x, v, y: x, lambda g, x, v, y: (-1, 3)),
    "MPSGraphTensor.dataType": attribute(lambda g, x, v, y: y, lambda g, x, v, y: recurra.float32),
    "MPSGraphTensor.operation": attribute(lambda g, x, v, y: y, lambda g, x, v, y: g.operations[-1]),
    "MPSGraphOperation.inputTensors": attribute(
        lambda g, x, v, y: y.op, lambda g, x, v, y: (g.operations[-2].output_tensors[0], v)
    ),
    "MPSGraphOperation.outputTensors": attribute(lambda g, x, v, y: y.op, lambda g, x, v, y: (y,)),
    "MPSGraphOperation.controlDependencies": control_attribute,
    "MPSGraphOperation.graph": attribute(lambda g, x, v, y: y.op, lambda g, x, v, y: g),
    "MPSGraphOperation.name": attribute(lambda g, x, v, y: x.op, lambda g, x, v, y: "x"),
    "MPSGraphTensorData": tensor_data,
    "MPSGraphShapedType": shaped_type,
    "MPSGraphDevice": device,
    "run(feeds:targetTensors:targetOperations:)": run,
    "run(with:feeds:targetTensors:targetOperations:)": refuses("run", "queue", "stream"),
    "run(with:feeds:targetOperations:resultsDictionary:)": run_into,
    "runAsync(feeds:targetTensors:targetOperations:executionDescriptor:)": run_async,
    "runAsync(with:feeds:targetTensors:targetOperations:executionDescriptor:)": refuses("run_async", "queue", "stream"),
    "runAsync(with:feeds:targetOperations:resultsDictionary:executionDescriptor:)": refuses("run_async", "queue"),
    "encode(to:feeds:targetTensors:targetOperations:executionDescriptor:)": absent("encode"),
    "encode(to:feeds:targetOperations:resultsDictionary:executionDescriptor:)": absent("encode"),
    "MPSGraphExecutionDescriptor": absent("RunOptions", "ExecutionDescriptor"),
    "compile(with:feeds:targetTensors:targetOperations:compilationDescriptor:)": compile_,
    "MPSGraphCompilationDescriptor": absent("CompileOptions", "CompilationDescriptor"),
    "feedTensors": feed_tensors,
    "targetTensors": target_tensors,
    "run(with:inputs:results:executionDescriptor:)": exe_run,
    "runAsync(with:inputs:results:executionDescriptor:)": exe_run_async,
    "encode(to:inputs:results:executionDescriptor:)": absent("encode"),
    "MPSGraphExecutableExecutionDescriptor": absent("RunOptions", "ExecutableExecutionDescriptor"),
    "specialize(with:inputTypes:compilationDescriptor:)": specialize,
    "getOutputTypes(with:inputTypes:compilationDescriptor:)": output_types,
    "serialize(package:descriptor:)": save,
    "init(package:descriptor:)": load,
    "init(coreMLPackage:descriptor:)": core_ml,
    **{name: dtype(name) for name in ("float32", "float16", "int8", "int16", "int32", "int64", "bool")},
    "bFloat16": dtype("bfloat16"),
    **{f"uInt{bits}": dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    "complexFloat32": complex64,
    "complexFloat16": no_dtype("complex32"),
    "int4": no_dtype("int4", "int2", "uint4"),
}
