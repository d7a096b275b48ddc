"""More elements along an axis: padding of four kinds, and repetition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _arrays
from .._arrays import Array, Namespace
from .._errors import ArgumentError, ArgumentTypeError, ShapeError
from .._ir import apply, number
from .._op import OPS, UNKNOWN, Op, ShapedType, register
from ._attributes import integers
from ._writes import full, scatter_rows, write

_MODES = ("constant", "reflect", "symmetric", "clamp")


def pad(
    x: Any, paddings_before: Any, paddings_after: Any, mode: str = "constant", value: Any = 0, name: str | None = None
) -> Any:
    """`x` with so many elements more before and after each axis.

    Args:
        x: the tensor.
        paddings_before: per axis, 0 or more.
        paddings_after: the same, behind it.
        mode: `"constant"` fills with `value`; `"reflect"` mirrors at the outermost element (3 2 1 2 3), `"symmetric"`
            beside it (2 1 1 2 3); `"clamp"` repeats it (1 1 1 2 3).
        value: the number for `"constant"`.

    Raises:
        ShapeError: when a list has another length than the rank, or the axis is too short to be mirrored.

    Example:
        >>> import numpy as np
        >>> pad(np.asarray([1, 2, 3]), (2,), (0,), mode="reflect")
        array([3, 2, 1, 2, 3])
    """
    if mode not in _MODES:
        raise ArgumentError(f"pad: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if type(value) not in (bool, int, float):
        raise ArgumentTypeError(f"pad: value must be a number, got {value!r}")
    before = integers("pad", "paddings_before", paddings_before)
    after = integers("pad", "paddings_after", paddings_after)
    return apply("pad", x, before=before, after=after, mode=mode, value=value, name=name)


def tile(x: Any, multiples: Any, name: str | None = None) -> Any:
    """`x` repeated `multiples[k]` times along axis k.

    Example:
        >>> import numpy as np
        >>> tile(np.asarray([1, 2]), (2,))
        array([1, 2, 1, 2])
    """
    return apply("tile", x, multiples=integers("tile", "multiples", multiples), name=name)


def _infer_pad(x: ShapedType, before: Sequence[int], after: Sequence[int], mode: str, value: Any) -> ShapedType:
    for what, paddings in (("paddings_before", before), ("paddings_after", after)):
        if len(paddings) != len(x.shape):
            raise ShapeError(f"pad: {what} must have one entry for each of {len(x.shape)} axes, got {list(paddings)}")
        if any(p < 0 for p in paddings):
            raise ArgumentError(f"pad: {what} must be 0 or more, got {list(paddings)}")
    if mode == "constant":
        number(OPS["pad"], value, x.dtype)
    for axis, (size, most) in enumerate(zip(x.shape, map(max, before, after), strict=True)):
        room = {"constant": most, "reflect": max(size - 1, 0), "symmetric": size, "clamp": most if size else 0}[mode]
        if size != UNKNOWN and most > room:
            raise ShapeError(f"pad: mode {mode} can add at most {room} to axis {axis} of size {size}, got {most}")
    shape = tuple(UNKNOWN if n == UNKNOWN else b + n + a for b, n, a in zip(before, x.shape, after, strict=True))
    return ShapedType.trusted(shape, x.dtype)


def _inner(shape: Sequence[int], before: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(b, b + n) for b, n in zip(before, shape, strict=True))


def _sources(size: int, before: int, after: int, mode: str) -> Any:
    """For each place of the padded axis, where its value comes from."""
    place = np.arange(-before, size + after)
    if mode == "clamp":
        return np.clip(place, 0, size - 1)
    below, above = (0, 2 * size - 2) if mode == "reflect" else (-1, 2 * size - 1)
    return np.where(place < 0, below - place, np.where(place >= size, above - place, place))


def _pad(xp: Namespace, x: Array, before: Sequence[int], after: Sequence[int], mode: str, value: Any) -> Array:
    if mode == "constant":
        shape = [b + n + a for b, n, a in zip(before, x.shape, after, strict=True)]
        return write(full(xp, shape, value, x), _inner(x.shape, before), x)
    for axis, (size, b, a) in enumerate(zip(x.shape, before, after, strict=True)):
        if b or a:
            source = _arrays.constant(xp, _sources(size, b, a, mode), _arrays.device_of(x))
            x = xp.take(x, source, axis=axis)
    return x


def _pad_gradient(
    xp: Namespace, g: Array, like: Array, before: Sequence[int], after: Sequence[int], mode: str
) -> Array:
    if mode == "constant":
        return g[_inner(like.shape, before)]
    for axis, (size, b, a) in enumerate(zip(like.shape, before, after, strict=True)):
        if b or a:
            source = _arrays.constant(xp, _sources(size, b, a, mode), _arrays.device_of(g))
            moved = xp.moveaxis(g, axis, 0)
            rest = tuple(moved.shape[1:])
            width = int(np.prod(rest))
            sums = _arrays.zeros(xp, (size, width), g)
            sums = scatter_rows(xp, "add", sums, source, xp.reshape(moved, (moved.shape[0], width)))
            g = xp.moveaxis(xp.reshape(sums, (size, *rest)), 0, axis)
    return g


def _pad_vjp(inputs: Sequence[Any], outputs: Sequence[Any], g: Sequence[Any], **attrs: Any) -> tuple[Any, ...]:
    return (apply("pad_gradient", g[0], inputs[0], **{k: v for k, v in attrs.items() if k != "value"}),)


def _infer_tile(x: ShapedType, multiples: Sequence[int]) -> ShapedType:
    if len(multiples) != len(x.shape):
        raise ShapeError(f"tile: multiples must have one entry for each of {len(x.shape)} axes, got {list(multiples)}")
    if any(m < 0 for m in multiples):
        raise ArgumentError(f"tile: multiples must be 0 or more, got {list(multiples)}")
    return ShapedType.trusted(
        tuple(UNKNOWN if n == UNKNOWN else m * n for m, n in zip(multiples, x.shape, strict=True)), x.dtype
    )


def _tile_gradient(xp: Namespace, g: Array, like: Array, multiples: Sequence[int]) -> Array:
    pairs = [size for pair in zip(multiples, like.shape, strict=True) for size in pair]
    dtype = _arrays.dtype_of(g)
    wide = xp.reshape(_arrays.cast(xp, g, dtype.compute), tuple(pairs))
    return _arrays.cast(xp, xp.sum(wide, axis=tuple(range(0, len(pairs), 2)), dtype=wide.dtype), dtype)


register(
    Op(
        "pad",
        infer=_infer_pad,
        reference=_pad,
        vjp=_pad_vjp,
        is_view=True,
    )
)
register(
    Op(
        "pad_gradient",
        infer=lambda g, like, before, after, mode: ShapedType.trusted(like.shape, g.dtype),
        reference=_pad_gradient,
        vjp=lambda inputs, outputs, g, before, after, mode: (
            apply("pad", g[0], before=before, after=after, mode=mode, value=0),
            None,
        ),
        is_view=True,
        shape_only=frozenset({1}),
    )
)
register(
    Op(
        "tile",
        infer=_infer_tile,
        reference=lambda xp, x, multiples: xp.tile(x, tuple(multiples)),
        vjp=lambda inputs, outputs, g, multiples: (apply("tile_gradient", g[0], inputs[0], multiples=multiples),),
    )
)
register(
    Op(
        "tile_gradient",
        infer=lambda g, like, multiples: ShapedType.trusted(like.shape, g.dtype),
        reference=_tile_gradient,
        vjp=lambda inputs, outputs, g, multiples: (tile(g[0], multiples), None),
        is_view=True,
        shape_only=frozenset({1}),
    )
)
