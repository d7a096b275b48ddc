"""Autograd through the ops: against the oracle, and against differences up to the third derivative."""

from __future__ import annotations

from typing import Any

from oracle.cases import OPS, case
from oracle.gradients import gradients as oracle_gradients
import pytest
import torch
from torch.autograd import forward_ad
from torch_samples import DESCRIPTORS, call, differentiable, full, tensors

import recurra

pytestmark = [
    pytest.mark.filterwarnings("ignore:gru.* secondary_bias is used only:recurra.RecurraWarning"),
    # What torch's own forward mode loads.
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning"),
]


def smooth(op: str, **options: Any) -> Any:
    """A descriptor without kinks."""
    return DESCRIPTORS[op](**options, **({"activation": "tanh"} if op == "single_gate_rnn" else {}))


VARIANTS = [
    ("lstm", {}),
    ("lstm", {"bidirectional": True, "peephole_output": "current"}),
    ("lstm", {"reverse": True, "forget_gate_last": True, "cell_gate_activation": "softsign"}),
    ("gru", {}),
    ("gru", {"bidirectional": True, "reset_after": True}),
    ("gru", {"reverse": True, "flip_z": True, "reset_gate_first": True}),
    ("single_gate_rnn", {}),
    ("single_gate_rnn", {"bidirectional": True}),
]


def constants(op: str, D: int) -> dict[str, torch.Tensor]:
    """Inputs that have no gradient: a mask, lengths, resets."""
    generator = torch.Generator().manual_seed(5)
    return {
        "mask": torch.rand(4, 2, D * 3, generator=generator, dtype=torch.float64) + 0.5,
        "lengths": torch.tensor([4, 3]),
        "resets": torch.tensor([[False, True], [True, False], [False, False], [False, True]]),
    }


