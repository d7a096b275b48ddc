"""Test vectors that were written as JSON: arrays are {"dtype", "shape", "data" or "fill"}."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
import json
from pathlib import Path
from typing import Any

import numpy as np

from peers.mapping import Arrays

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Vector:
    """One call of an operator in a test of ONNX Runtime; inputs and outputs that are absent are left out."""

    number: int  # counted from 0 in its file
    test: str
    operator: str
    must_succeed: bool
    attributes: Mapping[str, Any]
    inputs: Arrays
    outputs: Arrays

    def __str__(self) -> str:
        return f"{self.operator}-{self.number}-{self.test.partition('.')[2].removeprefix('ONNXRuntime_Test')}"


def read_array(written: Mapping[str, Any]) -> np.ndarray:
    """An array as it was written; float32 unless it says otherwise."""
    values = written["data"] if "data" in written else written["fill"] * np.ones(written["shape"])
    return np.array(values, written.get("dtype", "float32")).reshape(written["shape"])


def read_vectors(path: Path) -> list[Vector]:
    """The vectors of a file with one in each line."""
    return [_vector(number, json.loads(line)) for number, line in enumerate(path.read_text().splitlines())]


def _vector(number: int, written: Mapping[str, Any]) -> Vector:
    inputs, outputs = (
        {one["name"]: read_array(one) for one in written[side] if one is not None} for side in ("inputs", "outputs")
    )
    succeeds, attributes = written["expect_success"], written["attrs"]
    return Vector(number, written["test"], written["op"], succeeds, attributes, inputs, outputs)
