"""The six recurrent ops in `torch.library`: their names, arguments and schemas.

One record per op. The files beside this one register what the dispatcher calls: kernels (_ops_kernel), shapes
(_ops_fake), derivatives (_ops_autograd), batches (_ops_vmap), autocast (_ops_autocast).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.library import Library

from .. import _op
from ..ops._descriptor import Descriptor
from ..ops.gru import GRUDescriptor, build as gru_build, spec as gru_spec
from ..ops.lstm import LSTMDescriptor, build as lstm_build, spec as lstm_spec
from ..ops.rnn import SingleGateRNNDescriptor, build as rnn_build, spec as rnn_spec
from ._ops_text import descriptor_of

LIBRARY = Library("recurra", "DEF")


@dataclass(frozen=True)
class Pair:
    """A recurrent op and its gradient op."""

    name: str
    kind: type[Descriptor]
    gates: int
    # The forward op's results when training; the training state last.
    results: tuple[str, ...]
    # The arguments of the forward op, and those that the gradient op has besides.
    arguments: tuple[str, ...]
    gradients_in: tuple[str, ...]
    # The arguments that have gradients, in the order of the gradients.
    order: tuple[str, ...]


@dataclass(frozen=True)
class TorchOp:
    """One of the ops of torch: `arguments` are its tensors, in the schema's order."""

    pair: Pair
    name: str
    arguments: tuple[str, ...]

    @property
    def record(self) -> _op.Op:
        """The op as recurra knows it."""
        return _op.OPS[self.name]

    @property
    def overload(self) -> Any:
        """The op as torch knows it."""
        return getattr(torch.ops.recurra, self.name).default

    @property
    def is_gradient(self) -> bool:
        """Whether this is the gradient op of the pair."""
        return self.name != self.pair.name

    def descriptor(self, text: str) -> Descriptor:
        """The descriptor that the op was given."""
        return descriptor_of(self.name, self.pair.kind, text)

    def given(self, tensors: Sequence[Any]) -> dict[str, Any]:
        """The arguments that are there, by name. The dispatcher leaves out None at the end."""
        return {name: t for name, t in zip(self.arguments, tensors, strict=False) if t is not None}

    def wanted(self, text: str, given: Sequence[str]) -> tuple[bool, ...]:
        """Which of all possible results the op returns."""
        if self.is_gradient:
            return tuple(True for name in self.pair.order if name in given)
        options = self.descriptor(text)
        training: bool = options.training  # type: ignore[attr-defined]
        return tuple(
            name == "h" or training or (name == "c" and getattr(options, "produce_cell", False))
            for name in self.pair.results
        )


_REQUIRED = ("source", "recurrent_weight", "z_state", "cell_output_fwd", "output_fwd")


def _schema(op: TorchOp) -> str:
    tensors = [f"Tensor {n}" if n in _REQUIRED else f"Tensor? {n}" for n in op.arguments]
    first = max(i for i, n in enumerate(op.arguments) if n in _REQUIRED)
    tensors = [t if i <= first else f"{t}=None" for i, t in enumerate(tensors)]
    return f"{op.name}({', '.join(tensors)}, *, str descriptor) -> Tensor[]"


def _define(pair: Pair) -> tuple[TorchOp, TorchOp]:
    forward = TorchOp(pair, pair.name, pair.arguments)
    gradients = TorchOp(
        pair, f"{pair.name}_gradients", ("source", "recurrent_weight", *pair.gradients_in, *pair.arguments[2:])
    )
    for op in (forward, gradients):
        LIBRARY.define(_schema(op), tags=(torch.Tag.pt2_compliant_tag,))
    return forward, gradients


LSTM, LSTM_GRADIENTS = _define(
    Pair(
        "lstm",
        LSTMDescriptor,
        lstm_spec.GATES,
        results=("h", "c", "z"),
        arguments=(
            *("source", "recurrent_weight", "input_weight", "bias", "init_state", "init_cell", "mask", "peephole"),
            *("lengths", "resets"),
        ),
        gradients_in=(
            *("source_gradient", "z_state", "cell_output_fwd", "state_gradient", "cell_gradient"),
            "cell_sequence_gradient",
        ),
        order=lstm_build.ORDER,
    )
)
GRU, GRU_GRADIENTS = _define(
    Pair(
        "gru",
        GRUDescriptor,
        gru_spec.GATES,
        results=("h", "z"),
        arguments=(
            *("source", "recurrent_weight", "input_weight", "bias", "init_state", "mask", "secondary_bias"),
            *("lengths", "resets"),
        ),
        gradients_in=("source_gradient", "z_state", "output_fwd", "state_gradient"),
        order=gru_build.ORDER,
    )
)
SINGLE_GATE_RNN, SINGLE_GATE_RNN_GRADIENTS = _define(
    Pair(
        "single_gate_rnn",
        SingleGateRNNDescriptor,
        rnn_spec.GATES,
        results=("h", "z"),
        arguments=(*("source", "recurrent_weight", "input_weight", "bias", "init_state", "mask", "lengths", "resets"),),
        gradients_in=("source_gradient", "z_state", "state_gradient"),
        order=rnn_build.ORDER,
    )
)
PAIRS = ((LSTM, LSTM_GRADIENTS), (GRU, GRU_GRADIENTS), (SINGLE_GATE_RNN, SINGLE_GATE_RNN_GRADIENTS))
ALL = tuple(op for pair in PAIRS for op in pair)
BY_NAME = {op.name: op for op in ALL}
