"""Layers on top of each other, in one graph and in the oracle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from oracle.cases import Case
from oracle.forward import visit
from recurrent.calls import FORWARD, descriptor
import torch

from contract.full_cases import full_case
import recurra

PARAMETERS = ("recurrent_weight", "input_weight", "bias", "peephole", "secondary_bias", "init_state", "init_cell")


@dataclass(frozen=True)
class Stack:
    """Layers of one op with weights and nonzero states of their own; layer 0 reads [T, N, I], the others h below."""

    layers: tuple[Case, ...]

    @property
    def source(self) -> np.ndarray:
        return self.layers[0].inputs["source"]

    def parameters(self, layer: int) -> dict[str, np.ndarray]:
        """What one layer is given besides its input."""
        return {k: v for k, v in self.layers[layer].inputs.items() if k in PARAMETERS and v is not None}

    def weights(self) -> np.ndarray:
        """How much each element of the last output counts in the loss."""
        return self.layers[-1].gradients_in["source_gradient"]


def stack(op: str, depth: int, T: int = 5, N: int = 3, I: int = 2, H: int = 3, **options: Any) -> Stack:
    """A stack whose layers differ in every number."""
    D = 2 if options.get("bidirectional") else 1
    layers = [full_case(op, T, N, I if layer == 0 else D * H, H, **options) for layer in range(depth)]
    # Equal sizes draw equal numbers: the layers above the second must not repeat it.
    return Stack(
        tuple(replace(c, inputs={k: _turned(v, i) for k, v in c.inputs.items()}) for i, c in enumerate(layers))
    )


def _turned(array: np.ndarray | None, by: int) -> np.ndarray | None:
    return None if array is None else np.roll(array.reshape(-1), by).reshape(array.shape)


@dataclass(frozen=True)
class Built:
    """A stack in a graph: outputs of every layer, and gradients of the weighted sum of the last by (layer, name)."""

    graph: recurra.Graph
    x: recurra.Tensor
    tensors: dict[tuple[int, str], recurra.Tensor]
    outputs: list[recurra.Tensor]
    gradients: dict[tuple[int, str], recurra.Tensor]


def build(stack: Stack, between: Any = lambda layer, h: h) -> Built:
    """The stack in one graph with sizes T and N unknown; `between` changes what goes from a layer to the next."""
    graph = recurra.Graph()
    x = graph.placeholder([None, None, stack.source.shape[2]], "float64", "x")
    tensors = {(-1, "source"): x}
    outputs, h = [], x
    for layer, case in enumerate(stack.layers):
        own = {name: graph.variable(value, f"{name}_{layer}") for name, value in stack.parameters(layer).items()}
        tensors |= {(layer, name): tensor for name, tensor in own.items()}
        h = FORWARD[case.op](h, **own, descriptor=descriptor(case)).h
        outputs.append(h)
        if layer < len(stack.layers) - 1:
            h = between(layer, h)
    found = graph.gradients((h * graph.constant(stack.weights())).sum(), list(tensors.values()))
    return Built(graph, x, tensors, outputs, {key: found[tensor] for key, tensor in tensors.items()})


def expected(stack: Stack) -> tuple[list[np.ndarray], dict[tuple[int, str], np.ndarray]]:
    """Every layer's h and the gradients by (layer, name), by autograd through the oracle."""
    h = x = torch.from_numpy(stack.source).requires_grad_()
    leaves, outputs = {(-1, "source"): x}, []
    for layer, case in enumerate(stack.layers):
        own = {name: torch.from_numpy(value).requires_grad_() for name, value in stack.parameters(layer).items()}
        leaves |= {(layer, name): leaf for name, leaf in own.items()}
        h = visit(case.op, {"source": h, **own}, case.options)[0]["h"]
        outputs.append(h.detach().numpy())
    found = torch.autograd.grad((h * torch.from_numpy(stack.weights())).sum(), list(leaves.values()))
    return outputs, {key: gradient.numpy() for key, gradient in zip(leaves, found, strict=True)}
