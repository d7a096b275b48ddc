"""A plan: what has to run, in which order, by which backend, and when each value can be forgotten."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
import threading
from typing import Any

import numpy as np

from . import _arrays
from ._arrays import Array, Namespace
from ._errors import GraphError
from ._ir import (
    ASSIGN,
    CONSTANT,
    PLACEHOLDER,
    READ,
    RUN_SEED,
    VARIABLE,
    Operation,
    Program,
    Tensor,
    check_together,
    type_of,
)
from ._op import Choice, ShapedType, choose

_SOURCES = (PLACEHOLDER, CONSTANT, VARIABLE, RUN_SEED)
# Enough for a few batch sizes per graph, few enough that 500 sequence lengths leave memory flat.
_SPECIALIZATIONS = 16


@dataclass(frozen=True)
class Step:
    """One operation of the plan. Inputs, outputs and releases are slots of a list of values."""

    operation: Operation
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    wanted: tuple[bool, ...]
    # Values that nobody reads after this step.
    releases: tuple[int, ...]
    # Values of which later steps read only the shape: kept as a view of one element.
    shrinks: tuple[int, ...]


@dataclass
class Specialization:
    """A plan for feeds of certain shapes in a certain library: kernels chosen, constants converted."""

    xp: Namespace
    device: Any
    # (kernel, inputs, outputs, releases, shrinks, check) per step
    steps: list[tuple[Any, ...]]
    choices: list[Choice]
    types: dict[Tensor, ShapedType]
    constants: list[tuple[int, Array]]


class Plan:
    """The part of a program that some targets need, ready to run again and again."""

    def __init__(
        self, program: Program, feeds: Sequence[Tensor], targets: Sequence[Tensor], operations: Sequence[Operation] = ()
    ) -> None:
        self.program, self.feeds, self.targets, self.roots = program, tuple(feeds), tuple(targets), tuple(operations)
        self.operations = needed(program, [t.op for t in targets] + list(operations))
        self._check_feeds()
        self._slot_of: dict[Tensor, int] = {}
        self._current: dict[Operation, int] = {}  # the slot with the newest value of each variable
        self._variables: list[tuple[Operation, int]] = []
        self._seeds: list[int] = []
        self._count = 0
        self.steps: list[Step] = []
        self._lay_out()
        self._stores: list[dict[str, Any]] = [{} for _ in self.steps]  # what kernels keep, whatever the feeds' shapes
        self._specializations: OrderedDict[Any, Specialization] = OrderedDict()
        self._lock = threading.Lock()

    def _check_feeds(self) -> None:
        needed = {o for o in self.operations if o.kind is PLACEHOLDER}
        fed = {t.op for t in self.feeds}
        missing = [o for o in self.operations if o in needed - fed]
        if missing:
            names = ", ".join(repr(o.output_tensors[0]) for o in missing)
            raise GraphError(f"run: feeds must hold every placeholder that the targets need, got none for {names}")

    # ---- layout: slots, order of reads and writes, lifetimes -------------------------------------------------

    def _new_slot(self) -> int:
        self._count += 1
        return self._count - 1

    def _lay_out(self) -> None:
        for tensor in self.feeds:
            self._slot_of[tensor] = self._new_slot()
        drafts: list[tuple[Operation, tuple[int, ...]]] = []
        assigned: dict[Operation, tuple[int, Tensor]] = {}
        for operation in self.operations:
            if operation.kind is ASSIGN:
                variable, value = operation.input_tensors
                self._current[variable.op] = self._slot_of[value]
                assigned[variable.op] = (self._slot_of[value], value)
            elif operation.kind is READ:
                self._slot_of[operation.output_tensors[0]] = self._current[operation.input_tensors[0].op]
            elif operation.kind in _SOURCES:
                self._lay_out_source(operation)
            else:
                for tensor in operation.output_tensors:
                    self._slot_of[tensor] = self._new_slot()
                drafts.append((operation, tuple(self._slot_of[t] for t in operation.input_tensors)))
        self._target_slots = tuple(self._slot_of[t] for t in self.targets)
        self._commits = [(variable, slot, value) for variable, (slot, value) in assigned.items()]
        self._find_lifetimes(drafts)
        self._find_shared_memory()

    def _lay_out_source(self, operation: Operation) -> None:
        tensor = operation.output_tensors[0]
        if tensor in self._slot_of:
            return
        slot = self._slot_of[tensor] = self._new_slot()
        if operation.kind is VARIABLE:
            self._variables.append((operation, slot))
            self._current[operation] = slot
        elif operation.kind is RUN_SEED:
            self._seeds.append(slot)

    def _find_lifetimes(self, drafts: list[tuple[Operation, tuple[int, ...]]]) -> None:
        kept = set(self._target_slots) | {slot for _, slot, _ in self._commits}
        readers: set[int] = set(kept)  # slots that somebody later reads
        fully: set[int] = set(kept)  # … and whose values, not only shapes, matter
        for operation, inputs in reversed(drafts):
            outputs = tuple(self._slot_of[t] for t in operation.output_tensors)
            releases = {s for s in (*inputs, *outputs) if s not in readers}
            shape_only = operation.kind.shape_only
            valued = {s for i, s in enumerate(inputs) if i not in shape_only}
            shrinks = {s for s in (*inputs, *outputs) if s in readers and s not in fully}
            wanted = tuple(s in readers for s in outputs)
            step = Step(operation, inputs, outputs, wanted, tuple(sorted(releases)), tuple(sorted(shrinks)))
            self.steps.append(step)
            readers.update(inputs)
            fully.update(valued)
        self.steps.reverse()

    def _find_shared_memory(self) -> None:
        """Which results must be copied so that nobody outside holds memory of the graph, or of another result."""
        roots = [_root(t) for t in self.targets]
        self._copied_targets = tuple(r.op.kind in _SOURCES or r in roots[:i] for i, r in enumerate(roots))
        self._copied_commits = tuple(
            _root(value).op.kind in _SOURCES or _root(value) in roots for _, _, value in self._commits
        )

    # ---- specialization: types, kernels, constants ------------------------------------------------------------

    def specialize(self, xp: Namespace, device: Any, feed_types: Sequence[ShapedType]) -> Specialization:
        """The plan for feeds of these types; made once per combination, and the oldest forgotten."""
        key = (xp.__name__, str(device), tuple(feed_types))
        with self._lock:
            found = self._specializations.get(key)
            if found is None:
                found = self._specializations[key] = self._specialize(xp, device, feed_types)
                if len(self._specializations) > _SPECIALIZATIONS:
                    self._specializations.popitem(last=False)
            else:
                self._specializations.move_to_end(key)
        return found

    def _specialize(self, xp: Namespace, device: Any, feed_types: Sequence[ShapedType]) -> Specialization:
        types = self.infer(feed_types)
        steps: list[tuple[Any, ...]] = []
        choices: list[Choice] = []
        steady = self._steady_slots()
        for step, store in zip(self.steps, self._stores, strict=True):
            operation = step.operation
            op, attrs = operation.kind, operation.attrs
            choice = choose(op, [types[t] for t in operation.input_tensors], attrs, xp, step.wanted, device)
            choices.append(choice)
            check = _bound(op.check_values, attrs) if op.check_values else None
            single = step.outputs[0] if len(step.outputs) == 1 else None
            kernel = choice.kernel
            if hasattr(kernel, "keeping"):
                kernel = kernel.keeping([slot in steady for slot in step.inputs], store)
            steps.append((kernel, step.inputs, single, step.outputs, step.releases, step.shrinks, check))
        return Specialization(xp, device, steps, choices, types, self._constants(xp, device))

    def _steady_slots(self) -> set[int]:
        """Those of constants and variables: nobody outside holds their arrays, and an assignment brings a new one."""
        constants = {self._slot_of[o.output_tensors[0]] for o in self.operations if o.kind is CONSTANT}
        return constants | {slot for _, slot in self._variables}

    def _constants(self, xp: Namespace, device: Any) -> list[tuple[int, Array]]:
        for other in self._specializations.values():
            if other.xp is xp and str(other.device) == str(device):
                return other.constants
        return [
            (self._slot_of[o.output_tensors[0]], _arrays.convert(o.attrs["value"], xp, device))
            for o in self.operations
            if o.kind is CONSTANT
        ]

    def infer(self, feed_types: Sequence[ShapedType]) -> dict[Tensor, ShapedType]:
        """The type of every tensor of the plan for feeds of these types."""
        types = dict(zip(self.feeds, feed_types, strict=True))
        for operation in self.operations:
            if operation.kind in _SOURCES:
                types.setdefault(operation.output_tensors[0], operation.output_tensors[0].type)
                continue
            inferred = operation.kind.infer_all([types[t] for t in operation.input_tensors], operation.attrs)
            types.update(zip(operation.output_tensors, inferred, strict=True))
        return types

    # ---- running ----------------------------------------------------------------------------------------------

    def run(
        self, feeds: Sequence[Array], default: tuple[Namespace, Any], types: Sequence[ShapedType] | None = None
    ) -> list[Array]:
        """The targets' values.

        Args:
            feeds: arrays.
            default: the library and device of a run that is fed nothing.
            types: the types of the feeds, when they are not those of the arrays.
        """
        xp, device = default
        if feeds:
            xp, device = check_together("run", feeds), _arrays.device_of(feeds[0])
        chosen = self.specialize(xp, device, [type_of(a) for a in feeds] if types is None else types)
        with np.errstate(all="ignore"):  # infinities and NaN are results, as in MPSGraph, torch and JAX
            return self._run(chosen, feeds)

    def _run(self, chosen: Specialization, feeds: Sequence[Array]) -> list[Array]:
        xp, device = chosen.xp, chosen.device
        values: list[Any] = [None] * self._count
        values[: len(feeds)] = feeds
        for slot, constant in chosen.constants:
            values[slot] = constant
        variables = self.program.variables
        for variable, slot in self._variables:
            value = values[slot] = _arrays.convert(variables[variable], xp, device)
            # Kept in the new place, so that the next run with such feeds moves nothing; but not where the library
            # narrowed it, as JAX does with float64.
            if _arrays.dtype_of(value) == variable.attrs["type"].dtype:
                variables[variable] = value
        if self._seeds and any(_arrays.is_traced(a) for a in feeds):
            raise GraphError(
                "run: random ops must have a seed where the run is traced, got one without: "
                "it would draw once, and every later call would repeat it"
            )
        for slot in self._seeds:
            # A NumPy number in every library: random ops draw with NumPy (see ops/random.py).
            values[slot] = np.asarray(self.program.random.integers(2**62, dtype=np.int64))
        for kernel, inputs, single, outputs, releases, shrinks, check in chosen.steps:
            arguments = [values[i] for i in inputs]
            if check is not None:
                check(*arguments)
            result = kernel(xp, *arguments)
            if single is not None:
                values[single] = result if type(result) is not tuple else result[0]
            else:
                for slot, value in zip(outputs, result, strict=True):
                    values[slot] = value
            for slot in releases:
                values[slot] = None
            for slot in shrinks:
                values[slot] = _ShapeOnly(values[slot])
        self._check_commits(feeds, values)
        for (variable, slot, _), is_copied in zip(self._commits, self._copied_commits, strict=True):
            value = _arrays.detached(values[slot])  # a variable must not hold on to torch's record of the run
            variables[variable] = _arrays.copy(value) if is_copied else value
        return [
            _finished(values[slot], is_copied)
            for slot, is_copied in zip(self._target_slots, self._copied_targets, strict=True)
        ]

    def _check_commits(self, feeds: Sequence[Array], values: Sequence[Any]) -> None:
        """Refuse to store what a transformation traces: it is no value outside, and is traced only once."""
        for variable, slot, _ in self._commits:
            if any(_arrays.is_transformed(a) for a in (values[slot], *feeds)):
                raise GraphError(
                    f"run: variables must not be assigned where the run is traced, got an assignment to "
                    f"{variable.name}: make the new value a target, and assign it outside"
                )


# What an operation of a block must not do: it runs more often than its graph, or not at all.
NOT_IN_BLOCKS = {
    "variable": "make variables (make them before it)",
    "read_variable": "read variables (read them before it)",
    "assign": "assign variables (assign its results)",
    "run_seed": "draw without a seed (give a seed, or pass a state on)",
}


@dataclass(frozen=True, eq=False)
class Block:
    """A program that an operation runs: an attribute of control flow."""

    program: Program
    feeds: tuple[Tensor, ...]
    targets: tuple[Tensor, ...]

    @cached_property
    def plan(self) -> Plan:
        """How it runs."""
        return Plan(self.program, self.feeds, self.targets)

    def infer(self, types: Sequence[ShapedType]) -> list[ShapedType]:
        """The types of the results for feeds of these types."""
        for feed, given in zip(self.feeds, types, strict=True):
            if given.dtype != feed.dtype:
                raise GraphError(f"verify: feeds of blocks must have the dtype of {feed!r}, got {given!r}")
        inferred = self.plan.infer(types)
        return [inferred[t] for t in self.targets]

    def types_of(self, feeds: Sequence[Array]) -> list[ShapedType]:
        """The sizes of arrays, with the dtypes that were declared (JAX may keep int64 in 32 bits)."""
        return [ShapedType.trusted(tuple(a.shape), t.dtype) for t, a in zip(self.feeds, feeds, strict=True)]

    def run(self, feeds: Sequence[Array], place: tuple[Namespace, Any]) -> list[Array]:
        """The results, in a library and on a device."""
        return self.plan.run(feeds, place, self.types_of(feeds))


class _ShapeOnly:
    """What is left of an array when only its shape will be asked for."""

    __slots__ = ("device", "dtype", "shape")

    def __init__(self, array: Any) -> None:
        self.shape, self.dtype, self.device = array.shape, array.dtype, _arrays.device_of(array)


def _finished(value: Any, is_copied: bool) -> Array:
    if isinstance(value, np.generic):  # NumPy gives scalars for arrays of rank 0
        return np.asarray(value)
    return _arrays.copy(value) if is_copied else value


def _bound(check: Any, attrs: Any) -> Any:
    return lambda *inputs: check(*inputs, **attrs)


def _root(tensor: Tensor) -> Tensor:
    """The tensor whose memory this one may share."""
    while tensor.op.kind.is_view:
        tensor = tensor.op.input_tensors[0]
    return tensor


def needed(program: Program, roots: Iterable[Operation]) -> list[Operation]:
    """The operations of the program that are roots, or that roots need, in program order."""
    found: set[Operation] = set()
    waiting = list(roots)
    while waiting:
        operation = waiting.pop()
        if operation.graph is program and operation not in found:
            found.add(operation)
            waiting.extend(t.op for t in operation.input_tensors)
            waiting.extend(operation.control_dependencies)
    return sorted(found, key=lambda o: o.position)
