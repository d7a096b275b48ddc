"""How times are taken: warm, interleaved, again where somebody was disturbed."""

from __future__ import annotations

from collections.abc import Iterator
import os
import subprocess
import sys
import time

from cases import TINY
import contest
from inputs import numbers
import psutil
import pytest
import timing

from benchmarks.suite import FOLDER


class Scripted:
    """A contestant whose turns take what a list says."""

    def __init__(self, name: str, turns: Iterator[list[float]], order: list[str]) -> None:
        self.name, self.turns, self.order = name, turns, order
        self.processes: list[int] = []

    def turn(self) -> list[float]:
        self.order.append(self.name)
        return next(self.turns)


def forever(*samples: float) -> Iterator[list[float]]:
    while True:
        yield list(samples)


def test_the_first_call_of_a_turn_is_not_counted() -> None:
    waits = iter([0.05])

    def call() -> None:
        time.sleep(next(waits, 0.001))

    assert max(timing.turn(call, seconds=0.01)) < 0.04


def test_short_calls_are_taken_together() -> None:
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1

    assert len(timing.turn(call, seconds=0.001)) < calls / 100


def test_rounds_have_everybody_once_in_random_order() -> None:
    order: list[str] = []
    rivals = {name: Scripted(name, forever(1.0), order) for name in "abc"}
    run = timing.interleave(rivals, seconds=0.2)
    rounds = ["".join(order[i : i + 3]) for i in range(0, len(order), 3)]
    assert len(rounds) >= timing.LEAST_TURNS
    assert all(sorted(r) == ["a", "b", "c"] for r in rounds)
    assert len(set(rounds)) > 1
    assert all(len(t.turns) == len(rounds) for t in run.times.values())


def test_a_summary_has_median_least_and_spread() -> None:
    summary = timing.Times(((1.0, 2.0), (3.0, 4.0, 5.0))).summary()
    assert (summary["median"], summary["least"], summary["samples"]) == (3.0, 1.0, 5)
    assert (summary["quarter"], summary["three_quarters"]) == (2.0, 4.0)
    assert summary["by_turn"] == [1.5, 4.0]
    assert summary["disturbed"]
    assert not timing.Times(((1.0, 1.4, 1.4),)).is_disturbed


def test_a_disturbed_case_runs_again_and_the_calmer_run_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing.Load, "others", lambda self: 0.0)

    def calmer() -> Iterator[list[float]]:
        for _ in range(timing.LEAST_TURNS):
            yield [1.0, 2.0, 2.0]
        yield from forever(1.0)

    order: list[str] = []
    run = timing.measured({"a": Scripted("a", calmer(), order)}, seconds=0)
    assert len(order) == 2 * timing.LEAST_TURNS
    assert run.is_calm
    order.clear()
    timing.measured({"a": Scripted("a", forever(1.0), order)}, seconds=0)
    assert len(order) == timing.LEAST_TURNS


def test_a_busy_machine_makes_a_case_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing.Load, "others", lambda self: 0.5)
    order: list[str] = []
    run = timing.measured({"a": Scripted("a", forever(1.0), order)}, seconds=0)
    assert len(order) == 2 * timing.LEAST_TURNS
    assert run.others == 0.5
    assert not run.is_calm


def test_load_counts_the_cpu_time_of_others() -> None:
    if not os.path.exists("/proc/stat"):
        pytest.skip("only Linux tells it, in /proc/stat")
    spin = "import time\nend = time.time() + 0.7\nwhile time.time() < end: pass"
    with subprocess.Popen([sys.executable, "-c", spin]) as other:
        load = timing.Load()
        time.sleep(0.5)
        assert (load.others() or 0) > 0.2
        own = timing.Load([other.pid])
        assert own.processes == [os.getpid(), other.pid]


def test_another_process_computes_and_ends() -> None:
    here = contest.Here("recurra", TINY, numbers(TINY))
    there = contest.Elsewhere("recurra", TINY)
    try:
        assert contest.disagreements(TINY, here.results(), there.results()) == []
        assert min(there.turn()) > 0
        process = psutil.Process(there.process.pid)
    finally:
        there.close()
    assert not process.is_running()


def test_another_process_ends_when_nobody_asks_any_more() -> None:
    """Even when whoever asked was killed."""
    code = (
        f"import sys; sys.path.append({str(FOLDER)!r})\n"
        "import cases, contest, os\n"
        "there = contest.Elsewhere('recurra', cases.TINY)\n"
        "print(there.process.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -9
    pid = int(done.stdout)
    end = time.monotonic() + 20
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end, f"process {pid} goes on"
        time.sleep(0.05)


def test_a_process_that_dies_is_a_reason() -> None:
    with pytest.raises(contest.Unavailable, match="its process ended with status 1"):
        contest.Elsewhere("no such peer", TINY)
