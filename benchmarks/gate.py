"""The gate: an op's tests pass before its times count."""

from __future__ import annotations

from collections.abc import Iterable
import pathlib
import subprocess
import sys
import time
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
TESTS = {"lstm": "lstm", "gru": "gru", "rnn": "single_gate_rnn"}
# Of each op: every instruction set against the oracle, and the numbers with one, two and three threads.
ABOUT = "agrees_with_the_oracle or number_of_threads"
# Of any op: this test has none in its name.
ALWAYS = "repetitions_are_bitwise_equal"


class Red(Exception):
    """A test failed; the message has its output."""


def check(ops: Iterable[str]) -> dict[str, Any]:
    """Run the native kernels' tests of these ops. Raises Red if one fails, or if there was none."""
    chosen = f"({' or '.join(TESTS[op] for op in sorted(set(ops)))}) and ({ABOUT}) or {ALWAYS}"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", chosen, "tests/native"]
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Red(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return {"passed": done.stdout.strip().splitlines()[-1], "seconds": round(time.perf_counter() - begin, 1)}