def of_leaves(op: str, options: dict, with_constants: bool, results: tuple[str, ...]) -> tuple[Any, list]:
    """A function of the differentiable inputs alone that gives these results, and the inputs."""
    D = 2 if options.get("bidirectional") else 1
    inputs = full(op, D=D)
    if op == "gru" and not options.get("reset_after"):
        del inputs["secondary_bias"]
    rest = constants(op, D) if with_constants else {}
    descriptor = smooth(op, **options, training=True)

    def function(*leaves: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = call(op, {**dict(zip(inputs, leaves, strict=True)), **rest}, descriptor)
        return tuple(getattr(outputs, name) for name in results)

    return function, [x.requires_grad_() for x in inputs.values()]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("op", OPS)
def test_autograd_agrees_with_the_oracle(op: str, seed: int) -> None:
    drawn = case(op, seed)
    inputs = tensors(drawn.inputs, requires_grad=True)
    outputs = call(op, inputs, DESCRIPTORS[op](**drawn.options, training=True))
    generator = torch.Generator().manual_seed(seed)
    cotangents = {
        name: torch.randn(y.shape, generator=generator, dtype=torch.float64)
        for name, y in (("source_gradient", outputs.h), ("cell_sequence_gradient", getattr(outputs, "c", None)))
        if y is not None
    }
    leaves = {k: t for k, t in inputs.items() if t.requires_grad}
    found = torch.autograd.grad(
        [y for y in (outputs.h, getattr(outputs, "c", None)) if y is not None],
        list(leaves.values()),
        list(cotangents.values()),
        materialize_grads=True,
    )
    plain = {k: inputs[k].detach() if k in inputs else None for k in drawn.inputs}
    empty = dict.fromkeys(drawn.gradients_in)
    wanted = oracle_gradients(op, plain, drawn.options, {**empty, **cotangents})
    for name, gradient in zip(leaves, found, strict=True):
        torch.testing.assert_close(
            gradient, wanted[name], rtol=1e-9, atol=1e-9, msg=lambda m, n=name: f"{n}: {m}\n{drawn}"
        )


@pytest.mark.parametrize("with_constants", [False, True], ids=["plain", "mask-lengths-resets"])
@pytest.mark.parametrize(("op", "options"), VARIANTS)
def test_gradcheck_and_gradgradcheck_pass(op: str, options: dict, with_constants: bool) -> None:
    results = ("h", "c") if op == "lstm" else ("h",)
    function, leaves = of_leaves(op, options, with_constants, results)
    assert torch.autograd.gradcheck(function, leaves, fast_mode=True)
    assert torch.autograd.gradgradcheck(function, leaves, fast_mode=True)


@pytest.mark.parametrize(("op", "options"), VARIANTS[::3])
def test_each_element_of_both_derivatives_is_right(op: str, options: dict) -> None:
    function, leaves = of_leaves(op, options, True, ("h", "c") if op == "lstm" else ("h",))
    assert torch.autograd.gradcheck(function, leaves)
    assert torch.autograd.gradgradcheck(function, leaves)


@pytest.mark.parametrize(("op", "options"), VARIANTS)
def test_the_training_state_has_derivatives_too(op: str, options: dict) -> None:
    function, leaves = of_leaves(op, options, True, ("h", "z"))
    assert torch.autograd.gradcheck(function, leaves, fast_mode=True)
    assert torch.autograd.gradgradcheck(function, leaves, fast_mode=True)


@pytest.mark.parametrize("op", OPS)
def test_forward_mode_passes_gradcheck(op: str) -> None:
    function, leaves = of_leaves(op, {"bidirectional": True}, True, ("h", "z"))
    assert torch.autograd.gradcheck(function, leaves, fast_mode=True, check_forward_ad=True)


@pytest.mark.parametrize("op", OPS)
def test_the_third_derivative_is_right(op: str) -> None:
    function, leaves = of_leaves(op, {}, False, ("h",))
    weight = leaves[1]

    def second(weight: torch.Tensor) -> torch.Tensor:
        h = function(leaves[0], weight, *leaves[2:])[0]
        (first,) = torch.autograd.grad((h**2).sum(), weight, create_graph=True)
        return torch.autograd.grad((first**2).sum(), weight, create_graph=True)[0]

    assert torch.autograd.gradcheck(second, (weight,), fast_mode=True)


@pytest.mark.parametrize("op", OPS)
def test_inputs_that_need_no_gradient_get_none(op: str) -> None:
    function, leaves = of_leaves(op, {}, False, ("h",))
    leaves = [x.detach() for x in leaves]
    leaves[1].requires_grad_()
    function(*leaves)[0].sum().backward()
    assert leaves[1].grad is not None
    assert all(x.grad is None for i, x in enumerate(leaves) if i != 1)


def test_a_mask_that_requires_a_gradient_is_refused() -> None:
    inputs = full("lstm")
    told = (
        r"lstm: mask must not require a gradient \(MPSGraph defines none.* write mask.detach\(\)\), got one that does"
    )
    mask = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(recurra.GradientError, match=told):
        call("lstm", {**inputs, "mask": mask}, None)
    with torch.no_grad():
        assert call("lstm", {**inputs, "mask": mask}, None).h.shape == (4, 2, 3)
    with forward_ad.dual_level(), pytest.raises(recurra.GradientError, match=told):
        call("lstm", {**inputs, "mask": forward_ad.make_dual(mask.detach(), mask.detach())}, None)


def test_only_what_backward_needs_is_computed(monkeypatch) -> None:
    """Without gradients an LSTM computes neither cells nor training state; with them it does."""
    from recurra._backends import _native_calls

    asked = []
    real = _native_calls.Forward.__init__

    def watched(self, types, attrs):
        asked.append(attrs["wanted"])
        real(self, types, attrs)

    monkeypatch.setattr(_native_calls.Forward, "__init__", watched)
    inputs = full("lstm", T=11, N=7, H=5)
    call("lstm", inputs, None)
    assert asked == [(True, False, False)]
    call("lstm", {k: x.requires_grad_() for k, x in inputs.items()}, None)
    assert asked == [(True, False, False), (True, True, True)]
    assert all(differentiable(k, x) for k, x in inputs.items())
