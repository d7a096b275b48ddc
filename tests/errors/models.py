"""Small graphs, and wrong things to do with them."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np

import recurra
from recurra import Graph, ShapedType, ops

ONES = np.ones(3, np.float32)
DTYPES = (
    "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, "
    "complex128"
)


class Model:
    """y = x * w, where x is fed [T, 3] and w is a variable."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.x = self.graph.placeholder([None, 3], name="x")
        self.w = self.graph.variable(ONES, "w")
        self.y = ops.multiply(self.x, self.w, name="y")

    def run(self, x: Any) -> Any:
        return self.graph.run({self.x: x}, self.y)

    def compiled(self, **options: Any) -> recurra.Executable:
        return self.graph.compile([self.x], self.y, **options)

    def node(self) -> recurra.Operation:
        """Something to run."""
        return self.graph.assign(self.w, ONES)


def placeholder(*shape: int | None, dtype: Any = "float32") -> recurra.Tensor:
    return Graph().placeholder(shape, dtype, name="p")


def constant(value: Any, **options: Any) -> recurra.Tensor:
    return Graph().constant(value, **options)


def assign(value: Any) -> Any:
    model = Model()
    return model.graph.assign(model.w, value)


def enter(operations: Any) -> None:
    with Graph().control_dependencies(operations):
        pass


def traced_constant() -> Any:
    return jax.jit(lambda x: constant(x).op.attrs["value"])(np.ones(2, np.float32))


def traced_draw() -> Any:
    graph = Graph()
    x = graph.placeholder([2])
    noisy = x + ops.random_uniform((2,), graph=graph)
    return jax.jit(lambda fed: graph.run({x: fed}, noisy))(jax.numpy.ones(2))


def traced_assignment() -> Any:
    model = Model()
    doubled = model.graph.assign(model.w, model.w * 2)
    return jax.jit(lambda fed: model.graph.run({model.x: fed}, model.y, [doubled]))(jax.numpy.ones((1, 3)))


def load(state: Any) -> None:
    Model().graph.load_state_dict(state)


def state_of_twins() -> Any:
    model = Model()
    model.graph.variable(ONES, "w")
    return model.graph.state_dict()


def gradient(of: Any = "y", with_: Any = "x") -> Any:
    """d of / d with_ of a model, where a name stands for one of its tensors."""
    model = Model()
    chosen = [getattr(model, v) if isinstance(v, str) else v for v in (of, with_)]
    return model.graph.gradients(*chosen)


def gradient_without_rule() -> Any:
    model = Model()
    without = dataclasses.replace(model.y.op.kind, name="mystery", vjp=None)
    out = model.graph.add(without, [model.x, model.w], {}, "box").output_tensors[0]
    return model.graph.gradients(out, model.x)


def run_with(**given: Any) -> Any:
    """A model's `run` with good arguments, some of them replaced."""
    model = Model()
    return model.graph.run(**({"feeds": {model.x: [[1, 2, 3]]}, "targets": model.y} | given))


def compile_with(**given: Any) -> Any:
    model = Model()
    return model.graph.compile(**({"feeds": [model.x], "targets": model.y} | given))


def twice_compiled() -> Any:
    x = placeholder(3)
    return x.graph.compile([x, x], x)


def compile_as(type_: Any) -> Any:
    model = Model()
    return model.graph.compile({model.x: type_}, model.y)


def feed_both(a: Any, b: Any) -> Any:
    graph = Graph()
    x, y = graph.placeholder([3]), graph.placeholder([3])
    return graph.run({x: a, y: b}, x + y)


def feed_integers(values: Any) -> Any:
    x = placeholder(2, dtype="int32")
    return x.graph.run({x: values}, x)


def fed_with_variable() -> Any:
    model = Model()
    return model.graph.run({model.w: ONES}, model.w)


def foreign_executable_feed() -> Any:
    return Model().compiled().run({placeholder(3): ONES})


def broken(breaks: Any) -> Any:
    """Compile a model that a transformation has broken."""
    model = Model()
    breaks(model)
    return model.compiled()


def misplace(model: Model) -> None:
    model.y.op.position = 99


def swap(model: Model) -> None:
    model.y.op.input_tensors = (model.y, model.w)


def retype(model: Model) -> None:
    model.y.type = ShapedType((3,), "float64")


def misname(model: Model) -> None:
    model.y.op.kind = dataclasses.replace(model.y.op.kind, outputs=("a", "b"))


def retype_a_feed(model: Model) -> None:
    model.y = model.graph.for_loop(0, 2, 1, model.y, lambda i, y: y * 2)
    index = model.y.op.attrs["body"].feeds[0]
    index.type = index.op.attrs["type"] = ShapedType((), "int64")


def draw_in_a_block(model: Model) -> None:
    model.y = model.graph.for_loop(0, 2, 1, model.y, lambda i, y: y * 2)
    model.y.op.attrs["body"].program.run_seed()
