"""Ops about where elements are: shapes, coordinates, bands, non-zero places, one-hot codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _arrays
from .._arrays import Array, Namespace
from .._dtypes import as_dtype, bool_, int32
from .._errors import ArgumentError, ArgumentTypeError, ShapeError, UnsupportedError
from .._ir import apply, number
from .._op import OPS, UNKNOWN, Op, ShapedType, as_shape, register
from ._attributes import integer
from ._shapes import axis_of
from .elementwise import no_gradient
from .indexing import index_type
from .movement import broadcast


def shape_of(x: Any, name: str | None = None) -> Any:
    """The sizes of `x` as an int32 tensor of rank 1."""
    return apply("shape_of", x, name=name)


def coordinate_along_axis(
    axis: int, shape: Any = None, like: Any = None, graph: Any = None, name: str | None = None
) -> Any:
    """An int32 tensor whose element at [i0, i1, …] is i_axis; of a static shape, or with the shape of `like`.

    With `shape`, the tensor belongs to `graph`; without a graph it is a NumPy array.

    Example:
        >>> coordinate_along_axis(1, shape=(2, 3)).tolist()
        [[0, 1, 2], [0, 1, 2]]
    """
    axis = integer("coordinate_along_axis", "axis", axis)
    if (shape is None) == (like is None):
        raise ArgumentTypeError("coordinate_along_axis: one of shape and like must be given, got both or none")
    if like is not None:
        return apply("coordinate_along_axis", like, axis=axis, name=name)
    sizes = as_shape(shape, "coordinate_along_axis")
    if UNKNOWN in sizes:
        raise ShapeError(f"coordinate_along_axis: shape must be known, got {list(sizes)}; give like instead")
    axis = axis_of("coordinate_along_axis", axis, len(sizes))
    line = _line(sizes, axis)
    return broadcast(line if graph is None else graph.constant(line), sizes, name=name)


def band_part(x: Any, lower: int, upper: int, name: str | None = None) -> Any:
    """The matrices of the last two axes with only `lower` diagonals below the main one and `upper` above it kept.

    A negative number keeps all; everything else becomes 0. `band_part(x, -1, 0)` is the lower triangle.
    """
    lower, upper = integer("band_part", "lower", lower), integer("band_part", "upper", upper)
    return apply("band_part", x, lower=lower, upper=upper, name=name)


def non_zero_indices(x: Any, name: str | None = None) -> Any:
    """The places of the non-zero elements, in row-major order: int32 [how many, rank].

    How many is known only from the values, so this cannot run where those are traced (inside `jax.jit`).
    """
    return apply("non_zero_indices", x, name=name)


def one_hot(
    indices: Any,
    depth: int,
    axis: int = -1,
    dtype: Any = "float32",
    on_value: float = 1,
    off_value: float = 0,
    name: str | None = None,
) -> Any:
    """A new axis of size `depth` with `on_value` at the index and `off_value` elsewhere.

    An index outside of [0, depth) gives `off_value` throughout.

    Example:
        >>> import numpy as np
        >>> one_hot(np.asarray([2, 0, 7]), 3, dtype="int32").tolist()
        [[0, 0, 1], [1, 0, 0], [0, 0, 0]]
    """
    depth, axis = integer("one_hot", "depth", depth), integer("one_hot", "axis", axis)
    kind = as_dtype(dtype)
    if kind == bool_ and on_value in (0, 1) and off_value in (0, 1):
        on_value, off_value = bool(on_value), bool(off_value)
    attrs = {"depth": depth, "axis": axis, "dtype": kind, "on_value": on_value, "off_value": off_value}
    return apply("one_hot", indices, name=name, **attrs)


def _shape_of(xp: Namespace, x: Array) -> Array:
    return _arrays.constant(xp, np.asarray(x.shape, dtype=np.int32), _arrays.device_of(x))


def _line(shape: Sequence[int], axis: int) -> Any:
    """0, 1, 2, … along one axis, of size 1 along the others."""
    return np.arange(shape[axis], dtype=np.int32).reshape([-1 if k == axis else 1 for k in range(len(shape))])


def _infer_coordinate(like: ShapedType, axis: int) -> ShapedType:
    axis_of("coordinate_along_axis", axis, len(like.shape))
    return ShapedType.trusted(like.shape, int32)


def _coordinate(xp: Namespace, like: Array, axis: int) -> Array:
    shape = tuple(like.shape)
    line = _arrays.constant(xp, _line(shape, axis % len(shape)), _arrays.device_of(like))
    return xp.broadcast_to(line, shape)


def _infer_band(x: ShapedType, lower: int, upper: int) -> ShapedType:
    if len(x.shape) < 2:
        raise ShapeError(f"band_part: input must have rank 2 or more, got {list(x.shape)}")
    return x


def _band_part(xp: Namespace, x: Array, lower: int, upper: int) -> Array:
    if lower >= 0:
        x = xp.triu(x, k=-lower)
    return xp.tril(x, k=upper) if upper >= 0 else x


def _infer_non_zero(x: ShapedType) -> ShapedType:
    if not x.shape:
        raise ShapeError("non_zero_indices: input must have rank 1 or more, got a scalar")
    return ShapedType.trusted((UNKNOWN, len(x.shape)), int32)


def _non_zero(xp: Namespace, x: Array) -> Array:
    if not _arrays.is_readable(x):
        raise UnsupportedError("non_zero_indices: input must have values that can be read, got one under a tracer")
    return _arrays.cast(xp, xp.stack(xp.nonzero(x), axis=-1), int32)


def _infer_one_hot(
    indices: ShapedType, depth: int, axis: int, dtype: str, on_value: float, off_value: float
) -> ShapedType:
    index_type("one_hot", indices)
    if depth < 0:
        raise ArgumentError(f"one_hot: depth must be 0 or more, got {depth}")
    for value in (on_value, off_value):
        number(OPS["one_hot"], value, as_dtype(dtype))
    axis = axis_of("one_hot", axis, len(indices.shape) + 1)
    return ShapedType.trusted((*indices.shape[:axis], depth, *indices.shape[axis:]), as_dtype(dtype))


def _one_hot(
    xp: Namespace, indices: Array, depth: int, axis: int, dtype: str, on_value: float, off_value: float
) -> Array:
    axis %= indices.ndim + 1
    device = _arrays.device_of(indices)
    classes = np.arange(depth, dtype=_arrays.dtype_of(indices).numpy).reshape((-1,) + (1,) * (indices.ndim - axis))
    is_on = xp.expand_dims(indices, axis=axis) == _arrays.constant(xp, classes, device)
    to = as_dtype(dtype)
    if (on_value, off_value) == (1, 0):
        return _arrays.cast(xp, is_on, to)
    on, off = (_arrays.constant(xp, np.asarray(v, dtype=to.numpy), device) for v in (on_value, off_value))
    return xp.where(is_on, on, off)


register(
    Op(
        "shape_of",
        infer=lambda x: ShapedType.trusted((len(x.shape),), int32),
        reference=_shape_of,
        vjp=no_gradient,
        shape_only=frozenset({0}),
    )
)
register(
    Op(
        "coordinate_along_axis",
        infer=_infer_coordinate,
        reference=_coordinate,
        vjp=no_gradient,
        shape_only=frozenset({0}),
    )
)
register(
    Op(
        "band_part",
        infer=_infer_band,
        reference=_band_part,
        vjp=lambda inputs, outputs, g, lower, upper: (band_part(g[0], lower, upper),),
        is_view=True,
    )
)
register(Op("non_zero_indices", infer=_infer_non_zero, reference=_non_zero, vjp=no_gradient))
register(Op("one_hot", infer=_infer_one_hot, reference=_one_hot, vjp=no_gradient))
