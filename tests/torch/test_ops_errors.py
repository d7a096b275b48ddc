"""What the ops refuse on tensors: the rules are recurra's, before and after tracing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_samples import call, full

import recurra
import recurra.torch

F32 = {"dtype": torch.float32}


def inputs(**changed) -> dict:
    return {**full("lstm"), **changed}


MISTAKES = [
    (
        {"source": torch.zeros(4, 3, dtype=torch.float64)},
        recurra.ShapeError,
        r"lstm: source must have rank 3, .* got \[4, 3\]",
    ),
    (
        {"recurrent_weight": torch.zeros(9, 3, dtype=torch.float64)},
        recurra.ShapeError,
        r"lstm: recurrent_weight must have shape \[4\*H, H\] = \[12, 3\], got \[9, 3\] .*did you mean gru",
    ),
    ({"bias": torch.zeros(12)}, recurra.DTypeError, r"lstm: bias must have the dtype of source, float64, got float32"),
    (
        {"init_state": torch.zeros(5, 3, dtype=torch.float64)},
        recurra.ShapeError,
        r"lstm: init_state must have shape \[N, H\] = \[.*2.*, 3\], got \[5, 3\]",
    ),
    ({"lengths": torch.tensor([1.0, 2.0])}, recurra.DTypeError, "lstm: lengths must be int32 or int64, got float32"),
]
by_mistake = pytest.mark.parametrize(("changed", "kind", "told"), MISTAKES)


@by_mistake
@pytest.mark.parametrize("requires_grad", [False, True])
def test_eager_calls_follow_the_rules(changed, kind, told, requires_grad) -> None:
    given = inputs(**changed)
    given["input_weight"] = given["input_weight"].clone().requires_grad_(requires_grad)
    with pytest.raises(kind, match=told):
        call("lstm", given, None)


@by_mistake
def test_meta_tensors_follow_the_same_rules(changed, kind, told) -> None:
    with pytest.raises(kind, match=told):
        call("lstm", {k: v.to("meta") for k, v in inputs(**changed).items()}, None)


def test_meta_tensors_give_shapes() -> None:
    out = call("lstm", {k: v.to("meta") for k, v in inputs().items()}, recurra.LSTMDescriptor(training=True))
    assert [tuple(y.shape) for y in out] == [(4, 2, 3), (4, 2, 3), (4, 2, 12)]


def test_compile_tells_the_rule() -> None:
    torch._dynamo.reset()
    given = inputs(bias=torch.zeros(11, dtype=torch.float64))
    compiled = torch.compile(lambda **k: call("lstm", k, None).h, fullgraph=True, backend="aot_eager")
    with pytest.raises(RuntimeError, match=r"lstm: bias must have shape \[4\*H\] = \[12\], got \[11\]"):
        compiled(**given)


@pytest.mark.parametrize("name", ["lengths", "input_weight"])
def test_another_device_is_refused(name: str) -> None:
    given = inputs(lengths=torch.tensor([4, 2]))
    given[name] = given[name].to("meta")
    with pytest.raises(
        recurra.DeviceError,
        match=rf"lstm: {name} must be on the device of source, cpu, got meta; write {name}.to\('cpu'\)",
    ):
        call("lstm", given, None)


def test_what_is_not_a_tensor_is_refused() -> None:
    for name in ("bias", "source", "lengths"):
        with pytest.raises(recurra.DeviceError, match="lstm: arrays must be of one library, got numpy and torch"):
            call("lstm", inputs(**{name: np.zeros(12)}), None)
    with pytest.raises(recurra.ArgumentTypeError, match="lstm: bias must be an array or a graph tensor, got list"):
        call("lstm", inputs(bias=[0.0] * 12), None)
    with pytest.raises(recurra.ArgumentTypeError, match="lstm: source must be an array or a graph tensor, got list"):
        call("lstm", inputs(source=[0.0]), None)
    with pytest.raises(recurra.ArgumentTypeError, match="lstm: source must be an array or a graph tensor, got None"):
        call("lstm", inputs(source=None), None)


def test_lists_are_lengths_and_resets() -> None:
    got = call("lstm", inputs(lengths=[4, 2], resets=[[False, True]] * 4), None).h
    given = inputs(lengths=torch.tensor([4, 2]), resets=torch.tensor([[False, True]] * 4))
    assert torch.equal(got, call("lstm", given, None).h)
    with pytest.raises(recurra.ArgumentTypeError, match="lstm: lengths must hold integers, got "):
        call("lstm", inputs(lengths=["a", "b"]), None)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_lengths_outside_of_the_sequence_are_refused(requires_grad: bool) -> None:
    given = inputs(lengths=torch.tensor([4, 5]))
    given["source"].requires_grad_(requires_grad)
    with pytest.raises(recurra.ArgumentError, match=r"lstm: lengths must lie in \[0, T\] = \[0, 4\], got 5"):
        call("lstm", given, None)


@pytest.mark.parametrize("text", ["", "[]", '{"colour": true}', '{"training": 1}', '{"activation": "swish"}'])
def test_a_wrong_descriptor_text_is_refused(text: str) -> None:
    given = inputs()
    with pytest.raises(recurra.ArgumentError, match="lstm: descriptor must be JSON of fields of LSTMDescriptor, got "):
        torch.ops.recurra.lstm(given["source"], given["recurrent_weight"], given["input_weight"], descriptor=text)


def test_every_descriptor_survives_its_text() -> None:
    from recurra.torch._ops_text import descriptor_of, text_of

    for given in (
        recurra.LSTMDescriptor(),
        recurra.LSTMDescriptor(training=True, peephole_output="current", activation=("scaled_tanh", 1 / 3, 1e-20)),
        recurra.GRUDescriptor(flip_z=True, update_gate_activation="hard_sigmoid"),
        recurra.SingleGateRNNDescriptor(bidirectional=True, activation=("leaky_relu", 0.1)),
    ):
        assert descriptor_of(given._op, type(given), text_of(given)) == given
    assert text_of(recurra.GRUDescriptor(reset_after=True)) == '{"reset_after": true}'
