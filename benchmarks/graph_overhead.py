"""What a graph costs above the array library's own calls: 200 tiny operations, microseconds a node.

python benchmarks/run.py --graph-overhead
"""

from __future__ import annotations

from collections.abc import Callable
import importlib.util
import statistics
import time
from typing import Any

import numpy as np

import recurra
from recurra import ops

NODES = 200
REPEATS = 60


def chain(x: Any, add: Callable[..., Any], multiply: Callable[..., Any], tanh: Callable[..., Any]) -> Any:
    """200 calls, each reading the one before."""
    y = x
    for i in range(NODES // 4):
        y = multiply(add(y, x), x) if i % 2 else add(multiply(y, x), x)
        y = add(tanh(y), x)
    return y


def libraries() -> dict[str, tuple[Any, Any]]:
    """Name -> (namespace, a small array)."""
    values = np.linspace(-1, 1, 8, dtype=np.float32)
    found: dict[str, tuple[Any, Any]] = {"numpy": (np, values)}
    if importlib.util.find_spec("torch"):
        import torch

        found["torch"] = (torch, torch.from_numpy(values))
    if importlib.util.find_spec("jax"):
        import jax.numpy as jnp

        found["jax"] = (jnp, jnp.asarray(values))
    return found


def measure() -> list[dict[str, Any]]:
    """Rows of the table. The two rivals alternate, so that a busy machine disturbs both."""
    graph = recurra.Graph()
    x = graph.placeholder([8])
    y = chain(x, ops.add, ops.multiply, ops.tanh)
    executable = graph.compile([x], y)
    rows = []
    for name, (xp, array) in libraries().items():
        plain = lambda xp=xp, a=array: chain(a, xp.add, xp.multiply, xp.tanh)  # noqa: E731
        run = lambda a=array: executable.run([a])  # noqa: E731
        np.testing.assert_allclose(np.asarray(run()), np.asarray(plain()), rtol=1e-6)
        times: dict[str, list[float]] = {"library": [], "graph": []}
        for _ in range(REPEATS):
            for which, call in (("library", plain), ("graph", run)):
                start = time.perf_counter()
                call()
                times[which].append((time.perf_counter() - start) / NODES * 1e6)
        library, whole = statistics.median(times["library"]), statistics.median(times["graph"])
        rows.append(
            {
                "library": name,
                "library us/node": library,
                "graph us/node": whole,
                "overhead us/node": whole - library,
                "least overhead": min(times["graph"]) - min(times["library"]),
            }
        )
    return rows


def table() -> str:
    """`measure` as text."""
    rows = measure()
    head = list(rows[0])
    cells = [head] + [[f"{v:.2f}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    return "\n".join("  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in cells)
