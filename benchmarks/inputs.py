"""The numbers of a case, as NumPy arrays: the same for every peer, weights as torch.nn draws them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
import zlib

from cases import Case
import ml_dtypes
import numpy as np

DTYPES = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16}
# Of the steps that begin an episode, in TorchRL's report.
RESETS = 0.03
# Of the units that recurrent dropout takes away.
DROPPED = 0.1


@dataclass(frozen=True)
class Numbers:
    """Arguments in torch.nn's form, one direction after the other; gates in torch.nn's order (i, f, g, o; r, z, n)."""

    x: Any  # [T, N, I]
    W: list[Any]  # per direction [G*H, I]
    R: list[Any]  # per direction [G*H, H]
    b_input: list[Any]  # per direction [G*H]
    b_state: list[Any]  # per direction [G*H]
    h0: Any  # [D, N, H]
    c0: Any  # [D, N, H], LSTM
    dy: Any  # [T, N, D*H]
    peephole: Any = None  # [4*H]
    mask: Any = None  # [N, H], scaled
    lengths: Any = None  # int64 [N]
    resets: Any = None  # bool [T, N]

    def as_dtype(self, dtype: str) -> Numbers:
        kind = DTYPES[dtype]

        def cast(value: Any) -> Any:
            if isinstance(value, list):
                return [cast(v) for v in value]
            return value if value is None or value.dtype.kind in "ib" else value.astype(kind)

        return Numbers(**{name: cast(value) for name, value in vars(self).items()})


def numbers(case: Case) -> Numbers:
    """The same on every machine."""
    rng = np.random.default_rng(zlib.crc32(f"{case.op}{case.T}{case.N}{case.I}{case.H}".encode()))
    bound = 1 / case.H**0.5

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape, dtype=np.float32)

    def weight(*shape: int) -> Any:
        return (2 * rng.random(shape, dtype=np.float32) - 1) * np.float32(bound)

    T, N, I, H, D, rows = case.T, case.N, case.I, case.H, case.D, case.G * case.H
    given: dict[str, Any] = {
        "x": normal(T, N, I),
        "W": [weight(rows, I) for _ in range(D)],
        "R": [weight(rows, H) for _ in range(D)],
        "b_input": [weight(rows) for _ in range(D)],
        "b_state": [weight(rows) for _ in range(D)],
        "h0": normal(D, N, H) * np.float32(0.5),
        "c0": normal(D, N, H) * np.float32(0.5),
        "dy": normal(T, N, D * H),
    }
    if "peephole" in case.options:
        given["peephole"] = weight(rows)
    if "mask" in case.options:
        given["mask"] = (rng.random((N, H)) >= DROPPED).astype(np.float32) / np.float32(1 - DROPPED)
    if "lengths" in case.options:
        given["lengths"] = rng.integers(T // 2, T, N, endpoint=True)
    if "resets" in case.options:
        given["resets"] = rng.random((T, N)) < RESETS
    return Numbers(**given).as_dtype(case.dtype)
