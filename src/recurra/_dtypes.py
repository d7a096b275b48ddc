"""The dtypes of recurra: a name that compares equal to every library's own spelling of it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ._errors import DTypeError

_KINDS: dict[str, str] = {
    "bool": "bool",
    **{f"int{bits}": "int" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": "uint" for bits in (8, 16, 32, 64)},
    **dict.fromkeys(("float16", "bfloat16", "float32", "float64"), "float"),
    **dict.fromkeys(("complex64", "complex128"), "complex"),
}
# Unit roundoff times two, as in finfo.eps; bfloat16 has 8 significant bits.
_EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


class DType(str):
    """A dtype by name. Equal to `"float32"`, `numpy.float32`, `torch.float32`, … and usable as any of them by name."""

    __slots__ = ()

    @property
    def kind(self) -> str:
        """One of `"bool"`, `"int"`, `"uint"`, `"float"`, `"complex"`."""
        return _KINDS[str(self)]

    @property
    def is_float(self) -> bool:
        """Whether this is one of float16, bfloat16, float32, float64."""
        return self.kind == "float"

    @property
    def is_half(self) -> bool:
        """Whether this is float16 or bfloat16, which compute in float32."""
        return str(self) in ("float16", "bfloat16")

    @property
    def eps(self) -> float:
        """Distance from 1 to the next number of a float dtype."""
        return _EPS[str(self)]

    @property
    def compute(self) -> DType:
        """The dtype that arithmetic is done in: float32 for the half types, otherwise this one."""
        return float32 if self.is_half else self

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype (bfloat16: the one of ml_dtypes)."""
        return np.dtype(ml_dtypes.bfloat16) if self == "bfloat16" else np.dtype(str(self))

    def __str__(self) -> str:
        return str.__str__(self)

    def __repr__(self) -> str:
        return f"recurra.{str.__str__(self)}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return str.__eq__(self, other)
        try:
            return str.__eq__(self, as_dtype(other))
        except DTypeError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)


_BY_NAME = {name: DType(name) for name in _KINDS}
# Names that libraries print and that are not ours.
_BY_NAME |= {"half": _BY_NAME["float16"], "float": _BY_NAME["float32"], "double": _BY_NAME["float64"]}

bool_ = _BY_NAME["bool"]
int8, int16, int32, int64 = (_BY_NAME[f"int{bits}"] for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_BY_NAME[f"uint{bits}"] for bits in (8, 16, 32, 64))
float16, bfloat16 = _BY_NAME["float16"], _BY_NAME["bfloat16"]
float32, float64 = _BY_NAME["float32"], _BY_NAME["float64"]
complex64, complex128 = _BY_NAME["complex64"], _BY_NAME["complex128"]

_PYTHON = {bool: bool_, int: int64, float: float32}
_seen: dict[Any, DType] = {}


def as_dtype(dtype: Any, where: str = "") -> DType:
    """The `DType` meant by a name, a NumPy dtype or scalar type, a torch, JAX or CuPy dtype, or `bool`, `int`, `float`.

    Raises:
        DTypeError: when `dtype` names none that recurra knows; `where` says which op was asked.

    Example:
        >>> import numpy as np
        >>> as_dtype(np.float16)
        recurra.float16
    """
    try:
        # Beside its type: array_api_strict's dtypes have NumPy's hashes, and warn when they are compared with them.
        found = _seen.get((type(dtype), dtype))
    except TypeError:  # unhashable, so certainly not a dtype
        raise _unknown(dtype, where) from None
    if found is None:
        found = _seen[type(dtype), dtype] = _look_up(dtype, where)
    return found


def _look_up(dtype: Any, where: str) -> DType:
    if dtype is None:
        raise _unknown(dtype, where)
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]
    # "torch.float32", "<class 'numpy.float32'>", "float32", array_api_strict's own objects: all end in the name.
    candidates = [getattr(dtype, "name", None), getattr(dtype, "__name__", None), str(dtype)]
    for text in candidates:
        if isinstance(text, str):
            name = text.rsplit(".", 1)[-1].strip("'>_")
            if name in _BY_NAME:
                return _BY_NAME[name]
    try:
        return _BY_NAME[np.dtype(dtype).name]
    except (TypeError, ValueError, SyntaxError, KeyError):
        raise _unknown(dtype, where) from None


def _unknown(dtype: object, where: str) -> DTypeError:
    start = f"{where}: dtype" if where else "dtype:"
    return DTypeError(f"{start} must be one of {', '.join(_KINDS)}, got {dtype!r}")
