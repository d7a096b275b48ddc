"""What a graph tensor can do by operator and by method. Each line names the op that it applies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _arrays
from ._errors import ArgumentTypeError

if TYPE_CHECKING:
    from ._ir import Tensor


def _apply(name: str, *inputs: Any, **attrs: Any) -> Tensor:
    from ._ir import apply  # the tensors of _ir inherit from this class

    return apply(name, *inputs, **attrs)  # type: ignore[no-any-return]


class Operators:
    """Arithmetic, comparison, indexing and the common methods of arrays."""

    __slots__ = ()

    # `==` of two tensors stays identity, so that they can be keys of feeds and gradients. Beside values it would be a
    # False that `mask * (ids == 0)` multiplies by.
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int | float | complex) or _arrays.is_array(other):
            raise ArgumentTypeError(
                f"equal: == says whether two tensors are the same one (ops.equal compares values), got {self!r} beside "
                f"{'a number' if not _arrays.is_array(other) else f'an array of {_arrays.library(other)}'}"
            )
        return self is other

    def __add__(self, other: Any) -> Tensor:
        return _apply("add", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _apply("add", other, self)

    def __sub__(self, other: Any) -> Tensor:
        return _apply("subtract", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _apply("subtract", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return _apply("multiply", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _apply("multiply", other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return _apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _apply("divide", other, self)

    def __mod__(self, other: Any) -> Tensor:
        return _apply("floor_mod", self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return _apply("floor_mod", other, self)

    def __pow__(self, other: Any) -> Tensor:
        return _apply("power", self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return _apply("power", other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return _apply("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return _apply("matmul", other, self)

    def __neg__(self) -> Tensor:
        return _apply("negative", self)

    def __abs__(self) -> Tensor:
        return _apply("absolute", self)

    def __lt__(self, other: Any) -> Tensor:
        return _apply("less", self, other)

    def __le__(self, other: Any) -> Tensor:
        return _apply("less_equal", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return _apply("greater", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return _apply("greater_equal", self, other)

    def __and__(self, other: Any) -> Tensor:
        return _apply("logical_and", self, other)

    def __or__(self, other: Any) -> Tensor:
        return _apply("logical_or", self, other)

    def __xor__(self, other: Any) -> Tensor:
        return _apply("logical_xor", self, other)

    def __invert__(self) -> Tensor:
        return _apply("logical_not", self)

    def __getitem__(self, key: Any) -> Tensor:
        from .ops.slicing import index

        return index(self, key)  # type: ignore[no-any-return]

    def __iter__(self) -> Any:
        raise ArgumentTypeError(
            f"iter: a graph tensor cannot be iterated (use unstack, split or an index), got {self!r}"
        )

    @property
    def T(self) -> Tensor:
        """The matrix transposed: the last two axes swapped."""
        return _apply("swap_axes", self, first=-2, second=-1)

    def reshape(self, *shape: Any) -> Tensor:
        """`recurra.ops.reshape`."""
        from .ops.movement import reshape

        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return reshape(self, sizes)  # type: ignore[no-any-return]

    def transpose(self, permutation: Any = None) -> Tensor:
        """`recurra.ops.transpose`."""
        from .ops.movement import transpose

        return transpose(self, permutation)  # type: ignore[no-any-return]

    def squeeze(self, axes: Any = None) -> Tensor:
        """`recurra.ops.squeeze`."""
        from .ops.movement import squeeze

        return squeeze(self, axes)  # type: ignore[no-any-return]

    def astype(self, dtype: Any) -> Tensor:
        """`recurra.ops.cast`."""
        from .ops.casting import cast

        return cast(self, dtype)  # type: ignore[no-any-return]

    def sum(self, axes: Any = None, *, keepdims: bool = False) -> Tensor:
        """`recurra.ops.reduce_sum`, with axes dropped unless `keepdims` (the function keeps them, as Apple does)."""
        return self._reduce("reduce_sum", axes, keepdims)

    def mean(self, axes: Any = None, *, keepdims: bool = False) -> Tensor:
        """`recurra.ops.mean`, with axes dropped unless `keepdims`."""
        return self._reduce("mean", axes, keepdims)

    def max(self, axes: Any = None, *, keepdims: bool = False) -> Tensor:
        """`recurra.ops.reduce_max`, with axes dropped unless `keepdims`."""
        return self._reduce("reduce_max", axes, keepdims)

    def min(self, axes: Any = None, *, keepdims: bool = False) -> Tensor:
        """`recurra.ops.reduce_min`, with axes dropped unless `keepdims`."""
        return self._reduce("reduce_min", axes, keepdims)

    def _reduce(self, name: str, axes: Any, keepdims: bool) -> Tensor:
        from .ops import reduction

        return getattr(reduction, name)(self, axes, keepdims=keepdims)  # type: ignore[no-any-return]
