"""Gradients of the oracle, by autograd of its forward: there is no hand-written backward equation here to be wrong."""

from __future__ import annotations

import torch
from torch import Tensor

from oracle.forward import Inputs, visit

# The order of the gradient ops' results (contract 1.2). Mask, lengths and resets are never differentiated.
DIFFERENTIABLE = {
    "single_gate_rnn": ("source", "recurrent_weight", "input_weight", "bias", "init_state"),
    "lstm": ("source", "recurrent_weight", "input_weight", "bias", "peephole", "init_state", "init_cell"),
    "gru": ("source", "recurrent_weight", "input_weight", "bias", "init_state", "secondary_bias"),
}


def single_gate_rnn_gradients(inputs: Inputs, options: dict, gradients_in: Inputs) -> dict[str, Tensor]:
    """`gradients_in`: source_gradient [T, N, D*H] and state_gradient [N, D*H], each may be None."""
    return gradients("single_gate_rnn", inputs, options, gradients_in)


def lstm_gradients(inputs: Inputs, options: dict, gradients_in: Inputs) -> dict[str, Tensor]:
    """As the RNN's, and cell_gradient [N, D*H] and cell_sequence_gradient [T, N, D*H]."""
    return gradients("lstm", inputs, options, gradients_in)


def gru_gradients(inputs: Inputs, options: dict, gradients_in: Inputs) -> dict[str, Tensor]:
    """As the RNN's."""
    return gradients("gru", inputs, options, gradients_in)


def gradients(op: str, inputs: Inputs, options: dict, gradients_in: Inputs) -> dict[str, Tensor]:
    """One gradient per given differentiable input, in the op's order and in the shape of the input."""
    leaves = {
        name: inputs[name].detach().requires_grad_() for name in DIFFERENTIABLE[op] if inputs.get(name) is not None
    }
    loss = _loss(op, inputs | leaves, options, gradients_in)
    if not loss.requires_grad:  # nothing was visited and nothing is carried
        return {name: torch.zeros_like(leaf) for name, leaf in leaves.items()}
    found = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    return {
        name: torch.zeros_like(leaf) if gradient is None else gradient
        for (name, leaf), gradient in zip(leaves.items(), found, strict=True)
    }


def _loss(op: str, inputs: Inputs, options: dict, gradients_in: Inputs) -> Tensor:
    """The scalar whose gradient the op returns: every incoming gradient times what it is the gradient of (4.0)."""
    results, last = visit(op, inputs, options)
    T, N = inputs["source"].shape[:2]
    lengths = torch.full((N,), T) if inputs.get("lengths") is None else inputs["lengths"]
    visited = (torch.arange(T)[:, None] < lengths)[..., None]  # [T, N, 1]
    loss = inputs["source"].new_zeros(())
    for result, name in (("h", "source_gradient"), ("c", "cell_sequence_gradient")):
        given = gradients_in.get(name)
        if given is not None:
            # The padding is taken out before the product: it may be NaN, and NaN * 0 is NaN.
            loss = loss + (torch.where(visited, given, 0.0) * results[result]).sum()
    for state, name in (("h", "state_gradient"), ("c", "cell_gradient")):
        given = gradients_in.get(name)
        if given is not None:
            loss = loss + (given.reshape(last[state].shape) * last[state]).sum()
    return loss
