"""What the three descriptors share: checked fields, refused misspellings, snapshots."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any, TypeVar

import numpy as np

from .. import _arrays
from .._errors import ArgumentError, ArgumentTypeError
from .activations import as_activation

D = TypeVar("D", bound="Descriptor")


class Descriptor:
    """Base of the descriptors: mutable dataclasses whose fields are checked when they are set.

    An op takes a snapshot when it is made; later changes to the descriptor do not reach it.
    """

    # The name that messages use; fields with activations; fields with one of a few words.
    _op = ""
    _activations: tuple[str, ...] = ()
    _choices: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - a constant of the subclass, not a field

    def __setattr__(self, field: str, value: Any) -> None:
        where = f"{type(self).__name__}.{field}"
        names = [f.name for f in dataclasses.fields(self)]  # type: ignore[arg-type]
        if field not in names:
            close = difflib.get_close_matches(_snake(field), names, n=1, cutoff=0.6)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ArgumentError(f"{where}: fields are {', '.join(names)}, got {field!r}{hint}")
        if field in self._activations:
            value = as_activation(value, where)
        elif field in self._choices:
            if not isinstance(value, str) or value not in self._choices[field]:
                raise ArgumentError(f"{where}: must be one of {', '.join(self._choices[field])}, got {value!r}")
        elif not isinstance(value, bool | np.bool_):
            raise ArgumentTypeError(f"{where}: must be True or False, got {value!r}")
        else:
            value = bool(value)
        object.__setattr__(self, field, value)

    def copy(self: D) -> D:
        """A descriptor with the same fields."""
        return dataclasses.replace(self)  # type: ignore[type-var]

    @property
    def directions(self) -> int:
        """D of the contract: 2 if bidirectional, else 1."""
        return 2 if self.bidirectional else 1  # type: ignore[attr-defined]


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


# Snapshots by type and fields: nobody changes them, so that equal ones may be one.
_snapshots: dict[Any, Any] = {}


def snapshot(op: str, given: Any, wanted: type[D]) -> D:
    """A copy of the descriptor that a call was given, or the default one. Not to be changed.

    Raises:
        ArgumentTypeError: when it is the descriptor of another op, or something else.
    """
    if given is not None and type(given) is not wanted:
        raise ArgumentTypeError(f"{op}: descriptor must be a {wanted.__name__} or None, got {type(given).__name__}")
    if _arrays.is_compiling():  # torch.compile cannot guard a dictionary with such keys
        return wanted() if given is None else given.copy()
    key = wanted if given is None else (wanted, *vars(given).values())
    found: D | None = _snapshots.get(key)
    if found is None:
        if len(_snapshots) > 1000:
            _snapshots.clear()
        found = _snapshots[key] = wanted() if given is None else given.copy()
    return found
