"""What a module's call may be given, and what is said of anything else.

Where torch.nn has a message for the same mistake, its words are kept behind the name of the module, and the exception
is also of torch.nn's kind: code that catches or matches them goes on working.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch

from .._errors import ArgumentError, ArgumentTypeError, ShapeError
from ._errors import ModuleDeviceError, ModuleDTypeError, ModuleShapeError

Tensor: TypeAlias = Any


def input_(where: str, x: Any, ranks: tuple[int, int], forms: str) -> None:
    """Refuse an input that is no tensor of these ranks."""
    if not isinstance(x, torch.Tensor):
        raise ArgumentTypeError(f"{where}: input must be a tensor, got {type(x).__name__}")
    if x.dim() not in ranks:
        raise ModuleShapeError(
            f"{where}: Expected input to be {ranks[0]}D or {ranks[1]}D, {forms}, got {x.dim()}D instead"
        )


def like_weights(where: str, x: Tensor, weight: Tensor) -> None:
    """Refuse an input of another dtype or device than the weights'."""
    if x.dtype != weight.dtype and not torch._C._is_any_autocast_enabled():
        raise ModuleDTypeError(
            f"{where}: RNN input dtype ({x.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
            f"input.to({weight.dtype}), or convert model: model.to({x.dtype})"
        )
    if x.device != weight.device:
        raise ModuleDeviceError(f"{where}: input must be on the device of the weights, {weight.device}, got {x.device}")


def state(where: str, name: str, given: Any, x: Tensor, shape: Sequence[int]) -> None:
    """Refuse an initial state of another shape, dtype or device than the input's."""
    if not isinstance(given, torch.Tensor):
        raise ArgumentTypeError(f"{where}: {name} must be a tensor, got {type(given).__name__}")
    if given.dim() != len(shape):
        raise ModuleShapeError(
            f"{where}: For {'un' if len(shape) == 2 else ''}batched {len(shape)}-D input, {name} should also be "
            f"{len(shape)}-D but got {given.dim()}-D tensor"
        )
    if _differ(given, shape):
        raise ModuleShapeError(f"{where}: Expected {name} size {tuple(shape)}, got {list(given.shape)}")
    same_kind(where, name, given, x)


def same_kind(where: str, name: str, given: Tensor, x: Tensor) -> None:
    """Refuse a state of another dtype or device than the input's."""
    if given.dtype != x.dtype and not torch._C._is_any_autocast_enabled():
        raise ModuleDTypeError(f"{where}: {name} must have the dtype of the input, {x.dtype}, got {given.dtype}")
    if given.device != x.device:
        raise ModuleDeviceError(f"{where}: {name} must be on the device of the input, {x.device}, got {given.device}")


def pair(where: str, hx: Any) -> None:
    """Refuse what is not h and c."""
    if not isinstance(hx, tuple | list) or len(hx) != 2:
        got = f"{len(hx)} entries" if isinstance(hx, tuple | list) else type(hx).__name__
        raise ArgumentTypeError(f"{where}: hx must be a pair of tensors, (h_0, c_0), got {got}")


def lengths(where: str, given: Any, x: Tensor, is_batched: bool) -> Tensor:
    """Lengths as int64 [N] on the input's device. From the CPU they are moved there."""
    found = _tensor(where, "lengths", given)
    if found.dtype.is_floating_point or found.dtype.is_complex or found.dtype == torch.bool:
        raise ModuleDTypeError(f"{where}: lengths must be integers, got {found.dtype}")
    if not is_batched:
        found = found.reshape(1) if found.dim() == 0 else found
    if found.dim() != 1 or found.shape[0] != x.shape[1]:
        raise ShapeError(f"{where}: lengths must have shape [N] = [{x.shape[1]}], got {list(found.shape)}")
    return _moved(where, "lengths", found, x).to(torch.int64)


def resets(where: str, given: Any, x: Tensor, is_batched: bool, batch_first: bool) -> Tensor:
    """Resets as bool [T, N] on the input's device; they come in the input's layout."""
    found = _tensor(where, "resets", given)
    if found.dtype != torch.bool:
        raise ModuleDTypeError(f"{where}: resets must be bool, got {found.dtype}; write resets != 0")
    T, N = x.shape[0], x.shape[1]
    form, wanted = ("[N, T]", [N, T]) if batch_first else ("[T, N]", [T, N])
    if not is_batched:
        form, wanted = "[T]", [T]
    if _differ(found, wanted):
        raise ShapeError(f"{where}: resets must have shape {form} = {wanted}, got {list(found.shape)}")
    found = _moved(where, "resets", found, x)
    if not is_batched:
        return found[:, None]
    return found.transpose(0, 1) if batch_first else found


def _differ(given: Tensor, shape: Sequence[int]) -> bool:
    """Whether a shape is another one. Size by size: torch.compile makes constants of tuples that are compared."""
    return given.dim() != len(shape) or any(given.shape[i] != size for i, size in enumerate(shape))


def _tensor(where: str, name: str, given: Any) -> Tensor:
    if isinstance(given, torch.Tensor):
        return given
    try:
        return torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        raise ArgumentTypeError(
            f"{where}: {name} must be a tensor, or what torch.as_tensor takes, got {type(given).__name__}"
        ) from None


def _moved(where: str, name: str, given: Tensor, x: Tensor) -> Tensor:
    if given.device == x.device:
        return given
    if given.device.type != "cpu":
        raise ModuleDeviceError(
            f"{where}: {name} must be on the device of the input, {x.device}, or on the CPU, got {given.device}"
        )
    return given.to(x.device, non_blocking=True)


def wanted(where: str, has_cell: bool, return_cells: Any, return_gates: Any) -> None:
    """Refuse a request for what there is not."""
    for name, value in (("return_cells", return_cells), ("return_gates", return_gates)):
        if value not in (True, False, "all"):
            raise ArgumentError(f"{where}: {name} must be True, False or 'all', got {value!r}")
    if return_cells and not has_cell:
        raise ArgumentError(f"{where}: return_cells must be False: only an LSTM has a cell, got {return_cells!r}")
