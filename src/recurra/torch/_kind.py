"""What a module computes: its op, and the descriptors it calls it with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ops._descriptor import Descriptor
from ..ops.gru import GRUDescriptor
from ..ops.lstm import LSTMDescriptor
from ..ops.rnn import SingleGateRNNDescriptor
from . import _functional

# Per op: its descriptor, G, what never changes, and the options with which it computes what torch.nn does.
_OPS: dict[str, tuple[type[Descriptor], int, dict[str, bool], dict[str, Any]]] = {
    "lstm": (LSTMDescriptor, 4, {"produce_cell": True}, {}),
    "gru": (GRUDescriptor, 3, {"reset_gate_first": True}, {"reset_after": True}),  # torch.nn's rows are r, z, n
    "single_gate_rnn": (SingleGateRNNDescriptor, 1, {}, {"activation": "tanh"}),
}


class Kind:
    """An op with its options. Made once for a module, so that a call makes nothing but tensors.

    Args:
        op: "lstm", "gru" or "single_gate_rnn".
        options: fields of the op's descriptor; the others are as torch.nn has them.
        bidirectional: whether the layers run in both directions.
    """

    __slots__ = ("_descriptors", "bidirectional", "gates", "has_cell", "has_secondary_bias", "op", "options")

    def __init__(self, op: str, options: Mapping[str, Any], bidirectional: bool) -> None:
        descriptor, self.gates, fixed, plain = _OPS[op]
        options = {**plain, **options}
        self.op, self.bidirectional = op, bidirectional
        # By: with gates or not; in all directions, forward only, backward only.
        self._descriptors: dict[Any, Any] = {}
        for gates in (False, True):
            given = {**fixed, **options, "training": gates}
            self._descriptors[gates, None] = descriptor(bidirectional=bidirectional, **given)  # type: ignore[call-arg]
            for d in (0, 1):
                self._descriptors[gates, d] = descriptor(reverse=d == 1, **given)  # type: ignore[call-arg]
        self.options = {name: getattr(self._descriptors[False, None], name) for name in options}
        self.has_cell = op == "lstm"
        self.has_secondary_bias = bool(options.get("reset_after", False))

    def __reduce__(self) -> Any:
        return Kind, (self.op, self.options, self.bidirectional)

    def call(self, source: Any, wants_gates: bool, direction: int | None, **arguments: Any) -> Any:
        """Call the op, in all its directions or in one."""
        function = getattr(_functional, self.op)
        return function(source, descriptor=self._descriptors[wants_gates, direction], **arguments)

    def descriptor(self) -> Any:
        """A copy of the descriptor of a plain call."""
        return self._descriptors[False, None].copy()

    def unusual(self) -> dict[str, Any]:
        """The options that are not as torch.nn has them."""
        plain = Kind(self.op, {}, self.bidirectional)._descriptors[False, None]
        return {name: value for name, value in self.options.items() if value != getattr(plain, name)}
