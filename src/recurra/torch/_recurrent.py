"""What LSTM, GRU and RNN share: torch.nn's parameters under torch.nn's names, and a call through all layers."""

from __future__ import annotations

from collections.abc import Mapping
import math
from typing import Any, TypeAlias

import torch
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from .._stream import Stream
from . import _checks, _constructor, _layer, _packed, _streaming
from ._errors import ModuleShapeError
from ._kind import Kind
from ._layer import Weights

Tensor: TypeAlias = Any


class Recurrent(torch.nn.Module):  # type: ignore[misc]
    """Base of LSTM, GRU and RNN. Its weights are plain parameters; nothing is flattened or cached."""

    # As torch.nn names it, in messages too; and the op.
    _name = ""
    _op = ""

    mode: str
    # What torch.nn's modules do not have, as they would have it: `replace` gives this class to one of them.
    peephole = False
    recurrent_dropout = 0.0
    learnable_initial_state = False

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        proj_size: int,
        device: Any,
        dtype: Any,
        *,
        options: Mapping[str, Any],
        peephole: bool = False,
        recurrent_dropout: float,
        learnable_initial_state: bool,
        layer_norm: Any,
    ) -> None:
        super().__init__()
        where = self._name
        _constructor.types(where, bool, bias=bias, batch_first=batch_first)
        sizes = {"input_size": input_size, "hidden_size": hidden_size, "num_layers": num_layers}
        _constructor.types(where, int, **sizes, proj_size=proj_size)
        _constructor.positive(where, **sizes)
        _constructor.projection(where, proj_size, hidden_size)
        _constructor.dropouts(where, dropout, recurrent_dropout, num_layers, proj_size)
        _constructor.no_layer_norm(where, layer_norm)
        self.mode = mode
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bool(bidirectional), proj_size
        self.peephole, self.recurrent_dropout = bool(peephole), float(recurrent_dropout)
        self.learnable_initial_state = bool(learnable_initial_state)
        self._adopt(options)
        self._make_parameters(device, dtype)
        self.reset_parameters()

    # ---- construction

    def _adopt(self, options: Mapping[str, Any] | None = None) -> None:
        """Make what is not torch.nn's from what is: the op's options, and the names of all weights by layer.

        `replace` calls this for a module that torch.nn made, without options.
        """
        self._kind = Kind(self._op, self._own_options() if options is None else options, bool(self.bidirectional))
        self._all_weights: list[list[str]] = []
        self._names: list[list[Weights]] = []
        for layer in range(self.num_layers):
            self._names.append([])
            for suffix in ("", "_reverse") if self.bidirectional else ("",):
                end = f"_l{layer}{suffix}"
                names = Weights(
                    f"weight_ih{end}",
                    f"weight_hh{end}",
                    f"bias_ih{end}" if self.bias else None,
                    f"bias_hh{end}" if self.bias else None,
                    f"weight_hr{end}" if self.proj_size else None,
                    f"weight_peephole{end}" if self.peephole else None,
                )
                self._names[-1].append(names)
                self._all_weights.append([name for name in names[:5] if name])

    def _own_options(self) -> dict[str, Any]:
        """The options of a module that torch.nn made."""
        return {}

    def _make_parameters(self, device: Any, dtype: Any) -> None:
        """Register the parameters: torch.nn's in torch.nn's order first, so that a seed gives the same numbers."""
        H, P = self.hidden_size, self._state_size
        rows = self._kind.gates * H
        made = {"device": device, "dtype": dtype}
        for layer, directions in enumerate(self._names):
            I = self.input_size if layer == 0 else P * len(directions)
            for names in directions:
                for name, shape in zip(names[:5], ((rows, I), (rows, P), (rows,), (rows,), (P, H)), strict=True):
                    if name:
                        setattr(self, name, torch.nn.Parameter(torch.empty(shape, **made)))
        for names in (names for directions in self._names for names in directions if names.peephole):
            setattr(self, names.peephole, torch.nn.Parameter(torch.empty(rows, **made)))
        if self.learnable_initial_state:
            for name, size in self._states:
                setattr(self, name, torch.nn.Parameter(torch.empty((self._columns, size), **made)))

    @property
    def _state_size(self) -> int:
        return self.proj_size or self.hidden_size

    @property
    def _columns(self) -> int:
        return self.num_layers * (2 if self.bidirectional else 1)

    @property
    def _states(self) -> tuple[tuple[str, int], ...]:
        """The states by torch.nn's names, with their sizes."""
        h = ("h_0", self._state_size)
        return (h, ("c_0", self.hidden_size)) if self._kind.has_cell else (h,)

    def reset_parameters(self) -> None:
        """Draw the weights anew, as torch.nn does; learnable initial states begin as zeros."""
        bound = 1 / math.sqrt(self.hidden_size)
        initial = {name for name, _ in self._states} if self.learnable_initial_state else set()
        for name, parameter in self.named_parameters():
            if name in initial:
                torch.nn.init.zeros_(parameter)
            else:
                torch.nn.init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """Do nothing: torch.nn has weights in one block of memory, these modules never need it."""

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters that torch.nn has too, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def descriptor(self) -> Any:
        """The options that the op is called with, as a descriptor of recurra; a copy."""
        return self._kind.descriptor()

    def extra_repr(self) -> str:
        defaults: dict[str, Any] = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0}
        defaults |= {"bidirectional": False, "peephole": False, "recurrent_dropout": 0}
        defaults |= {"learnable_initial_state": False}
        shown = {name: getattr(self, name) for name, default in defaults.items() if getattr(self, name) != default}
        shown |= dict(filter(None, (self._shown(*option) for option in self._kind.unusual().items())))
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *(f"{k}={v}" for k, v in shown.items())])

    def _shown(self, option: str, value: Any) -> tuple[str, Any] | None:
        """What the constructor calls an option, if it is shown."""
        return option, value

    def stream(self) -> Stream:
        """A `recurra.Stream` of a copy of the weights: frame by frame, as in eval mode, with the state kept in place.

        Raises:
            UnsupportedError: the module is bidirectional or has projections.
        """
        initial = [getattr(self, name) for name, _ in self._states] if self.learnable_initial_state else None
        layers = [self._weights(layer) for layer in range(self.num_layers)]
        return _streaming.stream(self._name, self._kind, layers, initial, self.proj_size)

    # ---- the call

    def forward(
        self,
        input: Tensor,
        hx: Any = None,
        *,
        lengths: Any = None,
        resets: Any = None,
        return_cells: Any = False,
        return_gates: Any = False,
    ) -> Any:
        """Run all layers over a batch of sequences.

        Args:
            input: [T, N, I], [N, T, I] with `batch_first`, [T, I] for a single sequence, or a PackedSequence.
            hx: h_0, and for an LSTM (h_0, c_0), [num_layers * D, N, H] each ([num_layers * D, H] for a single
                sequence). When absent, zeros, or the learnable initial state.
            lengths: integers [N]: row n has the steps t < lengths[n]. Outputs at the others are 0, and what the input
                has there plays no part, NaN included.
            resets: bool, in the layout of the input without channels: the state does not cross from step t-1 to t.
            return_cells: LSTM only: give also the cell at every step, of the last layer, or of "all" (a tuple).
            return_gates: give also the gates at every step, as the op's training state has them, of the last layer,
                or of "all".

        Returns:
            (output, h_n), for an LSTM (output, (h_n, c_n)), as torch.nn does; then cells and gates if asked for. h_n
            and c_n are those after the last step of each row.

        Raises:
            ShapeError, DTypeError, DeviceError, ArgumentError, ArgumentTypeError: an argument breaks a rule. Where
                torch.nn has an exception for it, the error is of that kind too.
        """
        _checks.wanted(self._name, self._kind.has_cell, return_cells, return_gates)
        if isinstance(input, PackedSequence):
            return _packed.forward(self, input, hx, lengths, resets, return_cells, return_gates)
        _checks.input_(self._name, input, (2, 3), "[T, I] or [T, N, I]")
        self._check_channels(input)
        is_batched, is_turned = input.dim() == 3, input.dim() == 3 and self.batch_first
        x = input.transpose(0, 1) if is_turned else input if is_batched else input[:, None]
        initial = self._initial(hx, x, is_batched)
        if lengths is not None:
            lengths = _checks.lengths(self._name, lengths, x, is_batched)
        if resets is not None:
            resets = _checks.resets(self._name, resets, x, is_batched, self.batch_first)
        y, last, cells, gates = self._run(x, initial, lengths, resets, return_cells, return_gates)

        def laid_out(sequence: Tensor) -> Tensor:
            return sequence.transpose(0, 1) if is_turned else sequence if is_batched else sequence[:, 0]

        if not is_batched:
            last = tuple(state[:, 0] for state in last)
        return self._returned(laid_out, y, last, cells, gates, return_cells, return_gates)

    def _check_channels(self, x: Tensor) -> None:
        _checks.like_weights(self._name, x, getattr(self, self._names[0][0].weight_ih))
        if x.shape[-1] != self.input_size:
            raise ModuleShapeError(
                f"{self._name}: input.size(-1) must be equal to input_size. Expected {self.input_size}, "
                f"got {x.shape[-1]}"
            )

    def _initial(self, hx: Any, x: Tensor, is_batched: bool) -> tuple[Tensor, ...] | None:
        """h_0 and c_0, [num_layers * D, N, …]; None for zeros. x is [T, N, I]."""
        if hx is None:
            if not self.learnable_initial_state:
                return None
            return tuple(getattr(self, name)[:, None].expand(-1, x.shape[1], -1) for name, _ in self._states)
        if self._kind.has_cell:
            _checks.pair(self._name, hx)
        given = tuple(hx) if self._kind.has_cell else (hx,)
        for i, (state, (_, size)) in enumerate(zip(given, self._states, strict=True)):
            name = f"hidden[{i}]" if self._kind.has_cell else "hidden"
            shape = (self._columns, x.shape[1], size) if is_batched else (self._columns, size)
            _checks.state(self._name, name, state, x, shape)
        return given if is_batched else tuple(state[:, None] for state in given)

    def _weights(self, layer: int) -> list[Weights]:
        """The tensors of a layer: parameters, or what parametrizations and `functional_call` put in their place."""
        return [Weights(*(name and getattr(self, name) for name in names)) for names in self._names[layer]]

    def _run(
        self,
        x: Tensor,
        initial: tuple[Tensor, ...] | None,
        lengths: Tensor | None,
        resets: Tensor | None,
        return_cells: Any,
        return_gates: Any,
    ) -> tuple[Tensor, tuple[Tensor, ...], list[Tensor], list[Tensor]]:
        """All layers over x [T, N, I]: output, last states [num_layers * D, N, …], cells, gates."""
        D, lasts, cells, gates = (2 if self.bidirectional else 1), [], [], []
        one_layer = self.num_layers == 1
        for layer in range(self.num_layers):
            is_top = layer == self.num_layers - 1
            wants_gates = return_gates == "all" or (bool(return_gates) and is_top)
            found = _layer.run(
                self._kind,
                x,
                self._weights(layer),
                initial if one_layer or initial is None else tuple(s[layer * D : (layer + 1) * D] for s in initial),
                lengths,
                resets,
                self._mask(x),
                wants_gates,
            )
            x = found.h if is_top or not self.dropout else F.dropout(found.h, self.dropout, self.training)
            lasts.append(found.last)
            if return_cells == "all" or (return_cells and is_top):
                cells.append(found.c)
            if wants_gates:
                gates.append(found.z)
        last = lasts[0] if one_layer else tuple(torch.cat(states) for states in zip(*lasts, strict=True))
        return x, last, cells, gates

    def _mask(self, x: Tensor) -> Tensor | None:
        """Dropout of the recurrent state: one mask for all steps of a call, scaled to keep the mean."""
        if not self.recurrent_dropout or not self.training:
            return None
        ones = x.new_ones((x.shape[1], (2 if self.bidirectional else 1) * self.hidden_size))
        return F.dropout(ones, self.recurrent_dropout, True)

    def _returned(
        self,
        laid_out: Any,
        y: Tensor,
        last: tuple[Tensor, ...],
        cells: list[Tensor],
        gates: list[Tensor],
        return_cells: Any,
        return_gates: Any,
    ) -> Any:
        """The results as torch.nn returns them, and what was asked for behind them."""
        given: list[Any] = [laid_out(y), last if self._kind.has_cell else last[0]]
        for wanted, sequences in ((return_cells, cells), (return_gates, gates)):
            if wanted:
                every = tuple(laid_out(s) for s in sequences)
                given.append(every if wanted == "all" else every[0])
        return tuple(given)
