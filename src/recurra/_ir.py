"""The graph as data: tensors, operations, programs; and `apply`, which makes a node or computes at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
import math
from typing import Any

import numpy as np

from . import _arrays
from ._arrays import Array
from ._dtypes import DType, as_dtype
from ._errors import ArgumentTypeError, DeviceError, DTypeError, GraphError, ShapeError
from ._op import OPS, UNKNOWN, Attrs, Choice, Op, Shape, ShapedType, as_shape, choose, register
from ._operators import Operators


class Tensor(Operators):
    """A value of a graph: what one output of an operation will hold when the graph runs."""

    __slots__ = ("index", "op", "type")

    def __init__(self, op: Operation, index: int, type_: ShapedType) -> None:
        self.op, self.index, self.type = op, index, type_

    @property
    def shape(self) -> Shape:
        """The sizes; -1 where a size is known at run time only."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The dtype."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.type.shape)

    @property
    def graph(self) -> Program:
        """The graph that this tensor belongs to."""
        return self.op.graph

    @property
    def name(self) -> str:
        """The operation's name, with the output's name behind it where there are several."""
        names = self.op.output_names
        return f"{self.op.name}.{names[self.index]}" if len(names) > 1 else self.op.name

    def __repr__(self) -> str:
        return f"<Tensor {self.name} {self.type!r}>"

    def __bool__(self) -> bool:
        raise GraphError(
            f"bool: a graph tensor has no truth value before the graph runs (select may help), got {self!r}"
        )

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise GraphError(
            f"array: a graph tensor has no values before the graph runs (graph.run gives them), got {self!r}"
        )

    # NumPy must leave `array + tensor` to us.
    __array_ufunc__ = None


class Operation:
    """A node: an op applied to tensors, with attributes; what must run before it; its outputs."""

    __slots__ = (
        "attrs",
        "control_dependencies",
        "graph",
        "input_tensors",
        "kind",
        "name",
        "output_tensors",
        "position",
    )

    def __init__(
        self, graph: Program, kind: Op, inputs: Sequence[Tensor], attrs: Attrs, types: Sequence[ShapedType], name: str
    ) -> None:
        self.graph, self.kind, self.attrs, self.name = graph, kind, attrs, name
        self.input_tensors = tuple(inputs)
        self.output_tensors = tuple(Tensor(self, i, t) for i, t in enumerate(types))
        self.control_dependencies: tuple[Operation, ...] = ()
        self.position = 0

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return self.kind.output_names(self.attrs)

    def __repr__(self) -> str:
        return f"<Operation {self.name} ({self.kind.name})>"


def _no_reference(xp: Any, *_: Any, **__: Any) -> Any:
    raise AssertionError("sources are supplied by the plan")


# The ops through which values enter a program and leave it for good. A plan resolves them; they have no kernel.
PLACEHOLDER = register(Op("placeholder", lambda type: type, _no_reference))
CONSTANT = register(Op("constant", lambda value: type_of(value), _no_reference))
VARIABLE = register(Op("variable", lambda type: type, _no_reference))
RUN_SEED = register(Op("run_seed", lambda: ShapedType((), "int64"), _no_reference))
READ = register(
    Op("read_variable", lambda v: v, _no_reference, vjp=lambda inputs, outputs, cotangents: cotangents, is_view=True)
)


def _infer_assign(variable: ShapedType, value: ShapedType) -> tuple[()]:
    if value.dtype != variable.dtype:
        raise DTypeError(f"assign: value must have the variable's dtype, {variable.dtype}, got {value.dtype}")
    fits = len(value.shape) == len(variable.shape) and all(
        a in (b, UNKNOWN) for a, b in zip(value.shape, variable.shape, strict=True)
    )
    if not fits:
        raise ShapeError(
            f"assign: value must have the variable's shape, {list(variable.shape)}, got {list(value.shape)}"
        )
    return ()


ASSIGN = register(Op("assign", _infer_assign, _no_reference, outputs=()))


