"""The compiled part of recurra (csrc/bindings.cpp)."""

def isa() -> str:
    """Name of the instruction set whose kernels this machine uses; the environment variable RECURRA_ISA overrides.

    One of "x86-64-v4", "x86-64-v3", "x86-64-v2", "neon", "generic".

    Raises:
        ValueError: RECURRA_ISA is an unknown name or an instruction set that this machine lacks.
    """
