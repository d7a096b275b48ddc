"""exp, tanh and sigmoid of the native kernels: swept against a wider float, in units of the last place (ULP).

The functions are reached through single_gate_rnn with one step and no recurrent part: its result is f(x).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import recurra
from recurra import _native

ISAS = ("x86-64-v4", "x86-64-v3", "x86-64-v2", "neon", "generic")
# Coprime to every power of two: the last bits of the floats that are visited take all values.
STRIDE = 61
CHUNK = 1 << 22


def softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def elu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


# What math.h states: ULP for float and for double. Below 0, softplus is e^x with one more logarithm.
FUNCTIONS = {
    "tanh": (np.tanh, 1.5, 1.5),
    "sigmoid": (sigmoid, 2, 2),
    "elu": (elu, 1.1, 1.5),
    "softplus": (softplus, 2.5, 2.5),
}


@pytest.fixture(params=ISAS)
def isa(request, monkeypatch) -> str:
    monkeypatch.setenv("RECURRA_ISA", request.param)
    try:
        _native.isa()
    except ValueError as error:
        pytest.skip(f"needs a machine with {request.param}: {error}")
    return request.param


def native(name: str, x: np.ndarray) -> np.ndarray:
    """f(x) by the kernels."""
    H = 64
    full = np.zeros((1, -(-x.size // H), H), x.dtype)
    full.reshape(-1)[: x.size] = x
    options = recurra.SingleGateRNNDescriptor(activation=name)
    return recurra.single_gate_rnn(full, np.zeros((H, H), x.dtype), descriptor=options).h.reshape(-1)[: x.size]


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The distance in units of the last place of the exact result. Subnormal results may come out as the smallest
    normal number, or within 1e-5 of it."""
    tiny = np.finfo(got.dtype).tiny
    flushed = (np.abs(exact) < tiny) & (np.abs(got) <= tiny * (1 + 1e-5)) & (got * exact >= 0)
    spacing = np.spacing(np.maximum(np.abs(exact), tiny).astype(got.dtype))
    return np.where(flushed, 0, np.abs(got.astype(exact.dtype) - exact) / spacing)


def floats() -> Iterator[np.ndarray]:
    """Every STRIDE-th of all finite floats, subnormal ones included."""
    for first in range(0, 1 << 32, CHUNK * STRIDE):
        bits = np.arange(first, min(first + CHUNK * STRIDE, 1 << 32), STRIDE, dtype=np.uint64).astype(np.uint32)
        x = bits.view(np.float32)
        yield x[np.isfinite(x)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_sweep_of_all_floats_stays_within_the_bound(isa: str, name: str) -> None:
    formula, bound, _ = FUNCTIONS[name]
    for x in floats():
        with np.errstate(over="ignore", under="ignore"):
            error = ulps(native(name, x), formula(x.astype(np.float64)))
        worst = error.argmax() if error.size else 0
        assert not error.size or error[worst] <= bound, f"{name}({x[worst]!r}) is off by {error[worst]:.3f} ULP"


@pytest.mark.skipif(
    np.finfo(np.longdouble).nmant <= 52, reason="needs a machine whose long double is wider than double"
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_doubles_stay_within_the_bound(isa: str, name: str) -> None:
    formula, _, bound = FUNCTIONS[name]
    draw = np.random.default_rng(5)
    near = draw.uniform(-2, 2, 300_000)
    x = np.concatenate([near, near * 20, near * 350, np.exp2(draw.uniform(-60, 2, 300_000)) * np.sign(near)])
    error = ulps(native(name, x), formula(x.astype(np.longdouble)))
    assert error.max() <= bound, f"{name}({x[error.argmax()]!r}) is off by {error.max():.3f} ULP"


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus", "elu"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_rise_with_the_argument_where_formulas_meet(isa: str, name: str, dtype) -> None:
    """At the limits beyond which an argument counts as the limit."""
    limits = (87.3365402, 10.0) if dtype is np.float32 else (708.39641853226408, 20.0)
    for at in (*limits, *(-v for v in limits)):
        x = np.sort(at * (1 + np.arange(-40, 41) * np.finfo(dtype).eps)).astype(dtype)
        y = native(name, x)
        away = np.array([at * 0.99, at, at * 1.01, at * 1e3], dtype)
        assert (np.diff(y[[0, 40, 80]]) >= 0).all()
        assert (np.diff(native(name, np.sort(away))) >= 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "relu", "elu", "softplus", "softsign", "hard_sigmoid"])
def test_nan_stays_nan_and_infinities_saturate(isa: str, name: str, dtype) -> None:
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0, -0.0], dtype)
    with np.errstate(all="ignore"):
        h = native(name, x)
    if name != "relu":
        assert np.isnan(h[:2]).all()
    limits = {"tanh": (1, -1), "sigmoid": (1, 0), "hard_sigmoid": (1, 0), "elu": (np.inf, -1), "softplus": (np.inf, 0)}
    if name in limits:
        np.testing.assert_allclose(h[2], limits[name][0], atol=1e-30)
        np.testing.assert_allclose(h[3], limits[name][1], atol=1e-30)
        np.testing.assert_allclose(h[5], limits[name][1], atol=1e-30)
    if name in ("tanh", "elu", "softsign", "relu"):
        assert not h[6:].any()
