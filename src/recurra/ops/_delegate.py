"""What the Array API standard lacks, asked of each library by its own name; a round trip through NumPy for the rest."""

from __future__ import annotations

from collections.abc import Callable
import math
from typing import Any

import array_api_compat
import numpy as np

from .. import _arrays
from .._arrays import Array, Namespace
from .._dtypes import as_dtype, float32


def call(xp: Namespace, name: str, *arrays: Array) -> Array:
    """A function that NumPy, torch and JAX have under one name, such as `fmod`, and the standard lacks."""
    function = getattr(xp, name, None)
    return through_numpy(xp, getattr(np, name), *arrays) if function is None else function(*arrays)


def through_numpy(xp: Namespace, function: Callable[..., Any], *arrays: Array) -> Array:
    """`function` of the arrays in NumPy, brought back to their library and device."""
    result = function(*[_arrays.to_numpy(a) for a in arrays])
    return _arrays.constant(xp, result, _arrays.device_of(arrays[0]))


def in_float32(xp: Namespace, function: Callable[..., Array], *arrays: Array) -> Array:
    """`function` of the arrays; half types go there as float32 and come back."""
    dtype = as_dtype(arrays[0].dtype)
    if not dtype.is_half:
        return function(*arrays)
    return _arrays.cast(xp, function(*[_arrays.cast(xp, a, float32) for a in arrays]), dtype)


# NumPy has no erf; Python's is exact, and slow: some 100 ns an element.
_erf = np.frompyfunc(math.erf, 1, 1)


def erf(xp: Namespace, x: Array) -> Array:
    """The error function."""
    if array_api_compat.is_torch_namespace(xp):
        return xp.erf(x)
    if array_api_compat.is_jax_namespace(xp):
        import jax

        return jax.scipy.special.erf(x)
    return through_numpy(xp, lambda a: np.asarray(_erf(a)).astype(a.dtype), x)


def matmul(xp: Namespace, x: Array, y: Array) -> Array:
    """Matrix product; the half types accumulate in float32 everywhere."""
    dtype = as_dtype(x.dtype)
    if not dtype.is_half:
        return xp.matmul(x, y)
    if array_api_compat.is_jax_namespace(xp):
        return xp.astype(xp.matmul(x, y, preferred_element_type=xp.float32), x.dtype)
    if array_api_compat.is_torch_namespace(xp) and x.device.type != "cpu":
        return xp.matmul(x, y)  # the GPU libraries accumulate in float32 by themselves
    return in_float32(xp, xp.matmul, x, y)


def cumulative_extreme(xp: Namespace, name: str, x: Array, axis: int) -> Array:
    """`cummax` or `cummin` along an axis."""
    if array_api_compat.is_torch_namespace(xp):
        return getattr(xp, name)(x, axis).values
    if array_api_compat.is_jax_namespace(xp):
        import jax

        return getattr(jax.lax, name)(x, axis % x.ndim)
    extreme = np.maximum if name == "cummax" else np.minimum
    return through_numpy(xp, lambda a: extreme.accumulate(a, axis=axis), x)
