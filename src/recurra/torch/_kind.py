"""What a module computes: its op, and the options it calls it with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from ..ops._descriptor import Descriptor
from ..ops.gru import GRUDescriptor
from ..ops.lstm import LSTMDescriptor
from ..ops.rnn import SingleGateRNNDescriptor
from . import _functional as _functional  # registers the ops
from ._ops import BY_NAME
from ._ops_text import text_of

Tensor: TypeAlias = Any

# Per op: its descriptor, G, what never changes, and the options with which it computes what torch.nn does.
_OPS: dict[str, tuple[type[Descriptor], int, dict[str, bool], dict[str, Any]]] = {
    "lstm": (LSTMDescriptor, 4, {"produce_cell": True}, {}),
    "gru": (GRUDescriptor, 3, {"reset_gate_first": True}, {"reset_after": True}),  # torch.nn's rows are r, z, n
    "single_gate_rnn": (SingleGateRNNDescriptor, 1, {}, {"activation": "tanh"}),
}


class Kind:
    """An op with its options, ready to be called: a call looks at nothing but tensors.

    Args:
        op: "lstm", "gru" or "single_gate_rnn".
        options: fields of the op's descriptor; the others are as torch.nn has them.
        bidirectional: whether the layers run in both directions.
    """

    def __init__(self, op: str, options: Mapping[str, Any], bidirectional: bool) -> None:
        descriptor, self.gates, fixed, plain = _OPS[op]
        options = {**plain, **options}
        self.op, self.bidirectional = op, bidirectional
        self.has_cell = op == "lstm"
        self.has_secondary_bias = bool(options.get("reset_after", False))
        made = descriptor(bidirectional=bidirectional, **fixed, **options)  # type: ignore[call-arg]
        self.options = {name: getattr(made, name) for name in options}
        self._descriptor = made
        self._overload, self._arguments = BY_NAME[op].overload, BY_NAME[op].arguments
        # The descriptor as the op takes it, by: with gates or not; in all directions (None), forward or backward only.
        self._texts: dict[tuple[bool, int | None], str] = {}
        for gates in (False, True):
            for direction, ways in (
                (None, {"bidirectional": bidirectional}),
                (0, {"bidirectional": False}),
                (1, {"bidirectional": False, "reverse": True}),
            ):
                self._texts[gates, direction] = text_of(descriptor(training=gates, **fixed, **options, **ways))  # type: ignore[call-arg]

    def __reduce__(self) -> Any:
        return Kind, (self.op, self.options, self.bidirectional)

    def call(
        self, source: Tensor, wants_gates: bool, direction: int | None, **given: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Call the op in all its directions or in one: h, c and z, None for what there is not."""
        given["source"] = source
        tensors = [given.get(name) for name in self._arguments]
        outputs = self._overload(*tensors, descriptor=self._texts[wants_gates, direction])
        return outputs[0], outputs[1] if self.has_cell else None, outputs[-1] if wants_gates else None

    def descriptor(self) -> Any:
        """A copy of the descriptor of a plain call."""
        return self._descriptor.copy()

    def unusual(self) -> dict[str, Any]:
        """The options that are not as torch.nn has them."""
        plain = Kind(self.op, {}, self.bidirectional)._descriptor
        return {name: value for name, value in self.options.items() if value != getattr(plain, name)}
