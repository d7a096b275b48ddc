"""Every message of the recurrent ops."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from errors.mistakes import ANY, PACKAGE, Mistake, check, unsaid
from errors.recurrent_calls import (
    H,
    I,
    N,
    T,
    gru,
    gru_gradients,
    lstm,
    lstm_gradients,
    of_two_graphs,
    rnn,
    run_with_lengths,
    zeros,
)
from errors.wrong_shapes import WRONG_SHAPES
import recurra
from recurra import ArgumentError, ArgumentTypeError, DeviceError, DTypeError, Graph, GraphError

ROOMS = ("lstm", "gru", "rnn")
FILES = [
    *(f"ops/{name}.py" for name in ("_rules", "_call", "_sequence", "_composed", "states")),
    *(path.relative_to(PACKAGE).as_posix() for room in ROOMS for path in (PACKAGE / "ops" / room).glob("*.py")),
]
KINDS = "float32, float64, float16 or bfloat16"

DTYPES = [
    Mistake(
        "integer source",
        lambda: lstm(source=zeros(T, N, I, dtype=np.int64)),
        DTypeError,
        f"lstm: source must be {KINDS}, got int64",
    ),
    Mistake(
        "complex weight",
        lambda: gru(recurrent_weight=zeros(3 * H, H, dtype=np.complex64)),
        DTypeError,
        f"gru: recurrent_weight must be {KINDS}, got complex64",
    ),
    Mistake(
        "integer mask",
        lambda: rnn(mask=zeros(N, H, dtype=np.int32)),
        DTypeError,
        f"single_gate_rnn: mask must be {KINDS}, or bool, got int32",
    ),
    Mistake(
        "double weight beside single source",
        lambda: lstm(recurrent_weight=zeros(4 * H, H, dtype=np.float64)),
        DTypeError,
        "lstm: recurrent_weight must have the dtype of source, float32, got float64",
    ),
    Mistake(
        "bfloat16 gradient beside single source",
        lambda: gru_gradients(source_gradient=zeros(T, N, H, dtype=ml_dtypes.bfloat16)),
        DTypeError,
        "gru_gradients: source_gradient must have the dtype of source, float32, got bfloat16",
    ),
    Mistake(
        "float lengths",
        lambda: lstm(lengths=zeros(N)),
        DTypeError,
        "lstm: lengths must be int32 or int64, got float32",
    ),
    Mistake(
        "boolean lengths in a list",
        lambda: lstm(lengths=[True, False]),
        DTypeError,
        "lstm: lengths must be int32 or int64, got bool",
    ),
    Mistake(
        "integer resets",
        lambda: gru(resets=zeros(T, N, dtype=np.int8)),
        DTypeError,
        "gru: resets must be bool, got int8; write resets != 0",
    ),
    Mistake(
        "source of objects",
        lambda: lstm(source=zeros(T, N, I, dtype=object)),
        DTypeError,
        f"lstm: source: dtype must be one of bool, {ANY}complex128, got dtype('O')",
    ),
    Mistake(
        "words beside a tensor",
        lambda: Graph().gru(zeros(T, N, 3 * H), zeros(3 * H, H), init_state=np.full((N, H), "0")),
        DTypeError,
        f"gru: init_state: dtype must be one of bool, {ANY}complex128, got dtype('<U1')",
    ),
]

KIND_OF_ARGUMENT = [
    Mistake(
        "source with NumPy's mask",
        lambda: lstm(source=np.ma.array(zeros(T, N, I))),
        ArgumentTypeError,
        "lstm: source must be an array or a graph tensor, got MaskedArray",
    ),
    Mistake(
        "lengths known to be too long when the node is made",
        lambda: Graph().lstm(zeros(T, N, I), zeros(4 * H, H), input_weight=zeros(4 * H, I), lengths=[1, T + 1]),
        ArgumentError,
        "lstm: lengths must lie in [0, T] = [0, 5], got 6",
    ),
    Mistake(
        "source is a list",
        lambda: lstm(source=[[[1.0]]]),
        ArgumentTypeError,
        "lstm: source must be an array or a graph tensor, got list",
    ),
    Mistake(
        "bias is a number",
        lambda: gru(bias=0.5),
        ArgumentTypeError,
        "gru: bias must be an array or a graph tensor, got float",
    ),
    Mistake(
        "source is None",
        lambda: rnn(source=None),
        ArgumentTypeError,
        "single_gate_rnn: source must be an array or a graph tensor, got None",
    ),
    Mistake(
        "training state is None",
        lambda: lstm_gradients(z_state=None),
        ArgumentTypeError,
        "lstm_gradients: z_state must be an array or a graph tensor, got None",
    ),
    Mistake(
        "output is None",
        lambda: gru_gradients(output_fwd=None),
        ArgumentTypeError,
        "gru_gradients: output_fwd must be an array or a graph tensor, got None",
    ),
    Mistake(
        "lengths of words",
        lambda: lstm(lengths=["one", "two"]),
        ArgumentTypeError,
        "lstm: lengths must hold integers, got ['one', 'two']",
    ),
    Mistake(
        "lists of different lengths",
        lambda: lstm(resets=[[True], [True, False]]),
        ArgumentTypeError,
        "lstm: resets must hold booleans, got [[True], [True, False]]",
    ),
    Mistake(
        "name is a number",
        lambda: lstm(source=Graph().placeholder([T, N, I]), name=3),
        ArgumentTypeError,
        "lstm: name must be a string or None, got 3",
    ),
    Mistake(
        "two libraries",
        lambda: lstm(recurrent_weight=torch.zeros(4 * H, H)),
        DeviceError,
        "lstm: arrays must be of one library, got numpy and torch",
    ),
    Mistake(
        "two devices",
        lambda: recurra.gru(torch.zeros(T, N, 3 * H), torch.zeros(3 * H, H, device="meta")),
        DeviceError,
        "gru: recurrent_weight must be on the device of source, cpu, got meta; write recurrent_weight.to('cpu')",
    ),
    Mistake(
        "two graphs",
        of_two_graphs,
        GraphError,
        "lstm: inputs must be tensors of one graph, got <Tensor b float32[32]> of another",
    ),
]


VALUES = [
    Mistake(
        "length beyond the end",
        lambda: lstm(lengths=[T, T + 1]),
        ArgumentError,
        "lstm: lengths must lie in [0, T] = [0, 5], got 6",
    ),
    Mistake(
        "negative length, found when the graph runs",
        lambda: run_with_lengths([2, -1]),
        ArgumentError,
        "lstm: lengths must lie in [0, T] = [0, 5], got -1",
    ),
    Mistake(
        "length beyond the end, in the gradient op",
        lambda: gru_gradients(lengths=np.asarray([9, 0])),
        ArgumentError,
        "gru_gradients: lengths must lie in [0, T] = [0, 5], got 9",
    ),
]

MISTAKES = [*DTYPES, *KIND_OF_ARGUMENT, *WRONG_SHAPES, *VALUES]


@pytest.mark.parametrize("mistake", MISTAKES, ids=Mistake.id)
def test_message_says_what_is_wrong(mistake: Mistake) -> None:
    check(mistake)


def test_no_message_is_without_a_mistake() -> None:
    assert unsaid(FILES, MISTAKES) == []


def test_idle_secondary_bias_warns() -> None:
    text = (
        r"^gru: secondary_bias is used only with reset_after, and the descriptor has reset_after=False: "
        r"it is ignored and its gradient is zero$"
    )
    with pytest.warns(recurra.RecurraWarning, match=text) as caught:
        recurra.gru(zeros(T, N, 3 * H), zeros(3 * H, H), secondary_bias=zeros(H))
    assert len(caught) == 1
    assert isinstance(caught[0].message, UserWarning)
    assert caught[0].filename == __file__  # it points at the caller
