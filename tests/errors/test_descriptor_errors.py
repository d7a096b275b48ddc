"""Every message of the descriptors and the activations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errors.mistakes import ANY, Mistake, check, unsaid
from errors.recurrent_calls import lstm
from recurra import (
    ArgumentError,
    ArgumentTypeError,
    GRUDescriptor,
    LSTMDescriptor,
    ParametricActivation,
    SingleGateRNNDescriptor,
)

FILES = ["ops/_descriptor.py", "ops/activations.py"]
NAMES = (
    "none, relu, tanh, sigmoid, hard_sigmoid, affine, "
    "leaky_relu, thresholded_relu, scaled_tanh, elu, softsign, softplus"
)
LSTM_FIELDS = (
    "reverse, bidirectional, training, produce_cell, forget_gate_last, input_gate_activation, forget_gate_activation, "
    "cell_gate_activation, output_gate_activation, activation, peephole_output"
)


def set_field(descriptor: Any, field: str, value: Any) -> None:
    setattr(descriptor, field, value)


MISTAKES = [
    Mistake(
        "descriptor of another op",
        lambda: lstm(descriptor=GRUDescriptor()),
        ArgumentTypeError,
        "lstm: descriptor must be a LSTMDescriptor or None, got GRUDescriptor",
    ),
    Mistake(
        "field in camel case",
        lambda: set_field(GRUDescriptor(), "resetAfter", True),
        ArgumentError,
        "GRUDescriptor.resetAfter: fields are reverse, bidirectional, training, reset_gate_first, reset_after, flip_z, "
        "update_gate_activation, reset_gate_activation, output_gate_activation, got 'resetAfter'; "
        "did you mean reset_after?",
    ),
    Mistake(
        "unknown field",
        lambda: set_field(LSTMDescriptor(), "dropout", 0.5),
        ArgumentError,
        f"LSTMDescriptor.dropout: fields are {LSTM_FIELDS}, got 'dropout'",
    ),
    Mistake(
        "number for a flag",
        lambda: LSTMDescriptor(training=1),
        ArgumentTypeError,
        "LSTMDescriptor.training: must be True or False, got 1",
    ),
    Mistake(
        "unknown choice",
        lambda: LSTMDescriptor(peephole_output="next"),
        ArgumentError,
        "LSTMDescriptor.peephole_output: must be one of previous, current, got 'next'",
    ),
    Mistake(
        "choice that is no word",
        lambda: LSTMDescriptor(peephole_output=np.zeros(2)),
        ArgumentError,
        f"LSTMDescriptor.peephole_output: must be one of previous, current, got array({ANY})",
    ),
    Mistake(
        "unknown activation",
        lambda: LSTMDescriptor(activation="gelu"),
        ArgumentError,
        f"LSTMDescriptor.activation: must be one of {NAMES}, got 'gelu'",
    ),
    Mistake(
        "activation in capitals",
        lambda: GRUDescriptor(update_gate_activation="TANH"),
        ArgumentError,
        f"GRUDescriptor.update_gate_activation: must be one of {NAMES}, got 'TANH'",
    ),
    Mistake(
        "unknown activation with parameters",
        lambda: LSTMDescriptor(activation=ParametricActivation("gelu", (0.1,))),
        ArgumentError,
        f"LSTMDescriptor.activation: must be one of {NAMES}, got 'gelu'",
    ),
    Mistake(
        "unknown raw value",
        lambda: SingleGateRNNDescriptor(activation=12),
        ArgumentError,
        f"SingleGateRNNDescriptor.activation: must be one of {NAMES}, got 12",
    ),
    Mistake(
        "activation is a function",
        lambda: SingleGateRNNDescriptor(activation=np.tanh),
        ArgumentTypeError,
        "SingleGateRNNDescriptor.activation: must be an Activation, a name or a tuple (name, alpha, beta), "
        "got <ufunc 'tanh'>",
    ),
    Mistake(
        "activation is a truth value",
        lambda: SingleGateRNNDescriptor(activation=True),
        ArgumentTypeError,
        "SingleGateRNNDescriptor.activation: must be an Activation, a name or a tuple (name, alpha, beta), got True",
    ),
    Mistake(
        "too many parameters",
        lambda: LSTMDescriptor(cell_gate_activation=("elu", 1.0, 2.0)),
        ArgumentError,
        "LSTMDescriptor.cell_gate_activation: elu takes 1 parameter, got 2: (1.0, 2.0)",
    ),
    Mistake(
        "parameters where there are none",
        lambda: LSTMDescriptor(cell_gate_activation=("tanh", 1.0)),
        ArgumentError,
        "LSTMDescriptor.cell_gate_activation: tanh takes 0 parameters, got 1: (1.0,)",
    ),
    Mistake(
        "parameter not finite",
        lambda: LSTMDescriptor(input_gate_activation=("leaky_relu", float("nan"))),
        ArgumentError,
        "LSTMDescriptor.input_gate_activation: the parameters of leaky_relu must be finite numbers, got (nan,)",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=Mistake.id)
def test_message_says_what_is_wrong(mistake: Mistake) -> None:
    check(mistake)


def test_no_message_is_without_a_mistake() -> None:
    assert unsaid(FILES, MISTAKES) == []
