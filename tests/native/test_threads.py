"""Threads: any number of them gives the same bits, calls at the same time do not meet, and a fork does not hang."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
import os
import subprocess
import sys

import numpy as np
from oracle.cases import OPS
import pytest
from recurrent.calls import DESCRIPTORS, compute

import recurra
from recurra._backends import _native_calls

pytestmark = pytest.mark.filterwarnings("ignore:gru.* secondary_bias is used only:recurra.RecurraWarning")
GATES = {"lstm": 4, "gru": 3, "single_gate_rnn": 1}


def problem(op: str, T: int, N: int, I: int, H: int, seed: int = 8, **options):
    """A call with everything given: inputs, the descriptor, the incoming gradients."""
    rng = np.random.default_rng(seed)
    descriptor = DESCRIPTORS[op](training=True, bidirectional=True, **options)
    G = GATES[op]
    draw = lambda *shape: (rng.normal(size=shape) * 0.3).astype(np.float32)  # noqa: E731
    inputs = {
        "source": draw(T, N, I),
        "recurrent_weight": draw(2, G * H, H),
        "input_weight": draw(2 * G * H, I),
        "bias": draw(2 * G * H),
        "init_state": draw(N, 2 * H),
        "mask": draw(N, 2 * H),
        "lengths": rng.integers(0, T + 1, N),
        "resets": rng.uniform(size=(T, N)) < 0.1,
    }
    if op == "lstm":
        inputs |= {"peephole": draw(2, 4 * H), "init_cell": draw(N, 2 * H)}
    return inputs, descriptor, {"source_gradient": draw(T, N, 2 * H), "state_gradient": draw(N, 2 * H)}


def results(op: str, problem) -> list[np.ndarray]:
    inputs, descriptor, gradients_in = problem
    out, gradients = compute(op, descriptor, inputs, gradients_in)
    return [*out, *gradients]


def assert_same(one: list[np.ndarray], two: list[np.ndarray]) -> None:
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


# ---- any number of threads, any repetition

# The first is split over units alone, for it has one row; the last over rows alone, for it has few units.
SIZES = [(30, 1, 20, 150), (20, 17, 33, 48), (5, 70, 8, 31), (7, 67, 5, 3)]


@pytest.mark.parametrize("op", [*OPS, "gru, reset after"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_results_do_not_depend_on_the_number_of_threads(op: str, sizes, monkeypatch) -> None:
    name, *more = op.split(",")
    given = problem(name, *sizes, **({"reset_after": True} if more else {}))
    found = []
    for threads in (1, 2, 3, 4, 7, 64, 2):
        monkeypatch.setattr(_native_calls, "_exact_threads", threads)
        found.append(results(name, given))
    for other in found[1:]:
        assert_same(found[0], other)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("threads", [None, 3])
def test_fifty_repetitions_are_bitwise_equal(op: str, threads: int | None, monkeypatch) -> None:
    """tensorflow #60192: the masked path was randomly wrong."""
    monkeypatch.setattr(_native_calls, "_exact_threads", threads)
    given = problem(op, 20, 17, 33, 48)
    first = results(op, given)
    for _ in range(50):
        assert_same(first, results(op, given))


# ---- several callers


@pytest.mark.parametrize("threads", [None, 2, 5])
def test_several_python_threads_call_at_once(threads: int | None, monkeypatch) -> None:
    names = [op for op in OPS for _ in range(4)]
    problems = [problem(op, 20, 17, 33, 48, seed) for seed, op in enumerate(names)]
    monkeypatch.setattr(_native_calls, "_exact_threads", 1)
    alone = [results(op, given) for op, given in zip(names, problems, strict=True)]
    monkeypatch.setattr(_native_calls, "_exact_threads", threads)
    with ThreadPoolExecutor(6) as pool:
        for _ in range(5):
            for one, two in zip(alone, pool.map(results, names, problems), strict=True):
                assert_same(one, two)


def in_a_process(script: str, *arguments: str, **environment: str) -> str:
    """What a script prints, in a process of its own: JAX, which other tests load, warns of forks."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ---- forks

CALL = """
import os, sys, threading
import numpy as np, recurra
from recurra._backends import _native_calls
x, R = np.full((9, 17, 144), 0.1, np.float32), np.full((144, 48), 0.01, np.float32)
def call():
    return recurra.gru(x, R).h
