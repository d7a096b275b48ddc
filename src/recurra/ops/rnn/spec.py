"""The single-gate RNN's descriptor."""

from __future__ import annotations

from dataclasses import dataclass

from .._descriptor import Descriptor
from ..activations import Activation, ActivationFunction, ActivationLike, activation_function

GATES = 1


@dataclass(kw_only=True)
class SingleGateRNNDescriptor(Descriptor):
    """The options of `single_gate_rnn`, with Apple's defaults. The activation's default is relu, not tanh.

    Args:
        reverse: visit the steps from last to first; results stay at their own index. Ignored when bidirectional.
        bidirectional: run both directions with separate weights, results side by side on the channels.
        training: also return the training state (the pre-activation).
        activation: f of the single gate.

    Example:
        >>> SingleGateRNNDescriptor(activation="tanh").activation
        <Activation.TANH: 2>
    """

    reverse: bool = False
    bidirectional: bool = False
    training: bool = False
    activation: ActivationLike = Activation.RELU

    _op = "single_gate_rnn"
    _activations = ("activation",)

    @property
    def function(self) -> ActivationFunction:
        """The activation, ready to be computed."""
        return activation_function(self.activation)
