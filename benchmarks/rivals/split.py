"""torch.nn.LSTM or GRU on rows cut into episodes and padded, as reinforcement learning libraries do it.

Every reset begins an episode; the first one of a row begins with the row's initial state, the others with zeros.
Cutting, padding and putting together again belong to the call, since resets are new in every batch.
"""

from __future__ import annotations

from typing import Any

from cases import Case
from inputs import Numbers
import torch

from rivals import Rival, Unavailable
from rivals.with_torch import as_numpy, module_of, named_gradients, tensor


def offer(case: Case, given: Numbers, variant: str, threads: int) -> Rival:
    if case.options != ("resets",) or case.bidirectional or case.dtype != "float32":
        raise Unavailable("written for resets only")
    module, x, dy = module_of(case, given), tensor(given.x), tensor(given.dy)
    initial = {"h0": tensor(given.h0), **({"c0": tensor(given.c0)} if case.op == "lstm" else {})}
    resets = torch.from_numpy(given.resets.copy())

    def forward() -> torch.Tensor:
        # Rows one after the other: step t of row n is number n*T + t.
        begins = resets.t().clone()  # [N, T]
        keeps = ~begins[:, 0]
        begins[:, 0] = True
        starts = begins.flatten().nonzero()[:, 0]  # [E]
        number = torch.cumsum(begins.flatten(), 0) - 1  # [N*T]: which episode
        step = torch.arange(case.N * case.T) - starts[number]  # [N*T]: which step of it
        row = starts // case.T
        goes_on = ((starts % case.T == 0) & keeps[row])[:, None]  # [E, 1]: begins with its row's initial state
        longest = int(step.max()) + 1
        padded = x.new_zeros(longest, len(starts), case.I)
        padded = padded.index_put((step, number), x.transpose(0, 1).reshape(-1, case.I))
        states = [(s[0][row] * goes_on)[None] for s in initial.values()]
        y, _ = module(padded, tuple(states) if case.op == "lstm" else states[0])
        return y[step, number].view(case.N, case.T, case.H).transpose(0, 1)

    if not case.trains:
        module.eval()

        def infer() -> torch.Tensor:
            with torch.inference_mode():
                return forward()

        return Rival(infer, lambda y: {"y": as_numpy(y)})
    leaves = {"x": x.requires_grad_(), **{name: s.requires_grad_() for name, s in initial.items()}}
    leaves |= dict(module.named_parameters())

    def named(results: Any) -> dict[str, Any]:
        y, gradients = results
        return {"y": as_numpy(y), **named_gradients(case, dict(zip(leaves, gradients, strict=True)))}

    def both() -> Any:
        y = forward()
        return y, torch.autograd.grad(y, list(leaves.values()), dy)

    if case.mode != "fb":
        raise Unavailable("written for inference and forward+backward")
    return Rival(both, named)
