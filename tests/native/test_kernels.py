"""The native kernels: every instruction set that this machine has, and what keeps mistakes harmless."""

from __future__ import annotations

import numpy as np
from oracle.cases import OPS, Case, case, reference_results
import pytest
from recurrent.calls import distance, run, tolerance

import recurra
from recurra import _native, _op
from recurra._backends import _extension, _memory

pytestmark = pytest.mark.filterwarnings("ignore:gru.* secondary_bias is used only:recurra.RecurraWarning")
ISAS = ("x86-64-v4-bf16", "x86-64-v4", "x86-64-v3", "x86-64-v2", "neon", "generic")


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


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # by torch's forward mode
def test_explain_says_who_ran_and_why_not() -> None:
    x, R = np.ones((2, 1, 6), np.float32), np.ones((6, 2), np.float32)
    assert recurra.explain(recurra.gru, x, R).splitlines()[2].split()[-1] == "cpu"
    torch = pytest.importorskip("torch")
    told = recurra.explain(recurra.gru, torch.from_numpy(x), torch.from_numpy(R))
    assert told.splitlines()[2].split()[-1] == "cpu"
    weight = torch.from_numpy(R).requires_grad_()
    told = recurra.explain(recurra.gru, torch.from_numpy(x), weight)
    assert told.splitlines()[2].split()[-1] == "cpu"
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(weight.detach(), weight.detach())
        told = recurra.explain(recurra.gru, torch.from_numpy(x), dual)
    assert "reference  cpu: forward mode and higher derivatives follow the reference" in told
    assert "cpu: has kernels for the recurrent ops only" in recurra.explain(recurra.ops.exp, x)


def test_without_the_extension_the_reference_runs_and_says_so(monkeypatch) -> None:
    monkeypatch.setattr(_extension, "native", None)
    x, R = np.ones((2, 1, 6), np.float32), np.ones((6, 2), np.float32)
    assert "cpu: the extension recurra._native is not built" in recurra.explain(recurra.gru, x, R)


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
