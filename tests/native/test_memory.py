"""Memory of the native kernels: none is lost, none grows with a sequence, and large blocks are used again."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
from oracle.cases import OPS
import pytest
from recurrent.calls import DESCRIPTORS, compute

import recurra
from recurra import _native

needs_statm = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc, to see how much is held")
SLACK = 2 << 20  # bytes: an eighth of what one state of [N, H] per call would leave
GATES = {"lstm": 4, "gru": 3, "single_gate_rnn": 1}


def resident() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(call, warm_up: int, calls: int) -> int:
    """Bytes that so many calls leave each time: other parts of a process may take some MiB, but not every time."""
    for _ in range(warm_up):
        call()
    grown: list[int] = []
    while len(grown) < 3 and min(grown, default=SLACK) >= SLACK:
        before = resident()
        for _ in range(calls):
            call()
        grown.append(resident() - before)
    return min(grown)


# ---- nothing is lost

CALLS = 10_000


def weights(op: str, I: int, H: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    G = GATES[op]
    return {
        "recurrent_weight": rng.normal(size=(G * H, H), scale=0.1).astype(np.float32),
        "input_weight": rng.normal(size=(G * H, I), scale=0.1).astype(np.float32),
    }


@needs_statm
@pytest.mark.parametrize("op", OPS)
def test_ten_thousand_calls_leave_nothing_behind(op: str) -> None:
    N, H = 13, 32  # one state has 1.6 KiB
    inputs = {"source": np.ones((3, N, 8), np.float32), **weights(op, 8, H)}
    gradient = {"source_gradient": np.ones((3, N, H), np.float32)}
    options = DESCRIPTORS[op](training=True)
    assert growth(lambda: compute(op, options, inputs, gradient), 500, CALLS) < SLACK


@needs_statm
def test_ten_thousand_large_results_leave_only_what_the_pool_keeps() -> None:
    """Results from a megabyte on are the pool's, and go back to it when the array is gone."""
    inputs = {"source": np.ones((160, 32, 2), np.float32), **weights("single_gate_rnn", 2, 64)}
    assert growth(lambda: recurra.single_gate_rnn(**inputs), 50, CALLS // 5) < SLACK
    assert _native.kept_bytes() > 0
    _native.drop_kept()
    assert _native.kept_bytes() == 0


@needs_statm
def test_ten_thousand_steps_and_states_of_a_stream_leave_nothing_behind() -> None:
    given = weights("lstm", 8, 32)
    stream = recurra.Stream.lstm(given["recurrent_weight"], input_weight=given["input_weight"])
    state, frame = stream.state(batch=13), np.ones((13, 8), np.float32)
    assert growth(lambda: stream.step(frame, state), 500, CALLS) < SLACK

    def begin() -> None:
        stream.step(frame, stream.state(batch=13))

    assert growth(begin, 500, CALLS) < SLACK

    def pack() -> None:
        recurra.Stream.lstm(given["recurrent_weight"], input_weight=given["input_weight"])

    assert growth(pack, 500, CALLS) < SLACK


# ---- a long sequence

LONG = """
import json, resource, sys
import numpy as np, recurra
name, T, N, I, H = sys.argv[1], *map(int, sys.argv[2:])
G = {"lstm": 4, "gru": 3, "single_gate_rnn": 1}[name]
descriptor = {"lstm": recurra.LSTMDescriptor, "gru": recurra.GRUDescriptor,
              "single_gate_rnn": recurra.SingleGateRNNDescriptor}[name]
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
x, dh = np.ones((T, N, I), np.float32), np.ones((T, N, H), np.float32)
R, W = np.full((G * H, H), 0.01, np.float32), np.full((G * H, I), 0.01, np.float32)
call, back = getattr(recurra, name), getattr(recurra, name + "_gradients")
def train(x, dh):
    out = call(x, R, input_weight=W, descriptor=descriptor(training=True))
    made = sum(y.nbytes for y in out)
    saved = {"lstm": lambda: (out.z, out.c), "gru": lambda: (out.z, out.h), "single_gate_rnn": lambda: (out.z,)}[name]()
    kept = {"cell_output_fwd": saved[1]} if name == "lstm" else {"output_fwd": saved[1]} if name == "gru" else {}
    middle = peak()
    gradients = back(x, R, source_gradient=dh, z_state=saved[0], input_weight=W, **kept,
                     descriptor=descriptor(training=True))
    return made, middle, sum(g.nbytes for g in gradients if g is not None)
train(x[:50], dh[:50])  # what the first call of a process loads
before = peak()
h = call(x, R, input_weight=W)
inference = peak() - before
h_bytes = h.nbytes if hasattr(h, "nbytes") else h.h.nbytes
del h
before = max(before, peak())
made, middle, given = train(x, dh)
print(json.dumps({"inference": [inference, h_bytes], "training": [peak() - before + h_bytes, made + given]}))
"""
BUDGET = 16 << 20  # scratch, and the system's huge pages that a result does not fill


@pytest.mark.parametrize("op", OPS)
def test_a_hundred_thousand_steps_take_their_results_and_a_fixed_budget(op: str) -> None:
    pytest.importorskip("resource", reason="needs a POSIX system")
    sizes = (100_000, 4, 16, 32)
    done = subprocess.run(
        [sys.executable, "-c", LONG, op, *map(str, sizes)], capture_output=True, text=True, timeout=120,
        env={**os.environ, "RECURRA_NUM_THREADS": "2"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for name, (taken, results) in json.loads(done.stdout).items():
        assert taken < results + BUDGET, f"{name} took {taken >> 20} MiB for results of {results >> 20} MiB"


# ---- memory that is used again

FAULTS = """
import json, resource, sys
import numpy as np, recurra
T, N, I, H = 64, 64, 96, 128
x, dh = np.ones((T, N, I), np.float32), np.ones((T, N, H), np.float32)
R, W = np.full((4 * H, H), 0.01, np.float32), np.full((4 * H, I), 0.01, np.float32)
options = recurra.LSTMDescriptor(training=True)
def step():
    out = recurra.lstm(x, R, input_weight=W, descriptor=options)
    recurra.lstm_gradients(x, R, dh, out.z, out.c, input_weight=W, descriptor=options)
faults = []
for _ in range(16):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step()
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(json.dumps(faults))
"""


def test_a_training_step_uses_the_memory_of_the_one_before() -> None:
    """Fresh pages cost more than the arithmetic on them: a step after the first has next to none."""
    pytest.importorskip("resource", reason="needs a POSIX system")
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, *later = json.loads(done.stdout)
    assert first > 1000, "this does not see the page faults that it is about"
    assert sorted(later)[len(later) // 2] < 32, later
