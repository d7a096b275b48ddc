"""What the constructors refuse; torch.nn's words where torch.nn refuses it too."""

from __future__ import annotations

import numbers
from typing import Any
import warnings

from .._errors import ArgumentError, ArgumentTypeError, RecurraWarning, UnsupportedError


def types(where: str, wanted: type, **arguments: Any) -> None:
    """Refuse arguments that are not of a type."""
    for name, value in arguments.items():
        if not isinstance(value, wanted):
            raise ArgumentTypeError(f"{where}: {name} should be of type {wanted.__name__}, got: {type(value).__name__}")


def positive(where: str, **arguments: int) -> None:
    """Refuse sizes below 1."""
    for name, value in arguments.items():
        if value <= 0:
            raise ArgumentError(f"{where}: {name} must be greater than zero, got {value}")


def projection(where: str, proj_size: int, hidden_size: int) -> None:
    """Refuse a projection that is no projection."""
    if proj_size < 0:
        raise ArgumentError(
            f"{where}: proj_size should be a positive integer or zero to disable projections, got {proj_size}"
        )
    if proj_size >= hidden_size:
        raise ArgumentError(f"{where}: proj_size has to be smaller than hidden_size, {hidden_size}, got {proj_size}")


def no_projection(where: str, proj_size: Any) -> int:
    """Refuse a projection; 0."""
    if proj_size != 0:
        raise ArgumentError(
            f"{where}: proj_size argument is only supported for LSTM, not RNN or GRU: it must be 0, got {proj_size!r}"
        )
    return 0


def rate(where: str, name: str, value: Any) -> None:
    """Refuse what is no probability."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1:
        raise ArgumentError(
            f"{where}: {name} should be a number in range [0, 1] representing the probability of an element being "
            f"zeroed, got {value!r}"
        )


def dropouts(where: str, dropout: Any, recurrent_dropout: Any, num_layers: int, proj_size: int) -> None:
    """Refuse rates that are none, warn of one that has no effect."""
    rate(where, "dropout", dropout)
    rate(where, "recurrent_dropout", recurrent_dropout)
    if recurrent_dropout and proj_size:
        raise UnsupportedError(
            f"{where}: recurrent_dropout must be 0 with proj_size: the op's mask is for the state before it is "
            f"projected, got {recurrent_dropout}"
        )
    if dropout and num_layers == 1:
        warnings.warn(
            f"{where}: dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
            f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            RecurraWarning,
            stacklevel=4,  # of the module's constructor
        )


def no_layer_norm(where: str, layer_norm: Any) -> None:
    """Refuse layer normalization."""
    if layer_norm:
        raise UnsupportedError(
            f"{where}: layer_norm must be False: the ops normalize nothing between the steps, got {layer_norm!r}"
        )


def peephole_output(where: str, peephole: bool, choice: str) -> str:
    """Refuse a choice for a peephole that is not there."""
    if choice != "previous" and not peephole:
        raise ArgumentError(f"{where}: peephole_output must be 'previous' without peephole=True, got {choice!r}")
    return choice