class Program:
    """Operations in the order they were made, and the values of its variables.

    An operation reads only what was made before it, and a plan runs operations in this order.
    """

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.variables: dict[Operation, Array] = {}
        self.random = np.random.default_rng()
        self._control: tuple[Operation, ...] = ()

    def add(self, op: Op, inputs: Sequence[Tensor], attrs: Attrs, name: str | None = None) -> Operation:
        """Append a node after checking that its inputs are of this program and fit the op."""
        for tensor in inputs:
            if tensor.graph is not self:
                raise GraphError(f"{op.name}: inputs must be tensors of one graph, got {tensor!r} of another")
        if not isinstance(name, str | None):
            raise ArgumentTypeError(f"{op.name}: name must be a string or None, got {name!r}")
        types = op.infer_all([t.type for t in inputs], attrs)
        label = f"{op.name}_{len(self.operations)}" if name is None else name
        operation = Operation(self, op, inputs, attrs, types, label)
        operation.control_dependencies = self._control
        operation.position = len(self.operations)
        self.operations.append(operation)
        return operation

    @contextmanager
    def control_dependencies(self, operations: Sequence[Operation | Tensor]) -> Iterator[None]:
        """Everything made inside the block runs after these operations, and makes them run."""
        if not isinstance(operations, Iterable):
            raise ArgumentTypeError(f"control_dependencies: operations must be a sequence, got {operations!r}")
        added = tuple(self.own_operation(o, "control_dependencies: operations") for o in operations)
        before = self._control
        self._control = (*before, *added)
        try:
            yield
        finally:
            self._control = before

    def own_operation(self, value: object, where: str) -> Operation:
        """The operation meant by an operation or a tensor, which must be of this program; `where` is "op: argument"."""
        operation = value.op if isinstance(value, Tensor) else value
        if not isinstance(operation, Operation):
            raise ArgumentTypeError(f"{where} must be operations or tensors of the graph, got {value!r}")
        if operation.graph is not self:
            raise GraphError(f"{where} must be of this graph, got {value!r} of another")
        return operation

    def own_tensor(self, value: object, where: str) -> Tensor:
        """`value`, which must be a tensor of this program."""
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(f"{where} must be a tensor of the graph, got {value!r}")
        self.own_operation(value, where)
        return value

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise GraphError(
            f"{type(self).__name__}: graphs are saved by compile(...).save(path), got a copy or a pickle of one"
        )

    def placeholder(self, shape: Any, dtype: Any = "float32", name: str | None = None) -> Tensor:
        """A tensor that every run is fed. A size of None or -1 is known at run time."""
        type_ = ShapedType.trusted(as_shape(shape, "placeholder"), as_dtype(dtype, "placeholder"))
        return self.add(PLACEHOLDER, (), {"type": type_}, name).output_tensors[0]

    def constant(self, value: Any, shape: Any = None, dtype: Any = None, name: str | None = None) -> Tensor:
        """A tensor with a value that never changes; a number with `shape` fills that shape."""
        array = own_array(value, dtype, "constant: value")
        if shape is not None:
            sizes, xp = as_shape(shape, "constant"), _arrays.namespace(array)
            if UNKNOWN in sizes:
                raise ShapeError(f"constant: shape must be static, got {list(sizes)}")
            if array.ndim and math.prod(sizes) != math.prod(array.shape):
                raise ShapeError(f"constant: shape must hold a value of shape {list(array.shape)}, got {list(sizes)}")
            array = xp.reshape(array, sizes) if array.ndim else xp.broadcast_to(array, sizes)
        return self.add(CONSTANT, (), {"value": array}, name).output_tensors[0]

    def variable(self, value: Any, name: str | None = None, dtype: Any = None) -> Tensor:
        """A tensor with a value that `assign` changes. Used as an input, it has the value it had when the run began."""
        array = own_array(value, dtype, "variable: value")
        operation = self.add(VARIABLE, (), {"type": type_of(array)}, name)
        self.variables[operation] = array
        return operation.output_tensors[0]

    def run_seed(self) -> Tensor:
        """An int64 number that is new in every run: what random ops without a seed draw from."""
        return self.add(RUN_SEED, (), {}).output_tensors[0]


def own_array(value: Any, dtype: Any, where: str) -> Array:
    """A copy of an array, or numbers as a NumPy array (Python floats as float32). `where` is "op: argument"."""
    wanted = None if dtype is None else as_dtype(dtype, where)
    if isinstance(value, Tensor):
        raise ArgumentTypeError(f"{where} must be an array or numbers, got {value!r}")
    if _arrays.is_array(value):
        if not _arrays.is_readable(value):
            raise ArgumentTypeError(
                f"{where} must be known when the graph is built, got {value!r}, which is traced; use a placeholder"
            )
        copied = _arrays.copy(np.asarray(value) if isinstance(value, np.generic) else value)
        copied = _arrays.detached(copied)
        as_dtype(copied.dtype, where)
        return copied if wanted is None else _arrays.cast(_arrays.namespace(copied), copied, wanted)
    try:
        array = _arrays.from_numbers(value, wanted)
        as_dtype(array.dtype)
        return array
    except (TypeError, ValueError, OverflowError) as error:
        which = "" if wanted is None else f" that {wanted} can hold"
        raise ArgumentTypeError(f"{where} must be an array or numbers{which}, got {value!r}") from error


def apply(op_name: str, *inputs: Any, name: str | None = None, **attrs: Any) -> Any:
    """Apply an op to tensors (a node is made) or to arrays (computed at once).

    Returns the output, or a tuple of outputs for an op that has several. Numbers take the dtype of their neighbours.
    """
    op = OPS[op_name]
    outputs: Sequence[Any]
    graph = graph_of(inputs)
    if graph is not None:
        outputs = graph.add(op, _lifted(graph, op, inputs), attrs, name).output_tensors
    else:
        outputs = run_now(op, _as_arrays(op, inputs), attrs)
    return outputs[0] if len(op.outputs) == 1 else tuple(outputs)  # type: ignore[arg-type]


