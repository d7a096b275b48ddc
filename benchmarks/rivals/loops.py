"""torch loops over the steps, for what torch.nn has not: eager, torch.jit.script, torch.compile of the cell.

The input's product is one for all steps, as a person who cares about speed writes it. With dropout the mask is drawn in
the call, and the numbers that are compared are those without it.
"""

from __future__ import annotations

from typing import Any
import warnings

from cases import Case
from inputs import DROPPED, Numbers
import torch

from rivals import Rival, Unavailable
from rivals.with_torch import as_numpy, tensor

State = tuple[torch.Tensor, torch.Tensor]


def cell(
    projected: torch.Tensor,  # [N, 4*H]
    h: torch.Tensor,
    c: torch.Tensor,
    R: torch.Tensor,
    peephole: torch.Tensor,  # [4*H]
    mask: torch.Tensor | None,  # [N, H]
) -> tuple[torch.Tensor, torch.Tensor]:
    """One step of an LSTM with peepholes of all gates and a recurrent mask."""
    masked = h if mask is None else h * mask
    a = torch.addmm(projected, masked, R.t()) + c.repeat(1, 4) * peephole
    i, f, g, o = a.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def plain_loop(
    x: torch.Tensor,  # [T, N, I]
    W: torch.Tensor,
    R: torch.Tensor,
    b: torch.Tensor,
    peephole: torch.Tensor,
    mask: torch.Tensor | None,
    h: torch.Tensor,
    c: torch.Tensor,
) -> torch.Tensor:
    projected = torch.nn.functional.linear(x, W, b)
    ys: list[torch.Tensor] = []
    for t in range(x.shape[0]):
        h, c = cell(projected[t], h, c, R, peephole, mask)
        ys.append(h)
    return torch.stack(ys)


def loop_with_episodes(
    x: torch.Tensor,
    W: torch.Tensor,
    R: torch.Tensor,
    b: torch.Tensor,
    peephole: torch.Tensor,
    mask: torch.Tensor | None,
    h: torch.Tensor,
    c: torch.Tensor,
    exists: torch.Tensor,  # [T, N, 1]: the row has this step
    goes_on: torch.Tensor,  # [T, N, 1]: no episode begins here
) -> torch.Tensor:
    projected = torch.nn.functional.linear(x, W, b)
    ys: list[torch.Tensor] = []
    for t in range(x.shape[0]):
        h, c = cell(projected[t], h * goes_on[t], c * goes_on[t], R, peephole, mask)
        # States after a row's end are not read by any step that counts.
        ys.append(h * exists[t])
    return torch.stack(ys)


def ways(variant: str, with_episodes: bool) -> Any:
    """The loop in the way asked for."""
    loop = loop_with_episodes if with_episodes else plain_loop
    if variant == "script":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return torch.jit.script(loop)
    if variant == "compile":
        # A cell of its own: the compiled one stands where the loops look for `cell`.
        namespace = dict(globals(), cell=torch.compile(cell))
        return type(loop)(loop.__code__, namespace, loop.__name__)
    return loop


def offer(case: Case, given: Numbers, variant: str, threads: int) -> Rival:
    if case.op != "lstm" or "peephole" not in case.options or not {"mask", "dropout"} & set(case.options):
        raise Unavailable("written for LSTM with peephole and a mask")
    leaves = {
        "x": tensor(given.x),
        "W": tensor(given.W[0]),
        "R": tensor(given.R[0]),
        "b": tensor(given.b_input[0] + given.b_state[0]),
        "peephole": tensor(given.peephole),
        "h0": tensor(given.h0[0]),
        "c0": tensor(given.c0[0]),
    }
    mask = tensor(given.mask) if "mask" in case.options else None
    dy = tensor(given.dy)
    episodes = []
    if "lengths" in case.options:
        steps = torch.arange(case.T)[:, None]
        episodes = [steps < torch.from_numpy(given.lengths), ~torch.from_numpy(given.resets)]
        episodes = [e[..., None].float() for e in episodes]
    loop = ways(variant, bool(episodes))

    def run(mask: torch.Tensor | None) -> torch.Tensor:
        x, W, R, b, peephole, h0, c0 = leaves.values()
        return loop(x, W, R, b, peephole, mask, h0, c0, *episodes)

    if not case.trains:

        def infer() -> torch.Tensor:
            with torch.inference_mode():
                return run(mask)

        return Rival(infer, lambda y: {"y": as_numpy(y)})
    for leaf in leaves.values():
        leaf.requires_grad_()
    draws = "dropout" in case.options

    def forward() -> torch.Tensor:
        if not draws:
            return run(mask)
        drawn = torch.empty(case.N, case.H).bernoulli_(1 - DROPPED)
        return run(drawn.div_(1 - DROPPED))

    def gradients(y: torch.Tensor, **how: bool) -> Any:
        return torch.autograd.grad(y, list(leaves.values()), dy, **how)

    def named(results: Any) -> dict[str, Any]:
        y, found = results
        return {"y": as_numpy(y), **{f"d{n}": as_numpy(g) for n, g in zip(leaves, found or (), strict=False)}}

    def both() -> Any:
        y = forward()
        return y, gradients(y)

    def without_dropout() -> Any:
        y = run(None)
        return y, gradients(y)

    if case.mode == "fwd":
        return Rival(forward, lambda y: named((y, None)))
    if case.mode == "fb":
        return Rival(both, (lambda _: named(without_dropout())) if draws else named)
    kept = forward()
    return Rival(lambda: gradients(kept, retain_graph=True), lambda found: named((kept, found)))
