"""Moving states between PyTorch's layout of two directions and MPSGraph's."""

from __future__ import annotations

from typing import Any

from .._errors import ShapeError
from ._attributes import shape_given
from .joining import concat, stack
from .slicing import index


def join_directions(state: Any) -> Any:
    """PyTorch's [2, N, H], forward then backward, as [N, 2H]: the layout of init_state, init_cell and their gradients.

    The two are not reshapes of each other.

    Example:
        >>> import numpy as np
        >>> join_directions(np.zeros((2, 3, 8), np.float32)).shape
        (3, 16)
    """
    shape = shape_given("join_directions", state)
    if len(shape) != 3 or shape[0] != 2:
        raise ShapeError(f"join_directions: state must have shape [2, N, H], got {list(shape)}")
    return concat([index(state, 0), index(state, 1)], 1)


def split_directions(state: Any) -> Any:
    """[N, 2H] as PyTorch's [2, N, H]: the inverse of `join_directions`.

    Example:
        >>> import numpy as np
        >>> split_directions(np.zeros((3, 16), np.float32)).shape
        (2, 3, 8)
    """
    shape = shape_given("split_directions", state)
    if len(shape) != 2 or shape[1] < 0 or shape[1] % 2:
        raise ShapeError(f"split_directions: state must have shape [N, 2*H], got {list(shape)}")
    half = shape[1] // 2
    everything = slice(None)
    return stack([index(state, (everything, slice(0, half))), index(state, (everything, slice(half, None)))], 0)
