"""Shapes and axes: the same elements in another arrangement."""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import Any

from .. import _arrays
from .._arrays import Array, Namespace
from .._errors import DTypeError, ShapeError, UnsupportedError
from .._ir import Tensor, apply
from .._op import UNKNOWN, Op, Shape, ShapedType, as_shape, register
from ._attributes import integer, integers, shape_given
from ._shapes import axes_of, axis_of, product
from .elementwise import unbroadcast


def reshape(x: Any, shape: Any, name: str | None = None) -> Any:
    """The same elements, in row-major order, in another shape.

    `shape` holds sizes, of which one may be -1 (whatever remains), or is an integer tensor of rank 1 whose values
    are known when the graph runs; the sizes of the result are -1 then.

    Raises:
        ShapeError: when the number of elements cannot agree, or more than one size is -1.

    Example:
        >>> import numpy as np
        >>> reshape(np.zeros((2, 3, 4)), (-1, 4)).shape
        (6, 4)
    """
    if not isinstance(shape, tuple | list):
        if isinstance(shape, Tensor):
            return apply("reshape_to", x, shape, name=name)
        if _arrays.is_array(shape):
            _integer_vector("reshape", ShapedType(shape.shape, shape.dtype))
            shape = _values("reshape", shape)
    return apply("reshape", x, shape=as_shape(shape, "reshape"), name=name)


def reshape_like(x: Any, like: Any) -> Any:
    """`x` in the shape of `like`."""
    shape = tuple(like.shape)
    return apply("reshape_like", x, like) if UNKNOWN in shape else apply("reshape", x, shape=shape)


def transpose(x: Any, permutation: Any = None, name: str | None = None) -> Any:
    """The axes in another order: axis k of the result is axis `permutation[k]` of `x`; None reverses them.

    Example:
        >>> import numpy as np
        >>> transpose(np.zeros((2, 3, 4)), (2, 0, 1)).shape
        (4, 2, 3)
    """
    order = None if permutation is None else integers("transpose", "permutation", permutation)
    return apply("transpose", x, permutation=order, name=name)


def swap_axes(x: Any, first: int, second: int, name: str | None = None) -> Any:
    """Two axes exchanged."""
    axes = integer("swap_axes", "first", first), integer("swap_axes", "second", second)
    return apply("swap_axes", x, first=axes[0], second=axes[1], name=name)


def expand_dims(x: Any, axes: Any, name: str | None = None) -> Any:
    """New axes of size 1, at these places of the result."""
    return apply("expand_dims", x, axes=integers("expand_dims", "axes", axes), name=name)


def squeeze(x: Any, axes: Any = None, name: str | None = None) -> Any:
    """Without these axes, which must have size 1; None: without all that have it.

    Raises:
        ShapeError: when an axis has another size, or `axes` is None and a size is known at run time only.
    """
    if axes is None:
        shape = shape_given("squeeze", x)
        if UNKNOWN in shape:
            raise ShapeError(f"squeeze: axes must be given when sizes are unknown, got None for shape {list(shape)}")
        axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
    return apply("squeeze", x, axes=integers("squeeze", "axes", axes), name=name)


def flatten_2d(x: Any, axis: int, name: str | None = None) -> Any:
    """A matrix: the axes before `axis` make its rows, those from `axis` on its columns."""
    return apply("flatten_2d", x, axis=integer("flatten_2d", "axis", axis), name=name)


def broadcast(x: Any, shape: Any, name: str | None = None) -> Any:
    """`x` repeated along its axes of size 1 and along new leading axes, to this shape; -1 keeps the size of `x`.

    Example:
        >>> import numpy as np
        >>> broadcast(np.zeros((3, 1)), (2, -1, 5)).shape
        (2, 3, 5)
    """
    return apply("broadcast", x, shape=as_shape(shape, "broadcast"), name=name)


def reverse(x: Any, axes: Any = None, name: str | None = None) -> Any:
    """The order of elements turned round along these axes; None: along all."""
    return apply("reverse", x, axes=None if axes is None else integers("reverse", "axes", axes), name=name)


def _values(op: str, shape: Array) -> tuple[int, ...]:
    if not _arrays.is_readable(shape):
        raise UnsupportedError(f"{op}: shape must have values that can be read, got one under a tracer")
    return tuple(_arrays.to_numpy(shape).tolist())


