"""The GRU's descriptor and gate order."""

from __future__ import annotations

from dataclasses import dataclass

from .._descriptor import Descriptor
from ..activations import Activation, ActivationFunction, ActivationLike, activation_function

GATES = 3


@dataclass(kw_only=True)
class GRUDescriptor(Descriptor):
    """The options of `gru`, with Apple's defaults.

    Apple documents `flip_z` both ways. recurra follows the method text, which other libraries agree with:
    False gives `h = z h_prev + (1 - z) o`, True gives `h = (1 - z) h_prev + z o`.

    Args:
        reverse: visit the steps from last to first; results stay at their own index. Ignored when bidirectional.
        bidirectional: run both directions with separate weights, results side by side on the channels.
        training: also return the training state.
        reset_gate_first: gates are stacked r, z, o instead of z, r, o, everywhere.
        reset_after: the reset gate multiplies the recurrent product instead of the state that enters it.
        flip_z: swap the roles of z and 1 - z.
        update_gate_activation, reset_gate_activation, output_gate_activation: of the gates z, r and o.

    Example:
        >>> GRUDescriptor(reset_gate_first=True).gate_order
        ('r', 'z', 'o')
    """

    reverse: bool = False
    bidirectional: bool = False
    training: bool = False
    reset_gate_first: bool = False
    reset_after: bool = False
    flip_z: bool = False
    update_gate_activation: ActivationLike = Activation.SIGMOID
    reset_gate_activation: ActivationLike = Activation.SIGMOID
    output_gate_activation: ActivationLike = Activation.TANH

    _op = "gru"
    _activations = ("update_gate_activation", "reset_gate_activation", "output_gate_activation")

    @property
    def gate_order(self) -> tuple[str, str, str]:
        """The gates in the order in which their blocks are stacked."""
        return ("r", "z", "o") if self.reset_gate_first else ("z", "r", "o")

    @property
    def functions(self) -> dict[str, ActivationFunction]:
        """The activations by gate."""
        return {
            "z": activation_function(self.update_gate_activation),
            "r": activation_function(self.reset_gate_activation),
            "o": activation_function(self.output_gate_activation),
        }