def child_agrees(wanted):
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(call(), wanted) else 3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
TEAM = "_native_calls._exact_threads = 2\n"
FORKS = {
    "before the first call": CALL + TEAM + "assert child_agrees(np.load(sys.argv[1])); print(call().shape)",
    "after a call with a team": CALL + TEAM + "assert child_agrees(call()); assert child_agrees(call())",
    "of a child": CALL
    + TEAM
    + """
wanted = call()
child = os.fork()
if child == 0:
    os._exit(0 if child_agrees(wanted) else 4)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""",
    "after torch had a team": "import torch\ntorch.set_num_threads(2)\n"
    "a = torch.ones(300, 300)\nfor _ in range(5): (a @ a).exp().sum()\n" + CALL + TEAM + "assert child_agrees(call())",
    "while other threads call": CALL
    + """
_native_calls._exact_threads = 1
wanted, over = call(), threading.Event()
def keep_calling():
    while not over.is_set():
        call()
threads = [threading.Thread(target=keep_calling) for _ in range(3)]
for thread in threads: thread.start()
try:
    for _ in range(60):
        assert child_agrees(wanted)
finally:
    over.set()
    for thread in threads: thread.join()
""",
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
@pytest.mark.parametrize("when", FORKS)
def test_a_forked_child_computes_too(when: str, tmp_path) -> None:
    if "torch" in when:
        pytest.importorskip("torch")
    x, R = np.full((9, 17, 144), 0.1, np.float32), np.full((144, 48), 0.01, np.float32)
    np.save(tmp_path / "wanted.npy", recurra.gru(x, R).h)
    in_a_process(FORKS[when], str(tmp_path / "wanted.npy"))


PROCESSES = """
import multiprocessing, sys
import numpy as np, recurra
from recurra._backends import _native_calls
def work(seed):
    rng = np.random.default_rng(seed)
    x, R = rng.normal(size=(9, 17, 144)).astype(np.float32), rng.normal(size=(144, 48)).astype(np.float32) * 0.1
    _native_calls._exact_threads = 2
    return recurra.gru(x, R).h
if __name__ == "__main__":
    wanted = [work(seed) for seed in range(4)]
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        for a, b in zip(wanted, pool.map(work, range(4))):
            np.testing.assert_array_equal(a, b)
    print("equal")
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_computes_the_same(method: str, tmp_path) -> None:
    import multiprocessing

    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"needs a system with the start method {method}")
    script = tmp_path / "processes.py"  # spawn reads it again
    script.write_text(PROCESSES)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(script), method],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.strip() == "equal", done.stderr


# ---- the threads of the process

OPENMP = """
import sys
for name in sys.argv[1:]:
    __import__(name)
import numpy as np, recurra
recurra.set_num_threads(2)
recurra.gru(np.ones((20, 32, 192), np.float32), np.ones((192, 64), np.float32))
print(*sorted({line.split()[-1] for line in open("/proc/self/maps") if "/libgomp" in line}))
"""


@pytest.mark.parametrize("order", [("torch", "recurra"), ("recurra", "torch")], ids=" first, then ".join)
def test_one_openmp_runtime_is_loaded_whoever_comes_first(order: tuple[str, str]) -> None:
    """Two runtimes have a team each, and each team's idle threads take the cores from the other's."""
    if not os.path.exists("/proc/self/maps"):
        pytest.skip("needs /proc, to see which libraries a process has")
    torch = pytest.importorskip("torch")
    bundled = os.listdir(os.path.join(os.path.dirname(torch.__file__), "lib"))
    if any(name.startswith("libgomp-") for name in bundled):
        pytest.skip("needs a torch whose libgomp has its own name; this one's was renamed")
    alone = in_a_process(OPENMP, "recurra")
    if not alone:
        pytest.skip("needs a build with OpenMP; this one has threads of its own")
    assert len(alone.split()) == 1
    assert len(in_a_process(OPENMP, *order).split()) == 1


def test_the_variable_says_how_many_threads(monkeypatch) -> None:
    monkeypatch.delenv("RECURRA_NUM_THREADS", raising=False)
    usual = recurra.get_num_threads()
    assert usual >= 1
    for given, wanted in {"3": 3, "1": 1, "64": 64, "007": 7, "": usual}.items():
        monkeypatch.setenv("RECURRA_NUM_THREADS", given)
        assert recurra.get_num_threads() == wanted
    recurra.set_num_threads(5)  # the program has the last word
    try:
        assert recurra.get_num_threads() == 5
    finally:
        recurra.set_num_threads(None)
    assert recurra.get_num_threads() == usual


@pytest.mark.parametrize("given", ["0", "-1", "two", "1.5", " 2", "2 ", "0x2", "99999999999999999999"])
def test_a_wrong_number_of_threads_is_refused(given: str, monkeypatch) -> None:
    monkeypatch.setenv("RECURRA_NUM_THREADS", given)
    text = f"RECURRA_NUM_THREADS must be a number of threads from 1 on, got {given!r}$"
    with pytest.raises(recurra.ArgumentError, match=text):
        results("gru", problem("gru", 20, 17, 33, 48))


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (0, recurra.ArgumentError, "set_num_threads: count must be a number of threads from 1 on, got 0"),
        (-2, recurra.ArgumentError, "set_num_threads: count must be a number of threads from 1 on, got -2"),
        ("2", recurra.ArgumentTypeError, "set_num_threads: count must be an integer or None, got '2'"),
        (2.0, recurra.ArgumentTypeError, "set_num_threads: count must be an integer or None, got 2.0"),
        (True, recurra.ArgumentTypeError, "set_num_threads: count must be an integer or None, got True"),
    ],
)
def test_set_num_threads_refuses_what_is_no_number_of_threads(given, error, text: str) -> None:
    with pytest.raises(error, match=f"^{text}$"):
        recurra.set_num_threads(given)


def test_calls_beside_busy_programs_give_the_same_bits() -> None:
    """Where the cores are taken, calls change between teams and one thread; nobody sees it in the results."""
    rng = np.random.default_rng(3)
    shapes = {"source": (60, 8, 40), "recurrent_weight": (160, 40), "input_weight": (160, 40)}
    given = {name: (0.1 * rng.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}
    wanted = recurra.lstm(**given).h
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        for _ in range(300):
            np.testing.assert_array_equal(recurra.lstm(**given).h, wanted)
    finally:
        for process in busy:
            process.kill()
            process.wait()
