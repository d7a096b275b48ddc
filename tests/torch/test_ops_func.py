"""The ops under torch.func: vmap, per-sample gradients, Jacobians and Hessians in every mode."""

from __future__ import annotations

from typing import Any

from oracle.cases import OPS
import pytest
from test_ops_derivatives import VARIANTS, constants, smooth
import torch
from torch import func
from torch_samples import call, full

# What torch's own forward mode loads.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
B = 3


def problem(op: str, options: dict | None = None, with_constants: bool = True) -> tuple[dict, dict, Any]:
    options = {} if options is None else options
    D = 2 if options.get("bidirectional") else 1
    inputs = full(op, D=D)
    if op == "gru" and not options.get("reset_after"):
        del inputs["secondary_bias"]
    return inputs, constants(op, D) if with_constants else {}, smooth(op, **options, training=True)


def many(x: torch.Tensor, axis: int) -> torch.Tensor:
    """B different tensors like x along an axis."""
    if x.dtype == torch.bool:
        return torch.stack([x, ~x, x], axis)
    if not x.is_floating_point():
        return torch.stack([x, x - 1, x - 2], axis)
    return torch.stack([x, 0.5 * x + 0.1, x - 0.2], axis)


def agree(got: Any, wanted: Any) -> None:
    torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize(("op", "options"), VARIANTS)
def test_vmap_over_each_input_alone_is_a_loop(op: str, options: dict, axis: int) -> None:
    inputs, rest, descriptor = problem(op, options)
    given = {**inputs, **rest}
    for name, x in given.items():
        mapped = many(x, axis)
        got = torch.vmap(lambda v, n=name: tuple(call(op, {**given, n: v}, descriptor)), in_dims=axis)(mapped)
        loop = [tuple(call(op, {**given, name: v}, descriptor)) for v in mapped.unbind(axis)]
        agree(got, tuple(torch.stack(list(column)) for column in zip(*loop, strict=True)))


@pytest.mark.parametrize("names", [("source", "init_state", "mask", "lengths", "resets"), ("source", "bias")])
@pytest.mark.parametrize(("op", "options"), VARIANTS)
def test_vmap_over_several_inputs_is_a_loop(op: str, options: dict, names: tuple[str, ...]) -> None:
    inputs, rest, descriptor = problem(op, options)
    given = {**inputs, **rest}
    mapped = [many(given[n], 0) for n in names]
    got = torch.vmap(lambda *v: tuple(call(op, {**given, **dict(zip(names, v, strict=True))}, descriptor)))(*mapped)
    loop = [
        tuple(call(op, {**given, **dict(zip(names, v, strict=True))}, descriptor))
        for v in zip(*(m.unbind(0) for m in mapped), strict=True)
    ]
    agree(got, tuple(torch.stack(list(column)) for column in zip(*loop, strict=True)))


@pytest.mark.parametrize("shape", [(3,), (2, 1), (), (1, 2, 3), (4, 1, 3)])
def test_vmap_folds_masks_and_states_that_broadcast(shape: tuple[int, ...]) -> None:
    inputs, _, descriptor = problem("lstm")
    given = {**inputs, "init_state": inputs["init_state"][:1], "init_cell": inputs["init_cell"][None]}
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for name, x in (("source", given["source"]), ("mask", mask), ("init_state", given["init_state"])):
        mapped = many(x, 0)
        got = torch.vmap(lambda v, n=name: call("lstm", {**given, "mask": mask, n: v}, descriptor).h)(mapped)
        agree(got, torch.stack([call("lstm", {**given, "mask": mask, name: v}, descriptor).h for v in mapped]))


def test_vmap_over_an_empty_axis_gives_empty_results() -> None:
    inputs, _, descriptor = problem("lstm")
    no_sources = torch.zeros(0, *inputs["source"].shape, dtype=torch.float64)
    got = torch.vmap(lambda x: call("lstm", {**inputs, "source": x}, descriptor).h)(no_sources)
    assert got.shape == (0, 4, 2, 3)


@pytest.mark.parametrize(("op", "options"), VARIANTS)
def test_per_sample_gradients_are_a_loop(op: str, options: dict) -> None:
    inputs, rest, descriptor = problem(op, options)
    weights = {k: v for k, v in inputs.items() if k != "source"}

    def loss(weights: dict, source: torch.Tensor) -> torch.Tensor:
        return (call(op, {"source": source, **weights, **rest}, descriptor).h ** 2).sum()

    sources = many(inputs["source"], 0)
    got = torch.vmap(func.grad(loss), in_dims=(None, 0))(weights, sources)
    for name, gradient in got.items():
        wanted = []
        for source in sources:
            leaf = weights[name].clone().requires_grad_()
            wanted += torch.autograd.grad(loss({**weights, name: leaf}, source), leaf)
        agree(gradient, torch.stack(wanted))


@pytest.mark.parametrize("op", OPS)
def test_jacobians_agree_in_both_modes(op: str) -> None:
    inputs, rest, descriptor = problem(op, {"bidirectional": True})
    for name in inputs:

        def outputs(x: torch.Tensor, name: str = name) -> torch.Tensor:
            return call(op, {**inputs, **rest, name: x}, descriptor).h

        backwards = func.jacrev(outputs)(inputs[name])
        agree(backwards, torch.autograd.functional.jacobian(outputs, inputs[name]))
        agree(func.jacfwd(outputs)(inputs[name]), backwards)
        step = torch.ones_like(inputs[name])
        _, tangent = func.jvp(outputs, (inputs[name],), (step,))
        agree(tangent, (backwards * step).flatten(outputs(inputs[name]).ndim).sum(-1))


@pytest.mark.parametrize("op", OPS)
def test_hessians_agree_in_every_order_of_modes(op: str) -> None:
    inputs, rest, descriptor = problem(op)

    def loss(weight: torch.Tensor) -> torch.Tensor:
        return (call(op, {**inputs, **rest, "recurrent_weight": weight}, descriptor).h ** 2).sum()

    weight = inputs["recurrent_weight"]
    wanted = torch.autograd.functional.hessian(loss, weight)
    agree(func.hessian(loss)(weight), wanted)
    for outer in (func.jacrev, func.jacfwd):
        for inner in (func.jacrev, func.jacfwd):
            agree(outer(inner(loss))(weight), wanted)
    step = torch.ones_like(weight)
    product = func.jvp(func.grad(loss), (weight,), (step,))[1]  # forward over reverse: a Hessian-vector product
    agree(product, (wanted * step).flatten(2).sum(-1))


def test_functional_call_differentiates_a_module() -> None:
    inputs, _, descriptor = problem("lstm")

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(inputs["recurrent_weight"])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return call("lstm", {**inputs, "source": x, "recurrent_weight": self.weight}, descriptor).h

    layer = Layer()
    weights = {"weight": 2 * inputs["recurrent_weight"]}
    got = func.grad(lambda p: func.functional_call(layer, p, (inputs["source"],)).sum())(weights)["weight"]
    leaf = weights["weight"].clone().requires_grad_()
    call("lstm", {**inputs, "recurrent_weight": leaf}, descriptor).h.sum().backward()
    agree(got, leaf.grad)
