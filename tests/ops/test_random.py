"""Random tensors and dropout."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

from ops.generic_harness import HALF_LIBRARIES, LIBRARIES, NAMESPACES, as_library, gradient_of, normal
from recurra import _arrays
from recurra._autodiff import gradients
from recurra._dtypes import as_dtype
from recurra._errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, UnsupportedError
from recurra._ir import Program, apply
from recurra._plan import Plan
from recurra.ops import random as r

NUMPY = _arrays.namespace(np.zeros(0))
X = normal(50, 40)


def run(targets, feeds=()):
    """The targets' values; `feeds` holds pairs of placeholders and arrays."""
    plan = Plan(targets[0].graph, [t for t, _ in feeds], targets)
    return plan.run([a for _, a in feeds], (NUMPY, None))


# --- numbers ---


@pytest.mark.parametrize("where", LIBRARIES)
@pytest.mark.parametrize("distribution", ["uniform", "normal", "truncated_normal"])
def test_one_seed_gives_the_same_numbers_everywhere(where, distribution):
    expected = r.random_tensor((4, 3), distribution, seed=2**40 + 5)
    like = as_library(np.zeros((4, 3), "float32"), where)
    values = r.random_tensor(None, distribution, seed=2**40 + 5, like=like)
    assert _arrays.library(values) == _arrays.library(like)
    np.testing.assert_array_equal(_arrays.to_numpy(values), expected)


@pytest.mark.parametrize("seed", [0, 7, 2**31, 2**63 + 1, 2**64 - 1])
def test_a_seed_a_number_and_a_state_are_the_same_stream(seed):
    by_seed = r.random_uniform((5,), seed=seed)
    np.testing.assert_array_equal(by_seed, r.random_uniform((5,), seed=r.random_state(seed)))
    np.testing.assert_array_equal(by_seed, r.random_uniform((5,), seed=np.asarray(seed, np.uint64).view(np.int64)))


def test_numpy_philox_draws():
    generator = np.random.Generator(np.random.Philox(key=11, counter=[0, 0, 0, 2]))
    state = np.asarray([11, 0, 2], np.int32)
    np.testing.assert_array_equal(r.random_uniform((3,), seed=state), generator.random(3, dtype=np.float32))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, -2.5), (0.0, 100.0)])
def test_uniform_numbers_are_in_range_and_spread(dtype, low, high):
    values = r.random_uniform((20_000,), low, high, dtype, seed=3)
    assert as_dtype(values.dtype) == dtype
    wide = values.astype("float64")
    assert wide.min() >= low
    assert wide.max() < high
    assert wide.mean() == pytest.approx((low + high) / 2, abs=0.02 * (high - low))
    assert wide.var() == pytest.approx((high - low) ** 2 / 12, rel=0.05)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_whole_numbers_are_in_range(dtype):
    values = r.random_uniform((2000,), 3, 6, dtype, seed=1)
    assert as_dtype(values.dtype) == dtype
    assert set(values.tolist()) == {3, 4, 5}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_normal_numbers_have_their_moments(dtype):
    values = r.random_normal((20_000,), 2.0, 0.5, dtype, seed=4)
    assert as_dtype(values.dtype) == dtype
    wide = values.astype("float64")
    assert wide.mean() == pytest.approx(2, abs=0.02)
    assert wide.std() == pytest.approx(0.5, rel=0.03)


def _truncated_mean(low, high):
    """Of a standard normal between these, by the integral."""
    z = np.linspace(low, high, 100_001)
    density = np.exp((min(abs(low), abs(high)) ** 2 * (low * high > 0) - z**2) / 2)
    return float((z * density).sum() / density.sum())


@pytest.mark.parametrize(("low", "high"), [(-2, 2), (-0.1, 0.3), (0.5, 50), (-1, 8), (6, 7), (-40, -10), (30, 31)])
def test_truncated_normal_numbers_keep_to_their_range(low, high):
    deviation, mean = 0.5, 3.0
    bounds = {"low": mean + deviation * low, "high": mean + deviation * high}
    values = r.random_tensor(
        (20_000,), "truncated_normal", "float64", 5, mean=mean, standard_deviation=deviation, **bounds
    )
    assert bounds["low"] <= values.min() <= values.max() <= bounds["high"]
    found = (values.mean() - mean) / deviation
    assert found == pytest.approx(_truncated_mean(low, high), abs=0.03)


def test_a_truncated_normal_keeps_to_two_deviations():
    values = r.random_tensor((5000,), "truncated_normal", seed=1, mean=1.0, standard_deviation=2.0)
    assert -3 <= values.min() < -2.5
    assert 4.5 < values.max() <= 5


def test_without_a_seed_calls_differ():
    assert (r.random_uniform((8,)) != r.random_uniform((8,))).any()
    x = np.ones((8, 8))
    assert (r.dropout(x, 0.5) != r.dropout(x, 0.5)).any()


# --- in graphs ---


