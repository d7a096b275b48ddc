"""The compiled part of recurra (csrc/bindings.cpp)."""

from typing import Any

def isa() -> str:
    """Name of the instruction set whose kernels this machine uses; the environment variable RECURRA_ISA overrides.

    One of "x86-64-v4", "x86-64-v3", "x86-64-v2", "neon", "generic".

    Raises:
        ValueError: RECURRA_ISA is an unknown name or an instruction set that this machine lacks.
    """

def most_threads() -> int:
    """How many threads OpenMP would use."""

class CellSpec:
    """A cell and its activations, each `(kind, alpha, beta)`, in the order of csrc/kernels.h."""

    def __init__(
        self,
        op: int,
        gates: list[tuple[int, float, float]],
        cell: tuple[int, float, float],
        output_sees_new: bool,
        reset_after: bool,
        flip_z: bool,
    ) -> None: ...

# The arrays of both are float32 or float64, contiguous, of the shapes in csrc/call.h; None where absent.

def forward(cell: CellSpec, reverse: bool, slots: list[int], threads: int, *arrays: Any) -> None:
    """The forward op; h, c and z are written where they are given."""

def gradient(cell: CellSpec, reverse: bool, slots: list[int], threads: int, *arrays: Any) -> None:
    """The gradient op; reads h, c and z, writes the arrays whose names begin with d_."""
