"""The machine's ceiling, measured by ceiling.cpp, and the least time that a case can take under it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
import json
import os
import pathlib
import platform
import shutil
import subprocess
import tempfile
from typing import Any

from cases import Case

SOURCE = pathlib.Path(__file__).with_name("ceiling.cpp")
CPU0 = pathlib.Path("/sys/devices/system/cpu/cpu0/cache")
# Of one core, where the system does not say: bytes of L1, L2, L3.
USUAL = {"L1": 32 << 10, "L2": 1 << 20, "L3": 16 << 20}


class NoCompiler(Exception):
    """There is no C++ compiler, or it refused."""


@dataclass(frozen=True)
class Ceiling:
    """Of one thread and of all: flops a second (fma, fma_bfloat16), bytes a second (L1, L2, L3, DRAM)."""

    threads: int
    caches: dict[str, int]  # bytes
    one: dict[str, float]
    all: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def cache_sizes() -> dict[str, int]:
    found = dict(USUAL)
    for folder in CPU0.glob("index*"):
        if (folder / "type").read_text().strip() != "Instruction":
            size = (folder / "size").read_text().strip()
            found[f"L{(folder / 'level').read_text().strip()}"] = int(size.rstrip("K")) << 10
    return found


def measure(threads: int) -> Ceiling:
    """Compile the program into a folder that goes away, and run it with one thread and with all."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        raise NoCompiler("no C++ compiler (c++, or CXX) was found")
    native = "-mcpu=native" if platform.machine() in ("arm64", "aarch64") else "-march=native"
    caches = cache_sizes()
    sets = {
        "L1": caches["L1"] // 2,
        "L2": caches["L2"] // 2,
        "L3": max(2 * caches["L2"], caches["L3"] // 4 // threads),
        "DRAM": 4 * caches["L3"] // threads,
    }
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "ceiling"
        command = [
            compiler,
            "-std=c++17",
            "-O3",
            native,
            "-pthread",
            "-ffp-contract=fast",
            "-o",
            str(program),
            str(SOURCE),
        ]
        built = subprocess.run(command, capture_output=True, text=True)
        if built.returncode:
            raise NoCompiler(f"{' '.join(command)}: {built.stderr.strip()}")
        words = [str(word) for pair in sets.items() for word in pair]
        found = {
            n: json.loads(subprocess.run([program, str(n), *words], capture_output=True, text=True, check=True).stdout)
            for n in {1, threads}
        }
    return Ceiling(threads, caches, found[1], found[threads])


def floor(case: Case, c: Ceiling) -> float | None:
    """Seconds below which the case cannot be computed on all threads; activations cost nothing here.

    The input's products run at the peak. A step's recurrent product is bound by its flops or by reading R, of which
    each thread keeps its share in L2 as far as it fits and streams the rest from L3.
    """
    peak = c.all.get("fma" if case.dtype == "float32" else "fma_bfloat16")
    if peak is None:
        return None
    size = 4 if case.dtype == "float32" else 2
    rows = case.G * case.H
    of_input, of_state = (2 * case.N * rows * k / peak for k in (case.I, case.H))  # a step, one direction

    def reading(columns: int) -> float:
        share = rows * columns * size / c.threads
        kept = min(share, c.caches["L2"])
        return kept / (c.all["L2"] / c.threads) + (share - kept) / (c.all["L3"] / c.threads)

    steps = case.T * max(of_state, reading(case.H))
    forward = max(case.T * of_input, reading(case.I)) + steps
    # dx and dW are as large as the input's product, dR as the recurrent one; dh is the recurrent one itself.
    backward = case.T * (2 * of_input + of_state) + steps
    total = {"fb": forward + backward, "bwd": backward}.get(case.mode, forward)
    return case.D * total
