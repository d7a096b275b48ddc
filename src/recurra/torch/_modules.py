"""LSTM, GRU and RNN: torch.nn's constructors, and behind them what torch.nn lacks, as keywords."""

from __future__ import annotations

from typing import Any

from ..ops.activations import ActivationLike, as_activation
from . import _constructor
from ._recurrent import Recurrent


class LSTM(Recurrent):
    """`torch.nn.LSTM`, and more: `y, (h_n, c_n) = lstm(x)`.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype: as
            for `torch.nn.LSTM`. The parameters have the same names, shapes and, from the same seed, numbers.
        peephole: the gates see the cell, through weights `weight_peephole_l0`, … [4*H], for i, f, z, o.
        peephole_output: which cell the output gate sees, the "previous" or the "current" one.
        recurrent_dropout: the rate of a dropout of the state on its way to the next step; one mask for all steps of
            a call, while training.
        learnable_initial_state: parameters `h_0` and `c_0`, for calls without hx.
        input_gate_activation, forget_gate_activation, cell_gate_activation, output_gate_activation, activation: as
            in `LSTMDescriptor`.
        layer_norm: not offered; True is refused.

    Raises:
        ArgumentError, ArgumentTypeError: an argument breaks a rule.
        UnsupportedError: `layer_norm`, or `recurrent_dropout` together with `proj_size`.

    Example:
        >>> import torch
        >>> lstm = LSTM(8, 16, num_layers=2, batch_first=True, peephole=True)
        >>> y, (h, c) = lstm(torch.randn(3, 5, 8), lengths=torch.tensor([5, 2, 4]))
        >>> y.shape, h.shape
        (torch.Size([3, 5, 16]), torch.Size([2, 3, 16]))
    """

    _name, _op = "LSTM", "lstm"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
        *,
        peephole: bool = False,
        peephole_output: str = "previous",
        recurrent_dropout: float = 0.0,
        learnable_initial_state: bool = False,
        input_gate_activation: ActivationLike = "sigmoid",
        forget_gate_activation: ActivationLike = "sigmoid",
        cell_gate_activation: ActivationLike = "tanh",
        output_gate_activation: ActivationLike = "sigmoid",
        activation: ActivationLike = "tanh",
        layer_norm: bool = False,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device,
            dtype,
            options={
                "peephole_output": _constructor.peephole_output(self._name, peephole, peephole_output),
                "input_gate_activation": input_gate_activation,
                "forget_gate_activation": forget_gate_activation,
                "cell_gate_activation": cell_gate_activation,
                "output_gate_activation": output_gate_activation,
                "activation": activation,
            },
            peephole=peephole,
            recurrent_dropout=recurrent_dropout,
            learnable_initial_state=learnable_initial_state,
            layer_norm=layer_norm,
        )  # fmt: skip


class GRU(Recurrent):
    """`torch.nn.GRU`, and more: `y, h_n = gru(x)`.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype: as for
            `torch.nn.GRU`. The parameters have the same names, shapes and, from the same seed, numbers.
        reset_after: the reset gate multiplies the recurrent product, as in torch.nn; False: the state that enters it.
        recurrent_dropout: the rate of a dropout of the state on its way to the next step; one mask for all steps of
            a call, while training.
        learnable_initial_state: a parameter `h_0`, for calls without hx.
        update_gate_activation, reset_gate_activation, output_gate_activation: as in `GRUDescriptor`.
        layer_norm, proj_size: not offered; anything but the default is refused.

    Raises:
        ArgumentError, ArgumentTypeError: an argument breaks a rule.
        UnsupportedError: `layer_norm`.

    Example:
        >>> import torch
        >>> y, h = GRU(8, 16, bidirectional=True)(torch.randn(5, 3, 8))
        >>> y.shape, h.shape
        (torch.Size([5, 3, 32]), torch.Size([2, 3, 16]))
    """

    _name, _op = "GRU", "gru"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        reset_after: bool = True,
        recurrent_dropout: float = 0.0,
        learnable_initial_state: bool = False,
        update_gate_activation: ActivationLike = "sigmoid",
        reset_gate_activation: ActivationLike = "sigmoid",
        output_gate_activation: ActivationLike = "tanh",
        layer_norm: bool = False,
        proj_size: int = 0,
    ) -> None:
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            _constructor.no_projection(self._name, proj_size), device, dtype,
            options={
                "reset_after": reset_after,
                "update_gate_activation": update_gate_activation,
                "reset_gate_activation": reset_gate_activation,
                "output_gate_activation": output_gate_activation,
            },
            recurrent_dropout=recurrent_dropout,
            learnable_initial_state=learnable_initial_state,
            layer_norm=layer_norm,
        )  # fmt: skip


class RNN(Recurrent):
    """`torch.nn.RNN`, and more: `y, h_n = rnn(x)`.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype: as for
            `torch.nn.RNN`. The parameters have the same names, shapes and, from the same seed, numbers.
        nonlinearity: "tanh", "relu", or any other activation of `SingleGateRNNDescriptor`.
        recurrent_dropout: the rate of a dropout of the state on its way to the next step; one mask for all steps of
            a call, while training.
        learnable_initial_state: a parameter `h_0`, for calls without hx.
        layer_norm, proj_size: not offered; anything but the default is refused.

    Raises:
        ArgumentError, ArgumentTypeError: an argument breaks a rule.
        UnsupportedError: `layer_norm`.

    Example:
        >>> import torch
        >>> y, h = RNN(8, 16, nonlinearity=("leaky_relu", 0.1))(torch.randn(5, 3, 8))
        >>> y.shape, h.shape
        (torch.Size([5, 3, 16]), torch.Size([1, 3, 16]))
    """

    _name, _op = "RNN", "single_gate_rnn"
    nonlinearity: ActivationLike

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: ActivationLike = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        recurrent_dropout: float = 0.0,
        learnable_initial_state: bool = False,
        layer_norm: bool = False,
        proj_size: int = 0,
    ) -> None:
        activation = as_activation(nonlinearity, f"{self._name}: nonlinearity")
        super().__init__(
            f"RNN_{activation}".upper(), input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, _constructor.no_projection(self._name, proj_size), device, dtype,
            options={"activation": activation},
            recurrent_dropout=recurrent_dropout,
            learnable_initial_state=learnable_initial_state,
            layer_norm=layer_norm,
        )  # fmt: skip
        self.nonlinearity = nonlinearity

    def _own_options(self) -> dict[str, Any]:
        return {"activation": self.nonlinearity}

    def _shown(self, option: str, value: Any) -> tuple[str, Any] | None:
        # torch.nn.RNN tells of no nonlinearity: this one does where torch.nn has none such.
        return None if str(value) == "relu" else ("nonlinearity", value)
