"""`replace`: the recurrent modules of a model become recurra's, where they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch.nn.utils import parametrize

from .._errors import ArgumentTypeError, UnsupportedError
from ._cells import Cell, GRUCell, LSTMCell, RNNCell
from ._modules import GRU, LSTM, RNN
from ._recurrent import Recurrent

Module: TypeAlias = Any

_CLASSES: dict[Any, type[Recurrent] | type[Cell]] = {
    torch.nn.LSTM: LSTM,
    torch.nn.GRU: GRU,
    torch.nn.RNN: RNN,
    torch.nn.LSTMCell: LSTMCell,
    torch.nn.GRUCell: GRUCell,
    torch.nn.RNNCell: RNNCell,
}
# What torch.nn's modules keep about their block of weights.
_FLAT = ("_flat_weights", "_flat_weight_refs", "_flat_weights_names")


@dataclass(frozen=True)
class Entry:
    """One module that `replace` met: its name in the model, what it was, and why it was left (empty if it was not)."""

    name: str
    was: str
    reason: str = ""

    def __str__(self) -> str:
        where = self.name or "(the model itself)"
        return f"{'left' if self.reason else 'replaced':8}  {where}: {self.was}{self.reason and f': {self.reason}'}"


@dataclass(frozen=True)
class ReplaceReport:
    """What `replace` did. Print it."""

    replaced: tuple[Entry, ...]
    left: tuple[Entry, ...]

    def __str__(self) -> str:
        if not self.replaced and not self.left:
            return "nothing to replace: the model has no recurrent module of torch.nn"
        head = f"replaced {len(self.replaced)}, left {len(self.left)}"
        return "\n".join([head, *(f"  {entry}" for entry in (*self.replaced, *self.left))])


def replace(model: Module, *, strict: bool = False) -> ReplaceReport:
    """Make every `torch.nn.LSTM`, `GRU`, `RNN` and cell of a model one of recurra's, in place.

    The modules stay the same objects and get another class. So everything that holds on to them or to what is theirs
    goes on working: parameters (optimizers, DDP, tied weights), hooks and their handles, buffers, parametrizations,
    training flag, dtype, device, and a module that is used at several places. The model may itself be one of them.

    Args:
        model: a module.
        strict: raise, and change nothing, if a module would be left.

    Returns:
        A report of what was replaced, and what was left and why: subclasses, which may have code of their own,
        modules with another forward, TorchScript, quantized modules.

    Raises:
        ArgumentTypeError: `model` is no module.
        UnsupportedError: `strict`, and a module would be left; the message has the report's lines.

    Example:
        >>> import torch
        >>> model = torch.nn.Sequential(torch.nn.LSTM(8, 16), torch.nn.Identity())
        >>> print(replace(model))
        replaced 1, left 0
          replaced  0: LSTM(8, 16)
    """
    if not isinstance(model, torch.nn.Module):
        raise ArgumentTypeError(f"replace: model must be a torch.nn.Module, got {type(model).__name__}")
    found = list(_recurrent_modules(model))
    left = tuple(entry for _, entry in found if entry.reason)
    if strict and left:
        lines = "\n".join(f"  {entry}" for entry in left)
        raise UnsupportedError(f"replace: model must have nothing that is left, when strict, got\n{lines}")
    taken = [(module, entry) for module, entry in found if not entry.reason]
    for module, _ in taken:
        _become(module)
    return ReplaceReport(tuple(entry for _, entry in taken), left)


def _recurrent_modules(model: Module) -> Iterator[tuple[Module, Entry]]:
    """The recurrent modules of torch.nn in a model, each once."""
    for name, module in model.named_modules():
        kind = parametrize.type_before_parametrizations(module)
        if kind in _CLASSES:
            reason = ""
            if "forward" in vars(module):
                reason = "its forward was replaced on this very module"
            yield module, Entry(name, f"{type(module).__name__}({module.extra_repr()})", reason)
        elif isinstance(module, tuple(_CLASSES)):
            base = next(c for c in kind.__mro__ if c in _CLASSES)
            own = "it has a forward of its own" if kind.forward is not base.forward else "it may have code of its own"
            reason = f"a subclass of torch.nn.{base.__name__}, {own}; derive it from recurra.torch.{base.__name__}"
            yield module, Entry(name, kind.__name__, reason)
        elif isinstance(module, torch.jit.ScriptModule) and module.original_name in _NAMES:
            yield module, Entry(name, module.original_name, "it is TorchScript; replace it before it is scripted")
        elif kind.__module__.startswith("torch.ao.") and kind.__name__ in _NAMES:
            yield module, Entry(name, f"{kind.__module__}.{kind.__name__}", "it is quantized, or prepared for it")


_NAMES = {kind.__name__ for kind in _CLASSES}


def _become(module: Module) -> None:
    """Give a module of torch.nn the class of recurra, and what that class needs beside torch.nn's attributes."""
    is_parametrized = parametrize.is_parametrized(module)
    module.__class__ = _CLASSES[parametrize.type_before_parametrizations(module)]
    for name in _FLAT:
        module.__dict__.pop(name, None)
    module._adopt()
    if is_parametrized:
        # Parametrized modules are of a class made for each, which has the weights for properties.
        parametrize._inject_new_class(module)
        for name in module.parametrizations:
            parametrize._inject_property(module, name)
