"""Parts of a tensor along its axes: slices by number, Python's indexing, and writing into a part.

The key of an index is kept as a list: an integer drops an axis, None makes one, `[start, stop, step]` is a slice.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _arrays
from .._arrays import Array, Namespace
from .._errors import ArgumentError, ArgumentTypeError, ShapeError
from .._ir import apply
from .._op import UNKNOWN, Op, Shape, ShapedType, register
from ._attributes import integer, integers, shape_given
from ._shapes import axis_of, same_dtype
from ._writes import write
from .comparison import zeros_like

Key = Sequence[Any]


def slice_axis(x: Any, axis: int, start: int, length: int, name: str | None = None) -> Any:
    """`length` elements along one axis from `start` on, which counts from the end when negative.

    Raises:
        ShapeError: when the part does not lie in `x`.

    Example:
        >>> import numpy as np
        >>> slice_axis(np.arange(6), 0, -4, 2)
        array([2, 3])
    """
    return take_range(x, axis, start, length, None, name)


def take_range(x: Any, axis: int, start: int, length: int, size: int | None, name: str | None = None) -> Any:
    """`slice_axis` of an axis that must have this size, which may be known at run time only."""
    place = integer("slice_axis", "axis", axis), integer("slice_axis", "start", start)
    count = integer("slice_axis", "length", length)
    return apply("slice_axis", x, axis=place[0], start=place[1], length=count, size=size, name=name)


def slice(x: Any, starts: Any, ends: Any, strides: Any = None, name: str | None = None) -> Any:
    """Every `strides[k]`-th element of axis k from `starts[k]` up to and without `ends[k]`.

    Each has one entry per axis. Negative starts and ends count from the end; None is the first and the end.

    Raises:
        ShapeError: when a start or an end lies outside of `x`.

    Example:
        >>> import numpy as np
        >>> slice(np.arange(12).reshape(3, 4), (1, 0), (None, -1), (1, 2)).tolist()
        [[4, 6], [8, 10]]
    """
    starts, ends, strides = _bounds("slice", starts, ends, strides)
    return apply("slice", x, starts=starts, ends=ends, strides=strides, name=name)


def slice_update(x: Any, update: Any, starts: Any, ends: Any, strides: Any = None, name: str | None = None) -> Any:
    """`x` with the part that `slice` would give replaced by `update`, which has that part's shape."""
    starts, ends, strides = _bounds("slice_update", starts, ends, strides)
    return apply("slice_update", x, update, starts=starts, ends=ends, strides=strides, name=name)


def index(x: Any, key: Any, name: str | None = None) -> Any:
    """`x[key]` by Python's rules, for integers, slices, `...` and None; slices may reach beyond the ends.

    Raises:
        ShapeError: when an integer lies outside of its axis.
        ArgumentTypeError: for keys that are tensors or lists; `gather` takes those.

    Example:
        >>> import numpy as np
        >>> import builtins
        >>> index(np.arange(6).reshape(2, 3), (-1, builtins.slice(None, None, -1))).tolist()
        [5, 4, 3]
    """
    return apply("index", x, key=_plain_key(key, len(shape_given("index", x))), name=name)


# --- what callers write, made plain ---


def _bounds(op: str, starts: Any, ends: Any, strides: Any) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[int, ...]]:
    opened = [_open_integers(op, "starts", starts), _open_integers(op, "ends", ends)]
    steps = (1,) * len(opened[0]) if strides is None else integers(op, "strides", strides)
    if any(step < 1 for step in steps):
        raise ArgumentError(f"{op}: strides must be 1 or more, got {list(steps)}; use reverse to turn an axis round")
    return opened[0], opened[1], steps


def _open_integers(op: str, what: str, values: Any) -> tuple[int | None, ...]:
    if not isinstance(values, tuple | list):
        raise ArgumentTypeError(f"{op}: {what} must be a list or a tuple, got {values!r}")
    return tuple(None if value is None else integer(op, what, value) for value in values)


def _plain_key(key: Any, rank: int) -> tuple[Any, ...]:
    given = key if isinstance(key, tuple) else (key,)
    entries = [_plain_entry(entry) for entry in given]
    used = sum(entry is not None and entry is not Ellipsis for entry in entries)
    if used > rank:
        raise ShapeError(f"index: key must have at most {rank} entries for rank {rank}, got {used}")
    gaps = [i for i, entry in enumerate(entries) if entry is Ellipsis]
    if len(gaps) > 1:
        raise ArgumentError(f"index: key may hold one ellipsis, got {len(gaps)}")
    if gaps:
        entries[gaps[0] : gaps[0] + 1] = [(None, None, None)] * (rank - used)
    return tuple(entries)


