"""Calls of the ops on tensors: the oracle's cases, and one with everything."""

from __future__ import annotations

from typing import Any

import numpy as np
from oracle.cases import Case
import torch

import recurra
import recurra.torch
from recurra.torch._ops import BY_NAME
from recurra.torch._ops_text import text_of

FUNCTIONS = {"lstm": recurra.torch.lstm, "gru": recurra.torch.gru, "single_gate_rnn": recurra.torch.single_gate_rnn}
DESCRIPTORS = {
    "lstm": recurra.LSTMDescriptor,
    "gru": recurra.GRUDescriptor,
    "single_gate_rnn": recurra.SingleGateRNNDescriptor,
}
GATES = {"lstm": 4, "gru": 3, "single_gate_rnn": 1}


def tensors(arrays: dict[str, Any], requires_grad: bool = False) -> dict[str, torch.Tensor]:
    """A case's arrays as tensors; absent ones left out, padding cleared."""
    given = {k: torch.from_numpy(np.asarray(np.nan_to_num(v))) for k, v in arrays.items() if v is not None}
    return {k: t.requires_grad_(requires_grad and differentiable(k, t)) for k, t in given.items()}


def differentiable(name: str, tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and name != "mask"


def call(op: str, inputs: dict[str, Any], descriptor: Any) -> Any:
    """The op's public function."""
    rest = {k: v for k, v in inputs.items() if k not in ("source", "recurrent_weight")}
    return FUNCTIONS[op](inputs["source"], inputs["recurrent_weight"], **rest, descriptor=descriptor)


def in_schema(name: str, given: dict[str, Any], descriptor: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of torch.ops.recurra.<name>."""
    return tuple(given.get(n) for n in BY_NAME[name].arguments), {"descriptor": text_of(descriptor)}


def gradient_arguments(case: Case, requires_grad: bool) -> dict[str, Any]:
    """The arguments of the gradient op after the forward op has run."""
    inputs = tensors(case.inputs)
    outputs = call(case.op, inputs, DESCRIPTORS[case.op](**case.options, training=True))
    remembered = {"z_state": outputs.z, "output_fwd": outputs.h, "cell_output_fwd": getattr(outputs, "c", None)}
    given = {**inputs, **tensors(case.gradients_in), **{k: v for k, v in remembered.items() if v is not None}}
    return {k: t.requires_grad_(requires_grad and differentiable(k, t)) for k, t in given.items()}


def full(op: str, *, seed: int = 0, T: int = 4, N: int = 2, I: int = 3, H: int = 3, D: int = 1) -> dict[str, Any]:
    """Every differentiable argument of an op, float64, small."""
    generator = torch.Generator().manual_seed(seed)
    G = GATES[op]

    def normal(*shape: int) -> torch.Tensor:
        return 0.5 * torch.randn(shape, generator=generator, dtype=torch.float64)

    inputs = {
        "source": normal(T, N, I),
        "recurrent_weight": normal(*([2] if D == 2 else []), G * H, H),
        "input_weight": normal(D * G * H, I),
        "bias": normal(D * G * H),
        "init_state": normal(N, D * H),
    }
    if op == "lstm":
        inputs |= {"init_cell": normal(N, D * H), "peephole": normal(*([2] if D == 2 else []), 4 * H)}
    if op == "gru":
        inputs |= {"secondary_bias": normal(D * H)}
    return inputs