def test_without_a_seed_every_run_of_a_graph_draws_anew():
    program = Program()
    a, b = r.random_uniform((16,), graph=program), r.random_normal((16,), graph=program)
    plan = Plan(program, [], [a, b])
    first, second = plan.run([], (NUMPY, None)), plan.run([], (NUMPY, None))
    assert all((x != y).any() for x, y in zip(first, second, strict=True))


@pytest.mark.parametrize("where", ["numpy", *NAMESPACES])
def test_graphs_with_a_seeded_generator_repeat_in_every_library(where):
    found = []
    for library in ("numpy", where):
        program = Program()
        program.random = np.random.default_rng(5)
        x = program.placeholder((3,))
        y = x + r.random_uniform((3,), graph=program)
        feed = as_library(np.zeros(3, "float32"), library)
        found.append([_arrays.to_numpy(run([y], [(x, feed)])[0]) for _ in range(2)])
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0][0] != found[0][1]).any()


@pytest.mark.parametrize("where", ["numpy", *NAMESPACES])
def test_a_seed_in_a_graph_is_the_seed_of_an_eager_call(where):
    program = Program()
    x = program.placeholder((-1, 2))
    y, z = r.random_normal(like=x, seed=2**35), r.random_uniform((2, 2), seed=1, graph=program)
    assert y.shape == (-1, 2)
    feed = as_library(np.zeros((3, 2), "float32"), where)
    values = run([y, z], [(x, feed)])
    np.testing.assert_array_equal(_arrays.to_numpy(values[0]), r.random_normal((3, 2), seed=2**35))
    np.testing.assert_array_equal(_arrays.to_numpy(values[1]), r.random_uniform((2, 2), seed=1))


def test_a_state_goes_on_from_draw_to_draw():
    program = Program()
    state = program.placeholder((3,), "int32")
    first, middle = r.random_with_state((4,), state)
    second, last = r.random_with_state((4,), middle, "normal")
    a, b, after = run([first, second, last], [(state, r.random_state(9))])
    x, s = r.random_with_state((4,), r.random_state(9))
    y, s = r.random_with_state((4,), s, "normal")
    for got, wanted in ((a, x), (b, y), (after, s)):
        np.testing.assert_array_equal(got, wanted)
    assert (r.random_with_state((4,), s)[0] != x).all()
    assert r.random_state(1, graph=program).shape == (3,)


def test_traced_seeds_draw_the_same():
    compiled = jax.jit(lambda seed: r.random_uniform((3,), seed=seed))
    np.testing.assert_array_equal(compiled(np.int32(7)), r.random_uniform((3,), seed=7))
    like = jax.jit(lambda x: r.random_normal(like=x, seed=7))
    np.testing.assert_array_equal(like(np.zeros(3, "float32")), r.random_normal((3,), seed=7))


# --- dropout ---


