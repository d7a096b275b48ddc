"""`replace`: what is swapped, what is kept, what is left and why."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize

import recurra
from recurra.torch import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell, replace

pytestmark = pytest.mark.filterwarnings(
    "ignore:LSTM with projections is not supported with oneDNN",
    "ignore:`torch.nn.utils.weight_norm` is deprecated",
    "ignore:`torch.jit.script` is deprecated",
    "ignore:`torch.jit.script_method` is deprecated",
)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.LSTM(3, 4, 2, bidirectional=True, dropout=0.5, batch_first=True)
        self.shared = self.encoder
        self.inner = nn.Sequential(nn.GRU(3, 4), nn.Linear(4, 4))
        self.relu = nn.RNN(3, 4, nonlinearity="relu", bias=False)
        self.cells = nn.ModuleList(
            [nn.LSTMCell(3, 4), nn.GRUCell(3, 4, bias=False), nn.RNNCell(3, 4, nonlinearity="relu")]
        )
        self.projected = nn.LSTM(3, 4, proj_size=2)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        found = [self.encoder(x)[0], self.shared(x)[0], self.inner[0](x)[0], self.relu(x)[0], self.projected(x)[0]]
        return [*found, self.cells[0](x[0])[0], self.cells[1](x[0]), self.cells[2](x[0])]


def test_every_module_is_replaced_in_place_and_says_the_same() -> None:
    model, x = Model().eval(), torch.randn(5, 2, 3)
    wanted = model(x)
    parameters, modules = list(model.parameters()), list(model.modules())
    keys = list(model.state_dict())
    report = replace(model)
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
    assert all(a is b for a, b in zip(model.modules(), modules, strict=True))
    assert list(model.state_dict()) == keys
    assert type(model.encoder) is LSTM
    assert (type(model.inner[0]), type(model.relu)) == (GRU, RNN)
    assert [type(cell) for cell in model.cells] == [LSTMCell, GRUCell, RNNCell]
    assert model.shared is model.encoder
    assert not any(module.training for module in model.modules())
    torch.testing.assert_close(model(x), wanted)
    assert str(report) == (
        "replaced 7, left 0\n"
        "  replaced  encoder: LSTM(3, 4, num_layers=2, batch_first=True, dropout=0.5, bidirectional=True)\n"
        "  replaced  inner.0: GRU(3, 4)\n"
        "  replaced  relu: RNN(3, 4, bias=False)\n"
        "  replaced  cells.0: LSTMCell(3, 4)\n"
        "  replaced  cells.1: GRUCell(3, 4, bias=False)\n"
        "  replaced  cells.2: RNNCell(3, 4, nonlinearity=relu)\n"
        "  replaced  projected: LSTM(3, 4, proj_size=2)"
    )
    assert str(replace(model)) == "nothing to replace: the model has no recurrent module of torch.nn"
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        torch.testing.assert_close(other(x), wanted)


def test_an_optimizer_of_before_goes_on_training() -> None:
    torch.manual_seed(0)
    model = nn.ModuleDict({"rnn": nn.GRU(3, 4), "head": nn.Linear(4, 1)})
    other = copy.deepcopy(model)
    optimizers = [torch.optim.Adam(m.parameters(), 0.05) for m in (model, other)]
    x, target = torch.randn(6, 8, 3), torch.randn(6, 8, 1)
    losses: list[list[float]] = [[], []]
    for step in range(6):
        if step == 3:
            replace(model)
        for i, (m, optimizer) in enumerate(zip((model, other), optimizers, strict=True)):
            loss = ((m["head"](m["rnn"](x)[0]) - target) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[i].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert losses[0][-1] < losses[0][0]


def test_tied_weights_stay_tied() -> None:
    model = nn.ModuleList([nn.LSTM(4, 4), nn.LSTM(4, 4), nn.Linear(4, 16, bias=False)])
    model[1].weight_hh_l0 = model[0].weight_hh_l0
    model[2].weight = model[0].weight_hh_l0
    replace(model)
    assert model[0].weight_hh_l0 is model[1].weight_hh_l0 is model[2].weight
    y = model[2](model[1](model[0](torch.randn(2, 3, 4))[0])[0])
    y.sum().backward()
    assert model[2].weight.grad is model[0].weight_hh_l0.grad


def test_hooks_and_their_handles_go_on() -> None:
    layer = nn.GRU(3, 4)
    model = nn.ModuleList([layer])
    seen: list[str] = []
    handles = [
        layer.register_forward_hook(lambda *_: seen.append("forward")),
        layer.register_forward_pre_hook(lambda *_: seen.append("pre")),
        layer.register_full_backward_hook(lambda *_: seen.append("backward")),
        layer.register_full_backward_pre_hook(lambda *_: seen.append("backward pre")),
        layer.weight_ih_l0.register_hook(lambda grad: seen.append("gradient")),
    ]
    replace(model)
    x = torch.randn(2, 3, 3, requires_grad=True)
    model[0](x)[0].sum().backward()
    assert sorted(seen) == ["backward", "backward pre", "forward", "gradient", "pre"]
    for handle in handles:
        handle.remove()
    seen.clear()
    model[0](x)[0].sum().backward()
    assert not seen


@pytest.mark.parametrize("kind", ["parametrizations.weight_norm", "orthogonal", "weight_norm", "spectral_norm"])
def test_parametrized_weights_are_kept(kind: str) -> None:
    torch.manual_seed(0)
    layer = nn.LSTM(4, 4)
    made: dict[str, Any] = {
        "parametrizations.weight_norm": parametrizations.weight_norm,
        "orthogonal": parametrizations.orthogonal,
        "weight_norm": nn.utils.weight_norm,
        "spectral_norm": nn.utils.spectral_norm,
    }
    made[kind](layer, "weight_hh_l0")
    model = nn.Sequential(layer).eval()
    parameters = dict(model.named_parameters())
    x = torch.randn(3, 2, 4)
    model(x)  # the older ways compute the weight in a call
    weight = model[0].weight_hh_l0.detach().clone()
    report = replace(model, strict=True)
    assert "weight_hh_l0" not in dict(model[0].named_parameters(recurse=False))
    assert dict(model.named_parameters()).keys() == parameters.keys()
    assert all(p is parameters[name] for name, p in model.named_parameters())
    assert isinstance(model[0], LSTM)
    assert len(report.replaced) == 1
    y, _ = model(x)
    plain = nn.LSTM(4, 4)
    plain.load_state_dict(
        {name: weight if name == "weight_hh_l0" else getattr(model[0], name) for name in plain.state_dict()}
    )
    torch.testing.assert_close(y, plain(x)[0])
    y.sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    if kind == "parametrizations.weight_norm":
        assert parametrize.is_parametrized(model[0], "weight_hh_l0")
        assert str(report).endswith("0: ParametrizedLSTM(4, 4)")
        torch.testing.assert_close(copy.deepcopy(model)(x)[0], y)
        parametrize.remove_parametrizations(model[0], "weight_hh_l0")
        assert type(model[0]) is LSTM
        torch.testing.assert_close(model(x)[0], y)


class OwnForward(nn.LSTM):
    def forward(self, input: torch.Tensor, hx: Any = None) -> Any:
        return super().forward(2 * input, hx)


class OwnConstructor(nn.GRU):
    def __init__(self) -> None:
        super().__init__(3, 4)


def test_what_may_have_code_of_its_own_is_left_with_a_reason() -> None:
    patched = nn.RNN(3, 4)
    patched.forward = lambda x: x
    scripted = torch.jit.script(nn.LSTM(3, 4))
    model = nn.ModuleDict(
        {"a": OwnForward(3, 4), "b": OwnConstructor(), "c": patched, "d": scripted, "e": nn.RNN(3, 4)}
    )
    types = [type(m) for m in model.modules()]
    with pytest.raises(recurra.UnsupportedError, match="replace: model must have nothing that is left, when strict"):
        replace(model, strict=True)
    assert [type(m) for m in model.modules()] == types
    report = replace(model)
    assert str(report).splitlines() == [
        "replaced 1, left 4",
        "  replaced  e: RNN(3, 4)",
        "  left      a: OwnForward: a subclass of torch.nn.LSTM, it has a forward of its own; derive it from "
        "recurra.torch.LSTM",
        "  left      b: OwnConstructor: a subclass of torch.nn.GRU, it may have code of its own; derive it from "
        "recurra.torch.GRU",
        "  left      c: RNN(3, 4): its forward was replaced on this very module",
        "  left      d: LSTM: it is TorchScript; replace it before it is scripted",
    ]
    assert [entry.name for entry in report.left] == ["a", "b", "c", "d"]
    assert type(model["a"]) is OwnForward


def test_quantized_modules_are_left() -> None:
    class LSTM(nn.Module):  # as torch.ao's, which need not be there in every build
        pass

    LSTM.__module__ = "torch.ao.nn.quantized.dynamic.modules.rnn"
    report = replace(nn.Sequential(LSTM()))
    assert str(report).splitlines()[1] == (
        "  left      0: torch.ao.nn.quantized.dynamic.modules.rnn.LSTM: it is quantized, or prepared for it"
    )


def test_the_model_itself_may_be_one() -> None:
    layer = nn.LSTM(3, 4)
    report = replace(layer)
    assert type(layer) is LSTM
    assert str(report) == "replaced 1, left 0\n  replaced  (the model itself): LSTM(3, 4)"


def test_attributes_dtype_and_device_are_kept() -> None:
    layer = nn.GRU(3, 4, dtype=torch.float64, device="meta")
    layer.note = "mine"
    layer.register_buffer("extra", torch.zeros(2))
    replace(layer)
    assert layer.note == "mine"
    assert "extra" in dict(layer.named_buffers())
    assert {(p.device.type, p.dtype) for p in layer.parameters()} == {("meta", torch.float64)}
    assert not [name for name in vars(layer) if name.startswith("_flat")]


def test_replaced_modules_compile_and_move() -> None:
    model = nn.Sequential(nn.LSTM(3, 4))
    replace(model)
    torch._dynamo.reset()
    x = torch.randn(2, 5, 3)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), model(x))
    assert model.double()(x.double())[0].dtype == torch.float64


def test_only_modules_are_taken() -> None:
    with pytest.raises(TypeError, match=r"^replace: model must be a torch.nn.Module, got type$"):
        replace(nn.LSTM)
