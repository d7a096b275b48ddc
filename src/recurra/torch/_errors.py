"""Errors of the modules: recurra's own kinds that are also what torch.nn raises for the same mistake."""

from __future__ import annotations

from .._errors import DeviceError, DTypeError, ShapeError


class ModuleShapeError(ShapeError, RuntimeError):
    """A size is wrong: torch.nn raises RuntimeError, recurra's ops a ShapeError, which is a ValueError."""


class ModuleDTypeError(DTypeError, ValueError, RuntimeError):
    """A dtype is wrong: torch.nn raises ValueError for the input, RuntimeError for the state."""


class ModuleDeviceError(DeviceError, RuntimeError):
    """Tensors are on different devices: torch.nn raises RuntimeError."""