def _plain_entry(entry: Any) -> Any:
    if entry is None or entry is Ellipsis:
        return entry
    if isinstance(entry, builtins.slice):
        bounds = tuple(
            None if b is None else integer("index", "the bounds of a slice", b)
            for b in (entry.start, entry.stop, entry.step)
        )
        if bounds[2] == 0:
            raise ArgumentError(f"index: the step of a slice must not be 0, got {entry}")
        return bounds
    if isinstance(entry, int | np.integer) and not isinstance(entry, bool):
        return int(entry)
    what = f"a {type(entry).__name__}" if hasattr(entry, "__len__") or hasattr(entry, "dtype") else repr(entry)
    raise ArgumentTypeError(
        f"index: key must hold integers, slices, ... or None, got {what}; use gather to index with a tensor"
    )


# --- slices within bounds ---


def _bound(op: str, what: str, value: int, size: int) -> int:
    """A start or an end counted from the front, where the size is known."""
    if not -size <= value <= size:
        raise ShapeError(f"{op}: {what} must lie in [{-size}, {size}] for size {size}, got {value}")
    return value + size if value < 0 else value


def _length(op: str, start: int | None, end: int | None, stride: int, size: int) -> int:
    """The number of elements of a slice that must lie within its axis, where that can be known."""
    first = 0 if start is None else start
    if size == UNKNOWN:
        if end is None and first < 0:
            count = -first
        elif end is not None and (first < 0) == (end < 0):
            count = end - first
        else:
            return UNKNOWN
    else:
        count = (size if end is None else _bound(op, "ends", end, size)) - _bound(op, "starts", first, size)
    if count < 0:
        raise ShapeError(f"{op}: ends must not lie before starts, got {start} and {end}")
    return -(-count // stride)


def _part(op: str, shape: Shape, starts: Sequence[Any], ends: Sequence[Any], strides: Sequence[int]) -> Shape:
    for what, values in (("starts", starts), ("ends", ends), ("strides", strides)):
        if len(values) != len(shape):
            raise ShapeError(f"{op}: {what} must have one entry for each of {len(shape)} axes, got {list(values)}")
    return tuple(_length(op, *bounds) for bounds in zip(starts, ends, strides, shape, strict=True))


def _slices(starts: Sequence[Any], ends: Sequence[Any], strides: Sequence[int]) -> tuple[Any, ...]:
    return tuple(builtins.slice(*bounds) for bounds in zip(starts, ends, strides, strict=True))


def _infer_slice_axis(x: ShapedType, axis: int, start: int, length: int, size: int | None) -> ShapedType:
    axis = axis_of("slice_axis", axis, len(x.shape))
    have = x.shape[axis]
    if size is not None and have not in (size, UNKNOWN):
        raise ShapeError(f"slice_axis: axis {axis} must have size {size}, got {have}")
    first = _bound("slice_axis", "start", start, have) if have != UNKNOWN else start
    room = -first if first < 0 else have - first if have != UNKNOWN else length
    if not 0 <= length <= room:
        raise ShapeError(f"slice_axis: length must lie in [0, {room}] from start {start} on, got {length}")
    return ShapedType.trusted((*x.shape[:axis], length, *x.shape[axis + 1 :]), x.dtype)


def _range_key(rank: int, axis: int, start: int, length: int) -> tuple[Any, ...]:
    """The key of an index that takes what `slice_axis` takes."""
    stop = start + length
    reaches_end = start < 0 and stop == 0 and length > 0
    return ((None, None, None),) * (axis % rank) + ((start, None if reaches_end else stop, 1),)


def _slice_axis(xp: Namespace, x: Array, axis: int, start: int, length: int, size: int | None) -> Array:
    axis %= x.ndim
    first = start + x.shape[axis] if start < 0 else start
    return x[(*(builtins.slice(None),) * axis, builtins.slice(first, first + length), ...)]


def _infer_update(x: ShapedType, update: ShapedType, starts: Any, ends: Any, strides: Any) -> ShapedType:
    same_dtype("slice_update", x, update)
    part = _part("slice_update", x.shape, starts, ends, strides)
    given = update.shape
    if len(given) != len(part) or any(a != b and UNKNOWN not in (a, b) for a, b in zip(given, part, strict=True)):
        raise ShapeError(f"slice_update: update must have the shape of the part, {list(part)}, got {list(given)}")
    return x


def _update(xp: Namespace, x: Array, update: Array, starts: Any, ends: Any, strides: Any) -> Array:
    return write(_arrays.copy(x), _slices(starts, ends, strides), update)


# --- Python's indexing ---


def _indexed(shape: Shape, key: Key) -> Shape:
    sizes: list[int] = []
    axis = 0
    for entry in key:
        if entry is None:
            sizes.append(1)
            continue
        size = shape[axis]
        if isinstance(entry, int):
            if size != UNKNOWN and not -size <= entry < size:
                raise ShapeError(f"index: {entry} must lie in [{-size}, {size}) for axis {axis} of {list(shape)}")
        else:
            sizes.append(_python_length(entry, size))
        axis += 1
    return (*sizes, *shape[axis:])


def _python_length(bounds: Sequence[Any], size: int) -> int:
    if size == UNKNOWN:
        return UNKNOWN
    return len(range(*builtins.slice(*bounds).indices(size)))


def _native_key(shape: Shape, key: Key) -> tuple[tuple[Any, ...], list[int], list[int]]:
    """The key with all bounds inside and all steps forward, and two lists of axes of the result: those that must be
    flipped then, and the new ones.
    """
    native: list[Any] = []
    flipped: list[int] = []
    added: list[int] = []
    axis = out_axis = 0
    for entry in key:
        if entry is None:
            native.append(None)
            added.append(out_axis)
        elif isinstance(entry, int):
            native.append(entry)
            axis, out_axis = axis + 1, out_axis - 1
        else:
            taken = range(*builtins.slice(*entry).indices(shape[axis]))
            if not taken:
                native.append(builtins.slice(0, 0))
            elif taken.step < 0:
                native.append(builtins.slice(taken[-1], taken[0] + 1, -taken.step))
                flipped.append(out_axis)
            else:
                native.append(builtins.slice(taken[0], taken[-1] + 1, taken.step))
            axis += 1
        out_axis += 1
    return (*native, ...), flipped, added


def _index(xp: Namespace, x: Array, key: Key) -> Array:
    native, flipped, _ = _native_key(tuple(x.shape), key)
    return xp.flip(x[native], axis=tuple(flipped)) if flipped else x[native]


def _index_gradient(xp: Namespace, g: Array, like: Array, key: Key) -> Array:
    native, flipped, added = _native_key(tuple(like.shape), key)
    if flipped:
        g = xp.flip(g, axis=tuple(flipped))
    if added:  # the standard has no new axes on the left of an assignment
        g, native = xp.squeeze(g, axis=tuple(added)), tuple(entry for entry in native if entry is not None)
    return write(_arrays.zeros(xp, like.shape, g), native, g)


def _gradient_of_index(g: Any, x: Any, key: Key) -> Any:
    return apply("index_gradient", g, x, key=key)


register(
    Op(
        "slice_axis",
        infer=_infer_slice_axis,
        reference=_slice_axis,
        vjp=lambda inputs, outputs, g, axis, start, length, size: (
            _gradient_of_index(g[0], inputs[0], _range_key(len(inputs[0].shape), axis, start, length)),
        ),
        is_view=True,
    )
)
register(
    Op(
        "slice",
        infer=lambda x, starts, ends, strides: ShapedType.trusted(
            _part("slice", x.shape, starts, ends, strides), x.dtype
        ),
        reference=lambda xp, x, starts, ends, strides: x[_slices(starts, ends, strides)],
        vjp=lambda inputs, outputs, g, starts, ends, strides: (
            _gradient_of_index(g[0], inputs[0], tuple(zip(starts, ends, strides, strict=True))),
        ),
        is_view=True,
    )
)
register(
    Op(
        "slice_update",
        infer=_infer_update,
        reference=_update,
        vjp=lambda inputs, outputs, g, **bounds: (
            slice_update(g[0], zeros_like(inputs[1]), **bounds),
            slice(g[0], **bounds),
        ),
    )
)
register(
    Op(
        "index",
        infer=lambda x, key: ShapedType.trusted(_indexed(x.shape, key), x.dtype),
        reference=_index,
        vjp=lambda inputs, outputs, g, key: (_gradient_of_index(g[0], inputs[0], key),),
        is_view=True,
    )
)
register(
    Op(
        "index_gradient",
        infer=lambda g, like, key: ShapedType.trusted(like.shape, g.dtype),
        reference=_index_gradient,
        vjp=lambda inputs, outputs, g, key: (apply("index", g[0], key=key), None),
        shape_only=frozenset({1}),
    )
)
