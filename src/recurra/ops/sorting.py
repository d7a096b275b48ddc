"""Order along an axis. NaN counts as larger than every number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _arrays
from .._arrays import Array, Namespace
from .._dtypes import int32
from .._errors import ShapeError
from .._ir import apply
from .._op import UNKNOWN, Op, ShapedType, register
from ._attributes import integer
from ._inference import REAL
from ._shapes import axis_of, kind_of
from .elementwise import no_gradient


def sort(x: Any, axis: int = -1, descending: bool = False, name: str | None = None) -> Any:
    """The values in order along an axis."""
    return apply("sort", x, axis=integer("sort", "axis", axis), descending=bool(descending), name=name)


def argsort(x: Any, axis: int = -1, descending: bool = False, name: str | None = None) -> Any:
    """The int32 indices that put an axis in order; among equal values the lower index comes first.

    Example:
        >>> import numpy as np
        >>> argsort(np.asarray([3, 1, 3, 2]), descending=True).tolist()
        [0, 2, 3, 1]
    """
    return apply("argsort", x, axis=integer("argsort", "axis", axis), descending=bool(descending), name=name)


def top_k(x: Any, k: int, axis: int = -1, name: str | None = None) -> Any:
    """The k largest values along an axis, largest first, and their int32 indices.

    Of equal values, the one with the lower index comes first.

    Raises:
        ShapeError: when the axis has fewer than k elements.

    Example:
        >>> import numpy as np
        >>> [part.tolist() for part in top_k(np.asarray([1.0, 5.0, 2.0, 5.0]), 3)]
        [[5.0, 5.0, 2.0], [1, 3, 2]]
    """
    return apply("top_k", x, k=integer("top_k", "k", k), axis=integer("top_k", "axis", axis), name=name)


def _infer_sort(op: str, x: ShapedType, axis: int) -> ShapedType:
    kind_of(op, x, REAL)
    axis_of(op, axis, len(x.shape))
    return x


def _infer_top_k(x: ShapedType, k: int, axis: int) -> tuple[ShapedType, ShapedType]:
    _infer_sort("top_k", x, axis)
    axis = axis_of("top_k", axis, len(x.shape))
    size = x.shape[axis]
    if k < 0 or (size != UNKNOWN and k > size):
        raise ShapeError(f"top_k: k must lie in [0, {'size' if size == UNKNOWN else size}] of axis {axis}, got {k}")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return ShapedType.trusted(shape, x.dtype), ShapedType.trusted(shape, int32)


def _order(xp: Namespace, x: Array, axis: int, descending: bool) -> Array:
    # Half types are compared in float32: NumPy does not order the NaN of bfloat16.
    wide = _arrays.cast(xp, x, _arrays.dtype_of(x).compute)
    return xp.argsort(wide, axis=axis, descending=descending, stable=True)


def _sort(xp: Namespace, x: Array, axis: int, descending: bool) -> Array:
    dtype = _arrays.dtype_of(x)
    wide = xp.sort(_arrays.cast(xp, x, dtype.compute), axis=axis, descending=descending)
    return _arrays.cast(xp, wide, dtype)


def _top_k(xp: Namespace, x: Array, k: int, axis: int) -> tuple[Array, Array]:
    first = (slice(None),) * (axis % x.ndim) + (slice(0, k), ...)
    order = _order(xp, x, axis, descending=True)[first]
    return xp.take_along_axis(x, order, axis=axis), _arrays.cast(xp, order, int32)


def _back_to_their_places(g: Any, order: Any, x: Any, axis: int) -> Any:
    return apply("gather_along_axis_gradient", g, order, x, axis=axis)


def _sort_vjp(
    inputs: Sequence[Any], outputs: Sequence[Any], g: Sequence[Any], axis: int, descending: bool
) -> tuple[Any]:
    return (_back_to_their_places(g[0], argsort(inputs[0], axis, descending), inputs[0], axis),)


def _top_k_vjp(inputs: Sequence[Any], outputs: Sequence[Any], g: Sequence[Any], k: int, axis: int) -> tuple[Any]:
    return (None if g[0] is None else _back_to_their_places(g[0], outputs[1], inputs[0], axis),)


register(
    Op(
        "sort",
        infer=lambda x, axis, descending: _infer_sort("sort", x, axis),
        reference=_sort,
        vjp=_sort_vjp,
    )
)
register(
    Op(
        "argsort",
        infer=lambda x, axis, descending: ShapedType.trusted(_infer_sort("argsort", x, axis).shape, int32),
        reference=lambda xp, x, axis, descending: _arrays.cast(xp, _order(xp, x, axis, descending), int32),
        vjp=no_gradient,
    )
)
register(Op("top_k", infer=_infer_top_k, reference=_top_k, vjp=_top_k_vjp, outputs=("values", "indices")))
