"""The graph that a person builds: placeholders, variables, the recurrent ops, gradients, running and compiling."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import wraps
import inspect
import threading
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from . import _arrays, _autodiff
from ._arrays import Array
from ._errors import ArgumentError, ArgumentTypeError, GradientError, GraphError
from ._executable import (
    Executable,
    as_type,
    check_fit,
    checked_feed,
    default_place,
    only_placeholders,
    worker,
)
from ._ir import ASSIGN, PLACEHOLDER, READ, VARIABLE, Operation, Program, Tensor, lift, own_array, type_of
from ._op import UNKNOWN, ShapedType
from ._plan import Plan
from .ops import control_flow, ones_like, zeros_like
from .ops.gru import gru, gru_gradients
from .ops.lstm import lstm, lstm_gradients
from .ops.rnn import single_gate_rnn, single_gate_rnn_gradients

P = ParamSpec("P")
R = TypeVar("R")
_PLANS = 64  # combinations of feeds and targets that a graph remembers


def _method(function: Callable[P, R]) -> Callable[Concatenate[Graph, P], R]:
    """A function on a source as a method of the graph that the source belongs to, or becomes a constant of."""

    @wraps(function)
    def method(self: Graph, *args: P.args, **kwargs: P.kwargs) -> R:
        where = f"{function.__name__}: source"
        if args:
            args = (self._input(args[0], where), *args[1:])  # type: ignore[assignment]
        elif "source" in kwargs:
            kwargs["source"] = self._input(kwargs["source"], where)
        return function(*args, **kwargs)

    own = inspect.signature(function)
    self_ = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = own.replace(parameters=[self_, *own.parameters.values()])  # type: ignore[attr-defined]
    return method  # type: ignore[return-value]


class Graph(Program):
    """A computation built from tensors, as MPSGraph.

    Operations are added by the methods here, by the functions of `recurra.ops`, and by operators on tensors. They are
    checked when they are added. `run` computes some of them; `compile` keeps what that takes.

    Example:
        >>> import numpy as np, recurra
        >>> g = recurra.Graph()
        >>> x = g.placeholder([None, 3])
        >>> w = g.variable(np.ones((3, 2), np.float32))
        >>> y = x @ w
        >>> g.run({x: np.ones((4, 3), np.float32)}, y).shape
        (4, 2)
    """

    def __init__(self, *, seed: int | None = None) -> None:
        super().__init__()
        self._plans: OrderedDict[Any, Plan] = OrderedDict()
        self._lock = threading.Lock()  # run_async and other threads look plans up too
        if seed is not None:
            self.seed(seed)

    def seed(self, seed: int) -> None:
        """Make the random ops that were given no seed repeat: the same draws, run by run, from here on."""
        if isinstance(seed, bool) or not hasattr(seed, "__index__") or seed < 0:
            raise ArgumentError(f"Graph: seed must be an integer of 0 or more, got {seed!r}")
        self.random = np.random.default_rng(int(seed))

    # ---- variables --------------------------------------------------------------------------------------------

    @property
    def placeholder_tensors(self) -> list[Tensor]:
        """The placeholders, in the order they were made."""
        return [o.output_tensors[0] for o in self.operations if o.kind is PLACEHOLDER]

    @property
    def variable_tensors(self) -> list[Tensor]:
        """The variables, in the order they were made."""
        return [o.output_tensors[0] for o in self.variables]

    def read_variable(self, variable: Tensor, name: str | None = None) -> Tensor:
        """The variable's value at this point of the run: after the assignments that were made before this read."""
        return self.add(READ, (self._variable(variable, "read_variable: variable"),), {}, name).output_tensors[0]

    def assign(self, variable: Tensor, value: Any, name: str | None = None) -> Operation:
        """Give the variable a new value. Happens in the runs that target the returned operation, or depend on it.

        The new value is stored when the run succeeds; a run that fails changes nothing.
        """
        variable = self._variable(variable, "assign: variable")
        if not isinstance(value, Tensor) and not _arrays.is_array(value):
            value = own_array(value, variable.dtype, "assign: value")
        return self.add(ASSIGN, (variable, lift(self, value)), {}, name)

    def apply_sgd(self, learning_rate: Any, variable: Tensor, gradient: Tensor, name: str | None = None) -> Operation:
        """Assign `variable - learning_rate * gradient` to the variable."""
        return self.assign(variable, self._variable(variable, "apply_sgd: variable") - learning_rate * gradient, name)

    def variable_from_tensor(self, value: Any, name: str | None = None) -> Tensor:
        """A variable that begins with a constant tensor's value."""
        tensor = self.own_tensor(value, "variable_from_tensor: value")
        if "value" not in tensor.op.attrs:
            raise GraphError(
                f"variable_from_tensor: value must be a constant, got {tensor!r}, made by {tensor.op.kind.name}"
            )
        return self.variable(tensor.op.attrs["value"], name)

    def _variable(self, value: object, where: str) -> Tensor:
        tensor = self.own_tensor(value, where)
        if tensor.op.kind is not VARIABLE:
            raise GraphError(f"{where} must be a variable, got {tensor!r}, made by {tensor.op.kind.name}")
        return tensor

    def state_dict(self) -> dict[str, Array]:
        """Copies of the variables' values by name.

        Raises:
            GraphError: two variables have one name.
        """
        names = self._names_of_variables()
        return {name: _arrays.copy(self.variables[o]) for name, o in names.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the variables by name: all of them, and nothing else. Nothing changes if one does not fit.

        Raises:
            GraphError: names are missing or unknown.
            ShapeError, DTypeError: a value does not fit its variable.
        """
        if not isinstance(state, Mapping):
            raise ArgumentTypeError(f"load_state_dict: state must be a dictionary from names to arrays, got {state!r}")
        names = self._names_of_variables()
        missing, unknown = sorted(names.keys() - state.keys()), sorted(state.keys() - names.keys(), key=repr)
        if missing or unknown:
            raise GraphError(
                f"load_state_dict: state must name every variable and nothing else, got none for {missing} "
                f"and unknown {unknown}"
            )
        new = {}
        for name, operation in names.items():
            what, wanted = f"load_state_dict: the value of {name}", operation.attrs["type"]
            value = own_array(state[name], None if _arrays.is_array(state[name]) else wanted.dtype, what)
            check_fit(wanted, type_of(value), what)
            new[operation] = value
        self.variables.update(new)

    def _names_of_variables(self) -> dict[str, Operation]:
        names = {o.name: o for o in self.variables}
        if len(names) < len(self.variables):
            seen = [o.name for o in self.variables]
            twice = sorted({n for n in seen if seen.count(n) > 1})
            raise GraphError(f"state_dict: variables must have names of their own, got two named {twice[0]!r}")
        return names

    # ---- gradients --------------------------------------------------------------------------------------------

    def gradients(self, of: Tensor, with_: Sequence[Tensor] | Tensor, name: str | None = None) -> dict[Tensor, Tensor]:
        """d of / d tensor for every tensor of `with_`, as further tensors of this graph.

        A primary tensor with several elements counts as their sum. A tensor that `of` does not depend on has a
        gradient of zeros.

        Args:
            of: the primary tensor, floating.
            with_: tensors, floating; variables, placeholders, constants or intermediate results.
            name: a prefix for the names of the results.

        Raises:
            GradientError: an op on the way has no gradient (the mask of a recurrent op never has one).
        """
        of = self.own_tensor(of, "gradients: of")
        tensors = self._tensors((with_,) if isinstance(with_, Tensor) else with_, "gradients: with_")
        for argument, tensor in (("of", of), *(("with_", t) for t in tensors)):
            if not tensor.dtype.is_float:
                raise GradientError(f"gradients: {argument} must be floating, got {tensor!r}")
        # Where the shape is known, the seed does not make the primary itself run.
        seed = self.constant(1, shape=of.shape, dtype=of.dtype) if of.type.is_static else ones_like(of)
        found = _autodiff.gradients(self, [of], [seed], tensors)
        results = {t: zeros_like(t) if g is None else g for t, g in zip(tensors, found, strict=True)}
        if name is not None:
            for tensor, gradient in results.items():
                gradient.op.name = f"{name}/{tensor.name}"
        return results

    # ---- running ----------------------------------------------------------------------------------------------

    def run(
        self,
        feeds: Mapping[Tensor, Any],
        targets: Tensor | Sequence[Tensor] = (),
        target_operations: Sequence[Operation] = (),
        *,
        results: dict[Tensor, Any] | None = None,
    ) -> Any:
        """Compute targets once.

        Args:
            feeds: arrays by placeholder, all of one library; it decides the library of the results.
            targets: a tensor, or several.
            target_operations: operations, such as assignments, that shall happen too.
            results: a dictionary that is filled with the targets' values as well.

        Returns:
            An array for a single tensor; a list of arrays in the order of the targets otherwise.

        Raises:
            GraphError: feeds are missing or unknown, or targets are of another graph.
            ShapeError, DTypeError: a feed does not fit its placeholder.
        """
        if not isinstance(feeds, Mapping):
            raise ArgumentTypeError(
                f"run: feeds must be a dictionary from placeholders to arrays, got {type(feeds).__name__}"
            )
        wanted, is_single, operations = self._targets(targets, target_operations, "run")
        for tensor in feeds:
            self.own_tensor(tensor, "run: feeds")
        if not isinstance(results, dict | None):
            raise ArgumentTypeError(f"run: results must be a dictionary or None, got {type(results).__name__}")
        plan = self._plan(tuple(feeds), wanted, operations)
        arrays = [checked_feed(t, t.type, a) for t, a in feeds.items()]
        values = plan.run(arrays, default_place(plan) if not arrays else (None, None))
        if results is not None:
            results.update(zip(wanted, values, strict=True))
        return values[0] if is_single else values

    def run_async(
        self,
        feeds: Mapping[Tensor, Any],
        targets: Tensor | Sequence[Tensor] = (),
        target_operations: Sequence[Operation] = (),
    ) -> Future[Any]:
        """`run` in the background; runs of one process happen one after the other."""
        return worker().submit(self.run, dict(feeds), targets, target_operations)

    def compile(
        self,
        feeds: Mapping[Tensor, Any] | Sequence[Tensor],
        targets: Tensor | Sequence[Tensor] = (),
        target_operations: Sequence[Operation] = (),
        device: str | None = None,
    ) -> Executable:
        """Keep what some targets need, ready to run, look at and save.

        Args:
            feeds: the placeholders in the order of the executable's inputs, or a dictionary from placeholders to
                `ShapedType`, `(shape, dtype)` or example arrays, which narrows unknown sizes.
            targets, target_operations: as for `run`.
            device: where torch inputs are moved to, such as "cpu" or "cuda:0"; None leaves them where they are.
        """
        wanted, is_single, operations = self._targets(targets, target_operations, "compile")
        tensors = self._tensors(feeds, "compile: feeds")
        if len(set(tensors)) < len(tensors):
            twice = next(t for t in tensors if tensors.count(t) > 1)
            raise GraphError(f"compile: feeds must name each placeholder once, got {twice!r} twice")
        types = [as_type(feeds[t], "compile") if isinstance(feeds, Mapping) else t.type for t in tensors]
        for tensor, type_ in zip(tensors, types, strict=True):
            narrowed = ShapedType.trusted(
                tuple(w if g == UNKNOWN else g for w, g in zip(tensor.shape, type_.shape, strict=False)), type_.dtype
            )
            got = type_ if len(type_.shape) != len(tensor.shape) else narrowed
            check_fit(tensor.type, got, f"compile: the type of {tensor.name}")
        if device is not None and not isinstance(device, str):
            raise ArgumentTypeError(f"compile: device must be a string such as 'cuda:0' or None, got {device!r}")
        plan = self._plan(tensors, wanted, operations)
        return Executable(plan, types, is_single=is_single, device=device)

    def _targets(
        self, targets: Any, operations: Any, where: str
    ) -> tuple[tuple[Tensor, ...], bool, tuple[Operation, ...]]:
        is_single = isinstance(targets, Tensor)
        if isinstance(targets, set | frozenset):
            raise ArgumentTypeError(
                f"{where}: targets must have an order for the results, got a {type(targets).__name__}"
            )
        tensors = self._tensors((targets,) if is_single else targets, f"{where}: targets")
        if not isinstance(operations, Iterable):
            raise ArgumentTypeError(f"{where}: target_operations must be a sequence of operations, got {operations!r}")
        kept = tuple(self.own_operation(o, f"{where}: target_operations") for o in operations)
        if not tensors and not kept:
            raise GraphError(f"{where}: targets must name something to compute, got neither targets nor operations")
        return tensors, is_single, kept

    def _tensors(self, values: Any, where: str) -> tuple[Tensor, ...]:
        if not isinstance(values, Iterable):
            raise ArgumentTypeError(f"{where} must be a sequence of tensors, got {values!r}")
        return tuple(self.own_tensor(v, where) for v in values)

    def _plan(self, feeds: tuple[Tensor, ...], targets: tuple[Tensor, ...], operations: tuple[Operation, ...]) -> Plan:
        key = (feeds, targets, operations)
        with self._lock:
            found = self._plans.get(key)
            if found is None:
                only_placeholders(feeds)
                found = self._plans[key] = Plan(self, feeds, targets, operations)
                if len(self._plans) > _PLANS:
                    self._plans.popitem(last=False)
            else:
                self._plans.move_to_end(key)
        return found

    # ---- control flow -----------------------------------------------------------------------------------------

    cond = control_flow.cond
    while_loop = control_flow.while_loop
    for_loop = control_flow.for_loop

    # ---- the recurrent ops, as methods of the graph ------------------------------------------------------------

    def _input(self, source: Any, where: str) -> Any:
        if isinstance(source, Tensor):
            return self.own_tensor(source, where)
        return lift(self, source) if _arrays.is_array(source) else source

    single_gate_rnn = _method(single_gate_rnn)
    single_gate_rnn_gradients = _method(single_gate_rnn_gradients)
    lstm = _method(lstm)
    lstm_gradients = _method(lstm_gradients)
    gru = _method(gru)
    gru_gradients = _method(gru_gradients)
