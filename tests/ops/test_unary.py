"""Functions of one number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ops.generic_harness import LIBRARIES, Case, as_library, gradient_of, integers, normal, op_tests, uniform
from recurra import _arrays
from recurra._errors import DTypeError
from recurra.ops import unary as u

X = normal(2, 3, seed=1)
POSITIVE, INSIDE, ABOVE_1 = uniform(0.3, 3, 2, 3), uniform(-0.9, 0.9, 2, 3), uniform(1.2, 4, 2, 3)
I = integers(-9, 9, 2, 3)
SMALL = np.asarray([1e-5, -1e-5, 0.0])
# Halves, their neighbours, and what is no number.
BEFORE_HALF = math.nextafter(0.5, 0)
ROUNDED = np.asarray([0.5, -0.5, 1.5, -1.5, 2.5, BEFORE_HALF, -BEFORE_HALF, 0.2, -7.8, np.inf, -np.inf])
LARGE = np.asarray([2.0**52 + 1, 2.0**51 + 0.5, -(2.0**51) - 1.5])  # the last that have a fraction


def _each(function):
    """`function` of every element, in Python."""
    return lambda x: np.asarray([function(float(v)) for v in x.reshape(-1)], x.dtype).reshape(x.shape)


def _half_away(v: float) -> float:
    if not math.isfinite(v):
        return v
    whole, fraction = divmod(abs(v), 1)
    return math.copysign(whole + (fraction >= 0.5), v)


CASES = [
    Case("identity", u.identity, (X,), lambda x: x),
    Case("identity: integers", u.identity, (I,), lambda x: x),
    Case("negative", u.negative, (X,), lambda x: 0 - x),
    Case("negative: integers", u.negative, (I,), lambda x: 0 - x),
    Case("absolute", u.absolute, (X,), lambda x: np.maximum(x, -x)),
    Case("absolute: integers", u.absolute, (I,), lambda x: np.maximum(x, -x)),
    Case("sign", u.sign, (X,), lambda x: np.where(x > 0, 1.0, -1.0)),
    Case("sign: zero and integers", u.sign, (I,), lambda x: (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)),
    Case("exp", u.exp, (X,), _each(math.exp)),
    Case("exp2", u.exp2, (X,), _each(lambda v: math.pow(2, v))),
    Case("exp10", u.exp10, (X,), _each(lambda v: math.pow(10, v)), tolerance=64),  # the exponent's error times ln 10
    Case("expm1", u.expm1, (X,), _each(math.expm1)),
    Case("expm1: small", u.expm1, (SMALL,), _each(math.expm1)),
    Case("log", u.log, (POSITIVE,), _each(math.log)),
    Case("log2", u.log2, (POSITIVE,), _each(math.log2)),
    Case("log10", u.log10, (POSITIVE,), _each(math.log10)),
    Case("log1p", u.log1p, (POSITIVE,), _each(math.log1p)),
    Case("log1p: small", u.log1p, (SMALL,), _each(math.log1p)),
    Case("square", u.square, (X,), lambda x: x**2),
    Case("square: integers", u.square, (I,), lambda x: x**2),
    Case("sqrt", u.sqrt, (POSITIVE,), _each(math.sqrt)),
    Case("reciprocal", u.reciprocal, (ABOVE_1,), lambda x: x**-1.0),
    Case("rsqrt", u.rsqrt, (POSITIVE,), lambda x: x**-0.5),
    Case("ceil", u.ceil, (3 * X,), _each(math.ceil)),
    Case("floor", u.floor, (3 * X,), _each(math.floor)),
    Case("round", u.round, (3 * X,), _each(_half_away)),
    Case("round: halves go away from 0", u.round, (ROUNDED,), _each(_half_away), orders=0, tolerance=0),
    Case("round: large", u.round, (LARGE,), _each(_half_away), orders=0, tolerance=0, half=False),
    Case("rint", u.rint, (3 * X,), _each(round)),
    Case("rint: halves go to even", u.rint, (ROUNDED[:-2],), _each(round), orders=0, tolerance=0),
    Case("truncate", u.truncate, (3 * X,), _each(math.trunc)),
    Case("sin", u.sin, (X,), _each(math.sin)),
    Case("cos", u.cos, (X,), _each(math.cos)),
    Case("tan", u.tan, (INSIDE,), _each(math.tan)),
    Case("asin", u.asin, (INSIDE,), _each(math.asin)),
    Case("acos", u.acos, (INSIDE,), _each(math.acos)),
    Case("atan", u.atan, (X,), _each(math.atan)),
    Case("sinh", u.sinh, (X,), _each(math.sinh)),
    Case("cosh", u.cosh, (X,), _each(math.cosh)),
    Case("tanh", u.tanh, (X,), _each(math.tanh)),
    Case("asinh", u.asinh, (X,), _each(math.asinh)),
    Case("acosh", u.acosh, (ABOVE_1,), _each(math.acosh)),
    Case("atanh", u.atanh, (INSIDE,), _each(math.atanh)),
    Case("erf", u.erf, (X,), _each(math.erf)),
    Case("erf: scalar", u.erf, (normal(),), _each(math.erf)),
    Case("exp: empty", u.exp, (normal(0, 3),), lambda x: x),
]

test_values, test_types, test_gradients, test_half_types = op_tests(CASES)


@pytest.mark.parametrize("where", LIBRARIES)
def test_round_is_right_next_to_a_half_in_every_float_type(where):
    kinds = ["float32"] if where in ("jax", "array_api_strict") else ["float16", "float32"]
    for kind in kinds:
        before, half = np.nextafter(np.asarray(0.5, kind), np.asarray(0, kind)), np.asarray(0.5, kind)
        rounded = _arrays.to_numpy(u.round(as_library(np.stack([before, half, -before, -half]), where)))
        np.testing.assert_array_equal(rounded, [0, 1, 0, -1])


def test_gradients_at_kinks_are_zero():
    assert gradient_of(u.absolute, [np.zeros(1)])[0] == 0
    assert gradient_of(u.sign, [np.zeros(1)]) == [None]


def test_functions_of_floats_refuse_integers():
    with pytest.raises(DTypeError, match=r"^exp: input must be of kind float, got int32$"):
        u.exp(I)
    with pytest.raises(DTypeError, match=r"^negative: input must be of kind float or int, got bool$"):
        u.negative(np.zeros(2, bool))
