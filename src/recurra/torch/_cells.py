"""LSTMCell, GRUCell and RNNCell: one step of one layer, as torch.nn has them."""

from __future__ import annotations

from collections.abc import Mapping
import math
from typing import Any, TypeAlias

import torch

from .._errors import ArgumentTypeError
from .._stream import Stream
from ..ops.activations import ActivationLike, as_activation
from . import _checks, _constructor, _layer, _streaming
from ._errors import ModuleShapeError
from ._kind import Kind
from ._layer import Weights

Tensor: TypeAlias = Any


class Cell(torch.nn.Module):  # type: ignore[misc]
    """Base of the cells."""

    _name = ""
    _op = ""
    peephole = False

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: Any,
        device: Any,
        dtype: Any,
        *,
        options: Mapping[str, Any],
        peephole: bool = False,
        layer_norm: Any,
    ) -> None:
        super().__init__()
        sizes = {"input_size": input_size, "hidden_size": hidden_size}
        _constructor.types(self._name, int, **sizes)
        _constructor.positive(self._name, **sizes)
        _constructor.no_layer_norm(self._name, layer_norm)
        # As torch.nn's cells do, anything that is true means a bias.
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self.peephole = bool(peephole)
        self._adopt(options)
        rows = self._kind.gates * hidden_size
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size)}
        shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
        shapes |= {"weight_peephole": (rows,)} if peephole else {}
        for name, shape in shapes.items():
            setattr(self, name, torch.nn.Parameter(torch.empty(shape, device=device, dtype=dtype)))
        if not bias:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def _adopt(self, options: Mapping[str, Any] | None = None) -> None:
        """Make what is not torch.nn's from what is; `replace` calls this for a cell that torch.nn made."""
        self._kind = Kind(self._op, self._own_options() if options is None else options, False)

    def _own_options(self) -> dict[str, Any]:
        """The options of a cell that torch.nn made."""
        return {}

    def reset_parameters(self) -> None:
        """Draw the weights anew, as torch.nn does."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            torch.nn.init.uniform_(parameter, -bound, bound)

    def extra_repr(self) -> str:
        shown = {} if self.bias is True else {"bias": self.bias}
        shown |= {"peephole": True} if self.peephole else {}
        shown |= {self._shown(name): value for name, value in self._kind.unusual().items()}
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *(f"{k}={v}" for k, v in shown.items())])

    def _shown(self, option: str) -> str:
        """What the constructor calls an option."""
        return option

    @property
    def descriptor(self) -> Any:
        """The options that the op is called with, as a descriptor of recurra; a copy."""
        return self._kind.descriptor()

    def _weights(self) -> Weights:
        return Weights(
            self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, None,
            self.weight_peephole if self.peephole else None,
        )  # fmt: skip

    def stream(self) -> Stream:
        """A `recurra.Stream` of a copy of the weights: frame by frame, with the state kept in place."""
        return _streaming.stream(self._name, self._kind, [[self._weights()]], None, 0)

    def _step(self, input: Tensor, given: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        """h, and of an LSTM c, after one step."""
        weights = self._weights()
        _checks.input_(self._name, input, (1, 2), "[I] or [N, I]")
        if input.shape[-1] != self.input_size:
            raise ModuleShapeError(
                f"{self._name}: input has inconsistent input_size: got {input.shape[-1]} expected {self.input_size}"
            )
        for i, state in enumerate(given or ()):
            self._check_state(i, state, input)
        _checks.like_weights(self._name, input, weights.weight_ih)
        is_batched = input.dim() == 2
        x = input[None] if is_batched else input[None, None]
        named = _layer.op_weights(self._kind, [weights])
        if given is not None:
            for name, state in zip(("init_state", "init_cell"), given, strict=False):
                named[name] = state if is_batched else state[None]
        h, c, _ = self._kind.call(x, False, None, **named)
        states = (h[0],) if c is None else (h[0], c[0])
        return states if is_batched else tuple(state[0] for state in states)

    def _check_state(self, i: int, state: Any, input: Tensor) -> None:
        name = f"hx[{i}]" if self._kind.has_cell else "hidden"
        if not isinstance(state, torch.Tensor):
            raise ArgumentTypeError(f"{self._name}: {name} must be a tensor, got {type(state).__name__}")
        if state.dim() not in (1, 2):
            raise ModuleShapeError(f"{self._name}: Expected {name} to be 1D or 2D, got {state.dim()}D instead")
        if state.dim() != input.dim():
            raise ModuleShapeError(
                f"{self._name}: {name} must have the rank of the input, {input.dim()}, got {state.dim()}"
            )
        if state.shape[-1] != self.hidden_size:
            raise ModuleShapeError(
                f"{self._name}: hidden{i} has inconsistent hidden_size: got {state.shape[-1]}, "
                f"expected {self.hidden_size}"
            )
        if state.dim() == 2 and state.shape[0] != input.shape[0]:
            raise ModuleShapeError(
                f"{self._name}: Input batch size {input.shape[0]} doesn't match hidden{i} batch size {state.shape[0]}"
            )
        _checks.same_kind(self._name, name, state, input)


class LSTMCell(Cell):
    """`torch.nn.LSTMCell`, and more: `h, c = cell(x, (h, c))`.

    Args:
        input_size, hidden_size, bias, device, dtype: as for `torch.nn.LSTMCell`.
        peephole: the gates see the cell, through the weights `weight_peephole` [4*H], for i, f, z, o.
        peephole_output, input_gate_activation, forget_gate_activation, cell_gate_activation, output_gate_activation,
            activation: as in `LSTMDescriptor`.
        layer_norm: not offered; True is refused.

    Example:
        >>> import torch
        >>> h, c = LSTMCell(8, 16)(torch.randn(3, 8))
        >>> c.shape
        torch.Size([3, 16])
    """

    _name, _op = "LSTMCell", "lstm"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        peephole: bool = False,
        peephole_output: str = "previous",
        input_gate_activation: ActivationLike = "sigmoid",
        forget_gate_activation: ActivationLike = "sigmoid",
        cell_gate_activation: ActivationLike = "tanh",
        output_gate_activation: ActivationLike = "sigmoid",
        activation: ActivationLike = "tanh",
        layer_norm: bool = False,
    ) -> None:
        super().__init__(
            input_size, hidden_size, bias, device, dtype,
            options={
                "peephole_output": _constructor.peephole_output(self._name, peephole, peephole_output),
                "input_gate_activation": input_gate_activation,
                "forget_gate_activation": forget_gate_activation,
                "cell_gate_activation": cell_gate_activation,
                "output_gate_activation": output_gate_activation,
                "activation": activation,
            },
            peephole=peephole,
            layer_norm=layer_norm,
        )  # fmt: skip

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        """One step: h and c after it.

        Args:
            input: [N, I], or [I].
            hx: (h, c), [N, H] each, or [H]; zeros when absent.
        """
        if hx is not None:
            _checks.pair(self._name, hx)
        h, c = self._step(input, hx)
        return h, c


class GRUCell(Cell):
    """`torch.nn.GRUCell`, and more: `h = cell(x, h)`.

    Args:
        input_size, hidden_size, bias, device, dtype: as for `torch.nn.GRUCell`.
        reset_after: the reset gate multiplies the recurrent product, as in torch.nn; False: the state that enters it.
        update_gate_activation, reset_gate_activation, output_gate_activation: as in `GRUDescriptor`.
        layer_norm: not offered; True is refused.

    Example:
        >>> import torch
        >>> GRUCell(8, 16)(torch.randn(3, 8)).shape
        torch.Size([3, 16])
    """

    _name, _op = "GRUCell", "gru"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        reset_after: bool = True,
        update_gate_activation: ActivationLike = "sigmoid",
        reset_gate_activation: ActivationLike = "sigmoid",
        output_gate_activation: ActivationLike = "tanh",
        layer_norm: bool = False,
    ) -> None:
        super().__init__(
            input_size, hidden_size, bias, device, dtype,
            options={
                "reset_after": reset_after,
                "update_gate_activation": update_gate_activation,
                "reset_gate_activation": reset_gate_activation,
                "output_gate_activation": output_gate_activation,
            },
            layer_norm=layer_norm,
        )  # fmt: skip

    def forward(self, input: Tensor, hx: Any = None) -> Tensor:
        """One step: h after it, from h before it (zeros when absent); [N, I] and [N, H], or [I] and [H]."""
        return self._step(input, None if hx is None else (hx,))[0]


class RNNCell(Cell):
    """`torch.nn.RNNCell`, and more: `h = cell(x, h)`.

    Args:
        input_size, hidden_size, bias, device, dtype: as for `torch.nn.RNNCell`.
        nonlinearity: "tanh", "relu", or any other activation of `SingleGateRNNDescriptor`.
        layer_norm: not offered; True is refused.

    Example:
        >>> import torch
        >>> RNNCell(8, 16, nonlinearity="relu")(torch.randn(3, 8)).shape
        torch.Size([3, 16])
    """

    _name, _op = "RNNCell", "single_gate_rnn"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: ActivationLike = "tanh",
        device: Any = None,
        dtype: Any = None,
        *,
        layer_norm: bool = False,
    ) -> None:
        activation = as_activation(nonlinearity, f"{self._name}: nonlinearity")
        super().__init__(
            input_size, hidden_size, bias, device, dtype, options={"activation": activation}, layer_norm=layer_norm
        )
        self.nonlinearity = nonlinearity

    def _own_options(self) -> dict[str, Any]:
        return {"activation": self.nonlinearity}

    def _shown(self, option: str) -> str:
        return "nonlinearity"

    def forward(self, input: Tensor, hx: Any = None) -> Tensor:
        """One step: h after it, from h before it (zeros when absent); [N, I] and [N, H], or [I] and [H]."""
        return self._step(input, None if hx is None else (hx,))[0]
