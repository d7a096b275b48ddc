"""Random configurations of torch.nn's recurrent modules, each beside the module of recurra that takes its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import recurra.torch

KINDS = ("LSTM", "GRU", "RNN")
COUNT = 70  # configurations of each kind
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5}


@dataclass(frozen=True)
class Configuration:
    kind: str
    seed: int
    T: int
    N: int
    I: int
    H: int
    form: str  # "single" is 2-D, "batch" 3-D, "packed" a PackedSequence
    initial: bool  # with hx
    loss: frozenset[str]  # of which results the loss is made: y, h_n, c_n
    options: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        words = [f"{k}={v}" for k, v in self.options if v not in (False, 0)] + ["initial"] * self.initial
        return "-".join([self.kind, str(self.seed), self.form, f"T{self.T}N{self.N}I{self.I}H{self.H}", *words])

    @property
    def keywords(self) -> dict[str, Any]:
        return dict(self.options)


def configuration(kind: str, seed: int) -> Configuration:
    """Configuration number `seed`; the same on every machine."""
    rng = np.random.default_rng([KINDS.index(kind), seed])

    def chance(p: float) -> bool:
        return bool(rng.random() < p)

    T, N, I, H = (int(rng.choice(sizes)) for sizes in ((1, 2, 5, 8), (1, 2, 3, 5), (1, 3, 6), (2, 3, 5, 9)))
    options: dict[str, Any] = {"num_layers": int(rng.integers(1, 4))}
    options |= {"bias": chance(0.7), "batch_first": chance(0.5), "bidirectional": chance(0.5)}
    losses = [["y"], ["h_n"], ["h_n", "y"]]
    if kind == "LSTM":
        losses += [["c_n"], ["c_n", "h_n", "y"]]
        options["proj_size"] = int(rng.integers(1, H)) if chance(0.5) else 0
    if kind == "RNN":
        options["nonlinearity"] = str(rng.choice(["tanh", "relu"]))
    form = ("single", "batch", "packed")[seed % 3]
    return Configuration(
        kind, seed, T, N, I, H, form, chance(0.6), frozenset(losses[seed % len(losses)]), tuple(options.items())
    )


@dataclass(frozen=True)
class Pair:
    """Both modules with equal weights, and what they are called with."""

    theirs: torch.nn.Module
    ours: torch.nn.Module
    x: torch.Tensor
    hx: tuple[torch.Tensor, ...]
    lengths: torch.Tensor | None
    configuration: Configuration

    def call(self, module: torch.nn.Module) -> dict[str, torch.Tensor]:
        """The results by name."""
        c = self.configuration
        given = (self.hx if c.kind == "LSTM" else self.hx[0]) if self.hx else None
        x: Any = self.x
        if self.lengths is not None:
            x = pack_padded_sequence(x, self.lengths, batch_first=module.batch_first, enforce_sorted=False)
        y, last = module(x, given)
        if isinstance(y, PackedSequence):
            assert all(torch.equal(a, b) for a, b in zip(y[1:], x[1:], strict=True))
            y = y.data
        return {"y": y, **dict(zip(("h_n", "c_n"), last if c.kind == "LSTM" else (last,), strict=False))}

    def gradients(self, module: torch.nn.Module, results: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Of a loss with random weights, by the names of the leaves."""
        generator = torch.Generator().manual_seed(self.configuration.seed)
        loss = 0.0
        for name in sorted(self.configuration.loss):
            weight = torch.randn(results[name].shape, generator=generator, dtype=torch.float64)
            loss = loss + (results[name] * weight.to(self.x.dtype)).sum()
        leaves = {"x": self.x, **dict(zip(("h_0", "c_0"), self.hx, strict=False)), **dict(module.named_parameters())}
        found = torch.autograd.grad(loss, list(leaves.values()), materialize_grads=True)
        return dict(zip(leaves, found, strict=True))


def pair(c: Configuration, dtype: torch.dtype) -> Pair:
    made = {}
    for name, package in (("theirs", torch.nn), ("ours", recurra.torch)):
        torch.manual_seed(c.seed)
        made[name] = getattr(package, c.kind)(c.I, c.H, dtype=dtype, **c.keywords)
    generator = torch.Generator().manual_seed(c.seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()

    columns = c.keywords["num_layers"] * (2 if c.keywords["bidirectional"] else 1)
    rows = () if c.form == "single" else (c.N,)
    sizes = (c.keywords.get("proj_size") or c.H, c.H)[: 2 if c.kind == "LSTM" else 1]
    hx = tuple(normal(columns, *rows, size) for size in sizes) if c.initial else ()
    shape = (c.T, *rows, c.I)
    if c.form != "single" and c.keywords["batch_first"]:
        shape = (c.N, c.T, c.I)
    lengths = torch.randint(1, c.T + 1, (c.N,), generator=generator) if c.form == "packed" else None
    return Pair(made["theirs"], made["ours"], normal(*shape), hx, lengths, c)


def assert_equal(ours: torch.Tensor, theirs: torch.Tensor, tolerance: float, what: str) -> None:
    """Norm-wise: the greatest difference against the greatest value, or 1."""
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), what
    if theirs.numel():
        error = (ours - theirs).abs().max().item() / max(1.0, theirs.abs().max().item())
        assert error <= tolerance, f"{what}: differs by {error:.3g}"
