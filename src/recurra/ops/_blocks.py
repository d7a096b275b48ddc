"""Blocks: what a function makes in a graph, taken out of the graph into a program of its own.

The function is called once, when the graph is built. The tensors of the graph that its operations read, its captures,
become inputs of the node that has the block. A block is fed its arguments, and then all captures of its node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import _arrays
from .._errors import ArgumentTypeError, GraphError
from .._ir import PLACEHOLDER, Operation, Program, Tensor, lift, type_of
from .._op import Attrs, Op, ShapedType
from .._plan import NOT_IN_BLOCKS, Block, needed


def given(graph: Program, where: str, value: Any) -> Any:
    """A tensor of the graph, or an array."""
    return value if _arrays.is_array(value) else graph.own_tensor(value, where)


def several(graph: Program, where: str, value: Any) -> list[Any]:
    """Tensors or arrays; one may stand alone."""
    values = [value] if isinstance(value, Tensor) or _arrays.is_array(value) else value
    if not isinstance(values, list | tuple) or not values:
        raise ArgumentTypeError(f"{where} must be a tensor or a list of tensors, got {value!r}")
    return [given(graph, where, v) for v in values]


def types_of(values: Sequence[Any]) -> list[ShapedType]:
    """The types of tensors and arrays."""
    return [v.type if isinstance(v, Tensor) else type_of(v) for v in values]


@dataclass(frozen=True)
class Traced:
    """What a block made and returned. Its operations belong to `program`, which does not list them yet."""

    program: Program
    arguments: list[Tensor]
    results: list[Tensor]
    is_single: bool

    def needed(self) -> list[Operation]:
        """The operations of the block that its results need."""
        return needed(self.program, [t.op for t in self.results])


def trace(
    graph: Program, where: str, block: Any, types: Sequence[ShapedType] = (), *, has_predicate: bool = False
) -> Traced:
    """Call a block, and take what it makes out of the graph, whatever happens. `where` is "op: argument"."""
    if not callable(block):
        raise ArgumentTypeError(f"{where} must be a function, got {block!r}")
    start, control, aside = len(graph.operations), graph._control, Program()
    graph._control = ()  # the node waits for them; in a block they would be operations of another program
    try:
        arguments = [graph.placeholder(t.shape, t.dtype) for t in types]
        returned, predicates = block(*arguments), []
        if has_predicate:
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise ArgumentTypeError(f"{where} must return a predicate and the results, got {returned!r}")
            predicates, returned = [given(graph, f"{where}'s predicate", returned[0])], returned[1]
        results = [lift(graph, v) for v in [*predicates, *several(graph, f"{where}'s result", returned)]]
    finally:
        made, graph._control = graph.operations[start:], control
        del graph.operations[start:]
        for operation in made:
            operation.graph = aside
            graph.variables.pop(operation, None)
    for operation in made[len(types) :]:
        _refuse(where, operation, set(made))
    return Traced(aside, arguments, results, not isinstance(returned, list | tuple))


def _refuse(where: str, operation: Operation, made: set[Operation]) -> None:
    if operation.kind.name in NOT_IN_BLOCKS:
        raise GraphError(f"{where} must not {NOT_IN_BLOCKS[operation.kind.name]}, got {operation!r}")
    if operation.kind is PLACEHOLDER:
        raise GraphError(f"{where} must not make placeholders (make them before it), got {operation!r}")
    if not made.issuperset(operation.control_dependencies):
        raise GraphError(f"{where} must not wait for operations of the graph (the whole may wait), got {operation!r}")


def add_node(
    graph: Program, op: Op, inputs: Sequence[Any], traced: dict[str, Traced], attrs: Attrs, name: str | None
) -> list[Tensor]:
    """The outputs of a node that has these blocks."""
    read = [
        tensor
        for t in traced.values()
        for tensor in (*(x for o in t.needed() for x in o.input_tensors), *t.results)
        if tensor.graph is graph
    ]
    captures = list(dict.fromkeys(read))
    blocks = {label: _block(t, captures) for label, t in traced.items()}
    return list(graph.add(op, [*(lift(graph, v) for v in inputs), *captures], {**blocks, **attrs}, name).output_tensors)


def _block(traced: Traced, captures: Sequence[Tensor]) -> Block:
    """The operations that the results need, in a program of their own, with placeholders for the captures."""
    program = traced.program
    kept = [o for o in traced.needed() if o.kind is not PLACEHOLDER]
    inside = {t: program.placeholder(t.shape, t.dtype, t.name) for t in captures}
    for operation in (*(t.op for t in traced.arguments), *kept):
        operation.input_tensors = tuple(inside.get(t, t) for t in operation.input_tensors)
        operation.position = len(program.operations)
        program.operations.append(operation)
    return Block(program, (*traced.arguments, *inside.values()), tuple(inside.get(t, t) for t in traced.results))
