"""Rules of inference that the generic ops share, on top of `_shapes`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _arrays
from .._dtypes import bool_
from .._errors import ArgumentTypeError, DTypeError, ShapeError
from .._ir import Tensor, type_of
from .._op import UNKNOWN, ShapedType
from . import _shapes

FLOAT = ("float",)
REAL = ("float", "int", "uint")
ANY = ("float", "int", "uint", "bool", "complex")


def same_type(name: str, kinds: Sequence[str]) -> Callable[..., ShapedType]:
    """Inference of an op whose inputs broadcast, have one dtype of these kinds, and give it."""

    def infer(*types: ShapedType, **_: Any) -> ShapedType:
        _shapes.same_dtype(name, *types)
        _shapes.kind_of(name, types[0], kinds)
        if len(types) == 1:
            return types[0]
        return ShapedType.trusted(_shapes.broadcast(name, *[t.shape for t in types]), types[0].dtype)

    return infer


def truth_value(name: str, kinds: Sequence[str]) -> Callable[..., ShapedType]:
    """The same, giving booleans."""
    infer_same = same_type(name, kinds)

    def infer(*types: ShapedType) -> ShapedType:
        return ShapedType.trusted(infer_same(*types).shape, bool_)

    return infer


def given_type(op_name: str, what: str, value: Any) -> ShapedType:
    """The type of a graph tensor or an array, for functions that look at it before they build."""
    if isinstance(value, Tensor):
        return value.type
    if not _arrays.is_array(value):
        raise ArgumentTypeError(f"{op_name}: {what} must be a graph tensor or an array, got {value!r}")
    return type_of(value)


def fits_into(op_name: str, what: str, small: ShapedType, whole: ShapedType) -> None:
    """Refuse an input that has another dtype than the main one, or does not broadcast to its shape."""
    if small.dtype != whole.dtype:
        raise DTypeError(f"{op_name}: {what} must have the dtype of the input, {whole.dtype}, got {small.dtype}")
    both = _shapes.broadcast(op_name, small.shape, whole.shape)
    if len(both) > len(whole.shape) or any(n not in (UNKNOWN, b) for n, b in zip(whole.shape, both, strict=True)):
        raise ShapeError(
            f"{op_name}: {what} must broadcast to the shape of the input, {list(whole.shape)}, got {list(small.shape)}"
        )
