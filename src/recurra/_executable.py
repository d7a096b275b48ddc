"""A compiled part of a graph: run it, look at it, save it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np

from . import _arrays, _file
from ._arrays import Array
from ._errors import ArgumentTypeError, DeviceError, DTypeError, GraphError, ShapeError
from ._ir import PLACEHOLDER, Operation, Tensor, type_of
from ._op import UNKNOWN, ShapedType
from ._plan import Plan
from ._verify import verify

Feeds = Mapping[Tensor, Any] | Sequence[Any]


class Executable:
    """Targets of a graph, ready to run. Made by `Graph.compile` or `Executable.load`.

    It shares the graph's variables: what it assigns, the graph sees, and the other way round.
    """

    def __init__(
        self,
        plan: Plan,
        feed_types: Sequence[ShapedType],
        *,
        is_single: bool,
        device: str | None = None,
    ) -> None:
        verify(plan.program)
        self._plan, self._feed_types, self._is_single, self._device = plan, tuple(feed_types), is_single, device
        plan.infer(self._feed_types)  # a contradiction is reported at compile time

    @property
    def feed_tensors(self) -> tuple[Tensor, ...]:
        """The placeholders, in the order of positional inputs."""
        return self._plan.feeds

    @property
    def target_tensors(self) -> tuple[Tensor, ...]:
        """The targets, in the order of the results."""
        return self._plan.targets

    def run(self, inputs: Feeds = (), results: list[Any] | None = None) -> Any:
        """Run once.

        Args:
            inputs: arrays in the order of `feed_tensors`, or a dictionary from tensors to arrays.
            results: a list to be filled with the targets' values as well.

        Returns:
            A list of arrays in the order of the targets; one array when the target was given alone.

        Raises:
            GraphError, ShapeError, DTypeError: inputs are missing, unknown or do not fit.
        """
        if not isinstance(results, list | None):
            raise ArgumentTypeError(f"run: results must be a list or None, got {type(results).__name__}")
        values = self._plan.run(self._arranged(inputs), default_place(self._plan))
        if results is not None:
            results[:] = values
        return values[0] if self._is_single else values

    def run_async(self, inputs: Feeds = ()) -> Future[Any]:
        """Run in the background; runs of one process happen one after the other. The result comes by `.result()`."""
        return worker().submit(self.run, inputs)

    def _arranged(self, inputs: Feeds) -> list[Array]:
        feeds = self._plan.feeds
        if isinstance(inputs, Mapping):
            unknown = [k for k in inputs if k not in feeds]
            if unknown:
                raise GraphError(f"run: inputs must be placeholders of this executable, got {unknown[0]!r}")
            missing = [t for t in feeds if t not in inputs]
            if missing:
                raise GraphError(f"run: inputs must hold every placeholder, got none for {missing[0]!r}")
            inputs = [inputs[t] for t in feeds]
        if not isinstance(inputs, Sequence):
            raise ArgumentTypeError(f"run: inputs must be a list or dictionary of arrays, got {type(inputs).__name__}")
        if len(inputs) != len(feeds):
            raise GraphError(f"run: inputs must hold {len(feeds)} arrays, one per placeholder, got {len(inputs)}")
        arrays = [checked_feed(t, ty, a) for t, ty, a in zip(feeds, self._feed_types, inputs, strict=True)]
        return arrays if self._device is None else [_placed(a, self._device) for a in arrays]

    def output_types(self, input_types: Sequence[Any] | None = None) -> list[ShapedType]:
        """The targets' types for inputs of these types (by default those it was compiled for)."""
        types = self._feed_types if input_types is None else self._as_types(input_types, "output_types")
        inferred = self._plan.infer(types)
        return [inferred[t] for t in self._plan.targets]

    def specialize(self, input_types: Sequence[Any], like: Array | None = None) -> None:
        """Prepare for inputs of these types now instead of at the first run. `like` names the array library."""
        xp, device = default_place(self._plan)
        if like is not None:
            xp, device = _arrays.namespace(like), _arrays.device_of(like)
        self._plan.specialize(xp, device, self._as_types(input_types, "specialize"))

    def _as_types(self, types: Any, where: str) -> tuple[ShapedType, ...]:
        count = len(self._plan.feeds)
        if not isinstance(types, Sequence):
            raise ArgumentTypeError(f"{where}: input_types must be a list of types, got {type(types).__name__}")
        if len(types) != count:
            raise GraphError(f"{where}: input_types must be a list of {count} types, got {len(types)}")
        found = tuple(as_type(t, where) for t in types)
        for tensor, wanted, got in zip(self._plan.feeds, self._feed_types, found, strict=True):
            check_fit(wanted, got, f"{where}: the type of {tensor.name}")
        return found

    def explain(self) -> str:
        """A table of the steps: what runs, on which backend, and why the backends before it refused."""
        xp, device = default_place(self._plan)
        chosen = self._plan.specialize(xp, device, self._feed_types)
        rows = [("step", "op", "name", "result", "backend", "reason")]
        for i, (step, choice) in enumerate(zip(self._plan.steps, chosen.choices, strict=True)):
            operation = step.operation
            types = ", ".join(
                repr(chosen.types[t]) for t, w in zip(operation.output_tensors, step.wanted, strict=True) if w
            )
            rows.append((str(i), operation.kind.name, operation.name, types, choice.backend, choice.reason))
        return table(rows)

    def save(self, path: Any) -> None:
        """Write this executable, the weights included, to one file without pickle."""
        _file.save(path, self._plan, self._feed_types, self._is_single)

    @classmethod
    def load(cls, path: Any) -> Executable:
        """Read an executable that `save` wrote.

        Raises:
            FileFormatError: the file is damaged, newer than this version, or something else.
        """
        plan, types, is_single = _file.load(path)
        return cls(plan, types, is_single=is_single)

    def __repr__(self) -> str:
        feeds = ", ".join(f"{t.name}: {ty!r}" for t, ty in zip(self._plan.feeds, self._feed_types, strict=True))
        return f"<Executable ({feeds}) -> {', '.join(map(repr, self.output_types()))}>"


