"""For random configurations, the modules say what torch.nn's say: outputs, last states, every gradient."""

from __future__ import annotations

import nn_pairs
from nn_pairs import TOLERANCE, assert_equal
import pytest
import torch

# torch.nn's own remark about its own LSTM.
pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")

CONFIGURATIONS = [nn_pairs.configuration(kind, seed) for kind in nn_pairs.KINDS for seed in range(nn_pairs.COUNT)]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=lambda dtype: str(dtype).removeprefix("torch."))
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
def test_module_agrees_with_torch_nn(configuration: nn_pairs.Configuration, dtype: torch.dtype) -> None:
    pair = nn_pairs.pair(configuration, dtype)
    for (name, theirs), (own_name, ours) in zip(
        pair.theirs.named_parameters(), pair.ours.named_parameters(), strict=True
    ):
        assert name == own_name
        assert torch.equal(ours, theirs), f"{name} was drawn otherwise"
    theirs, ours = pair.call(pair.theirs), pair.call(pair.ours)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert_equal(ours[name], value, TOLERANCE[dtype], name)
    wanted, found = pair.gradients(pair.theirs, theirs), pair.gradients(pair.ours, ours)
    for name, value in wanted.items():
        assert_equal(found[name], value, TOLERANCE[dtype], f"the gradient of {name}")


def test_configurations_cover_what_they_should() -> None:
    found = {(c.kind, c.form, c.initial, *c.options) for c in CONFIGURATIONS}
    assert len(CONFIGURATIONS) >= 200
    for kind in nn_pairs.KINDS:
        of_kind = [c for c in CONFIGURATIONS if c.kind == kind]
        assert {c.keywords["num_layers"] for c in of_kind} == {1, 2, 3}
        for form in ("single", "batch", "packed"):
            for option in ("bias", "batch_first", "bidirectional"):
                assert {c.keywords[option] for c in of_kind if c.form == form} == {True, False}
            assert {c.initial for c in of_kind if c.form == form} == {True, False}
    projected = {
        (c.form, c.keywords["bidirectional"], c.initial) for c in CONFIGURATIONS if c.keywords.get("proj_size")
    }
    assert len(projected) == 12
    assert len(found) > 150
