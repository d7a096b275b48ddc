"""What recurra asks of an array library, in one place: namespaces, dtypes, devices, conversion, the time loop.

Everything above is written against the Array API standard; what the standard leaves open (bfloat16, devices under
tracing, `lax.scan`, memory sharing) is decided here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import functools
import sys
from typing import Any, TypeAlias

import array_api_compat
import ml_dtypes
import numpy as np

from ._dtypes import DType, as_dtype
from ._errors import ArgumentTypeError, DeviceError, DTypeError, UnsupportedError

# An array of any library and a module of the Array API standard. Neither has a usable static type yet.
Array: TypeAlias = Any
Namespace: TypeAlias = Any


def is_array(value: object) -> bool:
    """Whether `value` is an array of a library that recurra computes with."""
    if isinstance(value, np.ndarray):
        return not isinstance(value, np.ma.MaskedArray)  # its masked values would be read like the others
    return bool(array_api_compat.is_array_api_obj(value))


def library(value: Array) -> str:
    """The name of the array's library, for messages: `"numpy"`, `"torch"`, `"jax"`, …"""
    return type(value).__module__.partition(".")[0].removesuffix("lib")


def namespace(*arrays: Array) -> Namespace:
    """The Array API namespace of these arrays, which must be of one library.

    Raises:
        DeviceError: when they are of several.
    """
    try:
        return array_api_compat.array_namespace(*arrays)
    except TypeError:
        names = sorted({library(a) for a in arrays})
        raise DeviceError(f"arrays must be of one library, got {' and '.join(names)}") from None


def is_jax(value: Array) -> bool:
    """Whether this is a JAX array or a JAX tracer."""
    return "jax" in sys.modules and bool(array_api_compat.is_jax_array(value))


def is_torch(value: Array) -> bool:
    """Whether this is a torch tensor."""
    return "torch" in sys.modules and bool(array_api_compat.is_torch_array(value))


def is_traced(value: Array) -> bool:
    """Whether what is computed is recorded, to be repeated with other values: JAX's and torch's tracers."""
    if is_jax(value):
        return isinstance(value, sys.modules["jax"].core.Tracer)
    if is_torch(value):
        torch = sys.modules["torch"]
        return bool(torch.compiler.is_compiling()) or value.is_meta or type(value).__name__ == "FakeTensor"
    return False


def is_transformed(value: Array) -> bool:
    """Whether this stands for a value inside `jit`, `grad`, `vmap`, … of JAX or torch.func, and is none outside."""
    if is_torch(value):
        return bool(sys.modules["torch"]._C._functorch.is_functorch_wrapped_tensor(value))
    return is_jax(value) and is_traced(value)


def is_readable(value: Array) -> bool:
    """Whether the values can be looked at."""
    return not (is_traced(value) or is_transformed(value))


def is_compiling() -> bool:
    """Whether torch.compile or torch.export is following this code."""
    return "torch" in sys.modules and bool(sys.modules["torch"].compiler.is_compiling())


def device_of(value: Array) -> Any:
    """The device of an array; None where there is no choice (NumPy) or the library places arrays itself (JAX)."""
    return None if isinstance(value, np.ndarray | np.generic) or is_jax(value) else getattr(value, "device", None)


def dtype_of(value: Array) -> DType:
    """The dtype of an array."""
    return as_dtype(value.dtype)


def shape_of(value: Array) -> tuple[int, ...]:
    """The shape of an array, as plain integers."""
    return tuple(value.shape)


@functools.lru_cache(maxsize=256)
def native_dtype(xp: Namespace, dtype: DType) -> Any:
    """The library's own object for `dtype`.

    Raises:
        DTypeError: when the library does not have it.
    """
    if dtype == "bfloat16" and array_api_compat.is_numpy_namespace(xp):
        return np.dtype(ml_dtypes.bfloat16)
    try:
        return getattr(xp, str(dtype))
    except AttributeError:
        raise DTypeError(f"cast: dtype must be one that {xp.__name__} has, got {dtype}") from None


def cast(xp: Namespace, x: Array, dtype: DType) -> Array:
    """`x` in another dtype; `x` itself when it has that dtype."""
    return x if as_dtype(x.dtype) == dtype else xp.astype(x, native_dtype(xp, dtype))


def zeros(xp: Namespace, shape: Sequence[int], like: Array) -> Array:
    """Zeros with the dtype and on the device of `like`."""
    device = device_of(like)
    if device is None:
        return xp.zeros(tuple(shape), dtype=like.dtype)
    return xp.zeros(tuple(shape), dtype=like.dtype, device=device)


def arange(xp: Namespace, count: int, like: Array) -> Array:
    """0, 1, …, count-1 as int64 on the device of `like` (int32 where JAX runs without 64 bits)."""
    device = device_of(like)
    if device is None:
        return xp.arange(count)
    return xp.arange(count, device=device)


