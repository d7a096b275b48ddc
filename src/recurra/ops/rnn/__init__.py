"""The room of `single_gate_rnn`: its descriptor (spec), equations (reference), functions and op records (build)."""

from .build import single_gate_rnn as single_gate_rnn, single_gate_rnn_gradients as single_gate_rnn_gradients
from .spec import SingleGateRNNDescriptor as SingleGateRNNDescriptor
