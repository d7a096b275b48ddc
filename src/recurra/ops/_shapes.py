"""Rules of shape inference that several generic ops share. A size of -1 is known at run time only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._errors import ArgumentTypeError, DTypeError, ShapeError
from .._op import UNKNOWN, Shape, ShapedType


def same_dtype(op: str, *types: ShapedType) -> None:
    """Refuse inputs whose dtypes differ: recurra never converts silently."""
    if len({str(t.dtype) for t in types}) > 1:
        raise DTypeError(
            f"{op}: inputs must have one dtype, got {' and '.join(str(t.dtype) for t in types)}; cast first"
        )


def kind_of(op: str, type_: ShapedType, kinds: Sequence[str]) -> None:
    """Refuse an input whose dtype is not of one of these kinds, such as `"float"` and `"int"`."""
    if type_.dtype.kind not in kinds:
        raise DTypeError(f"{op}: input must be of kind {' or '.join(kinds)}, got {type_.dtype}")


def broadcast(op: str, *shapes: Shape) -> Shape:
    """The shape that these broadcast to. An unknown size beside 1 stays unknown; beside n it must turn out 1 or n."""
    rank = max(map(len, shapes))
    result = []
    for axis in range(-rank, 0):
        sizes = {s[axis] for s in shapes if len(s) >= -axis} - {1}
        known = sizes - {UNKNOWN}
        if len(known) > 1:
            raise ShapeError(f"{op}: shapes must broadcast, got {' and '.join(str(list(s)) for s in shapes)}")
        result.append(known.pop() if known else UNKNOWN if sizes else 1)
    return tuple(result)


def axis_of(op: str, axis: Any, rank: int) -> int:
    """An axis counted from the front; negative ones count from the end."""
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise ArgumentTypeError(f"{op}: axis must be an integer, got {axis!r}")
    place = int(axis)
    if not -rank <= place < rank:
        raise ShapeError(f"{op}: axis must lie in [{-rank}, {rank}) for rank {rank}, got {place}")
    return place % rank


def axes_of(op: str, axes: Any, rank: int) -> tuple[int, ...]:
    """Distinct axes counted from the front, sorted; None means all of them."""
    if axes is None:
        return tuple(range(rank))
    found = [axis_of(op, a, rank) for a in (axes if isinstance(axes, tuple | list) else (axes,))]
    if len(set(found)) < len(found):
        raise ShapeError(f"{op}: axes must be distinct, got {axes!r}")
    return tuple(sorted(found))


def agree(op: str, a: int, b: int, what: str) -> int:
    """The one size that two must be, where either may be unknown."""
    if UNKNOWN in (a, b):
        return max(a, b)
    if a != b:
        raise ShapeError(f"{op}: {what} must be equal, got {a} and {b}")
    return a


def product(sizes: Sequence[int]) -> int:
    """The number of elements, or -1 where a size is unknown."""
    result = 1
    for size in sizes:
        if size == UNKNOWN:
            return UNKNOWN
        result *= size
    return result
