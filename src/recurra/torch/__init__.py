"""recurra for PyTorch: the recurrent ops as torch's own, through compile, export, autograd and torch.func."""

from ._functional import (
    gru as gru,
    gru_gradients as gru_gradients,
    lstm as lstm,
    lstm_gradients as lstm_gradients,
    single_gate_rnn as single_gate_rnn,
    single_gate_rnn_gradients as single_gate_rnn_gradients,
)
