"""The modules of benchmarks/, its command line, and results that nobody measured."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from pathlib import Path
import subprocess
import sys
from typing import Any

from cases import CASES, Case

FOLDER = Path(__file__).parents[2] / "benchmarks"


def command(*arguments: object) -> list[str]:
    """The command line that a person would type."""
    return [sys.executable, str(FOLDER / "run.py"), *map(str, arguments)]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False)


def small(case: Case) -> Case:
    """The same question about a few numbers."""
    T = 1 if case.mode == "step" else 3
    return dataclasses.replace(case, T=T, N=1 if case.N == 1 else 2, I=5, H=4)


def times(median: float, *, disturbed: bool = False) -> dict[str, Any]:
    """One rival's summary, as timing.Times gives it."""
    by_turn = [0.9 * median, median, 1.1 * median]
    return {"median": median, "least": 0.8 * median, "by_turn": by_turn, "disturbed": disturbed}


def result(name: str, medians: Mapping[str, float], **more: Any) -> dict[str, Any]:
    """What run.py writes about a case."""
    case = CASES[name]
    found = {
        **dataclasses.asdict(case),
        "name": name,
        "floor": 0.5,
        "rivals": {peer: times(median) for peer, median in medians.items()},
        "unavailable": {},
        "disagreements": {},
        "others": 0.0,
    }
    return {**found, **more}
