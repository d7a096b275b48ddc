"""The native kernels: every instruction set that this machine has, threads, and what keeps mistakes harmless."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
import os
import subprocess
import sys

import numpy as np
from oracle.cases import OPS, Case, case, reference_results
import pytest
from recurrent.calls import DESCRIPTORS, compute, distance, run, tolerance

import recurra
from recurra import _native, _op
from recurra._backends import _extension, _memory, _native_calls

pytestmark = pytest.mark.filterwarnings("ignore:gru.* secondary_bias is used only:recurra.RecurraWarning")
ISAS = ("x86-64-v4-bf16", "x86-64-v4", "x86-64-v3", "x86-64-v2", "neon", "generic")
RNG = np.random.default_rng(8)


@pytest.fixture(params=ISAS)
def isa(request, monkeypatch) -> str:
    monkeypatch.setenv("RECURRA_ISA", request.param)
    try:
        _native.isa()
    except ValueError as error:
        pytest.skip(f"needs a machine with {request.param}: {error}")
    return request.param


def check(drawn: Case, dtype: str) -> None:
    for got, wanted, backward in zip(run(drawn, "numpy", dtype), reference_results(drawn), (False, True), strict=True):
        bound = 1e-9 if dtype == "float64" else tolerance(drawn, dtype, backward)
        for name, value in wanted.items():
            error = distance(got[name], value)
            assert error <= bound, f"{name} is off by {error:.2e}, allowed {bound:.2e}\n{drawn}"


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_instruction_set_agrees_with_the_oracle(isa: str, op: str, dtype: str) -> None:
    for seed in range(0, 350, 3):
        drawn = case(op, seed).rounded(dtype)
        if not (dtype == "float32" and 0 < drawn.kink_distance < 1e-6):
            check(drawn, dtype)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("seed", range(0, 350, 5))
def test_the_reference_on_numpy_agrees_with_the_oracle(op: str, seed: int, monkeypatch) -> None:
    monkeypatch.setattr(_op, "BACKENDS", [])
    check(case(op, seed), "float64")


@pytest.mark.parametrize("op", OPS)
def test_every_element_of_the_results_is_written(op: str, monkeypatch) -> None:
    """Memory that comes as NaN shows what no kernel wrote."""
    monkeypatch.setattr(_memory.Memory, "new", lambda self, shape: np.full(shape, np.nan, self.dtype))
    for seed in range(120):
        check(case(op, seed), "float64")


def problem(op: str, T: int, N: int, I: int, H: int, dtype: str = "float32", **options):
    """A call with everything given: inputs, the descriptor, the incoming gradients."""
    descriptor = DESCRIPTORS[op](training=True, bidirectional=True, **options)
    G = {"lstm": 4, "gru": 3, "single_gate_rnn": 1}[op]
    draw = lambda *shape: (RNG.normal(size=shape) * 0.3).astype(dtype)  # noqa: E731
    inputs = {
        "source": draw(T, N, I),
        "recurrent_weight": draw(2, G * H, H),
        "input_weight": draw(2 * G * H, I),
        "bias": draw(2 * G * H),
        "init_state": draw(N, 2 * H),
        "mask": draw(N, 2 * H),
        "lengths": RNG.integers(0, T + 1, N),
        "resets": RNG.uniform(size=(T, N)) < 0.1,
    }
    if op == "lstm":
        inputs |= {"peephole": draw(2, 4 * H), "init_cell": draw(N, 2 * H)}
    return inputs, descriptor, {"source_gradient": draw(T, N, 2 * H), "state_gradient": draw(N, 2 * H)}


SIZES = [(30, 1, 20, 150), (20, 17, 33, 48), (5, 70, 8, 31)]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("reset_after", [False, True])
def test_results_do_not_depend_on_the_number_of_threads(op: str, sizes, reset_after: bool, monkeypatch) -> None:
    if op != "gru" and reset_after:
        pytest.skip("an option of gru alone")
    inputs, descriptor, gradients_in = problem(op, *sizes, **({"reset_after": True} if reset_after else {}))
    found = []
    for threads in (1, 2, 3, 2):
        monkeypatch.setattr(_native_calls, "_exact_threads", threads)
        out, gradients = compute(op, descriptor, inputs, gradients_in)
        found.append([*out, *gradients])
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_fifty_repetitions_are_bitwise_equal() -> None:
    """tensorflow #60192: the masked path was randomly wrong."""
    inputs, descriptor, gradients_in = problem("lstm", 20, 17, 33, 48)
    first = compute("lstm", descriptor, inputs, gradients_in)
    for _ in range(50):
        for one, two in zip(
            [*first[0], *first[1]],
            [r for rs in compute("lstm", descriptor, inputs, gradients_in) for r in rs],
            strict=True,
        ):
            np.testing.assert_array_equal(one, two)


