"""Wrong ranks and sizes of every argument of the recurrent ops."""

from __future__ import annotations

from errors.mistakes import Mistake
from errors.recurrent_calls import (
    RESET_AFTER,
    H,
    I,
    N,
    T,
    gru,
    gru_gradients,
    in_graph,
    lstm,
    lstm_gradients,
    rnn,
    rnn_gradients,
    zeros,
)
import recurra
from recurra import ArgumentTypeError, Graph, ShapeError

SOURCE_AND_WEIGHTS = [
    Mistake(
        "source without batch",
        lambda: lstm(source=zeros(T, I)),
        ShapeError,
        "lstm: source must have rank 3, [T, N, channels], got [5, 3]; recurra is time-major and has no unbatched form",
    ),
    Mistake(
        "source of rank 4",
        lambda: gru(source=zeros(1, T, N, I)),
        ShapeError,
        "gru: source must have rank 3, [T, N, channels], got [1, 5, 2, 3]",
    ),
    Mistake(
        "source without channels",
        lambda: lstm(source=zeros(T, N, 0), input_weight=zeros(4 * H, 0)),
        ShapeError,
        "lstm: source must have at least 1 channel, got [5, 2, 0]",
    ),
    Mistake(
        "source not projected",
        lambda: gru(input_weight=None),
        ShapeError,
        "gru: source must be already projected, [T, N, 3*H] = [T, N, 24], when input_weight is None, got [5, 2, 3]",
    ),
    Mistake(
        "source of one gate not projected",
        lambda: rnn(input_weight=None),
        ShapeError,
        "single_gate_rnn: source must be already projected, [T, N, H] = [T, N, 8], when input_weight is None, "
        "got [5, 2, 3]",
    ),
    Mistake(
        "source projected for one direction",
        lambda: lstm(directions=2, source=zeros(T, N, 4 * H), input_weight=None),
        ShapeError,
        "lstm: source must be already projected, [T, N, 8*H] = [T, N, 64], when input_weight is None, got [5, 2, 32]",
    ),
    Mistake(
        "source and input weight differ",
        lambda: lstm(source=zeros(T, N, I + 1)),
        ShapeError,
        "lstm: source must have as many channels as input_weight has columns, 3, got 4",
    ),
    Mistake(
        "weight for two directions",
        lambda: lstm(recurrent_weight=zeros(2, 4 * H, H)),
        ShapeError,
        "lstm: recurrent_weight must have rank 2, [4*H, H], got [2, 32, 8]; "
        "is the descriptor meant to be bidirectional?",
    ),
    Mistake(
        "weight for one direction",
        lambda: gru(directions=2, recurrent_weight=zeros(3 * H, H)),
        ShapeError,
        "gru: recurrent_weight must have rank 3, [2, 3*H, H], when bidirectional, got [24, 8]",
    ),
    Mistake(
        "weight of rank 1",
        lambda: rnn(recurrent_weight=zeros(H)),
        ShapeError,
        "single_gate_rnn: recurrent_weight must have rank 2, [H, H], got [8]",
    ),
    Mistake(
        "weight of no size",
        lambda: lstm(recurrent_weight=zeros(0, 0)),
        ShapeError,
        "lstm: recurrent_weight must have H of at least 1, got [0, 0]",
    ),
    Mistake(
        "weight of unknown size",
        lambda: in_graph("recurrent_weight", (None, H)),
        ShapeError,
        "lstm: recurrent_weight must have a static shape, got [-1, 8]",
    ),
    Mistake(
        "GRU weight for LSTM",
        lambda: lstm(recurrent_weight=zeros(3 * H, H)),
        ShapeError,
        "lstm: recurrent_weight must have shape [4*H, H] = [32, 8], got [24, 8] "
        "(GRU weights have 3 gates; did you mean gru?)",
    ),
    Mistake(
        "LSTM weight for GRU gradients",
        lambda: gru_gradients(recurrent_weight=zeros(4 * H, H)),
        ShapeError,
        "gru_gradients: recurrent_weight must have shape [3*H, H] = [24, 8], got [32, 8] "
        "(LSTM weights have 4 gates; did you mean lstm_gradients?)",
    ),
    Mistake(
        "weight of a projected LSTM",
        lambda: lstm(recurrent_weight=zeros(4 * H, H - 3)),
        ShapeError,
        "lstm: recurrent_weight must have shape [4*H, H] = [20, 5], got [32, 5] "
        "(projections of the state, PyTorch's proj_size, are not supported)",
    ),
    Mistake(
        "RNN weight for GRU",
        lambda: gru(recurrent_weight=zeros(H, H)),
        ShapeError,
        "gru: recurrent_weight must have shape [3*H, H] = [24, 8], got [8, 8] "
        "(RNN weights have 1 gate; did you mean single_gate_rnn?)",
    ),
    Mistake(
        "weight transposed",
        lambda: rnn(directions=2, recurrent_weight=zeros(2, H, H + 1)),
        ShapeError,
        "single_gate_rnn: recurrent_weight must have shape [2, H, H] = [2, 9, 9], got [2, 8, 9]",
    ),
    Mistake(
        "two gates",
        lambda: lstm(recurrent_weight=zeros(2 * H, H)),
        ShapeError,
        "lstm: recurrent_weight must have shape [4*H, H] = [32, 8], got [16, 8]",
    ),
    Mistake(
        "input weight transposed",
        lambda: gru(source=zeros(T, N, 3 * H), input_weight=zeros(I, 3 * H)),
        ShapeError,
        "gru: input_weight must have shape [3*H, I] = [24, 24], got [3, 24]",
    ),
    Mistake(
        "input weight of one gate",
        lambda: rnn(input_weight=zeros(H + 1, I)),
        ShapeError,
        "single_gate_rnn: input_weight must have shape [H, I] = [8, 3], got [9, 3]",
    ),
    Mistake(
        "bias of unknown size",
        lambda: in_graph("bias", (None,)),
        ShapeError,
        "lstm: bias must have a static shape, got [-1]",
    ),
]

