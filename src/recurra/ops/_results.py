"""Results of the recurrent ops: an ordered sequence of what is there, which also answers by name."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, TypeVar

from .. import _arrays

R = TypeVar("R", bound="Results")


class Results:
    """Base of the result types. A name that is absent from the sequence answers None.

    The instances are named tuples, so torch and JAX see through them (`jit`, `tree_map`, …).
    """

    def __repr__(self) -> str:
        parts = ", ".join(f"{n}={getattr(self, n)!r}" for n in self._fields)  # type: ignore[attr-defined]
        return f"{type(self).__name__}({parts})"

    def __reduce__(self) -> Any:
        return results, (type(self)._kind, self._fields, tuple(self))  # type: ignore[attr-defined, arg-type]


def results(kind: type[R], names: tuple[str, ...], values: tuple[Any, ...]) -> R:
    """A result of type `kind` that holds these values under these names."""
    if _arrays.is_compiling():  # torch.compile cannot guard a dictionary with such keys
        return _new_type(kind, names)(*values)  # type: ignore[no-any-return]
    made = _types.get((kind, names))
    if made is None:
        made = _types[kind, names] = _new_type(kind, names)
    return made(*values)  # type: ignore[no-any-return]


def selected(kind: type[R], names: tuple[str, ...], values: tuple[Any, ...], wanted: tuple[bool, ...]) -> R:
    """The same with the values that are wanted."""
    if False not in wanted:
        return results(kind, names, values)
    kept = [i for i, is_wanted in enumerate(wanted) if is_wanted]
    return results(kind, tuple([names[i] for i in kept]), tuple([values[i] for i in kept]))


_types: dict[Any, Any] = {}


def _new_type(kind: type[Any], names: tuple[str, ...]) -> Any:
    fields = namedtuple(kind.__name__, names)  # type: ignore[misc]
    # namedtuple's own __repr__ and __reduce__ would come first.
    own = {"__repr__": Results.__repr__, "__reduce__": Results.__reduce__}
    return type(kind.__name__, (fields, kind), {"__slots__": (), "__module__": kind.__module__, "_kind": kind, **own})


class SingleGateRNNResults(Results):
    """h [T, N, D*H], and when training z [T, N, D*H], the pre-activation."""

    h: Any = None
    z: Any = None


class LSTMResults(Results):
    """h [T, N, D*H]; the cell c; the training state z [T, N, D*4H], the activated gates in gate order."""

    h: Any = None
    c: Any = None
    z: Any = None


class GRUResults(Results):
    """h [T, N, D*H], and when training z [T, N, D*3H], the activated gates in gate order."""

    h: Any = None
    z: Any = None


class SingleGateRNNGradients(Results):
    """The gradients of the inputs that were given, in Apple's order."""

    source: Any = None
    recurrent_weight: Any = None
    input_weight: Any = None
    bias: Any = None
    init_state: Any = None


class LSTMGradients(Results):
    """The gradients of the inputs that were given, in Apple's order."""

    source: Any = None
    recurrent_weight: Any = None
    input_weight: Any = None
    bias: Any = None
    peephole: Any = None
    init_state: Any = None
    init_cell: Any = None


class GRUGradients(Results):
    """The gradients of the inputs that were given, in Apple's order."""

    source: Any = None
    recurrent_weight: Any = None
    input_weight: Any = None
    bias: Any = None
    init_state: Any = None
    secondary_bias: Any = None
