"""`explain`: which backend ran an eager call, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._executable import table
from ._op import LISTENERS, Choice, Op, ShapedType


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """Call `function` and print what ran: a table of ops, input types, backends, and the refusals of other backends.

    Example:
        >>> import numpy as np, recurra
        >>> text = recurra.explain(recurra.gru, np.ones((2, 1, 6), np.float32), np.ones((6, 2), np.float32))
        >>> "cpu" in text
        True
    """
    rows = [("op", "inputs", "backend", "reason")]

    def listen(op: Op, types: Sequence[ShapedType], choice: Choice) -> None:
        rows.append((op.name, ", ".join(map(repr, types)), choice.backend, choice.reason))

    LISTENERS.append(listen)
    try:
        function(*args, **kwargs)
    finally:
        LISTENERS.remove(listen)
    return table(rows)
