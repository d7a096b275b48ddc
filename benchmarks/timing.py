"""How a time is taken: turns in random order, a warm-up before each, medians, minima, and what counts as disturbed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
import gc
import random
import statistics
import time
from typing import Any, Protocol

from load import Load

# Shorter than this, and the clock itself is seen: so many calls are taken together.
SAMPLE = 200e-6
# What a rival gets at once: long enough to be warm, short enough that rivals share a busy second.
TURN = 0.03
# Idle threads of the rival before spin for a few milliseconds.
SETTLE = 0.005
WARM = 0.003
DISTURBED = 1.5
# CPUs that other processes may use.
BUSY = 0.1
LEAST_TURNS, MOST_TURNS = 5, 200


def turn(call: Callable[[], Any], seconds: float = TURN) -> list[float]:
    """Seconds a call, several samples, after a warm-up. What a call returns is freed before the next begins."""
    clock = time.perf_counter
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        begin = clock()
        warm = 0
        while True:
            call()
            warm += 1
            if (spent := clock() - begin) > WARM:
                break
        number = max(1, round(SAMPLE / (spent / warm)))
        samples = []
        end = clock() + seconds
        while True:
            start = clock()
            for _ in range(number):
                call()
            now = clock()
            samples.append((now - start) / number)
            if now > end:
                return samples
    finally:
        if was_enabled:
            gc.enable()


class Contestant(Protocol):
    """Somebody who can be asked for samples."""

    processes: list[int]  # of its own

    def turn(self) -> list[float]: ...


@dataclass(frozen=True)
class Times:
    """What was measured of one rival in one case."""

    turns: tuple[tuple[float, ...], ...]  # the samples of each

    @property
    def samples(self) -> list[float]:
        return [s for turn in self.turns for s in turn]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def least(self) -> float:
        return min(self.samples)

    @property
    def is_disturbed(self) -> bool:
        return self.median > DISTURBED * self.least

    def summary(self) -> dict[str, Any]:
        """For JSON, in seconds."""
        ordered = sorted(self.samples)
        at = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]  # noqa: E731
        return {
            "median": self.median,
            "least": self.least,
            "quarter": at(0.25),
            "three_quarters": at(0.75),
            "samples": len(ordered),
            "by_turn": [statistics.median(t) for t in self.turns],
            "disturbed": self.is_disturbed,
        }


@dataclass(frozen=True)
class Run:
    """Everybody's times, taken together, and how many CPUs other processes used meanwhile."""

    times: dict[str, Times]
    others: float | None

    @property
    def disturbed(self) -> int:
        return sum(t.is_disturbed for t in self.times.values())

    @property
    def is_calm(self) -> bool:
        return not self.disturbed and (self.others or 0) < BUSY


def interleave(contestants: Mapping[str, Contestant], seconds: float, seed: int = 0) -> Run:
    """Rounds in which each has a turn, in random order, until the time is spent; at least LEAST_TURNS rounds."""
    order, rng = list(contestants), random.Random(seed)
    turns: dict[str, list[tuple[float, ...]]] = {name: [] for name in order}
    load = Load(pid for c in contestants.values() for pid in c.processes)
    end, rounds = time.perf_counter() + seconds, 0
    while rounds < LEAST_TURNS or (time.perf_counter() < end and rounds < MOST_TURNS):
        rng.shuffle(order)
        for name in order:
            time.sleep(SETTLE)
            turns[name].append(tuple(contestants[name].turn()))
        rounds += 1
    return Run({name: Times(tuple(found)) for name, found in turns.items()}, load.others())


def measured(contestants: Mapping[str, Contestant], seconds: float) -> Run:
    """As `interleave`; where somebody was disturbed all run again, and the calmer of the two runs counts."""
    first = interleave(contestants, seconds)
    if first.is_calm:
        return first
    return min(first, interleave(contestants, seconds, seed=1), key=lambda run: (run.disturbed, run.others or 0))