@lru_cache(maxsize=1)
def worker() -> ThreadPoolExecutor:
    """The one background thread of asynchronous runs."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="recurra")


def default_place(plan: Plan) -> tuple[Any, Any]:
    """The library and device of a run that is fed nothing: those of the first variable, otherwise NumPy."""
    for operation in plan.operations:
        value = plan.program.variables.get(operation)
        if value is not None:
            return _arrays.namespace(value), _arrays.device_of(value)
    return _arrays.namespace(np.zeros(0)), None


def checked_feed(tensor: Tensor, wanted: ShapedType, value: Any) -> Array:
    """A fed value as an array that fits its placeholder; lists and numbers become NumPy arrays of its dtype."""
    what = f"run: the feed of {tensor.name}"
    if not _arrays.is_array(value):
        if isinstance(value, Tensor) or not isinstance(value, bool | int | float | complex | list | tuple):
            raise ArgumentTypeError(f"{what} must be an array, got {type(value).__name__}")
        try:
            value = _arrays.from_numbers(value, wanted.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentTypeError(f"{what} must hold numbers that {wanted.dtype} can, got {value!r}") from error
    elif isinstance(value, np.generic):
        value = np.asarray(value)
    check_fit(wanted, type_of(value, what), what)
    return value


def check_fit(wanted: ShapedType, got: ShapedType, what: str) -> None:
    """Refuse a type that does not fit what a placeholder or a variable wants; `what` is "op: argument"."""
    if got.dtype != wanted.dtype:
        raise DTypeError(f"{what} must be {wanted.dtype}, got {got.dtype}")
    fits = len(got.shape) == len(wanted.shape) and all(
        w in (UNKNOWN, g) for w, g in zip(wanted.shape, got.shape, strict=True)
    )
    if not fits:
        raise ShapeError(f"{what} must have shape {list(wanted.shape)}, got {list(got.shape)}")


def as_type(value: Any, where: str) -> ShapedType:
    """A `ShapedType` as it is, `(shape, dtype)`, or the type of an array."""
    if isinstance(value, ShapedType):
        return value
    if _arrays.is_array(value):
        return type_of(value)
    if isinstance(value, tuple) and len(value) == 2:
        return ShapedType(*value)
    raise ArgumentTypeError(f"{where}: types must be ShapedType or (shape, dtype), got {value!r}")


def _placed(value: Array, device: str) -> Array:
    if _arrays.is_torch(value):
        try:
            return value.to(device)
        except (RuntimeError, AssertionError) as error:  # torch asserts that it was built with CUDA
            raise DeviceError(f"run: device must be one that torch has here, got {device!r}: {error}") from error
    if device != "cpu" and _arrays.device_of(value) is None:
        raise DeviceError(f"run: inputs must be torch tensors for device {device!r}, got {_arrays.library(value)}")
    return value


def only_placeholders(feeds: Sequence[Tensor]) -> None:
    """Refuse feeds of anything but placeholders."""
    for tensor in feeds:
        if tensor.op.kind is not PLACEHOLDER:
            raise GraphError(f"run: feeds must be placeholders, got {tensor!r}, made by {tensor.op.kind.name}")


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text, the first one being the head, in columns."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def operations_of(values: Sequence[Operation | Tensor]) -> tuple[Operation, ...]:
    """Operations, or the operations of tensors."""
    return tuple(v.op if isinstance(v, Tensor) else v for v in values)
