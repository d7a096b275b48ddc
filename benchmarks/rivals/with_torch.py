"""torch.nn.LSTM, GRU and RNN: what a person would use. LSTM runs on the oneDNN that torch brings."""

from __future__ import annotations

from typing import Any

from cases import Case
from inputs import Numbers
import numpy as np
import torch

from rivals import Rival, Unavailable

MODULES = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}


def tensor(array: Any) -> torch.Tensor:
    """A copy of its own: torch must not share memory with another rival."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def as_numpy(x: torch.Tensor) -> Any:
    return x.detach().float().numpy() if x.dtype == torch.bfloat16 else x.detach().numpy()


def module_of(case: Case, given: Numbers) -> torch.nn.RNNBase:
    """The module with the case's weights."""
    module = MODULES[case.op](case.I, case.H, bidirectional=case.bidirectional, dtype=getattr(torch, case.dtype))
    with torch.no_grad():
        for d, suffix in enumerate(("", "_reverse")[: case.D]):
            for name, values in (("weight_ih", given.W), ("weight_hh", given.R)):
                getattr(module, f"{name}_l0{suffix}").copy_(tensor(values[d]))
            for name, values in (("bias_ih", given.b_input), ("bias_hh", given.b_state)):
                getattr(module, f"{name}_l0{suffix}").copy_(tensor(values[d]))
    return module


def named_gradients(case: Case, found: dict[str, torch.Tensor]) -> dict[str, Any]:
    """Gradients of x, h0, c0 and the parameters by name, as the other rivals name them."""
    suffixes = ("", "_reverse")[: case.D]
    R = [as_numpy(found[f"weight_hh_l0{s}"]) for s in suffixes]
    by_name = {
        "dx": as_numpy(found["x"]),
        "dW": np.concatenate([as_numpy(found[f"weight_ih_l0{s}"]) for s in suffixes]),
        "dR": np.stack(R) if case.bidirectional else R[0],
        "db": np.concatenate([as_numpy(found[f"bias_ih_l0{s}"]) for s in suffixes]),
    }
    for name in ("h0", "c0"):
        if name in found:
            by_name[f"d{name}"] = np.concatenate(list(as_numpy(found[name])), axis=-1)
    for name, gradient in found.items():
        if "peephole" in name:  # of recurra.torch's modules
            by_name["dpeephole"] = as_numpy(gradient).reshape(-1)
    return by_name


def offer(case: Case, given: Numbers, variant: str, threads: int) -> Rival:
    if case.options:
        raise Unavailable(f"torch.nn has no {', '.join(case.options)}")
    return rival_of(module_of(case, given), case, given)


def rival_of(module: torch.nn.Module, case: Case, given: Numbers) -> Rival:
    """A module that is called and has parameters as torch.nn's."""
    x, dy = tensor(given.x), tensor(given.dy)
    initial = {"h0": tensor(given.h0), **({"c0": tensor(given.c0)} if case.op == "lstm" else {})}

    if not case.trains:
        module.eval()
        state = tuple(initial.values()) if case.op == "lstm" else initial["h0"]

        def infer() -> torch.Tensor:
            with torch.inference_mode():
                return module(x, state)[0]

        return Rival(infer, lambda y: {"y": as_numpy(y)})

    leaves = {"x": x.requires_grad_(), **{name: s.requires_grad_() for name, s in initial.items()}}
    leaves |= dict(module.named_parameters())
    wanted = list(leaves.values())
    state = tuple(initial.values()) if case.op == "lstm" else initial["h0"]

    def forward() -> torch.Tensor:
        return module(x, state)[0]

    def named(results: Any) -> dict[str, Any]:
        y, gradients = results
        found = named_gradients(case, dict(zip(leaves, gradients, strict=True))) if gradients else {}
        return {"y": as_numpy(y), **found}

    if case.mode == "fwd":
        return Rival(forward, lambda y: named((y, None)))
    if case.mode == "fb":

        def both() -> Any:
            y = forward()
            return y, torch.autograd.grad(y, wanted, dy)

        return Rival(both, named)
    kept = forward()
    return Rival(lambda: torch.autograd.grad(kept, wanted, dy, retain_graph=True), lambda found: named((kept, found)))
