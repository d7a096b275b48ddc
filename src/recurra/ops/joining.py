"""Several tensors made one, and one made several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _arrays
from .._arrays import Array, Namespace
from .._errors import ArgumentError, ShapeError
from .._ir import apply
from .._op import UNKNOWN, Op, ShapedType, register
from ._attributes import integer, integers, shape_given, tensors_given
from ._shapes import agree, axis_of, same_dtype
from ._writes import write
from .slicing import index, slice_axis, take_range

# In `concat_part`, all inputs but the first; more than 256 of them only stay in memory longer.
_ALL_BUT_FIRST = frozenset(range(1, 256))


def concat(tensors: Any, axis: int, name: str | None = None) -> Any:
    """The tensors one behind the other along an axis.

    Raises:
        ShapeError: when they differ in another size than that of `axis`.

    Example:
        >>> import numpy as np
        >>> concat([np.zeros((2, 3)), np.ones((2, 1))], axis=1).shape
        (2, 4)
    """
    return apply("concat", *tensors_given("concat", tensors), axis=integer("concat", "axis", axis), name=name)


def stack(tensors: Any, axis: int = 0, name: str | None = None) -> Any:
    """Tensors of one shape side by side along a new axis."""
    return apply("stack", *tensors_given("stack", tensors), axis=integer("stack", "axis", axis), name=name)


def split(x: Any, sizes_or_count: Any, axis: int = 0, name: str | None = None) -> tuple[Any, ...]:
    """The parts along an axis: so many of equal size, or of these sizes, which must add up to the whole.

    Raises:
        ShapeError: when the axis cannot be split like this.

    Example:
        >>> import numpy as np
        >>> [part.tolist() for part in split(np.arange(5), (3, 2))]
        [[0, 1, 2], [3, 4]]
    """
    shape = shape_given("split", x)
    axis = axis_of("split", axis, len(shape))
    sizes = _sizes(sizes_or_count, shape[axis], axis)
    total = sum(sizes)
    if shape[axis] not in (total, UNKNOWN):
        raise ShapeError(f"split: sizes must add up to {shape[axis]}, the size of axis {axis}, got {list(sizes)}")
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    names = [None if name is None else f"{name}.{k}" for k in range(len(sizes))]
    return tuple(
        take_range(x, axis, start, size, total, label) for start, size, label in zip(starts, sizes, names, strict=True)
    )


def unstack(x: Any, axis: int = 0, name: str | None = None) -> tuple[Any, ...]:
    """The slices along an axis, without it; its size must be known."""
    shape = shape_given("unstack", x)
    axis = axis_of("unstack", axis, len(shape))
    if shape[axis] == UNKNOWN:
        raise ShapeError(f"unstack: axis {axis} must have a known size, got shape {list(shape)}")
    labels = [None if name is None else f"{name}.{k}" for k in range(shape[axis])]
    return tuple(index(x, (*(_ALL,) * axis, k), name=label) for k, label in enumerate(labels))


_ALL = slice(None)


def _sizes(sizes_or_count: Any, size: int, axis: int) -> tuple[int, ...]:
    if not hasattr(sizes_or_count, "__index__"):
        sizes = integers("split", "sizes", sizes_or_count)
        if any(s < 0 for s in sizes):
            raise ArgumentError(f"split: sizes must be 0 or more, got {list(sizes)}")
        return sizes
    count = integer("split", "count", sizes_or_count)
    if count < 1:
        raise ArgumentError(f"split: count must be 1 or more, got {count}")
    if size == UNKNOWN:
        raise ShapeError(f"split: axis {axis} must have a known size for {count} equal parts; give the sizes")
    if size % count:
        raise ShapeError(f"split: the size of axis {axis} must be a multiple of the count {count}, got {size}")
    return (size // count,) * count


def _infer_concat(*types: ShapedType, axis: int) -> ShapedType:
    same_dtype("concat", *types)
    rank = len(types[0].shape)
    axis = axis_of("concat", axis, rank)
    shape = list(types[0].shape)
    for type_ in types[1:]:
        if len(type_.shape) != rank:
            shapes = " and ".join(str(list(t.shape)) for t in types)
            raise ShapeError(f"concat: tensors must have one rank, got {shapes}")
        for k, size in enumerate(type_.shape):
            if k == axis:
                shape[k] = UNKNOWN if UNKNOWN in (shape[k], size) else shape[k] + size
            else:
                shape[k] = agree("concat", shape[k], size, f"the sizes of axis {k}")
    return ShapedType.trusted(tuple(shape), types[0].dtype)


def _concat_vjp(inputs: Sequence[Any], outputs: Sequence[Any], g: Sequence[Any], axis: int) -> tuple[Any, ...]:
    sizes = [x.shape[axis] for x in inputs]
    if UNKNOWN in sizes:
        return tuple(apply("concat_part", g[0], *inputs[: k + 1], axis=axis) for k in range(len(inputs)))
    return tuple(slice_axis(g[0], axis, sum(sizes[:k]), size) for k, size in enumerate(sizes))


def _part_key(likes: Sequence[Array], axis: int) -> tuple[Any, ...]:
    start = sum(like.shape[axis] for like in likes[:-1])
    shape = likes[-1].shape
    return (*(slice(None),) * (axis % len(shape)), slice(start, start + shape[axis]), ...)


def _part_gradient(xp: Namespace, g: Array, whole: Array, *likes: Array, axis: int) -> Array:
    return write(_arrays.zeros(xp, whole.shape, g), _part_key(likes, axis), g)


def _infer_stack(*types: ShapedType, axis: int) -> ShapedType:
    same_dtype("stack", *types)
    shape = types[0].shape
    for type_ in types[1:]:
        if len(type_.shape) != len(shape):
            shapes = " and ".join(str(list(t.shape)) for t in types)
            raise ShapeError(f"stack: tensors must have one shape, got {shapes}")
        shape = tuple(
            agree("stack", a, b, f"the sizes of axis {k}")
            for k, (a, b) in enumerate(zip(shape, type_.shape, strict=True))
        )
    axis = axis_of("stack", axis, len(shape) + 1)
    return ShapedType.trusted((*shape[:axis], len(types), *shape[axis:]), types[0].dtype)


register(
    Op(
        "concat",
        infer=_infer_concat,
        reference=lambda xp, *tensors, axis: xp.concat(tensors, axis=axis),
        vjp=_concat_vjp,
    )
)
# The part of a concatenation that came from the last of `likes`, and its gradient: for sizes known at run time only.
register(
    Op(
        "concat_part",
        infer=lambda x, *likes, axis: ShapedType.trusted(likes[-1].shape, x.dtype),
        reference=lambda xp, x, *likes, axis: x[_part_key(likes, axis)],
        vjp=lambda inputs, outputs, g, axis: (
            apply("concat_part_gradient", g[0], *inputs, axis=axis),
            *(None for _ in inputs[1:]),
        ),
        is_view=True,
        shape_only=_ALL_BUT_FIRST,
    )
)
register(
    Op(
        "concat_part_gradient",
        infer=lambda g, whole, *likes, axis: ShapedType.trusted(whole.shape, g.dtype),
        reference=_part_gradient,
        vjp=lambda inputs, outputs, g, axis: (
            apply("concat_part", g[0], *inputs[2:], axis=axis),
            *(None for _ in inputs[1:]),
        ),
        shape_only=_ALL_BUT_FIRST,
    )
)
register(
    Op(
        "stack",
        infer=_infer_stack,
        reference=lambda xp, *tensors, axis: xp.stack(tensors, axis=axis),
        vjp=lambda inputs, outputs, g, axis: tuple(
            index(g[0], (*(_ALL,) * (axis % len(outputs[0].shape)), k)) for k in range(len(inputs))
        ),
    )
)
