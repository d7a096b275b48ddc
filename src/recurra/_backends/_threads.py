"""How many threads the native kernels may use."""

from __future__ import annotations

import operator
import os
from typing import Any

from .._errors import ArgumentError, ArgumentTypeError
from ._extension import native

_chosen: int | None = None


def set_num_threads(count: int | None) -> None:
    """Let each call use at most `count` threads; None goes back to RECURRA_NUM_THREADS, or OpenMP's own number.

    Results do not depend on it, bit for bit. A call that is too small to gain from them uses fewer.

    Raises:
        ArgumentTypeError: when `count` is not an integer.
        ArgumentError: when it is below 1.

    Example:
        >>> set_num_threads(1)
        >>> get_num_threads()
        1
        >>> set_num_threads(None)
    """
    global _chosen
    _chosen = None if count is None else _checked(count)


def _checked(count: Any) -> int:
    try:
        if isinstance(count, bool):
            raise TypeError
        number = operator.index(count)
    except TypeError:
        raise ArgumentTypeError(f"set_num_threads: count must be an integer or None, got {count!r}") from None
    if number < 1:
        raise ArgumentError(f"set_num_threads: count must be a number of threads from 1 on, got {number}")
    return number


def get_num_threads() -> int:
    """How many threads a call may use.

    Raises:
        ArgumentError: when RECURRA_NUM_THREADS is not a number from 1 on.
    """
    if _chosen is not None:
        return _chosen
    found: int = native.default_threads() if native is not None else 1
    if found < 1:
        wanted = os.environ.get("RECURRA_NUM_THREADS")
        raise ArgumentError(f"cpu: RECURRA_NUM_THREADS must be a number of threads from 1 on, got {wanted!r}")
    return found


# A forked child has none of its parent's threads, and must not wait for them.
if native is not None and hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=native.forget_team)