def test_several_python_threads_call_at_once() -> None:
    problems = [problem(op, 20, 17, 33, 48) for op in OPS for _ in range(4)]
    names = [op for op in OPS for _ in range(4)]
    alone = [compute(op, d, i, g)[1] for op, (i, d, g) in zip(names, problems, strict=True)]
    with ThreadPoolExecutor(6) as pool:
        together = list(
            pool.map(lambda p: compute(p[0], p[1][1], p[1][0], p[1][2])[1], zip(names, problems, strict=True))
        )
    for one, two in zip(alone, together, strict=True):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)


FORK = """
import os, numpy as np, recurra
from recurra._backends import _native_calls
_native_calls._exact_threads = 2
x, R = np.ones((9, 17, 144), np.float32), np.ones((144, 48), np.float32) * 0.01
wanted = recurra.gru(x, R).h  # the parent has a team by now
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(recurra.gru(x, R).h, wanted) else 3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_a_forked_child_computes_too() -> None:
    """In a process of its own: JAX, which other tests load, warns of forks."""
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["0"], done.stderr


def test_explain_says_who_ran_and_why_not() -> None:
    x, R = np.ones((2, 1, 6), np.float32), np.ones((6, 2), np.float32)
    assert recurra.explain(recurra.gru, x, R).splitlines()[2].split()[-1] == "cpu"
    torch = pytest.importorskip("torch")
    told = recurra.explain(recurra.gru, torch.from_numpy(x), torch.from_numpy(R))
    assert told.splitlines()[2].split()[-1] == "cpu"
    weight = torch.from_numpy(R).requires_grad_()
    told = recurra.explain(recurra.gru, torch.from_numpy(x), weight)
    assert "reference  cpu: autograd records the reference only" in told
    assert "cpu: has kernels for the recurrent ops only" in recurra.explain(recurra.ops.exp, x)


def test_without_the_extension_the_reference_runs_and_says_so(monkeypatch) -> None:
    monkeypatch.setattr(_extension, "native", None)
    x, R = np.ones((2, 1, 6), np.float32), np.ones((6, 2), np.float32)
    assert "cpu: the extension recurra._native is not built" in recurra.explain(recurra.gru, x, R)


@pytest.mark.parametrize("given", ["0", "-1", "two"])
def test_a_wrong_number_of_threads_is_refused(given: str, monkeypatch) -> None:
    monkeypatch.setenv("RECURRA_NUM_THREADS", given)
    inputs, descriptor, gradients_in = problem("gru", 20, 17, 33, 48)
    with pytest.raises(recurra.ArgumentError, match="RECURRA_NUM_THREADS must be a number of threads from 1 on"):
        compute("gru", descriptor, inputs, gradients_in)


def test_an_unknown_instruction_set_is_refused(monkeypatch) -> None:
    monkeypatch.setenv("RECURRA_ISA", "z80")
    with pytest.raises(ValueError, match=r"RECURRA_ISA must be one of x86-64-v4.* got 'z80'"):
        recurra.gru(np.ones((2, 1, 6), np.float32), np.ones((6, 2), np.float32))


@pytest.mark.parametrize("position", range(13))
def test_arrays_of_a_wrong_size_never_reach_the_kernels(position: int) -> None:
    """Python checks first; this is the second lock."""
    spec = _native.CellSpec(1, [(3, 0, 0)] * 4, (2, 0, 0), False, False, False, False, [0, 1, 2, 3])
    T, N, I, H = 3, 2, 5, 4
    shapes = [
        (T, N, I),
        (1, 16, H),
        (16, I),
        (16,),
        (N, H),
        (N, H),
        (N, H),
        (16,),
        (N,),
        (T, N),
        (T, N, H),
        (T, N, H),
        (T, N, 16),
    ]
    kinds = [np.float32] * 8 + [np.int64, np.bool_] + [np.float32] * 3
    arrays = [np.zeros(s, k) for s, k in zip(shapes, kinds, strict=True)]
    arrays[8][:] = T
    _native.forward_float32(spec, 1, *arrays)
    arrays[position] = np.zeros((*shapes[position][:-1], shapes[position][-1] + 1), kinds[position])
    with pytest.raises(ValueError, match=r"recurra\._native: .* must have .* elements, got"):
        _native.forward_float32(spec, 1, *arrays)
