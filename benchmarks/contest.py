"""The contestants of a case: calls in this process, or in a process of their own (JAX, another commit)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from cases import CASES, TINY, Case
from inputs import Numbers, numbers
import numpy as np
from rivals import PEERS, Rival, Unavailable, offer
import timing

HERE = pathlib.Path(__file__).parent
# oneDNN's rule, as the tests apply it; twice, since both results are rounded.
EPS = {"float32": 2.0**-23, "bfloat16": 2.0**-7}


def cores() -> int:
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def case_named(name: str) -> Case:
    return TINY if name == TINY.name else CASES[name]


def use_threads(number: int) -> None:
    """Whoever runs next in this process uses so many threads."""
    os.environ["RECURRA_NUM_THREADS"] = str(number)
    if "torch" in sys.modules:
        import torch

        if torch.get_num_threads() != number:
            torch.set_num_threads(number)


class Here:
    """A rival in this process."""

    def __init__(self, peer: str, case: Case, given: Numbers) -> None:
        self.processes: list[int] = []
        self.threads = PEERS[peer].threads or cores()
        use_threads(self.threads)
        self.rival: Rival = offer(peer, case, given, self.threads)

    def results(self) -> dict[str, Any]:
        use_threads(self.threads)
        return self.rival.named(self.rival.call())

    def turn(self) -> list[float]:
        use_threads(self.threads)
        return timing.turn(self.rival.call)

    def close(self) -> None:
        pass


class Elsewhere:
    """A rival in a process of its own, asked over pipes: it sleeps while the others have their turns."""

    def __init__(self, peer: str, case: Case, python: str | os.PathLike[str] = sys.executable) -> None:
        self.process = subprocess.Popen(
            [python, str(HERE / "contest.py"), peer, case.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C is for the process that keeps the results; this one ends when its pipe does.
            start_new_session=True,
        )
        self.processes = [self.process.pid]
        try:
            self.recurra_file = self._answer()
        except BaseException:
            self.close()
            raise

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise Unavailable(f"its process ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "unavailable" in answer:
            raise Unavailable(answer["unavailable"])
        return answer["value"]

    def _ask(self, what: str) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return self._answer()

    def results(self) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "results.npz"
            self._ask(f"results {path}")
            with np.load(path) as found:
                return dict(found)

    def turn(self) -> list[float]:
        return self._ask("turn")

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:  # within a long call
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def enter(peer: str, case: Case, given: Numbers) -> Here | Elsewhere:
    """A contestant for the case, or Unavailable."""
    return Elsewhere(peer, case) if PEERS[peer].own_process else Here(peer, case, given)


def disagreements(case: Case, wanted: dict[str, Any], got: dict[str, Any]) -> list[str]:
    """What differs between two rivals by more than the dtype explains."""
    found = []
    if not (both := sorted(wanted.keys() & got.keys())):
        found.append("nothing to compare")
    for name in both:
        backward = name != "y"
        length = max(case.G * case.H, case.I) * (case.N if backward else 1)
        allowed = 8 * (2 if backward else 1) * np.ceil(np.log2(max(length * case.T, 2))) * EPS[case.dtype]
        one, two = (np.asarray(x[name], np.float32) for x in (wanted, got))
        if one.shape != two.shape:
            found.append(f"{name}: shapes {one.shape} and {two.shape}")
            continue
        error = np.abs(one - two).max() / max(np.abs(one).max(), 1.0)
        if not error <= allowed:
            found.append(f"{name}: off by {error:.1e}, allowed {allowed:.1e}")
    return found


def serve(arguments: Sequence[str], answer: Callable[[Any], None]) -> None:
    """The other end of Elsewhere."""
    peer, name = arguments
    case = case_named(name)
    try:
        here = Here(peer, case, numbers(case))
    except Unavailable as error:
        answer({"unavailable": str(error)})
        return
    import recurra

    answer({"value": recurra.__file__})
    for line in sys.stdin:
        what, _, path = line.rstrip("\n").partition(" ")
        if what == "turn":
            answer({"value": here.turn()})
        else:
            np.savez(path, **here.results())
            answer({"value": path})


def main() -> None:
    # Only answers may come out of the pipe; what libraries print goes to the terminal.
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(value: Any) -> None:
        pipe.write(json.dumps(value) + "\n")
        pipe.flush()

    # Whoever asked may be gone before the answer comes: then nobody misses it.
    with contextlib.suppress(BrokenPipeError):
        serve(sys.argv[1:], answer)
    os._exit(0)  # without a last try to write what the pipe still holds


if __name__ == "__main__":
    main()
