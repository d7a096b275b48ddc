"""The part of the Array API standard that the recurrent references use, on graph tensors.

A reference that is called with this module as its namespace writes its own composed form into a graph, one node per
array operation; autodiff then differentiates it to any order. Values that do not depend on a tensor stay NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dtypes import as_dtype, bfloat16, float16, float32, float64, int32, int64
from .._ir import Tensor, apply
from . import casting, comparison, joining, movement, reduction

__all__ = ["bfloat16", "float16", "float32", "float64", "int32", "int64"]


def _apply(op: str, x: Any, *more: Any, **attrs: Any) -> Any:
    return apply(op, x, *more, **attrs)


def zeros(shape: Any, dtype: Any) -> Any:
    return np.zeros(shape, as_dtype(dtype).numpy)


def zeros_like(x: Any) -> Any:
    return np.zeros(x.shape, as_dtype(x.dtype).numpy)


def ones_like(x: Any) -> Any:
    return np.ones(x.shape, as_dtype(x.dtype).numpy)


def arange(count: int) -> Any:
    return np.arange(count)


def astype(x: Any, dtype: Any) -> Any:
    return casting.cast(x, dtype)


def reshape(x: Any, shape: Any) -> Any:
    return movement.reshape(x, tuple(shape))


def broadcast_to(x: Any, shape: Any) -> Any:
    return movement.broadcast(x, tuple(shape))


def matrix_transpose(x: Any) -> Any:
    return _apply("swap_axes", x, first=-2, second=-1)


def concat(arrays: Any, axis: int = 0) -> Any:
    return joining.concat(list(arrays), axis)


def stack(arrays: Any, axis: int = 0) -> Any:
    return joining.stack(list(arrays), axis)


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return reduction.reduce_sum(x, axis, keepdims=keepdims)


def matmul(x: Any, y: Any) -> Any:
    return _apply("matmul", x, y)


def where(condition: Any, x: Any, y: Any) -> Any:
    if not any(isinstance(v, Tensor) for v in (condition, x, y)):
        return np.where(condition, x, y)
    return comparison.select(condition, x, y)


def exp(x: Any) -> Any:
    return _apply("exp", x)


def expm1(x: Any) -> Any:
    return _apply("expm1", x)


def log1p(x: Any) -> Any:
    return _apply("log1p", x)


def tanh(x: Any) -> Any:
    return _apply("tanh", x)


def abs(x: Any) -> Any:
    return _apply("absolute", x)
