"""The six ops against the independent float64 oracle: every option, forward and every gradient, in every library."""

from __future__ import annotations

import numpy as np
from oracle.agreement import EPS
from oracle.cases import OPS, Case, case, reference_results
import pytest

from recurrent.calls import distance, run, tolerance

# Idle secondary biases are drawn on purpose; the warning has a test of its own.
pytestmark = pytest.mark.filterwarnings("ignore:gru.* secondary_bias is used only:recurra.RecurraWarning")
CASES = 350
by_case = [pytest.mark.parametrize("op", OPS), pytest.mark.parametrize("seed", range(CASES))]


def every_case(test):
    for mark in by_case:
        test = mark(test)
    return test


def check(drawn: Case, where: str, dtype: str, forward: float | None = None, backward: float | None = None) -> None:
    """Compare with the oracle; without bounds, the derived ones hold."""
    wanted_forward, wanted_gradients = reference_results(drawn)
    got_forward, got_gradients = run(drawn, where, dtype)
    assert list(got_forward) == list(wanted_forward), drawn
    assert list(got_gradients) == list(wanted_gradients), drawn
    for got, wanted, bound, is_backward in (
        (got_forward, wanted_forward, forward, False),
        (got_gradients, wanted_gradients, backward, True),
    ):
        bound = tolerance(drawn, dtype, is_backward) if bound is None else bound
        for name, value in wanted.items():
            error = distance(got[name], value)
            assert error <= bound, f"{name} is off by {error:.2e}, allowed {bound:.2e}\n{drawn}"


@every_case
def test_float64_agrees_with_the_oracle_on_numpy_and_torch(op: str, seed: int) -> None:
    drawn = case(op, seed)
    check(drawn, "numpy", "float64", 1e-9, 1e-9)
    check(drawn, "torch", "float64", 1e-9, 1e-9)


@every_case
def test_read_only_arrays_give_the_very_same_numbers(op: str, seed: int) -> None:
    drawn = case(op, seed)
    for plain, read_only in zip(run(drawn, "numpy"), run(drawn, "read-only numpy"), strict=True):
        for name, value in plain.items():
            np.testing.assert_array_equal(read_only[name], value, err_msg=f"{name} of {drawn}")


@every_case
def test_float64_agrees_with_the_oracle_under_jax_jit(op: str, seed: int) -> None:
    check(case(op, seed), "jax", "float64", 1e-9, 1e-9)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("seed", range(0, CASES, 5))
def test_float64_agrees_with_the_oracle_on_array_api_strict(op: str, seed: int) -> None:
    check(case(op, seed), "array_api_strict", "float64", 1e-9, 1e-9)


@every_case
def test_float32_agrees_with_the_oracle(op: str, seed: int) -> None:
    drawn = case(op, seed).rounded("float32")
    away_from_kinks(drawn, "float32")
    check(drawn, "numpy", "float32")
    check(drawn, "torch", "float32")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@every_case
def test_half_types_agree_with_the_oracle(op: str, seed: int, dtype: str) -> None:
    drawn = case(op, seed).rounded(dtype)
    away_from_kinks(drawn, dtype)
    check(drawn, "numpy", dtype)
    check(drawn, "torch", dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("seed", range(0, CASES, 35))
def test_low_precision_agrees_with_the_oracle_under_jax_jit(op: str, seed: int, dtype: str) -> None:
    drawn = case(op, seed).rounded(dtype)
    away_from_kinks(drawn, dtype)
    check(drawn, "jax", dtype)


def away_from_kinks(drawn: Case, dtype: str) -> None:
    """Where an activation's argument is within rounding of a kink, the slope is a coin toss and nothing can be said."""
    if 0 < drawn.kink_distance < 8 * EPS[dtype]:
        pytest.skip(f"an argument lies {drawn.kink_distance:.1e} from a kink: {dtype} cannot tell on which side")
