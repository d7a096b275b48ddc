"""The LSTM's descriptor and gate order."""

from __future__ import annotations

from dataclasses import dataclass

from .._descriptor import Descriptor
from ..activations import Activation, ActivationFunction, ActivationLike, activation_function

GATES = 4


@dataclass(kw_only=True)
class LSTMDescriptor(Descriptor):
    """The options of `lstm`, with Apple's defaults.

    Args:
        reverse: visit the steps from last to first; results stay at their own index. Ignored when bidirectional.
        bidirectional: run both directions with separate weights, results side by side on the channels.
        training: also return the training state, and with it the cell: [h, c, z].
        produce_cell: also return the cell: [h, c].
        forget_gate_last: gates are stacked i, z, f, o instead of i, f, z, o, everywhere.
        input_gate_activation, forget_gate_activation, cell_gate_activation, output_gate_activation: of the gates.
        activation: applied to the cell before the output gate multiplies it.
        peephole_output: which cell the output gate peeks at: "previous" is Apple's formula, "current" that of ONNX,
            Core ML and TensorFlow.

    Example:
        >>> LSTMDescriptor(forget_gate_last=True).gate_order
        ('i', 'z', 'f', 'o')
    """

    reverse: bool = False
    bidirectional: bool = False
    training: bool = False
    produce_cell: bool = False
    forget_gate_last: bool = False
    input_gate_activation: ActivationLike = Activation.SIGMOID
    forget_gate_activation: ActivationLike = Activation.SIGMOID
    cell_gate_activation: ActivationLike = Activation.TANH
    output_gate_activation: ActivationLike = Activation.SIGMOID
    activation: ActivationLike = Activation.TANH
    peephole_output: str = "previous"

    _op = "lstm"
    _activations = (
        "input_gate_activation",
        "forget_gate_activation",
        "cell_gate_activation",
        "output_gate_activation",
        "activation",
    )
    _choices = {"peephole_output": ("previous", "current")}  # noqa: RUF012

    @property
    def gate_order(self) -> tuple[str, str, str, str]:
        """The gates in the order in which their blocks are stacked."""
        return ("i", "z", "f", "o") if self.forget_gate_last else ("i", "f", "z", "o")

    @property
    def functions(self) -> dict[str, ActivationFunction]:
        """The activations by gate; "g" is the one of the cell."""
        return {
            "i": activation_function(self.input_gate_activation),
            "f": activation_function(self.forget_gate_activation),
            "z": activation_function(self.cell_gate_activation),
            "o": activation_function(self.output_gate_activation),
            "g": activation_function(self.activation),
        }
