"""Attributes made plain: what a caller may write, as the JSON-able value that a node keeps."""

from __future__ import annotations

from typing import Any

from .. import _arrays
from .._errors import ArgumentTypeError
from .._ir import Tensor
from .._op import Shape


def shape_given(op: str, x: Any) -> Shape:
    """The shape of a graph tensor or an array.

    Raises:
        ArgumentTypeError: when `x` is neither.
    """
    if isinstance(x, Tensor) or _arrays.is_array(x):
        return tuple(x.shape)
    raise ArgumentTypeError(f"{op}: inputs must be graph tensors or arrays, got {x!r}")


def integer(op: str, what: str, value: Any) -> int:
    """A plain integer."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentTypeError(f"{op}: {what} must be an integer, got {value!r}")
    return int(value)


def integers(op: str, what: str, values: Any) -> tuple[int, ...]:
    """Plain integers; a single one makes a tuple of one."""
    if hasattr(values, "__index__"):
        return (integer(op, what, values),)
    try:
        return tuple(integer(op, what, value) for value in values)
    except TypeError:
        raise ArgumentTypeError(f"{op}: {what} must be integers, got {values!r}") from None


def tensors_given(op: str, tensors: Any) -> tuple[Any, ...]:
    """A list or tuple of at least one tensor, array or number."""
    if not isinstance(tensors, tuple | list):
        raise ArgumentTypeError(f"{op}: tensors must be a list or a tuple, got {type(tensors).__name__}")
    if not tensors:
        raise ArgumentTypeError(f"{op}: tensors must hold at least one, got none")
    return tuple(tensors)
