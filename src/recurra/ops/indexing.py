"""Reading at indices: gather along an axis, by coordinates, and element by element.

Indices are int32 or int64, from 0 to the size less one; others are an error wherever their values can be looked at
(inside `jax.jit` they cannot).
"""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import Any

from .. import _arrays
from .._arrays import Array, Namespace
from .._errors import ArgumentError, DTypeError, ShapeError
from .._ir import apply
from .._op import UNKNOWN, Op, Shape, ShapedType, register
from ._attributes import integer
from ._shapes import agree, axis_of
from ._writes import scatter_rows


def gather(updates: Any, indices: Any, axis: int = 0, batch_dimensions: int = 0, name: str | None = None) -> Any:
    """The slices of `updates` at `indices` along an axis, as for the rows of an embedding.

    The axis is replaced by the axes of `indices`. The first `batch_dimensions` axes belong together: they are shared
    by both and stay where they are.

    Raises:
        ShapeError: when the shapes do not fit.
        ArgumentError: when an index lies outside of the axis.

    Example:
        >>> import numpy as np
        >>> table = np.asarray([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]])
        >>> gather(table, np.asarray([2, 0, 2])).tolist()
        [[2.0, 2.5], [0.0, 0.5], [2.0, 2.5]]
    """
    axis, batch = integer("gather", "axis", axis), integer("gather", "batch_dimensions", batch_dimensions)
    return apply("gather", updates, indices, axis=axis, batch_dimensions=batch, name=name)


def gather_nd(updates: Any, indices: Any, batch_dimensions: int = 0, name: str | None = None) -> Any:
    """The slices of `updates` at coordinates: the last axis of `indices` holds one coordinate per leading axis.

    Example:
        >>> import numpy as np
        >>> gather_nd(np.arange(6).reshape(2, 3), np.asarray([[1, 2], [0, 0]]))
        array([5, 0])
    """
    batch = integer("gather_nd", "batch_dimensions", batch_dimensions)
    return apply("gather_nd", updates, indices, batch_dimensions=batch, name=name)


def gather_along_axis(updates: Any, indices: Any, axis: int, name: str | None = None) -> Any:
    """Element by element along an axis: result[i, j] = updates[indices[i, j], j] for axis 0.

    The shapes agree but for the size of that axis, which `indices` gives to the result.
    """
    axis = integer("gather_along_axis", "axis", axis)
    return apply("gather_along_axis", updates, indices, axis=axis, name=name)


# --- what gather and scatter share ---


def index_type(op: str, indices: ShapedType) -> None:
    """Refuse indices that are not int32 or int64."""
    if indices.dtype not in ("int32", "int64"):
        raise DTypeError(f"{op}: indices must be int32 or int64, got {indices.dtype}")


def check_indices(op: str, indices: Array, size: int, what: str = "indices") -> None:
    """Refuse the first index that lies outside of [0, size), where values can be looked at."""
    if not _arrays.is_readable(indices):
        return
    values = _arrays.to_numpy(indices)
    # Read as unsigned, a negative number is larger than any size.
    if values.size and values.view(f"uint{8 * values.itemsize}").max() >= size:
        bad = values[(values < 0) | (values >= size)][0]
        raise ArgumentError(f"{op}: {what} must lie in [0, {size}), got {bad}")


def check_coordinates(op: str, indices: Array, sizes: Sequence[int]) -> None:
    """The same for the coordinates in the last axis."""
    if not _arrays.is_readable(indices):
        return
    values = _arrays.to_numpy(indices)
    for k, size in enumerate(sizes):
        check_indices(op, values[..., k], size, f"coordinate {k} of indices")


def batch_count(op: str, batch: int, x: Shape, indices: Shape, limit: int) -> None:
    """Refuse batch dimensions that are too many, or whose sizes differ."""
    if not 0 <= batch <= limit:
        raise ShapeError(f"{op}: batch_dimensions must lie in [0, {limit}] here, got {batch}")
    for k in range(batch):
        agree(op, x[k], indices[k], f"the sizes of batch axis {k}")


def flat_coordinates(xp: Namespace, indices: Array, shape: Sequence[int], batch: int) -> Array:
    """Coordinates as numbers of rows, where the batch axes and the indexed axes of `shape` are one axis of rows."""
    depth = indices.shape[-1]
    sizes = tuple(shape[batch : batch + depth])
    flat = indices[..., 0]
    for k in range(1, depth):
        flat = flat * sizes[k] + indices[..., k]
    if not batch:
        return xp.reshape(flat, (-1,))
    rows = xp.reshape(flat, (math.prod(shape[:batch]), math.prod(indices.shape[batch:-1])))
    return _offset(xp, rows, math.prod(sizes))


def flat_elements(xp: Namespace, indices: Array, shape: Sequence[int], axis: int) -> Array:
    """For indices along an axis, the numbers of elements of an array of this shape, in row-major order."""
    inner = math.prod(shape[axis + 1 :])
    flat = indices * inner
    if inner > 1:
        columns = _positions(xp, inner, indices)
        flat = flat + xp.reshape(columns, (1,) * (axis + 1) + tuple(shape[axis + 1 :]))
    outer = math.prod(shape[:axis])
    if outer > 1:
        blocks = _positions(xp, outer, indices) * (shape[axis] * inner)
        flat = flat + xp.reshape(blocks, tuple(shape[:axis]) + (1,) * (len(shape) - axis))
    return xp.reshape(flat, (-1,))