OTHER_ARGUMENTS = [
    Mistake(
        "bias of one gate",
        lambda: lstm(bias=zeros(H)),
        ShapeError,
        "lstm: bias must have shape [4*H] = [32], got [8]",
    ),
    Mistake(
        "bias of one direction",
        lambda: rnn(directions=2, bias=zeros(H)),
        ShapeError,
        "single_gate_rnn: bias must have shape [2*H] = [16], got [8]",
    ),
    Mistake(
        "peephole of three gates",
        lambda: lstm(peephole=zeros(3 * H)),
        ShapeError,
        "lstm: peephole must have shape [4*H] = [32], got [24]",
    ),
    Mistake(
        "peephole of one direction",
        lambda: lstm(directions=2, peephole=zeros(4 * H)),
        ShapeError,
        "lstm: peephole must have shape [2, 4*H] = [2, 32], got [32]",
    ),
    Mistake(
        "secondary bias of all gates",
        lambda: gru(secondary_bias=zeros(3 * H), descriptor=RESET_AFTER),
        ShapeError,
        "gru: secondary_bias must have shape [H] = [8], got [24] (it belongs to the candidate gate only)",
    ),
    Mistake(
        "state of another size",
        lambda: gru(init_state=zeros(N, H + 1)),
        ShapeError,
        "gru: init_state must have shape [N, H] = [2, 8], got [2, 9]",
    ),
    Mistake(
        "cell of another batch",
        lambda: lstm(init_cell=zeros(N + 1, H)),
        ShapeError,
        "lstm: init_cell must have shape [N, H] = [2, 8], got [3, 8]",
    ),
    Mistake(
        "state of a batch that is not known yet",
        lambda: lstm(source=Graph().placeholder([None, None, I]), init_state=zeros(N, H), init_cell=zeros(N + 1, H)),
        ShapeError,
        "lstm: init_cell must have shape [N, H] = [2, 8], got [3, 8]",
    ),
    Mistake(
        "state in PyTorch's layout",
        lambda: lstm(directions=2, init_state=zeros(2, N, H)),
        ShapeError,
        "lstm: init_state must have shape [N, 2*H] = [2, 16], got [2, 2, 8]; "
        "recurra.join_directions turns PyTorch's [2, N, H] into it",
    ),
    Mistake(
        "gradient of the state without batch",
        lambda: rnn_gradients(state_gradient=zeros(H)),
        ShapeError,
        "single_gate_rnn_gradients: state_gradient must have shape [N, H] = [2, 8], got [8]",
    ),
    Mistake(
        "sequence mask",
        lambda: lstm(mask=zeros(T, N)),
        ShapeError,
        "lstm: mask must broadcast to [N, H] = [2, 8], or have one mask per step, [T, N, H]: it multiplies h[t-1] "
        "inside the recurrent product (it is not a sequence mask; use lengths), got [5, 2]",
    ),
    Mistake(
        "mask of other steps",
        lambda: gru(directions=2, mask=zeros(T + 1, N, 2 * H, dtype=bool)),
        ShapeError,
        "gru: mask must broadcast to [N, 2*H] = [2, 16], or have one mask per step, [T, N, 2*H]: it multiplies h[t-1] "
        "inside the recurrent product (it is not a sequence mask; use lengths), got [6, 2, 16]",
    ),
    Mistake(
        "gradient of fewer steps",
        lambda: lstm_gradients(source_gradient=zeros(T - 1, N, H)),
        ShapeError,
        "lstm_gradients: source_gradient must have shape [T, N, H] = [5, 2, 8], got [4, 2, 8]",
    ),
    Mistake(
        "training state of another op",
        lambda: lstm_gradients(z_state=zeros(T, N, 3 * H)),
        ShapeError,
        "lstm_gradients: z_state must have shape [T, N, 4*H] = [5, 2, 32], got [5, 2, 24]",
    ),
    Mistake(
        "cell gradient without time",
        lambda: lstm_gradients(cell_sequence_gradient=zeros(N, H)),
        ShapeError,
        "lstm_gradients: cell_sequence_gradient must have shape [T, N, H] = [5, 2, 8], got [2, 8]",
    ),
    Mistake(
        "lengths of another batch",
        lambda: gru(lengths=[1, 2, 3]),
        ShapeError,
        "gru: lengths must have shape [N] = [2], got [3]",
    ),
    Mistake(
        "resets batch-first",
        lambda: rnn(resets=zeros(N, T, dtype=bool)),
        ShapeError,
        "single_gate_rnn: resets must have shape [T, N] = [5, 2], got [2, 5]",
    ),
    Mistake(
        "join one direction",
        lambda: recurra.join_directions(zeros(1, N, H)),
        ShapeError,
        "join_directions: state must have shape [2, N, H], got [1, 2, 8]",
    ),
    Mistake(
        "split an odd width",
        lambda: recurra.split_directions(zeros(N, 7)),
        ShapeError,
        "split_directions: state must have shape [N, 2*H], got [2, 7]",
    ),
    Mistake(
        "split an unknown width",
        lambda: recurra.split_directions(Graph().placeholder([N, None])),
        ShapeError,
        "split_directions: state must have shape [N, 2*H], got [2, -1]",
    ),
    Mistake(
        "join a list",
        lambda: recurra.join_directions([1, 2]),
        ArgumentTypeError,
        "join_directions: inputs must be graph tensors or arrays, got [1, 2]",
    ),
]

WRONG_SHAPES = [*SOURCE_AND_WEIGHTS, *OTHER_ARGUMENTS]
