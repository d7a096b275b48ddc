"""Descriptors as text: what an op of torch can take, keep in an exported program, and read again.

The text is JSON of the fields that differ from the default, in the descriptor's order: `{"bidirectional": true}`.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import torch

from .._errors import ArgumentError, RecurraError
from ..ops._descriptor import Descriptor, snapshot
from ..ops.activations import ParametricActivation

_texts: dict[Any, str] = {}
_descriptors: dict[tuple[str, str], Descriptor] = {}


def text_of(descriptor: Descriptor) -> str:
    """The text of a descriptor."""
    if torch.compiler.is_compiling():
        return _written(descriptor)
    key = (type(descriptor), *vars(descriptor).values())
    found = _texts.get(key)
    if found is None:
        if len(_texts) > 1000:
            _texts.clear()
        found = _texts[key] = _written(descriptor)
    return found


def _written(descriptor: Descriptor) -> str:
    # No json.dumps here: torch.compile follows this function.
    default = type(descriptor)()
    names = [f.name for f in dataclasses.fields(descriptor)]  # type: ignore[arg-type]
    given = [(n, getattr(descriptor, n)) for n in names if getattr(descriptor, n) != getattr(default, n)]
    return "{" + ", ".join([f'"{name}": {_plain(value)}' for name, value in given]) + "}"


def _plain(value: Any) -> str:
    if isinstance(value, ParametricActivation):
        return "[" + ", ".join([f'"{value.kind}"', *[repr(p) for p in value.parameters]]) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"'


def descriptor_of(op: str, kind: type[Descriptor], text: str) -> Descriptor:
    """The descriptor that a text means: a snapshot, not to be changed.

    Raises:
        ArgumentError: when the text is none that `text_of` gives.
    """
    found = _descriptors.get((op, text))
    if found is None:
        if len(_descriptors) > 1000:
            _descriptors.clear()
        found = _descriptors[op, text] = _read(op, kind, text)
    return found


def _read(op: str, kind: type[Descriptor], text: str) -> Descriptor:
    try:
        fields = json.loads(text)
        return snapshot(op, kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}), kind)
    except (ValueError, TypeError, AttributeError, RecurraError) as error:
        raise ArgumentError(
            f"{op}: descriptor must be JSON of fields of {kind.__name__}, got {text!r} ({error})"
        ) from None


def with_training(op: str, kind: type[Descriptor], text: str) -> str:
    """The text of the same descriptor with `training`."""
    return text_of(dataclasses.replace(descriptor_of(op, kind, text), training=True))  # type: ignore[type-var]
