"""Descriptors as text: what an op of torch can take, keep in an exported program, and read again.

The text is JSON of the fields that differ from the default, in the descriptor's order: `{"bidirectional": true}`.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from .._errors import ArgumentError, RecurraError
from ..ops._descriptor import Descriptor, snapshot
from ..ops.activations import ParametricActivation

_texts: dict[Any, str] = {}
_descriptors: dict[tuple[str, str], Descriptor] = {}


def text_of(descriptor: Descriptor) -> str:
    """The text of a descriptor."""
    key = (type(descriptor), *vars(descriptor).values())
    found = _texts.get(key)
    if found is None:
        if len(_texts) > 1000:
            _texts.clear()
        found = _texts[key] = _written(descriptor)
    return found


def _written(descriptor: Descriptor) -> str:
    default = type(descriptor)()
    fields = {f.name: getattr(descriptor, f.name) for f in dataclasses.fields(descriptor)}  # type: ignore[arg-type]
    return json.dumps({k: _plain(v) for k, v in fields.items() if v != getattr(default, k)})


def _plain(value: Any) -> Any:
    if isinstance(value, ParametricActivation):
        return [value.kind, *value.parameters]
    return value if isinstance(value, bool) else str(value)


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
