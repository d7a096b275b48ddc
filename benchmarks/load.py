"""How many CPUs others used while we measured: on Linux, from /proc."""

from __future__ import annotations

from collections.abc import Iterable
import os
import pathlib
import time

TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def _machine() -> float | None:
    """Seconds that all CPUs worked, or were taken by another machine on the same host."""
    try:
        fields = [int(n) for n in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    except (OSError, ValueError):
        return None
    user, nice, system, _idle, _wait, irq, softirq, steal = fields[:8]
    return (user + nice + system + irq + softirq + steal) / TICK


def _process(pid: int) -> float:
    """Seconds that a process worked."""
    try:
        words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / TICK


class Load:
    """Begun before a measurement, asked after it."""

    def __init__(self, processes: Iterable[int] = ()) -> None:
        self.processes = [os.getpid(), *processes]
        self.begin = self._now()

    def _now(self) -> tuple[float, float | None, float]:
        return time.perf_counter(), _machine(), sum(map(_process, self.processes))

    def others(self) -> float | None:
        """CPUs that others used, on average since the beginning; None where the system does not say."""
        (start, machine, own), (end, machine_now, own_now) = self.begin, self._now()
        if machine is None or machine_now is None:
            return None
        return max(0.0, (machine_now - machine) - (own_now - own)) / (end - start)
