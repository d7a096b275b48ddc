"""recurra for PyTorch: the recurrent ops as torch's own, and modules that take the place of torch.nn's."""

from ._cells import GRUCell as GRUCell, LSTMCell as LSTMCell, RNNCell as RNNCell
from ._functional import (
    gru as gru,
    gru_gradients as gru_gradients,
    lstm as lstm,
    lstm_gradients as lstm_gradients,
    single_gate_rnn as single_gate_rnn,
    single_gate_rnn_gradients as single_gate_rnn_gradients,
)
from ._modules import GRU as GRU, LSTM as LSTM, RNN as RNN
from ._replace import ReplaceReport as ReplaceReport, replace as replace
