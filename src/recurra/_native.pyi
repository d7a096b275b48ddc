"""The compiled part of recurra (csrc/bindings.cpp)."""

from typing import Any

def isa() -> str:
    """Name of the instruction set whose kernels this machine uses; the environment variable RECURRA_ISA overrides.

    One of "x86-64-v4-bf16", "x86-64-v4", "x86-64-v3", "x86-64-v2", "neon", "generic".

    Raises:
        ValueError: RECURRA_ISA is an unknown name or an instruction set that this machine lacks.
    """

def has_bfloat16() -> bool:
    """Whether that instruction set has kernels for bfloat16."""

def default_threads() -> int:
    """How many threads a team has by default; -1 when RECURRA_NUM_THREADS is not a number from 1 on."""

def forget_team() -> None:
    """For the child of a fork, which has none of its parent's threads."""

def empty(bytes: int) -> Any:
    """Memory of the pool, as an array of bytes; it goes back when the array is gone."""

def kept_bytes() -> int:
    """How much memory the pool keeps for later."""

def drop_kept() -> None:
    """Gives that memory back to the system."""

class Packed:
    """Weights in the order of the kernels."""

    @property
    def bytes(self) -> int: ...

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
        reverse: bool,
        slots: list[int],
    ) -> None: ...

# The arrays of all are of the dtype in the name (bfloat16: its bits as uint16), contiguous, of the shapes in
# csrc/call.h; None where absent. threads: at most so many; exactly -threads when negative.

def forward_float32(cell: CellSpec, threads: int, *arrays: Any, packed: Packed | None = None) -> None:
    """The forward op; h, c, z and the last states are written where they are given."""

def gradient_float32(cell: CellSpec, threads: int, *arrays: Any) -> None:
    """The gradient op; reads h, c and z, writes the arrays whose names begin with d_."""

def pack_float32(cell: CellSpec, source: Any, recurrent_weight: Any, input_weight: Any) -> Packed:
    """The weights in the order of the kernels, for forward; of source only the shape is read."""

forward_float64 = forward_bfloat16 = forward_float32
gradient_float64 = gradient_bfloat16 = gradient_float32
pack_float64 = pack_bfloat16 = pack_float32
