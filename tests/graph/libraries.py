"""Running a graph with the arrays of every library, and under jax.jit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_strict
import jax
import jax.numpy as jnp
import numpy as np
import torch

from recurra import Graph

# From a graph, values by placeholder, and targets, to the targets' values.
Run = Callable[..., list[np.ndarray]]


def eager(make: Callable[[np.ndarray], Any]) -> Run:
    def run(graph: Graph, feeds: dict[Any, Any], targets: Any) -> list[np.ndarray]:
        results = graph.run({t: make(np.array(v, t.dtype.numpy)) for t, v in feeds.items()}, list(targets))
        kind = type(make(np.zeros(1, np.float32)))
        assert all(isinstance(r, kind) for r in results)
        return [np.asarray(r) for r in results]

    return run


def jitted(graph: Graph, feeds: dict[Any, Any], targets: Any) -> list[np.ndarray]:
    arrays = [jnp.asarray(np.array(v, t.dtype.numpy)) for t, v in feeds.items()]
    run = jax.jit(lambda fed: graph.run(dict(zip(feeds, fed, strict=True)), list(targets)))
    return [np.asarray(r) for r in run(arrays)]


RUNS = {
    "numpy": eager(np.asarray),
    "torch": eager(torch.from_numpy),
    "jax": eager(jnp.asarray),
    "array_api_strict": eager(array_api_strict.asarray),
    "jit": jitted,
}
