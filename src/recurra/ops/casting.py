"""Conversion of dtypes: by value and by bits."""

from __future__ import annotations

from collections.abc import Sequence
import sys
from typing import Any

import array_api_compat
import numpy as np

from .. import _arrays
from .._arrays import Array, Namespace
from .._dtypes import DType, as_dtype
from .._errors import DTypeError
from .._ir import apply
from .._op import Op, ShapedType, register
from .elementwise import no_gradient


def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """The values in another dtype: floats lose their fraction on the way to integers, non-zero becomes True.

    What does not fit the new dtype is whatever the array library makes of it. The gradient is cast back; nothing
    passes through integers and booleans.

    Raises:
        DTypeError: from complex to anything else, as nothing says which part is meant.
    """
    return apply("cast", x, dtype=as_dtype(dtype), name=name)


def reinterpret_cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """The same bits read as another dtype of the same size; without gradient.

    Example:
        >>> import numpy as np
        >>> hex(int(reinterpret_cast(np.float32(1).reshape(()), "int32")))
        '0x3f800000'
    """
    return apply("reinterpret_cast", x, dtype=as_dtype(dtype), name=name)


def _infer_cast(x: ShapedType, dtype: str) -> ShapedType:
    to = as_dtype(dtype)
    if x.dtype.kind == "complex" and to.kind != "complex":
        raise DTypeError(f"cast: complex numbers stay complex, got {x.dtype} to {to}")
    return ShapedType.trusted(x.shape, to)


def _cast(xp: Namespace, x: Array, dtype: str) -> Array:
    to = as_dtype(dtype)
    if array_api_compat.is_numpy_namespace(xp):
        with np.errstate(over="ignore", invalid="ignore"):  # the caller asked for a narrower type
            return _arrays.cast(xp, x, to)
    return _arrays.cast(xp, x, to)


def _cast_vjp(inputs: Sequence[Any], outputs: Sequence[Any], g: Sequence[Any], dtype: str) -> tuple[Any]:
    source = as_dtype(inputs[0].dtype)
    passes = source.kind == as_dtype(dtype).kind and source.kind in ("float", "complex")
    return (cast(g[0], source) if passes else None,)


def _infer_reinterpret(x: ShapedType, dtype: str) -> ShapedType:
    to = as_dtype(dtype)
    for type_ in (x.dtype, to):
        if type_.kind in ("bool", "complex"):
            raise DTypeError(f"reinterpret_cast: dtypes must be integers or floats, got {type_}")
    if x.dtype.numpy.itemsize != to.numpy.itemsize:
        raise DTypeError(f"reinterpret_cast: dtypes must have one size, got {x.dtype} and {to}")
    return ShapedType.trusted(x.shape, to)


def _reinterpret(xp: Namespace, x: Array, dtype: str) -> Array:
    to: DType = as_dtype(dtype)
    if array_api_compat.is_numpy_namespace(xp) or array_api_compat.is_torch_namespace(xp):
        return x.view(_arrays.native_dtype(xp, to))
    if array_api_compat.is_jax_namespace(xp):
        return sys.modules["jax"].lax.bitcast_convert_type(x, _arrays.native_dtype(xp, to))
    return _arrays.constant(xp, _arrays.to_numpy(x).view(to.numpy), _arrays.device_of(x))


register(Op("cast", infer=_infer_cast, reference=_cast, vjp=_cast_vjp, is_view=True))
register(Op("reinterpret_cast", infer=_infer_reinterpret, reference=_reinterpret, vjp=no_gradient, is_view=True))
