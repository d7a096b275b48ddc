"""The modules under torch.func, autograd's checks, autocast, checkpointing."""

from __future__ import annotations

from typing import Any

from module_forms import CELLS, FORMS, H, I, module
import pytest
import torch
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap
from torch.utils.checkpoint import checkpoint

import recurra.torch

# torch's own remark, when its forward mode first meets one of its formulas
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

T, N = 4, 2


def normal(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def loss(layer: torch.nn.Module, parameters: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    y, last = functional_call(layer, parameters, (x,))
    h = last[0] if isinstance(last, tuple) else last
    return (y**2).sum() + (h**3).sum()


@pytest.mark.parametrize("form", FORMS)
def test_vmap_over_batches_and_over_models(form: str) -> None:
    layer = module(form)
    x = normal(3, T, N, I)
    torch.testing.assert_close(vmap(lambda a: layer(a)[0])(x), torch.stack([layer(a)[0] for a in x]))
    parameters = {name: torch.stack([p, 2 * p, -p]) for name, p in layer.named_parameters()}
    found = vmap(lambda p, a: functional_call(layer, p, (a,))[0])(parameters, x)
    for i in range(3):
        own = {name: p[i] for name, p in parameters.items()}
        torch.testing.assert_close(found[i], functional_call(layer, own, (x[i],))[0])


@pytest.mark.parametrize("form", FORMS)
def test_gradients_of_every_sample_at_once(form: str) -> None:
    layer = module(form)
    parameters = dict(layer.named_parameters())
    x = normal(3, T, N, I)
    found = vmap(grad(lambda p, a: loss(layer, p, a)), in_dims=(None, 0))(parameters, x)
    for i in range(3):
        wanted = torch.autograd.grad(loss(layer, parameters, x[i]), list(parameters.values()))
        for name, value in zip(parameters, wanted, strict=True):
            torch.testing.assert_close(found[name][i], value, msg=name)


@pytest.mark.parametrize("form", FORMS)
def test_forward_mode_agrees_with_backward_mode_and_differences(form: str) -> None:
    layer = module(form)
    x, tangent = normal(T, N, I), normal(T, N, I, seed=2)

    def output(a: torch.Tensor) -> torch.Tensor:
        return layer(a)[0]

    _, found = jvp(output, (x,), (tangent,))
    step = 1e-6
    with torch.no_grad():
        differences = (output(x + step * tangent) - output(x - step * tangent)) / (2 * step)
    torch.testing.assert_close(found, differences, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(jacfwd(output)(x), jacrev(output)(x))
    parameters = {name: p.detach() for name, p in layer.named_parameters()}
    tangents = {name: normal(*p.shape, seed=3) for name, p in parameters.items()}
    _, along = jvp(lambda p: loss(layer, p, x), (parameters,), (tangents,))
    slopes = grad(lambda p: loss(layer, p, x))(parameters)
    torch.testing.assert_close(along, sum((slopes[name] * tangents[name]).sum() for name in slopes))


@pytest.mark.parametrize("form", FORMS)
def test_hessian_is_that_of_backward_through_backward(form: str) -> None:
    layer = module(form)
    parameters = {name: p.detach() for name, p in layer.named_parameters()}

    def of_input(a: torch.Tensor) -> torch.Tensor:
        return loss(layer, parameters, a)

    x = normal(2, 1, I)
    found = hessian(of_input)(x)
    torch.testing.assert_close(found, torch.autograd.functional.hessian(of_input, x))
    flat = found.reshape(x.numel(), x.numel())
    torch.testing.assert_close(flat, flat.T)


SEQUENCES = {
    "plain": {},
    "lengths": {"lengths": torch.tensor([2, 4])},
    "resets": {"resets": torch.tensor([[0, 1], [1, 0], [0, 0], [0, 1]], dtype=torch.bool)},
    "both": {
        "lengths": torch.tensor([4, 3]),
        "resets": torch.tensor([[0, 1], [1, 0], [0, 0], [0, 1]], dtype=torch.bool),
    },
}


@pytest.mark.parametrize("given", SEQUENCES)
@pytest.mark.parametrize("form", FORMS)
def test_gradcheck_and_gradgradcheck(form: str, given: str) -> None:
    layer = module(form)
    names = [name for name, _ in layer.named_parameters()]
    options: dict[str, Any] = dict(SEQUENCES[given])
    if layer.batch_first and "resets" in options:
        options["resets"] = options["resets"].T
    if not layer.proj_size:  # a mask that stays the same from call to call
        layer.recurrent_dropout = 0.4
    columns = layer.num_layers * (2 if layer.bidirectional else 1)

    def results(x: torch.Tensor, h: torch.Tensor, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        torch.manual_seed(5)
        hx = (h, h.new_ones(columns, N, H)) if layer.mode == "LSTM" else h
        wants = {"return_cells": True} if layer.mode == "LSTM" else {}
        y, last, *more = functional_call(
            layer, dict(zip(names, values, strict=True)), (x, hx), {**options, **wants, "return_gates": True}
        )
        return (y, *(last if isinstance(last, tuple) else (last,)), *more)

    x = normal(N, T, I) if layer.batch_first else normal(T, N, I)
    leaves = [x, normal(columns, N, layer.proj_size or H), *(p.detach() for p in layer.parameters())]
    leaves = [leaf.clone().requires_grad_() for leaf in leaves]
    assert torch.autograd.gradcheck(results, leaves, fast_mode=True)
    assert torch.autograd.gradgradcheck(results, leaves, fast_mode=True)


@pytest.mark.parametrize("name", CELLS)
def test_cells_under_transformations(name: str) -> None:
    cell = module(name)
    x, h = normal(3, N, I), normal(N, H)
    hx: Any = (h, 2 * h) if name == "LSTMCell" else h

    def step(a: torch.Tensor) -> torch.Tensor:
        found = cell(a, hx)
        return found[0] + found[1] if isinstance(found, tuple) else found

    torch.testing.assert_close(vmap(step)(x), torch.stack([step(a) for a in x]))
    torch.testing.assert_close(jacfwd(step)(x[0]), jacrev(step)(x[0]))
    total = lambda a: (step(a) ** 2).sum()  # noqa: E731
    torch.testing.assert_close(hessian(total)(x[0]), torch.autograd.functional.hessian(total, x[0]))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_autocast_gives_the_dtype_that_torch_gives(kind: str) -> None:
    layer = module(kind, torch.float32)
    theirs = getattr(torch.nn, kind)(I, H, **({"num_layers": 2} if layer.num_layers == 2 else {}))
    x = normal(T, N, I).float()
    with torch.autocast("cpu", torch.bfloat16):
        y, _last = layer(x)
        wanted, _ = theirs(x)
        (y.float() ** 2).sum().backward()
    assert y.dtype == torch.bfloat16
    # torch.nn.GRU computes in float32 under the CPU's autocast; everywhere else the RNNs follow the autocast dtype.
    assert wanted.dtype == (torch.float32 if kind == "GRU" else torch.bfloat16)
    exact, _ = layer(x)
    assert exact.dtype == torch.float32
    torch.testing.assert_close(y.float(), exact, rtol=0.03, atol=0.03)
    for parameter in layer.parameters():
        assert parameter.grad.dtype == torch.float32
        assert parameter.grad.isfinite().all()


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_checkpointing_changes_nothing(form: str, use_reentrant: bool) -> None:
    layer = module(form, dropout=0.5 if FORMS[form][1].get("num_layers", 1) > 1 else 0.0)
    if not layer.proj_size:
        layer.recurrent_dropout = 0.4
    runs = (lambda a: layer(a)[0], lambda a: checkpoint(lambda b: layer(b)[0], a, use_reentrant=use_reentrant))
    found = []
    for run in runs:
        x = normal(T, N, I).requires_grad_()
        layer.zero_grad()
        torch.manual_seed(3)
        y = run(x)
        (y**2).sum().backward()
        found.append((y.detach(), x.grad, *(p.grad for p in layer.parameters())))
    for a, b in zip(*found, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_half_precision_modules(kind: str) -> None:
    for dtype in (torch.bfloat16, torch.float16):
        layer = module(kind, dtype)
        y, _last = layer(normal(N, T, I).to(dtype))
        assert y.dtype == dtype
        exact, _ = recurra.torch.__dict__[kind].forward(layer.double(), normal(N, T, I).to(dtype).double())
        torch.testing.assert_close(y.double(), exact, rtol=0.02, atol=0.02)
