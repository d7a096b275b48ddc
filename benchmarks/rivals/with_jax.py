"""JAX: a scan over the steps, compiled, with every option. In a process of its own."""

from __future__ import annotations

from typing import Any

from cases import Case
from inputs import Numbers
import jax
from jax import numpy as jnp
import numpy as np

from rivals import Rival, Unavailable


def cell(op: str, p: dict[str, Any], state: Any, projected: Any, mask: Any) -> Any:
    """One step: the next state. torch.nn's gate order."""
    if op == "rnn":
        (h,) = state
        return (jnp.tanh(projected + h @ p["R"].T),)
    if op == "gru":
        (h,) = state
        r, z, n = jnp.split(projected, 3, -1)
        hr, hz, hn = jnp.split(h @ p["R"].T, 3, -1)
        z = jax.nn.sigmoid(z + hz)
        return ((1 - z) * jnp.tanh(n + jax.nn.sigmoid(r + hr) * (hn + p["b_inside"])) + z * h,)
    h, c = state
    a = projected + (h * mask) @ p["R"].T
    if "peephole" in p:
        a += jnp.tile(c, 4) * p["peephole"]
    i, f, g, o = jnp.split(a, 4, -1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def direction(op: str, p: dict[str, Any], x: Any, state: Any, steps: dict[str, Any], backwards: bool) -> Any:
    """All steps of one direction, [T, N, H]."""
    projected = x @ p["W"].T + p["b"]
    # Without the options no step carries what nobody asks for.
    exists = jnp.arange(x.shape[0])[:, None] < steps["lengths"] if "lengths" in steps else None

    def step(before: Any, at: Any) -> Any:
        projected, resets, exists = at
        if resets is not None:
            before = tuple(jnp.where(resets[:, None], 0, s) for s in before)
        after = cell(op, p, before, projected, steps.get("mask", 1))
        if exists is None:
            return after, after[0]
        after = tuple(jnp.where(exists[:, None], a, b) for a, b in zip(after, before, strict=True))
        return after, jnp.where(exists[:, None], after[0], 0)

    return jax.lax.scan(step, state, (projected, steps.get("resets"), exists), reverse=backwards)[1]


def offer(case: Case, given: Numbers, variant: str, threads: int) -> Rival:
    if case.dtype != "float32":
        raise Unavailable("written for float32 only")
    p = [{"W": given.W[d], "R": given.R[d], "b": given.b_input[d] + given.b_state[d]} for d in range(case.D)]
    for d in range(case.D if case.op == "gru" else 0):  # the candidate's recurrent bias is inside the reset product
        p[d]["b_inside"] = given.b_state[d][2 * case.H :]
        p[d]["b"][2 * case.H :] -= p[d]["b_inside"]
    if "peephole" in case.options:
        p[0]["peephole"] = given.peephole
    initial = [given.h0, *([given.c0] if case.op == "lstm" else [])]
    steps = {name: getattr(given, name) for name in ("mask", "lengths", "resets") if name in case.options}
    steps, dy = jax.device_put(steps), jax.device_put(given.dy)
    inputs = jax.device_put((given.x, p, initial))

    def forward(x: Any, p: Any, initial: Any) -> Any:
        halves = [direction(case.op, p[d], x, tuple(s[d] for s in initial), steps, d == 1) for d in range(case.D)]
        return jnp.concatenate(halves, -1)

    def named(found: Any) -> dict[str, Any]:
        y, (dx, dp, dinitial) = found
        one = case.D == 1
        results = {
            "y": y,
            "dx": dx,
            "dW": np.concatenate([np.asarray(g["W"]) for g in dp]),
            "dR": dp[0]["R"] if one else np.stack([np.asarray(g["R"]) for g in dp]),
            "db": np.concatenate([np.asarray(g["b"]) for g in dp]),
            "dh0": np.concatenate(list(np.asarray(dinitial[0])), -1),
        }
        if "peephole" in dp[0]:
            results["dpeephole"] = dp[0]["peephole"]
        if case.op == "lstm":
            results["dc0"] = np.concatenate(list(np.asarray(dinitial[1])), -1)
        return {name: np.asarray(value) for name, value in results.items()}

    if not case.trains:
        infer = jax.jit(forward)
        return Rival(lambda: infer(*inputs).block_until_ready(), lambda y: {"y": np.asarray(y)})

    @jax.jit
    def both(x: Any, p: Any, initial: Any) -> Any:
        y, pull = jax.vjp(forward, x, p, initial)
        return y, pull(dy)

    if case.mode == "fb":
        return Rival(lambda: jax.block_until_ready(both(*inputs)), named)
    # What jax.vjp saves leaves the compiled forward as the leaves of its pull-back, a tree.
    saving = jax.jit(lambda *given: jax.vjp(forward, *given))
    if case.mode == "fwd":
        return Rival(lambda: jax.block_until_ready(saving(*inputs)), lambda out: {"y": np.asarray(out[0])})
    y, pull = saving(*inputs)
    back = jax.jit(lambda pull, dy: pull(dy))
    return Rival(lambda: jax.block_until_ready(back(pull, dy)), lambda found: named((y, found)))
