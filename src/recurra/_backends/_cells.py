"""Descriptors as the kernels in csrc/ see them."""

from __future__ import annotations

from typing import Any

from ..ops.activations import Activation, ActivationFunction
from ..ops.gru import GRUDescriptor
from ..ops.lstm import LSTMDescriptor
from ..ops.rnn import SingleGateRNNDescriptor
from ._extension import native

# Per op: its number in csrc/kernels.h, and its gates in the order of the cell.
_CELLS: dict[type, tuple[int, str]] = {
    SingleGateRNNDescriptor: (0, "a"),
    LSTMDescriptor: (1, "ifzo"),
    GRUDescriptor: (2, "zro"),
}


def _activation(function: ActivationFunction) -> tuple[int, float, float]:
    return int(Activation[function.name.upper()]), function.alpha, function.beta


class Cell:
    """A descriptor as C++ sees it: the cell, and the slot of each of its gates in the stacked weights."""

    __slots__ = ("directions", "gates", "params", "spec")

    def __init__(self, descriptor: Any) -> None:
        number, gates = _CELLS[type(descriptor)]
        if number == 0:
            functions, order = {"a": descriptor.function}, ("a",)
        else:
            functions, order = descriptor.functions, descriptor.gate_order
        self.spec = native.CellSpec(
            number,
            [_activation(functions[g]) for g in gates],
            _activation(functions["g"]) if number == 1 else (0, 0.0, 0.0),
            number == 1 and descriptor.peephole_output == "current",
            number == 2 and descriptor.reset_after,
            number == 2 and descriptor.flip_z,
            descriptor.reverse,
            [order.index(g) for g in gates],
        )
        self.gates, self.directions = len(gates), descriptor.directions
        # Which input has the cell's parameters per unit.
        self.params = {1: "peephole", 2: "secondary_bias" if number == 2 and descriptor.reset_after else ""}.get(number)


_cells: dict[Any, Cell] = {}


def cell_of(descriptor: Any) -> Cell:
    """The cell of a descriptor; made once for each that is different."""
    key = (type(descriptor), *vars(descriptor).values())
    found = _cells.get(key)
    if found is None:
        if len(_cells) > 1000:
            _cells.clear()
        found = _cells[key] = Cell(descriptor)
    return found
