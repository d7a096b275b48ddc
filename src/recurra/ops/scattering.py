"""Writing at indices: scatter along an axis, by coordinates, and element by element; the opposites of gather.

`mode` says how an update meets what is there: `"add"`, `"sub"`, `"mul"`, `"div"`, `"min"`, `"max"` or `"set"`. An
index may come several times; with `"set"`, any one of its updates stays, and the gradient goes to all of them. Half
types accumulate in float32. Without data, the result starts as what changes nothing: 0 for add, sub and set, 1 for
mul and div, the largest number for min, the smallest for max.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import math
from typing import Any

import numpy as np

from .. import _arrays
from .._arrays import Array, Namespace
from .._dtypes import DType
from .._errors import ArgumentError, ShapeError
from .._ir import apply, type_of
from .._op import UNKNOWN, NoGradient, Op, Shape, ShapedType, as_shape, register
from ._attributes import integer
from ._shapes import axis_of, kind_of, same_dtype
from ._writes import MODES, full, scatter_rows
from .comparison import zeros_like
from .indexing import (
    along_axis,
    check_coordinates,
    check_indices,
    flat_coordinates,
    flat_elements,
    gather,
    gather_along_axis,
    gather_nd,
    gathered,
    gathered_nd,
    wide_enough,
)

_NUMBERS = ("float", "int", "uint", "complex")
_ORDERED = ("float", "int", "uint")
_DTYPES = {
    **dict.fromkeys(("add", "sub", "mul"), _NUMBERS),
    "div": ("float", "complex"),
    **dict.fromkeys(("min", "max"), _ORDERED),
    "set": (*_NUMBERS, "bool"),
}


def scatter(updates: Any, indices: Any, shape: Any, axis: int = 0, mode: str = "add", name: str | None = None) -> Any:
    """A tensor of this shape into which the slices of `updates` go at `indices` along an axis.

    `updates` has the shape that `gather` would give; -1 in `shape` is the size that `updates` has there.

    Raises:
        ShapeError: when the shapes do not fit.
        ArgumentError: when an index lies outside of the axis, or the mode is unknown.

    Example:
        >>> import numpy as np
        >>> scatter(np.asarray([1.0, 2.0, 4.0]), np.asarray([2, 0, 2]), shape=(4,)).tolist()
        [2.0, 0.0, 5.0, 0.0]
    """
    attrs = {"shape": as_shape(shape, "scatter"), "axis": integer("scatter", "axis", axis), "mode": mode}
    return apply("scatter", updates, indices, name=name, **attrs)


def scatter_with_data(
    data: Any, updates: Any, indices: Any, axis: int = 0, mode: str = "add", name: str | None = None
) -> Any:
    """`data` into which the slices of `updates` go at `indices` along an axis."""
    axis = integer("scatter_with_data", "axis", axis)
    return apply("scatter_with_data", data, updates, indices, axis=axis, mode=mode, name=name)


def scatter_nd(
    updates: Any, indices: Any, shape: Any, batch_dimensions: int = 0, mode: str = "add", name: str | None = None
) -> Any:
    """A tensor of this shape into which the slices of `updates` go at coordinates, as `gather_nd` reads them.

    -1 in `shape` is the size that `updates` has there.
    """
    batch = integer("scatter_nd", "batch_dimensions", batch_dimensions)
    sizes = as_shape(shape, "scatter_nd")
    return apply("scatter_nd", updates, indices, shape=sizes, batch_dimensions=batch, mode=mode, name=name)


def scatter_nd_with_data(
    data: Any, updates: Any, indices: Any, batch_dimensions: int = 0, mode: str = "add", name: str | None = None
) -> Any:
    """`data` into which the slices of `updates` go at coordinates."""
    batch = integer("scatter_nd_with_data", "batch_dimensions", batch_dimensions)
    return apply("scatter_nd_with_data", data, updates, indices, batch_dimensions=batch, mode=mode, name=name)


def scatter_along_axis(
    updates: Any, indices: Any, shape: Any, axis: int, mode: str = "add", name: str | None = None
) -> Any:
    """A tensor of this shape into which each element of `updates` goes: result[indices[i, j], j] for axis 0.

    -1 in `shape` is the size that `updates` has there.
    """
    axis = integer("scatter_along_axis", "axis", axis)
    sizes = as_shape(shape, "scatter_along_axis")
    return apply("scatter_along_axis", updates, indices, shape=sizes, axis=axis, mode=mode, name=name)


def scatter_along_axis_with_data(
    data: Any, updates: Any, indices: Any, axis: int, mode: str = "add", name: str | None = None
) -> Any:
    """`data` into which each element of `updates` goes along an axis.

    Example:
        >>> import numpy as np
        >>> data, updates = np.zeros((2, 3)), np.asarray([[1.0, 2.0, 3.0]])
        >>> scatter_along_axis_with_data(data, updates, np.asarray([[1, 0, 1]]), axis=0).tolist()
        [[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]]
    """
    axis = integer("scatter_along_axis_with_data", "axis", axis)
    return apply("scatter_along_axis_with_data", data, updates, indices, axis=axis, mode=mode, name=name)


# --- what tells the three apart ---


@dataclass(frozen=True)
class _Kind:
    """One way to say where updates go. `where` is its attribute: `axis`, or `batch_dimensions`."""

    name: str
    # counted(op, rank, indices_shape, **where): the axes of the result that indices count.
    counted: Callable[..., Sequence[int]]
    # updates_shape(op, result_type, indices_type, **where)
    updates_shape: Callable[..., Shape]
    # write(xp, out, updates, indices, mode, **where): `out` is fresh and may be overwritten.
    write: Callable[..., Array]
    # read(g, indices, **where): the op that reads where this one writes.
    read: Callable[..., Any]
    # check(op, indices, result_shape, **where)
    check: Callable[..., None]


def _counted_axis(op: str, rank: int, indices: Shape, axis: int) -> Sequence[int]:
    return (axis_of(op, axis, rank),)


def _counted_coordinates(op: str, rank: int, indices: Shape, batch_dimensions: int) -> Sequence[int]:
    return range(batch_dimensions, batch_dimensions + max(indices[-1] if indices else 0, 1))


def _write(xp: Namespace, out: Array, updates: Array, indices: Array, mode: str, axis: int) -> Array:
    shape = tuple(out.shape)
    axis %= len(shape)
    rest = shape[:axis] + shape[axis + 1 :]
    width, index = math.prod(rest), xp.reshape(indices, (-1,))
    if axis:
        out = xp.moveaxis(out, axis, 0)
        updates = xp.moveaxis(updates, tuple(range(axis, axis + indices.ndim)), tuple(range(indices.ndim)))
    rows, values = xp.reshape(out, (shape[axis], width)), xp.reshape(updates, (index.shape[0], width))
    written = xp.reshape(scatter_rows(xp, mode, rows, index, values), (shape[axis], *rest))
    return xp.moveaxis(written, 0, axis) if axis else written


def _write_nd(xp: Namespace, out: Array, updates: Array, indices: Array, mode: str, batch_dimensions: int) -> Array:
    shape = tuple(out.shape)
    cut = batch_dimensions + indices.shape[-1]
    index = flat_coordinates(xp, wide_enough(xp, indices, shape), shape, batch_dimensions)
    width = math.prod(shape[cut:])
    rows, values = xp.reshape(out, (math.prod(shape[:cut]), width)), xp.reshape(updates, (index.shape[0], width))
    return xp.reshape(scatter_rows(xp, mode, rows, index, values), shape)


def _write_along_axis(xp: Namespace, out: Array, updates: Array, indices: Array, mode: str, axis: int) -> Array:
    shape = tuple(out.shape)
    index = flat_elements(xp, wide_enough(xp, indices, shape), shape, axis % len(shape))
    rows, values = xp.reshape(out, (math.prod(shape), 1)), xp.reshape(updates, (index.shape[0], 1))
    return xp.reshape(scatter_rows(xp, mode, rows, index, values), shape)


def _check_axis(op: str, indices: Array, shape: Sequence[int], axis: int) -> None:
    check_indices(op, indices, shape[axis])


def _check_coordinates(op: str, indices: Array, shape: Sequence[int], batch_dimensions: int) -> None:
    check_coordinates(op, indices, shape[batch_dimensions : batch_dimensions + indices.shape[-1]])


_KINDS = (
    _Kind(
        "scatter",
        counted=_counted_axis,
        updates_shape=lambda op, whole, indices, axis: gathered(op, whole, indices, axis, 0),
        write=_write,
        read=gather,
        check=_check_axis,
    ),
    _Kind(
        "scatter_nd",
        counted=_counted_coordinates,
        updates_shape=lambda op, whole, indices, batch_dimensions: gathered_nd(op, whole, indices, batch_dimensions),
        write=_write_nd,
        read=gather_nd,
        check=_check_coordinates,
    ),
    _Kind(
        "scatter_along_axis",
        counted=_counted_axis,
        updates_shape=lambda op, whole, indices, axis: along_axis(op, whole.shape, indices, axis),
        write=_write_along_axis,
        read=gather_along_axis,
        check=_check_axis,
    ),
)


# --- inference ---


def _whole_type(
    kind: _Kind, updates: ShapedType, indices: ShapedType, shape: Sequence[int], **where: Any
) -> ShapedType:
    """The type of a result, with the sizes that are left to `updates` filled in."""
    rank, given = len(shape), updates.shape
    counted = kind.counted(kind.name, rank, indices.shape, **where)
    sizes = []
    for axis, size in enumerate(shape):
        if size == UNKNOWN:
            if axis in counted:
                raise ShapeError(f"{kind.name}: shape must give the sizes that indices count, got {list(shape)}")
            # Axes before those that indices count agree from the front, axes behind them from the end.
            place = axis if axis < counted[0] else axis - rank
            if not -len(given) <= place < len(given):
                raise ShapeError(f"{kind.name}: updates must have the sizes that shape leaves open, got {list(given)}")
            size = given[place]
        sizes.append(size)
    return ShapedType.trusted(tuple(sizes), updates.dtype)


def _check_types(
    kind: _Kind, op: str, whole: ShapedType, updates: ShapedType, indices: ShapedType, mode: Any, **where: Any
) -> None:
    if mode not in MODES:
        raise ArgumentError(f"{op}: mode must be one of {', '.join(MODES)}, got {mode!r}")
    kind_of(f"{op} with mode {mode}", updates, _DTYPES[mode])
    same_dtype(op, whole, updates)
    wanted, given = kind.updates_shape(op, whole, indices, **where), updates.shape
    differ = any(a != b and UNKNOWN not in (a, b) for a, b in zip(given, wanted, strict=False))
    if len(given) != len(wanted) or differ:
        raise ShapeError(f"{op}: updates must have shape {list(wanted)}, got {list(given)}")


def _neutral(mode: str, dtype: DType) -> Any:
    """What any update in this mode replaces; 0 for "set"."""
    if mode in ("mul", "div"):
        return 1
    if mode not in ("min", "max"):
        return 0
    if dtype.is_float:
        return math.inf if mode == "min" else -math.inf
    limits = np.iinfo(dtype.numpy)
    return int(limits.max if mode == "min" else limits.min)


# --- records: inputs are (updates, indices), or (data, updates, indices) ---


def _register(kind: _Kind, name: str) -> None:
    def infer(*types: ShapedType, mode: str, shape: Any = None, **where: Any) -> ShapedType:
        *data, updates, indices = types
        whole = data[0] if data else _whole_type(kind, updates, indices, shape, **where)
        _check_types(kind, name, whole, updates, indices, mode, **where)
        return whole

    def reference(xp: Namespace, *arrays: Array, mode: str, shape: Any = None, **where: Any) -> Array:
        *data, updates, indices = arrays
        if data:
            out = _arrays.copy(data[0])
        else:
            whole = _whole_type(kind, type_of(updates), type_of(indices), shape, **where)
            out = full(xp, whole.shape, _neutral(mode, whole.dtype), updates)
        return kind.write(xp, out, updates, indices, mode, **where)

    def vjp(inputs: Any, outputs: Any, g: Any, mode: str, shape: Any = None, **where: Any) -> tuple[Any, ...]:
        *data, updates, indices = inputs
        if mode not in ("add", "sub", "set"):
            return (*(NoGradient(f"mode {mode} has no gradient") for _ in (*data, updates)), None)
        of_updates = kind.read(g[0], indices, **where)
        if mode == "sub":
            of_updates = apply("negative", of_updates)
        if not data:
            return of_updates, None
        if mode == "set":
            of_data = apply(name, g[0], zeros_like(updates), indices, mode="set", **where)
        else:
            of_data = g[0]
        return of_data, of_updates, None

    def check(*arrays: Array, mode: str, shape: Any = None, **where: Any) -> None:
        *data, _, indices = arrays
        kind.check(name, indices, data[0].shape if data else shape, **where)

    register(Op(name, infer=infer, reference=reference, vjp=vjp, check_values=check))


for _kind in _KINDS:
    _register(_kind, _kind.name)
    _register(_kind, f"{_kind.name}_with_data")