def constant(xp: Namespace, value: Any, device: Any = None) -> Array:
    """A NumPy array (or anything NumPy takes) as an array of `xp` on `device`. The result never shares memory."""
    array = np.array(value)
    if array_api_compat.is_numpy_namespace(xp):
        return array
    if array_api_compat.is_torch_namespace(xp) and array.dtype == ml_dtypes.bfloat16:
        return xp.asarray(array.view(np.int16), device=device).view(xp.bfloat16)
    if array_api_compat.is_jax_namespace(xp):
        import jax

        with jax.ensure_compile_time_eval():  # under jit too, a constant is a value that may be kept
            return xp.asarray(array)
    return xp.asarray(array) if device is None else xp.asarray(array, device=device)


def from_numbers(value: Any, dtype: DType | None = None) -> np.ndarray[Any, Any]:
    """Python's numbers, nested in lists, as a NumPy array of this dtype, or of their own.

    Raises:
        TypeError, ValueError, OverflowError: they are no numbers, or the dtype would make others of them. Floats may
            be rounded, and become infinite.
    """
    array = np.array(value)
    is_large = array.dtype == object and all(type(v) is int for v in array.flat)  # integers beyond 64 bits
    if array.dtype.kind not in "biufc" and not is_large:
        raise ValueError("not numbers")
    if dtype is None:
        return array.astype(np.float32) if array.dtype == np.float64 else array
    if array.dtype.kind == "c" and dtype.kind != "complex":
        raise ValueError("complex numbers")
    with np.errstate(all="ignore"):
        made = array.astype(dtype.numpy)
    if dtype.kind in ("bool", "int", "uint") and not np.array_equal(made, array):
        raise ValueError("not exact")
    return made


def to_numpy(value: Array) -> np.ndarray[Any, Any]:
    """The array's values in NumPy. May share memory."""
    if isinstance(value, np.ndarray):
        return value
    if is_torch(value):
        value = value.detach().cpu().resolve_conj().resolve_neg()
        torch = sys.modules["torch"]
        if value.dtype == torch.bfloat16:
            bits: np.ndarray[Any, Any] = value.contiguous().view(torch.int16).numpy()
            return bits.view(ml_dtypes.bfloat16)
        return value.numpy()  # type: ignore[no-any-return]
    if hasattr(value, "get"):  # CuPy
        return value.get()  # type: ignore[no-any-return]
    return np.asarray(value)


def readable(where: str, name: str, value: Any) -> np.ndarray[Any, Any]:
    """The values of an argument that must be an array, in NumPy. May share memory.

    Raises:
        ArgumentTypeError: when it is no array.
        UnsupportedError: when its values cannot be looked at.
    """
    if not is_array(value):
        raise ArgumentTypeError(f"{where}: {name} must be an array, got {type(value).__name__}")
    try:
        return to_numpy(value)
    except (TypeError, RuntimeError) as error:  # what tracers, tensors under vmap, sparse and meta tensors answer
        raise UnsupportedError(
            f"{where}: {name} must be a dense array whose values are known (not under jit, grad or vmap), "
            f"got {type(value).__name__}"
        ) from error


def convert(value: Array, xp: Namespace, device: Any = None) -> Array:
    """`value` as an array of library `xp` on `device`; `value` itself when it is one already."""
    if is_array(value) and array_api_compat.array_namespace(value) is xp:
        if device is None or device_of(value) == device:
            return value
        return array_api_compat.to_device(value, device)
    return constant(xp, to_numpy(value) if is_array(value) else value, device)


def detached(value: Array) -> Array:
    """The array without torch's record of how it was computed."""
    return value.detach() if is_torch(value) else value


def copy(value: Array) -> Array:
    """The same values in memory of their own."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if is_torch(value):
        return value.clone()
    if is_jax(value):
        return value  # immutable
    return array_api_compat.array_namespace(value).asarray(value, copy=True)


def scan(
    xp: Namespace,
    step: Callable[..., tuple[tuple[Array, ...], tuple[Array, ...]]],
    carry: tuple[Array, ...],
    sequences: tuple[Array | None, ...],
    *,
    length: int,
    reverse: bool,
    like: tuple[Array, ...],
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """The time loop: `carry, outputs[t] = step(carry, *(s[t] for s in sequences))` for every t.

    `reverse` goes from the last t to the first. A sequence may be None, and stays None at each step. `like` has one
    array per output, of the output's shape and dtype; it decides what comes back when `length` is 0. Returns the last
    carry and the outputs stacked along time.
    """
    if array_api_compat.is_jax_namespace(xp):
        import jax

        present = tuple(s for s in sequences if s is not None)

        def body(carry: tuple[Array, ...], at_t: tuple[Array, ...]) -> Any:
            given = iter(at_t)
            return step(carry, *(None if s is None else next(given) for s in sequences))

        return jax.lax.scan(body, carry, present, length=length, reverse=reverse)  # type: ignore[no-any-return]

    outputs: list[tuple[Array, ...]] = []
    for t in range(length - 1, -1, -1) if reverse else range(length):
        carry, at_t = step(carry, *(None if s is None else s[t, ...] for s in sequences))
        outputs.append(at_t)
    if not outputs:
        return carry, tuple(zeros(xp, (0, *y.shape), y) for y in like)
    if reverse:
        outputs.reverse()
    return carry, tuple(xp.stack(list(column)) for column in zip(*outputs, strict=True))
