"""When two results count as the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def tol(dtype: str, length: int, steps: int, backward: bool) -> float:
    """oneDNN's rule: 4 (twice that backward) times ceil(log2(length of the sums * steps)) times eps."""
    return 4 * (2 if backward else 1) * math.ceil(math.log2(max(length * steps, 2))) * EPS[dtype]


def assert_agree(name: str, got: Any, wanted: Any, tolerance: float) -> None:
    """Equal shapes; no error above the tolerance, relative to the largest wanted value or to 1 if that is smaller."""
    got, wanted = (x.detach().numpy() if isinstance(x, torch.Tensor) else np.asarray(x) for x in (got, wanted))
    assert got.shape == wanted.shape, f"{name}: shape {got.shape}, wanted {wanted.shape}"
    scale = max(np.abs(wanted).max(initial=0.0), 1.0)
    error = np.abs(got.astype(np.float64) - wanted).max(initial=0.0) / scale
    assert error <= tolerance, f"{name}: error {error:.1e} of {scale:.3g}, allowed {tolerance:.1e}"
