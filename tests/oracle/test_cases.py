"""The random cases reach every option, repeat from their seed, and round as they say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from oracle.cases import OPS, case, reference_results
from oracle.forward import DEFAULTS


@pytest.mark.parametrize("op", OPS)
def test_cases_cover_every_option_and_repeat(op):
    cases = [case(op, seed) for seed in range(120)]
    for name, default in DEFAULTS[op].items():
        if name in ("training", "produce_cell"):
            continue
        values = {str(given.options[name]) for given in cases}
        assert len(values) >= (10 if name.endswith("activation") else 2), name
        assert any(given.options[name] == default for given in cases)
    for arrays in ("inputs", "gradients_in"):
        for name in getattr(cases[0], arrays):
            present = sum(getattr(given, arrays)[name] is not None for given in cases)
            always = name in ("source", "recurrent_weight")
            assert present == 120 if always else 20 < present < 120, name
    for letter in "TNIH":
        assert len({given.sizes.get(letter) for given in cases}) >= 4
    assert any(np.isnan(given.inputs["source"]).any() for given in cases)
    for given, again in zip(cases[:20], (case(op, seed) for seed in range(20)), strict=True):
        assert given.id == again.id
        assert f"case({op!r}, {given.seed})" in str(given)
        for name, value in given.inputs.items():
            np.testing.assert_array_equal(value, again.inputs[name])
    for given, dtype in itertools.product(cases[:20], ["float32", "float16", "bfloat16"]):
        half = given.rounded(dtype)
        np.testing.assert_array_equal(half.inputs["source"], half.rounded(dtype).inputs["source"])
        assert half.inputs["source"].dtype == np.float64
        assert half.dtype == dtype
        for value in (*reference_results(half)[0].values(), *reference_results(half)[1].values()):
            assert np.isfinite(value).all()