def wide_enough(xp: Namespace, indices: Array, shape: Sequence[int]) -> Array:
    """The indices in a type that can number all elements of an array of this shape."""
    if math.prod(shape) < 2**31 or _arrays.dtype_of(indices) == "int64":
        return indices
    return xp.astype(indices, xp.int64)


def _positions(xp: Namespace, count: int, like: Array) -> Array:
    return xp.astype(_arrays.arange(xp, count, like), like.dtype)


def _offset(xp: Namespace, rows: Array, size: int) -> Array:
    """Row numbers [B, K] within blocks of so many rows, as numbers of rows of all blocks [B*K]."""
    starts = _positions(xp, rows.shape[0], rows) * size
    return xp.reshape(rows + starts[:, None], (-1,))


# --- gather ---


def gathered(op: str, updates: ShapedType, indices: ShapedType, axis: int, batch: int) -> Shape:
    """The shape of a gather; scatter's updates have it too."""
    index_type(op, indices)
    axis = axis_of(op, axis, len(updates.shape))
    batch_count(op, batch, updates.shape, indices.shape, min(axis, len(indices.shape)))
    return updates.shape[:axis] + indices.shape[batch:] + updates.shape[axis + 1 :]


def _infer_gather(updates: ShapedType, indices: ShapedType, axis: int, batch_dimensions: int) -> ShapedType:
    return ShapedType.trusted(gathered("gather", updates, indices, axis, batch_dimensions), updates.dtype)


def _gather(xp: Namespace, updates: Array, indices: Array, axis: int, batch_dimensions: int) -> Array:
    axis %= updates.ndim
    shape = tuple(updates.shape)
    if batch_dimensions:
        return _gather_batches(xp, updates, indices, axis, batch_dimensions)
    if indices.ndim == 1:
        return xp.take(updates, indices, axis=axis)
    taken = xp.take(updates, xp.reshape(indices, (-1,)), axis=axis)
    return xp.reshape(taken, shape[:axis] + tuple(indices.shape) + shape[axis + 1 :])


def _gather_batches(xp: Namespace, updates: Array, indices: Array, axis: int, batch: int) -> Array:
    # [batch…, before…, size, after…] becomes rows [batch * size, before * after].
    moved = xp.moveaxis(updates, axis, batch)
    blocks, size, rest = tuple(moved.shape[:batch]), moved.shape[batch], tuple(moved.shape[batch + 1 :])
    count, each = math.prod(blocks), tuple(indices.shape[batch:])
    index = wide_enough(xp, xp.reshape(indices, (count, math.prod(each))), moved.shape)
    rows = xp.reshape(moved, (count * size, math.prod(rest)))
    taken = xp.reshape(xp.take(rows, _offset(xp, index, size), axis=0), blocks + each + rest)
    return xp.moveaxis(taken, _run(batch, len(each)), _run(axis, len(each)))


def _run(first: int, count: int) -> tuple[int, ...]:
    return tuple(range(first, first + count))


def _gather_gradient(xp: Namespace, g: Array, indices: Array, like: Array, axis: int, batch_dimensions: int) -> Array:
    shape, batch, each = tuple(like.shape), batch_dimensions, tuple(indices.shape[batch_dimensions:])
    axis %= len(shape)
    moved = xp.moveaxis(g, _run(axis, len(each)), _run(batch, len(each)))
    order = [*shape[:batch], shape[axis], *shape[batch:axis], *shape[axis + 1 :]]
    index = wide_enough(xp, xp.reshape(indices, (math.prod(shape[:batch]), math.prod(each))), shape)
    index = _offset(xp, index, shape[axis]) if batch else xp.reshape(index, (-1,))
    width = math.prod(order[batch + 1 :])
    rows = _arrays.zeros(xp, (math.prod(order[: batch + 1]), width), g)
    rows = scatter_rows(xp, "add", rows, index, xp.reshape(moved, (index.shape[0], width)))
    return xp.moveaxis(xp.reshape(rows, tuple(order)), batch, axis)


def _check_gather(updates: Array, indices: Array, axis: int, batch_dimensions: int) -> None:
    check_indices("gather", indices, updates.shape[axis])


# --- gather_nd ---


def gathered_nd(op: str, updates: ShapedType, indices: ShapedType, batch: int) -> Shape:
    """The shape of a gather_nd; the updates of scatter_nd have it too."""
    index_type(op, indices)
    if not indices.shape:
        raise ShapeError(f"{op}: indices must have rank 1 or more, got a scalar")
    batch_count(op, batch, updates.shape, indices.shape, min(len(updates.shape), len(indices.shape) - 1))
    depth, most = indices.shape[-1], len(updates.shape) - batch
    if not 1 <= depth <= most:
        got = "a size that is not known" if depth == UNKNOWN else str(depth)
        raise ShapeError(f"{op}: the last axis of indices must hold 1 to {most} coordinates, got {got}")
    return indices.shape[:-1] + updates.shape[batch + depth :]


