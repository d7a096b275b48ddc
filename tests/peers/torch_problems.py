"""Random recurrent networks for torch.nn, and what torch.nn says about them."""

from __future__ import annotations

from collections.abc import Callable
import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import recurra


@dataclass(frozen=True)
class Kind:
    """A module of torch.nn and the op that computes the same."""

    module: Callable[..., torch.nn.RNNBase]
    op: Callable[..., Any]
    gradients: Callable[..., Any]
    descriptor: Callable[..., Any]
    module_options: dict[str, Any]
    op_options: dict[str, Any]


def _rnn(nonlinearity: str) -> Kind:
    return Kind(
        torch.nn.RNN,
        recurra.single_gate_rnn,
        recurra.single_gate_rnn_gradients,
        recurra.SingleGateRNNDescriptor,
        {"nonlinearity": nonlinearity},
        {"activation": nonlinearity},
    )


GRU_OPTIONS = {"reset_gate_first": True, "reset_after": True}
KINDS = {
    "lstm": Kind(torch.nn.LSTM, recurra.lstm, recurra.lstm_gradients, recurra.LSTMDescriptor, {}, {}),
    "gru": Kind(torch.nn.GRU, recurra.gru, recurra.gru_gradients, recurra.GRUDescriptor, {}, GRU_OPTIONS),
    "rnn_tanh": _rnn("tanh"),
    "rnn_relu": _rnn("relu"),
}


@dataclass(frozen=True)
class Configuration:
    kind: str
    seed: int
    T: int
    N: int
    I: int
    H: int
    layers: int
    bias: bool
    bidirectional: bool
    initial: bool  # initial states are given
    packed: bool  # rows have lengths of their own, unsorted
    loss: frozenset[str]  # of which results the loss is made: y, h_n, c_n

    def __str__(self) -> str:
        words = [word for word in ("bias", "bidirectional", "initial", "packed") if getattr(self, word)]
        sizes = f"T{self.T}N{self.N}I{self.I}H{self.H}x{self.layers}"
        return "-".join([self.kind, str(self.seed), sizes, *words, "+".join(sorted(self.loss))])


def configuration(kind: str, seed: int) -> Configuration:
    """Configuration number `seed`; the same on every machine."""
    rng = np.random.default_rng([list(KINDS).index(kind), seed])
    bias, bidirectional, initial, packed = (bool(rng.random() < chance) for chance in (0.7, 0.5, 0.6, 0.5))
    T, N = (4, 5, 7) if packed else (1, 2, 5, 7), (3, 4, 5) if packed else (1, 2, 3, 5)
    T, N, I, H = (int(rng.choice(sizes)) for sizes in (T, N, (1, 3, 4, 6), (1, 2, 5, 7)))
    layers = int(rng.integers(1, 4))
    losses = [["y"], ["h_n"], ["h_n", "y"]]
    if kind == "lstm":
        losses += [["c_n"], ["c_n", "h_n"], ["c_n", "h_n", "y"]]
    loss = frozenset(losses[seed % len(losses)])
    return Configuration(kind, seed, T, N, I, H, layers, bias, bidirectional, initial, packed, loss)


@dataclass(frozen=True)
class Problem:
    """A configuration with its numbers: float64 tensors whose values fit into the dtype to be tested."""

    configuration: Configuration
    module: torch.nn.RNNBase
    x: torch.Tensor  # [T, N, I], NaN where a packed row has no step
    initial: dict[str, torch.Tensor]  # h_0 and c_0, [layers*D, N, H]
    lengths: torch.Tensor | None
    cotangents: dict[str, torch.Tensor]  # of y, h_n, c_n: the loss is the sum of their products

    def to(self, dtype: torch.dtype) -> Problem:
        def cast(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            return {name: x.to(dtype) for name, x in tensors.items()}

        module = copy.deepcopy(self.module).to(dtype)
        return Problem(
            self.configuration, module, self.x.to(dtype), cast(self.initial), self.lengths, cast(self.cotangents)
        )

    @property
    def directions(self) -> int:
        return 2 if self.configuration.bidirectional else 1

    @property
    def leaves(self) -> dict[str, torch.Tensor]:
        """All that is differentiated, by name."""
        return {"x": self.x, **self.initial, **dict(self.module.named_parameters())}

    def loss(self, results: dict[str, torch.Tensor]) -> torch.Tensor:
        return sum((results[name] * weight).sum() for name, weight in self.cotangents.items())

    def of_layer(self, states: torch.Tensor, layer: int) -> torch.Tensor:
        """One layer's part of [layers*D, N, H], as the ops take it: [1, N, H], or [N, 2*H]."""
        part = states[layer * self.directions : (layer + 1) * self.directions]
        return recurra.join_directions(part) if self.directions == 2 else part


def problem(c: Configuration, dtype: str) -> Problem:
    generator = torch.Generator().manual_seed(c.seed)

    def normal(scale: float, *shape: int) -> torch.Tensor:
        numbers = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
        return numbers.to(getattr(torch, dtype)).to(torch.float64)

    options = {"num_layers": c.layers, "bias": c.bias, "bidirectional": c.bidirectional, "dtype": torch.float64}
    module = KINDS[c.kind].module(c.I, c.H, **options, **KINDS[c.kind].module_options)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(normal(0.4, *parameter.shape))
    D = 2 if c.bidirectional else 1
    states = (c.layers * D, c.N, c.H)
    names = ("h_0", "c_0") if c.kind == "lstm" else ("h_0",)
    shapes = {"y": (c.T, c.N, D * c.H), "h_n": states, "c_n": states}
    x = normal(1.0, c.T, c.N, c.I)
    initial = {name: normal(0.8, *states) for name in names} if c.initial else {}
    cotangents = {name: normal(1.0, *shapes[name]) for name in sorted(c.loss)}
    lengths = None
    if c.packed:
        lengths = torch.randint(1, c.T + 1, (c.N,), generator=generator)
        x[torch.arange(c.T)[:, None] >= lengths] = torch.nan
    return Problem(c, module, x, initial, lengths, cotangents)


@dataclass(frozen=True)
class Answer:
    results: dict[str, Any]  # y, h_n and (LSTM) c_n
    gradients: dict[str, Any]  # by the names of the leaves


def asked_of_torch(p: Problem) -> Answer:
    """What torch.nn says."""
    leaves = differentiable(p)
    initial = tuple(leaves[name] for name in p.initial)
    given = (initial if p.configuration.kind == "lstm" else initial[0]) if initial else None
    x = leaves["x"]
    if p.lengths is None:
        y, last = p.module(x, given)
    else:
        y, last = p.module(pack_padded_sequence(x, p.lengths, enforce_sorted=False), given)
        y, _ = pad_packed_sequence(y, total_length=p.configuration.T)
    results = {"y": y, **dict(zip(("h_n", "c_n"), last if isinstance(last, tuple) else (last,), strict=False))}
    return differentiated(p, results, leaves)


def differentiable(p: Problem) -> dict[str, torch.Tensor]:
    return {name: x if x.requires_grad else x.clone().requires_grad_() for name, x in p.leaves.items()}


def differentiated(p: Problem, results: dict[str, torch.Tensor], leaves: dict[str, torch.Tensor]) -> Answer:
    gradients = torch.autograd.grad(p.loss(results), list(leaves.values()), materialize_grads=True)
    return Answer(results, dict(zip(leaves, gradients, strict=True)))