@pytest.mark.parametrize("where", LIBRARIES)
@pytest.mark.parametrize("rate", [0.25, "0.25 as a tensor"])
def test_dropout_drops_its_share_and_scales_the_rest(where, rate):
    x = as_library(np.ones((100, 90), "float32"), where)
    if rate != 0.25:
        rate = as_library(np.asarray(0.25, "float32"), where)
    y = _arrays.to_numpy(r.dropout(x, rate, seed=2))
    assert set(np.unique(y)) == {0, np.float32(4 / 3)}
    assert (y == 0).mean() == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("where", HALF_LIBRARIES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_dropout_keeps_half_types(where, dtype):
    x = as_library(np.ones((8, 8)).astype(as_dtype(dtype).numpy), where)
    assert _arrays.dtype_of(r.dropout(x, 0.5, seed=2)) == dtype


def test_dropout_at_the_ends():
    x = np.asarray([1.0, np.nan, np.inf])
    assert r.dropout(x, 0) is x
    assert r.dropout(x, 1.0).tolist() == [0, 0, 0]
    assert r.dropout(x, np.asarray(1.0)).tolist() == [0, 0, 0]
    np.testing.assert_array_equal(r.dropout(x, np.asarray(0.0), seed=1), x)


def test_what_is_dropped_is_zero_even_if_it_was_not_a_number():
    y = r.dropout(np.full(200, np.nan), 0.5, seed=1)
    assert np.unique(np.isnan(y)).size == 2
    assert (y[~np.isnan(y)] == 0).all()


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_the_gradient_of_dropout_has_its_mask(rate):
    found = gradient_of(lambda x: r.dropout(x, rate, seed=6), [X])[0]
    y = r.dropout(np.ones_like(X), rate, seed=6)
    np.testing.assert_array_equal(found, y)


def test_the_mask_of_a_run_is_that_of_its_gradient():
    program = Program()
    x = program.placeholder((-1, 4), "float64")
    y = r.dropout(x, 0.5)
    (dx,) = gradients(program, [y], [apply("ones_like", y)], [x])
    ones = np.ones((20, 4))
    plan = Plan(program, [x], [y, dx])
    runs = [plan.run([ones], (NUMPY, None)) for _ in range(2)]
    for value, gradient in runs:
        np.testing.assert_array_equal(value, gradient)
    assert (runs[0][0] != runs[1][0]).any()


def test_a_rate_in_a_tensor_has_no_gradient():
    dx, drate = gradient_of(lambda x, rate: r.dropout(x, rate, seed=1), [X, np.asarray(0.5)])
    assert set(np.unique(dx)) == {0, 2}
    assert drate is None


def test_dropout_goes_on_with_a_state():
    y, state = r.dropout(X, 0.5, state=r.random_state(3))
    z, state = r.dropout(X, 0.5, state=state)
    assert state.tolist() == [3, 0, 2]
    assert ((y == 0) != (z == 0)).any()
    assert r.dropout(X, 0.0, state=state)[1].tolist() == [3, 0, 3]


# --- errors ---


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: r.random_uniform(), ArgumentTypeError, "random_uniform: one of shape and like must be given"),
        (
            lambda: r.random_uniform((-1, 2)),
            ShapeError,
            r"random_uniform: shape must be known, got \[-1, 2\]; give like",
        ),
        (lambda: r.random_uniform((2,), 1.0, 1.0), ArgumentError, "low must be below high, .* got 1.0 and 1.0"),
        (
            lambda: r.random_uniform((2,), 0, 1e6, "float16"),
            ArgumentError,
            "both in the range of float16, got 0 and 1000000",
        ),
        (
            lambda: r.random_uniform((2,), 0, math.inf),
            ArgumentError,
            "random_uniform: high must be a finite number, got inf",
        ),
        (
            lambda: r.random_uniform((2,), 0, 1.5, "int32"),
            ArgumentError,
            "low and high must be integers .* got 0 and 1.5",
        ),
        (lambda: r.random_uniform((2,), 0, 300, "uint8"), ArgumentError, "in the range of uint8, got 0 and 300"),
        (lambda: r.random_uniform((2,), dtype="bool"), DTypeError, "dtype must be a float or an integer, got bool"),
        (lambda: r.random_normal((2,), dtype="int32"), DTypeError, "random_normal: dtype must be a float, got int32"),
        (
            lambda: r.random_normal((2,), 0.0, -1.0),
            ArgumentError,
            "standard_deviation must not be negative, .* got -1.0",
        ),
        (
            lambda: r.random_tensor((2,), "cauchy"),
            ArgumentError,
            "distribution must be uniform, normal or .* got 'cauchy'",
        ),
        (
            lambda: r.random_tensor((2,), "bernoulli"),
            ArgumentError,
            "distribution must be uniform, normal or .* 'bernoulli'",
        ),
        (
            lambda: r.random_tensor((2,), "normal", low=1.0),
            ArgumentError,
            "normal takes mean and standard_deviation, got low",
        ),
        (
            lambda: r.random_uniform((2,), seed=-1),
            ArgumentError,
            r"random_uniform: seed must lie in \[0, 2\*\*64\), got -1",
        ),
        (
            lambda: r.random_uniform((2,), seed=1.5),
            ArgumentTypeError,
            "random_uniform: seed must be an integer, got 1.5",
        ),
        (lambda: r.random_uniform((2,), seed=np.zeros(2)), DTypeError, r"seed must be an int32 .* got float64\[2\]"),
        (
            lambda: r.random_uniform((2,), graph=1),
            ArgumentTypeError,
            "random_uniform: graph must be a Graph or None, got 1",
        ),
        (lambda: r.random_with_state((2,), np.asarray(3)), DTypeError, r"state must be int32 \[3\], got int64\[\]"),
        (lambda: r.dropout(X, 1.5), ArgumentError, r"dropout: rate must lie in \[0, 1\], got 1.5"),
        (lambda: r.dropout(X, math.nan), ArgumentError, r"dropout: rate must lie in \[0, 1\], got nan"),
        (lambda: r.dropout(X, np.asarray(-0.5)), ArgumentError, r"dropout: rate must lie in \[0, 1\], got -0.5"),
        (lambda: r.dropout(X, np.asarray([0.5, 0.5])), ShapeError, r"dropout: rate must have one element, got \[2\]"),
        (lambda: r.dropout(X, "half"), ArgumentTypeError, "dropout: rate: inputs must be graph tensors or arrays"),
        (lambda: r.dropout(X.astype(int), 0.5), DTypeError, "dropout: input must be of kind float, got int64"),
        (
            lambda: r.dropout(X, 0.5, 1, r.random_state(1)),
            ArgumentError,
            "one of seed and state may be given, got both",
        ),
        (
            lambda: r.dropout([1.0], 0.5),
            ArgumentTypeError,
            r"dropout: inputs must be graph tensors or arrays, got \[1.0\]",
        ),
    ],
)
def test_errors_say_what_came(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_a_seed_is_wanted_under_a_tracer():
    with pytest.raises(
        ArgumentError, match="dropout: seed must be given under a tracer, or every call would draw the same"
    ):
        jax.jit(lambda x: r.dropout(x, 0.5))(np.zeros(3, "float32"))


def test_torch_cannot_trace_a_draw():
    import torch

    with pytest.raises(
        UnsupportedError, match="random: seed must have a value that can be read, got one under a tracer"
    ):
        r.random_uniform((2,), seed=torch.zeros((), dtype=torch.int64, device="meta"))