def graph_of(inputs: Sequence[Any]) -> Program | None:
    """The graph of the first tensor among these, or None when there is none."""
    return next((v.graph for v in inputs if isinstance(v, Tensor)), None)


def lift(graph: Program, value: Any) -> Tensor:
    """A tensor as it is; an array as a constant of the graph."""
    return value if isinstance(value, Tensor) else graph.constant(value)


def _lifted(graph: Program, op: Op, inputs: Sequence[Any]) -> list[Tensor]:
    like = next(v.dtype for v in inputs if isinstance(v, Tensor))
    return [lift(graph, v if isinstance(v, Tensor) or _arrays.is_array(v) else number(op, v, like)) for v in inputs]


def number(op: Op, value: Any, like: DType) -> np.ndarray[Any, Any]:
    """A Python number as a NumPy scalar array of dtype `like`, by the Array API's rule for kinds."""
    kinds = {bool: 0, int: 1, float: 2, complex: 3}
    ranks = {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}
    if type(value) not in kinds:
        raise ArgumentTypeError(f"{op.name}: inputs must be tensors, arrays or numbers, got {value!r}")
    if kinds[type(value)] > ranks[like.kind]:
        raise DTypeError(f"{op.name}: a {type(value).__name__} does not fit beside {like}, got {value!r}; cast first")
    if type(value) is int and like.kind in ("int", "uint"):
        limits = np.iinfo(like.numpy)
        if not limits.min <= value <= limits.max:
            raise DTypeError(f"{op.name}: a number beside {like} must lie in its range, got {value}")
    try:
        with np.errstate(over="ignore"):  # 1e39 becomes infinite beside float32, as in every array library
            return np.asarray(value, dtype=like.numpy)
    except OverflowError:
        raise DTypeError(f"{op.name}: a number beside {like} must lie in its range, got {value}") from None


def _as_arrays(op: Op, inputs: Sequence[Any]) -> list[Array]:
    like = next((v for v in inputs if _arrays.is_array(v)), None)
    if like is None:
        if not inputs:
            return []
        raise ArgumentTypeError(f"{op.name}: inputs must be graph tensors or arrays, got {inputs[0]!r}")
    xp, device, dtype = _arrays.namespace(like), _arrays.device_of(like), as_dtype(like.dtype, op.name)
    return [v if _arrays.is_array(v) else _arrays.constant(xp, number(op, v, dtype), device) for v in inputs]


def run_now(op: Op, inputs: Sequence[Array], attrs: Attrs, wanted: tuple[bool, ...] | None = None) -> tuple[Array, ...]:
    """Compute an op on arrays at once: the same inference, the same choice of backend as in a graph."""
    return compute(op, inputs, attrs, choice_now(op, inputs, attrs, wanted))


def choice_now(op: Op, inputs: Sequence[Array], attrs: Attrs, wanted: tuple[bool, ...] | None = None) -> Choice:
    """Who computes an op on arrays of these types."""
    xp = check_together(op.name, inputs)
    types = [type_of(a, op.name) for a in inputs]
    inferred = op.infer_all(types, attrs)
    device = _arrays.device_of(inputs[0]) if inputs else None
    return choose(op, types, attrs, xp, wanted or (True,) * len(inferred), device, inputs)


def compute(op: Op, inputs: Sequence[Array], attrs: Attrs, choice: Choice) -> tuple[Array, ...]:
    """What it computes."""
    if op.check_values is not None:
        op.check_values(*inputs, **attrs)
    if choice.backend != "reference":
        result = choice.kernel(choice.xp, *inputs)
    else:
        with np.errstate(all="ignore"):  # infinities and NaN are results, as in MPSGraph, torch and JAX
            result = choice.kernel(choice.xp, *inputs)
    outputs = result if isinstance(result, tuple) else (result,)
    # NumPy gives scalars for arrays of rank 0.
    return tuple(np.asarray(y) if isinstance(y, np.generic) else y for y in outputs)


def check_together(where: str, arrays: Sequence[Array]) -> Any:
    """The namespace of arrays that must be of one library and on one device."""
    if not arrays:
        return _arrays.namespace(np.zeros(0))
    try:
        xp = _arrays.namespace(*arrays)
    except DeviceError as error:
        raise DeviceError(f"{where}: {error}") from None
    if len(arrays) > 1 and _arrays.device_of(arrays[0]) is not None:
        devices = {str(_arrays.device_of(a)) for a in arrays}
        if len(devices) > 1:
            raise DeviceError(f"{where}: arrays must be on one device, got {' and '.join(sorted(devices))}")
    return xp


def type_of(array: Array, where: str = "") -> ShapedType:
    """The type of an array; `where` says in an error which op was given it."""
    return ShapedType.trusted(tuple(array.shape), as_dtype(array.dtype, where))