def _integer_vector(op: str, shape: ShapedType) -> int:
    if shape.dtype.kind != "int":
        raise DTypeError(f"{op}: shape must hold integers, got {shape.dtype}")
    if len(shape.shape) != 1 or UNKNOWN in shape.shape:
        raise ShapeError(f"{op}: shape must be of rank 1 with a known length, got {list(shape.shape)}")
    return shape.shape[0]


def _reshaped(op: str, given: Shape, wanted: Sequence[int]) -> Shape:
    """The sizes after a reshape, with the one -1 filled in where that can be known."""
    rest = math.prod(s for s in wanted if s != UNKNOWN)
    holes = list(wanted).count(UNKNOWN)
    if holes > 1:
        raise ShapeError(f"{op}: shape may hold one -1, got {list(wanted)}")
    count, known = product(given), math.prod(s for s in given if s != UNKNOWN)
    if count == UNKNOWN and known == 0:
        count = 0
    if holes and rest == 0:
        raise ShapeError(f"{op}: -1 cannot be inferred beside a size of 0, got {list(wanted)}")
    if count == UNKNOWN:  # known * something
        fits = bool(holes) or rest % known == 0
    else:
        fits = count % rest == 0 if holes else count == rest
    if not fits:
        raise ShapeError(f"{op}: the number of elements must stay, got shape {list(wanted)} for {list(given)}")
    if holes and count != UNKNOWN:
        return tuple(count // rest if s == UNKNOWN else s for s in wanted)
    return tuple(wanted)


def _infer_like(x: ShapedType, like: ShapedType) -> ShapedType:
    counts = product(x.shape), product(like.shape)
    if UNKNOWN not in counts and counts[0] != counts[1]:
        raise ShapeError(f"reshape_like: the number of elements must stay, got {list(like.shape)} for {list(x.shape)}")
    return ShapedType.trusted(like.shape, x.dtype)


def _read_and_reshape(xp: Namespace, x: Array, shape: Array) -> Array:
    return xp.reshape(x, _reshaped("reshape", tuple(x.shape), _values("reshape", shape)))


def _order(permutation: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    if permutation is None:
        return tuple(range(rank))[::-1]
    order = tuple(axis_of("transpose", axis, rank) for axis in permutation)
    if sorted(order) != list(range(rank)):
        raise ShapeError(f"transpose: permutation must hold every axis of rank {rank} once, got {list(permutation)}")
    return order


def _inverse(permutation: Sequence[int] | None) -> tuple[int, ...] | None:
    if permutation is None:
        return None
    rank = len(permutation)
    return tuple(sorted(range(rank), key=[axis % rank for axis in permutation].__getitem__))


def _swapped(rank: int, first: int, second: int) -> list[int]:
    order = list(range(rank))
    order[first], order[second] = order[second], order[first]
    return order


def _infer_swap(x: ShapedType, first: int, second: int) -> ShapedType:
    rank = len(x.shape)
    order = _swapped(rank, axis_of("swap_axes", first, rank), axis_of("swap_axes", second, rank))
    return ShapedType.trusted(tuple(x.shape[axis] for axis in order), x.dtype)


def _expanded(shape: Sequence[int], axes: Sequence[int]) -> Shape:
    places = axes_of("expand_dims", tuple(axes), len(shape) + len(axes))
    sizes = iter(shape)
    return tuple(1 if axis in places else next(sizes) for axis in range(len(shape) + len(axes)))


def _infer_squeeze(x: ShapedType, axes: Sequence[int]) -> ShapedType:
    dropped = axes_of("squeeze", tuple(axes), len(x.shape))
    for axis in dropped:
        if x.shape[axis] not in (1, UNKNOWN):
            raise ShapeError(f"squeeze: axis {axis} must have size 1, got {list(x.shape)}")
    return ShapedType.trusted(tuple(s for axis, s in enumerate(x.shape) if axis not in dropped), x.dtype)


def _matrix(shape: Sequence[int], axis: int) -> Shape:
    rank = len(shape)
    if not -rank <= axis <= rank:
        raise ShapeError(f"flatten_2d: axis must lie in [{-rank}, {rank}] for rank {rank}, got {axis}")
    at = axis + rank if axis < 0 else axis
    return product(shape[:at]), product(shape[at:])


def _broadcasted(given: Sequence[int], wanted: Sequence[int]) -> Shape:
    new = len(wanted) - len(given)
    sizes = []
    for want, have in zip(wanted, [None] * new + list(given), strict=False):
        if new < 0 or (want == UNKNOWN and have is None) or not (want == UNKNOWN or have in (None, 1, UNKNOWN, want)):
            raise ShapeError(f"broadcast: shape {list(wanted)} must be one that {list(given)} broadcasts to")
        sizes.append(have if want == UNKNOWN and have is not None else want)
    return tuple(sizes)


def _infer_reverse(x: ShapedType, axes: Sequence[int] | None) -> ShapedType:
    axes_of("reverse", None if axes is None else tuple(axes), len(x.shape))
    return x


register(
    Op(
        "reshape",
        infer=lambda x, shape: ShapedType.trusted(_reshaped("reshape", x.shape, shape), x.dtype),
        reference=lambda xp, x, shape: xp.reshape(x, tuple(shape)),
        vjp=lambda inputs, outputs, g, shape: (reshape_like(g[0], inputs[0]),),
        is_view=True,
    )
)
register(
    Op(
        "reshape_like",
        infer=_infer_like,
        reference=lambda xp, x, like: xp.reshape(x, tuple(like.shape)),
        vjp=lambda inputs, outputs, g: (reshape_like(g[0], inputs[0]), None),
        is_view=True,
        shape_only=frozenset({1}),
    )
)
register(
    Op(
        "reshape_to",
        infer=lambda x, shape: ShapedType.trusted((UNKNOWN,) * _integer_vector("reshape", shape), x.dtype),
        reference=_read_and_reshape,
        vjp=lambda inputs, outputs, g: (reshape_like(g[0], inputs[0]), None),
        is_view=True,
    )
)
register(
    Op(
        "transpose",
        infer=lambda x, permutation: ShapedType.trusted(
            tuple(x.shape[axis] for axis in _order(permutation, len(x.shape))), x.dtype
        ),
        reference=lambda xp, x, permutation: xp.permute_dims(
            x, tuple(range(x.ndim))[::-1] if permutation is None else tuple(axis % x.ndim for axis in permutation)
        ),
        vjp=lambda inputs, outputs, g, permutation: (transpose(g[0], _inverse(permutation)),),
        is_view=True,
    )
)
register(
    Op(
        "swap_axes",
        infer=_infer_swap,
        reference=lambda xp, x, first, second: xp.permute_dims(x, tuple(_swapped(x.ndim, first, second))),
        vjp=lambda inputs, outputs, g, first, second: (swap_axes(g[0], first, second),),
        is_view=True,
    )
)
register(
    Op(
        "expand_dims",
        infer=lambda x, axes: ShapedType.trusted(_expanded(x.shape, axes), x.dtype),
        reference=lambda xp, x, axes: xp.reshape(x, _expanded(x.shape, axes)),
        vjp=lambda inputs, outputs, g, axes: (squeeze(g[0], axes),),
        is_view=True,
    )
)
register(
    Op(
        "squeeze",
        infer=_infer_squeeze,
        reference=lambda xp, x, axes: xp.squeeze(x, axis=tuple(axes)),
        vjp=lambda inputs, outputs, g, axes: (expand_dims(g[0], [axis % len(inputs[0].shape) for axis in axes]),),
        is_view=True,
    )
)
register(
    Op(
        "flatten_2d",
        infer=lambda x, axis: ShapedType.trusted(_matrix(x.shape, axis), x.dtype),
        reference=lambda xp, x, axis: xp.reshape(x, _matrix(tuple(x.shape), axis)),
        vjp=lambda inputs, outputs, g, axis: (reshape_like(g[0], inputs[0]),),
        is_view=True,
    )
)
register(
    Op(
        "broadcast",
        infer=lambda x, shape: ShapedType.trusted(_broadcasted(x.shape, shape), x.dtype),
        reference=lambda xp, x, shape: xp.broadcast_to(x, _broadcasted(tuple(x.shape), shape)),
        vjp=lambda inputs, outputs, g, shape: (unbroadcast(g[0], inputs[0]),),
        is_view=True,
    )
)
register(
    Op(
        "reverse",
        infer=_infer_reverse,
        reference=lambda xp, x, axes: xp.flip(x, axis=None if axes is None else tuple(axes)),
        vjp=lambda inputs, outputs, g, axes: (reverse(g[0], axes),),
        is_view=True,
    )
)
