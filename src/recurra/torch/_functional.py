"""The recurrent ops on tensors.

They are the functions of `recurra` itself: given tensors, those call the ops that this package has registered with
torch (`_ops_call`), and so they are differentiable in backward and forward mode to any order, and go through
`torch.compile`, `torch.export` and `torch.func`.
"""

from ..ops.gru import gru as gru, gru_gradients as gru_gradients
from ..ops.lstm import lstm as lstm, lstm_gradients as lstm_gradients
from ..ops.rnn import single_gate_rnn as single_gate_rnn, single_gate_rnn_gradients as single_gate_rnn_gradients
from . import _ops_call as _ops_call