def _infer_gather_nd(updates: ShapedType, indices: ShapedType, batch_dimensions: int) -> ShapedType:
    return ShapedType.trusted(gathered_nd("gather_nd", updates, indices, batch_dimensions), updates.dtype)


def _gather_nd(xp: Namespace, updates: Array, indices: Array, batch_dimensions: int) -> Array:
    shape = tuple(updates.shape)
    cut = batch_dimensions + indices.shape[-1]
    index = flat_coordinates(xp, wide_enough(xp, indices, shape), shape, batch_dimensions)
    rows = xp.reshape(updates, (math.prod(shape[:cut]), math.prod(shape[cut:])))
    return xp.reshape(xp.take(rows, index, axis=0), tuple(indices.shape[:-1]) + shape[cut:])


def _gather_nd_gradient(xp: Namespace, g: Array, indices: Array, like: Array, batch_dimensions: int) -> Array:
    shape = tuple(like.shape)
    cut = batch_dimensions + indices.shape[-1]
    index = flat_coordinates(xp, wide_enough(xp, indices, shape), shape, batch_dimensions)
    width = math.prod(shape[cut:])
    rows = _arrays.zeros(xp, (math.prod(shape[:cut]), width), g)
    return xp.reshape(scatter_rows(xp, "add", rows, index, xp.reshape(g, (index.shape[0], width))), shape)


def _check_gather_nd(updates: Array, indices: Array, batch_dimensions: int) -> None:
    check_coordinates("gather_nd", indices, updates.shape[batch_dimensions : batch_dimensions + indices.shape[-1]])


# --- gather_along_axis ---


def along_axis(op: str, whole: Shape, indices: ShapedType, axis: int) -> Shape:
    """The shape of a gather_along_axis; the updates of scatter_along_axis have it too."""
    index_type(op, indices)
    axis = axis_of(op, axis, len(whole))
    if len(indices.shape) != len(whole):
        raise ShapeError(f"{op}: indices must have rank {len(whole)}, got {list(indices.shape)}")
    pairs = zip(whole, indices.shape, strict=True)
    return tuple(n if k == axis else agree(op, m, n, f"the sizes of axis {k}") for k, (m, n) in enumerate(pairs))


def _infer_along(updates: ShapedType, indices: ShapedType, axis: int) -> ShapedType:
    return ShapedType.trusted(along_axis("gather_along_axis", updates.shape, indices, axis), updates.dtype)


def _gather_along_axis(xp: Namespace, updates: Array, indices: Array, axis: int) -> Array:
    if _arrays.is_torch(indices):
        indices = indices.long()  # torch has no take_along_dim for int32
    return xp.take_along_axis(updates, indices, axis=axis)


def _gather_along_gradient(xp: Namespace, g: Array, indices: Array, like: Array, axis: int) -> Array:
    shape = tuple(like.shape)
    index = flat_elements(xp, wide_enough(xp, indices, shape), shape, axis % len(shape))
    rows = scatter_rows(xp, "add", _arrays.zeros(xp, (math.prod(shape), 1), g), index, xp.reshape(g, (-1, 1)))
    return xp.reshape(rows, shape)


def _check_along(updates: Array, indices: Array, axis: int) -> None:
    check_indices("gather_along_axis", indices, updates.shape[axis])


# The gradient ops do not check: the values were looked at on the way forward.


def _vjp_by(gradient: str) -> Any:
    def vjp(inputs: Sequence[Any], outputs: Sequence[Any], g: Sequence[Any], **attrs: Any) -> tuple[Any, None]:
        return apply(gradient, g[0], inputs[1], inputs[0], **attrs), None

    return vjp


def _vjp_of(name: str) -> Any:
    def vjp(inputs: Sequence[Any], outputs: Sequence[Any], g: Sequence[Any], **attrs: Any) -> tuple[Any, None, None]:
        return apply(name, g[0], inputs[1], **attrs), None, None

    return vjp


def _infer_gradient(g: ShapedType, indices: ShapedType, like: ShapedType, **_: Any) -> ShapedType:
    return ShapedType.trusted(like.shape, g.dtype)


def _with_gradient(name: str, infer: Any, reference: Any, check: Any, gradient: Any) -> None:
    register(Op(name, infer=infer, reference=reference, vjp=_vjp_by(f"{name}_gradient"), check_values=check))
    register(
        Op(
            f"{name}_gradient",
            infer=_infer_gradient,
            reference=gradient,
            vjp=_vjp_of(name),
            shape_only=frozenset({2}),
        )
    )


_with_gradient("gather", _infer_gather, _gather, _check_gather, _gather_gradient)
_with_gradient("gather_nd", _infer_gather_nd, _gather_nd, _check_gather_nd, _gather_nd_gradient)
_with_gradient("gather_along_axis", _infer_along, _gather_along_axis, _check_along, _gather_along_gradient)
