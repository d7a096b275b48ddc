"""Wrong input of the modules: four parts, of recurra's kind and of torch.nn's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import recurra
from recurra.torch import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell

lstm, gru, rnn = LSTM(3, 4), GRU(3, 4, 2, batch_first=True), RNN(3, 4)
projected = LSTM(3, 4, proj_size=2)
x, single = torch.zeros(5, 2, 3), torch.zeros(5, 3)
packed = torch.nn.utils.rnn.pack_sequence([single])
h = torch.zeros(1, 2, 4)
meta = torch.zeros(1, 2, 4, device="meta")

# What is called, the exceptions it must be, the message.
WRONG: list[tuple[Callable[[], Any], tuple[type[Exception], ...], str]] = [
    # constructors
    (lambda: LSTM(3, 4, dropout=1.5), (ValueError, recurra.ArgumentError),
     "LSTM: dropout should be a number in range [0, 1] representing the probability of an element being zeroed, "
     "got 1.5"),
    (lambda: GRU(3, 4, dropout=True), (ValueError,),
     "GRU: dropout should be a number in range [0, 1] representing the probability of an element being zeroed, "
     "got True"),
    (lambda: RNN(3, 4, recurrent_dropout=-1), (ValueError,),
     "RNN: recurrent_dropout should be a number in range [0, 1] representing the probability of an element being "
     "zeroed, got -1"),
    (lambda: LSTM(3, 4, recurrent_dropout=0.5, proj_size=2), (NotImplementedError,),
     "LSTM: recurrent_dropout must be 0 with proj_size: the op's mask is for the state before it is projected, "
     "got 0.5"),
    (lambda: LSTM(3, 4, proj_size=4), (ValueError,),
     "LSTM: proj_size has to be smaller than hidden_size, 4, got 4"),
    (lambda: LSTM(3, 4, proj_size=-1), (ValueError,),
     "LSTM: proj_size should be a positive integer or zero to disable projections, got -1"),
    (lambda: GRU(3, 4, proj_size=2), (ValueError,),
     "GRU: proj_size argument is only supported for LSTM, not RNN or GRU: it must be 0, got 2"),
    (lambda: LSTM(3, 4, num_layers="2"), (TypeError,), "LSTM: num_layers should be of type int, got: str"),
    (lambda: LSTM(3, 4, layer_norm=True), (NotImplementedError, recurra.UnsupportedError),
     "LSTM: layer_norm must be False: the ops normalize nothing between the steps, got True"),
    (lambda: GRUCell(3, 4, layer_norm=True), (NotImplementedError,),
     "GRUCell: layer_norm must be False: the ops normalize nothing between the steps, got True"),
    (lambda: LSTM(3, 4, peephole_output="current"), (ValueError,),
     "LSTM: peephole_output must be 'previous' without peephole=True, got 'current'"),
    (lambda: LSTM(3, 4, peephole=True, peephole_output="next"), (ValueError,),
     "LSTMDescriptor.peephole_output: must be one of previous, current, got 'next'"),
    (lambda: RNN(3, 4, nonlinearity="sine"), (ValueError,),
     "RNN: nonlinearity: must be one of none, relu, tanh, sigmoid, hard_sigmoid, affine, leaky_relu, "
     "thresholded_relu, scaled_tanh, elu, softsign, softplus, got 'sine'"),
    (lambda: RNNCell(3, 0), (ValueError,), "RNNCell: hidden_size must be greater than zero, got 0"),
    (lambda: LSTMCell(3, "4"), (TypeError,), "LSTMCell: hidden_size should be of type int, got: str"),
    # input
    (lambda: lstm([1.0]), (TypeError, recurra.ArgumentTypeError), "LSTM: input must be a tensor, got list"),
    (lambda: lstm(torch.zeros(1, 5, 2, 3)), (ValueError, RuntimeError, recurra.ShapeError),
     "LSTM: Expected input to be 2D or 3D, [T, I] or [T, N, I], got 4D instead"),
    (lambda: gru(torch.zeros(5, 2, 7)), (ValueError, RuntimeError, recurra.ShapeError),
     "GRU: input.size(-1) must be equal to input_size. Expected 3, got 7"),
    (lambda: lstm(x.double()), (ValueError, TypeError, recurra.DTypeError),
     "LSTM: RNN input dtype (torch.float64) does not match weight dtype (torch.float32). Convert input: "
     "input.to(torch.float32), or convert model: model.to(torch.float64)"),
    (lambda: lstm(x.to("meta")), (ValueError, RuntimeError, recurra.DeviceError),
     "LSTM: input must be on the device of the weights, cpu, got meta"),
    (lambda: LSTMCell(3, 4)(torch.zeros(2, 3).to("meta")), (RuntimeError, recurra.DeviceError),
     "LSTMCell: input must be on the device of the weights, cpu, got meta"),
    # hx
    (lambda: lstm(x, h), (TypeError, recurra.ArgumentTypeError),
     "LSTM: hx must be a pair of tensors, (h_0, c_0), got Tensor"),
    (lambda: lstm(x, (h, h, h)), (TypeError,), "LSTM: hx must be a pair of tensors, (h_0, c_0), got 3 entries"),
    (lambda: gru(x, (h, h)), (TypeError,), "GRU: hidden must be a tensor, got tuple"),
    (lambda: lstm(x, (h[0], h)), (ValueError, RuntimeError, recurra.ShapeError),
     "LSTM: For batched 3-D input, hidden[0] should also be 3-D but got 2-D tensor"),
    (lambda: rnn(single, h), (RuntimeError,),
     "RNN: For unbatched 2-D input, hidden should also be 2-D but got 3-D tensor"),
    (lambda: lstm(x, (h, h[:, :1])), (RuntimeError, recurra.ShapeError),
     "LSTM: Expected hidden[1] size (1, 2, 4), got [1, 1, 4]"),
    (lambda: gru(x, h), (RuntimeError,), "GRU: Expected hidden size (2, 5, 4), got [1, 2, 4]"),
    (lambda: projected(x, (h, h)), (RuntimeError,), "LSTM: Expected hidden[0] size (1, 2, 2), got [1, 2, 4]"),
    (lambda: lstm(x, (h.double(), h)), (ValueError, RuntimeError, recurra.DTypeError),
     "LSTM: hidden[0] must have the dtype of the input, torch.float32, got torch.float64"),
    (lambda: rnn(x, meta), (RuntimeError, recurra.DeviceError),
     "RNN: hidden must be on the device of the input, cpu, got meta"),
    (lambda: rnn(packed, h), (RuntimeError,), "RNN: Expected hidden size (1, 1, 4), got [1, 2, 4]"),
    # lengths
    (lambda: lstm(x, lengths=torch.tensor([1.0, 2.0])), (TypeError, recurra.DTypeError),
     "LSTM: lengths must be integers, got torch.float32"),
    (lambda: lstm(x, lengths=torch.tensor([1])), (ValueError, recurra.ShapeError),
     "LSTM: lengths must have shape [N] = [2], got [1]"),
    (lambda: gru(x, lengths=[1, 2]), (ValueError,), "GRU: lengths must have shape [N] = [5], got [2]"),
    (lambda: lstm(x, lengths="long"), (TypeError, recurra.ArgumentTypeError),
     "LSTM: lengths must be a tensor, or what torch.as_tensor takes, got str"),
    (lambda: lstm(x, lengths=torch.tensor([1, 2], device="meta")), (ValueError, recurra.DeviceError),
     "LSTM: lengths must be on the device of the input, cpu, or on the CPU, got meta"),
    (lambda: lstm(x, lengths=[1, 6]), (ValueError, recurra.ArgumentError),
     "lstm: lengths must lie in [0, T] = [0, 5], got 6"),
    (lambda: rnn(packed, lengths=[5]), (ValueError,),
     "RNN: lengths must be None for a PackedSequence, which has its own, got [5]"),
    # resets
    (lambda: lstm(x, resets=torch.zeros(5, 2)), (TypeError, recurra.DTypeError),
     "LSTM: resets must be bool, got torch.float32; write resets != 0"),
    (lambda: lstm(x, resets=torch.zeros(2, 5, dtype=torch.bool)), (ValueError, recurra.ShapeError),
     "LSTM: resets must have shape [T, N] = [5, 2], got [2, 5]"),
    (lambda: gru(x, resets=torch.zeros(2, 5, dtype=torch.bool)), (ValueError,),
     "GRU: resets must have shape [N, T] = [5, 2], got [2, 5]"),
    (lambda: rnn(single, resets=torch.zeros(4, dtype=torch.bool)), (ValueError,),
     "RNN: resets must have shape [T] = [5], got [4]"),
    (lambda: lstm(x, resets=torch.zeros(5, 2, dtype=torch.bool, device="meta")), (RuntimeError, recurra.DeviceError),
     "LSTM: resets must be on the device of the input, cpu, or on the CPU, got meta"),
    # what is asked for
    (lambda: gru(x, return_cells=True), (ValueError, recurra.ArgumentError),
     "GRU: return_cells must be False: only an LSTM has a cell, got True"),
    (lambda: lstm(x, return_gates="some"), (ValueError,),
     "LSTM: return_gates must be True, False or 'all', got 'some'"),
    (lambda: lstm(packed._replace(data=torch.zeros(5, 1, 3))), (RuntimeError, recurra.ShapeError),
     "LSTM: input must have packed data of rank 2, [rows, I], got 3"),
    # cells
    (lambda: RNNCell(3, 4)(torch.zeros(2, 1, 3)), (ValueError, RuntimeError),
     "RNNCell: Expected input to be 1D or 2D, [I] or [N, I], got 3D instead"),
    (lambda: GRUCell(3, 4)(torch.zeros(2, 3), torch.zeros(4)), (ValueError, RuntimeError),
     "GRUCell: hidden must have the rank of the input, 2, got 1"),
    (lambda: GRUCell(3, 4)(torch.zeros(2, 3), 0), (TypeError,), "GRUCell: hidden must be a tensor, got int"),
    (lambda: LSTMCell(3, 4)(torch.zeros(3), torch.zeros(4)), (TypeError,),
     "LSTMCell: hx must be a pair of tensors, (h_0, c_0), got Tensor"),
    (lambda: RNNCell(3, 4)(torch.zeros(3), torch.zeros(4).double()), (RuntimeError, recurra.DTypeError),
     "RNNCell: hidden must have the dtype of the input, torch.float32, got torch.float64"),
    (lambda: RNNCell(3, 4)(torch.zeros(3), torch.zeros(4, device="meta")), (RuntimeError, recurra.DeviceError),
     "RNNCell: hidden must be on the device of the input, cpu, got meta"),
    # streams
    (lambda: LSTM(3, 4, bidirectional=True).stream(), (NotImplementedError, recurra.UnsupportedError),
     "LSTM.stream: bidirectional must be False: the backward direction begins at the end of the sequence, which a "
     "stream does not know, got True"),
    (lambda: projected.stream(), (NotImplementedError,),
     "LSTM.stream: proj_size must be 0: a stream has no projections, got 2"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "kinds", "message"), WRONG, ids=[message for _, _, message in WRONG])
def test_what_is_wrong_is_said(wrong: Callable[[], Any], kinds: tuple[type[Exception], ...], message: str) -> None:
    with pytest.raises(recurra.RecurraError) as caught:
        wrong()
    assert str(caught.value) == message
    for kind in kinds:
        assert isinstance(caught.value, kind)
