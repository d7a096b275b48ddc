"""torch.compile and torch.export of the modules: one graph, whatever T and N."""

from __future__ import annotations

from collections.abc import Iterator
import io

from module_forms import CELLS, FORMS, H, I, module
import pytest
import torch
from torch.export import Dim

pytestmark = pytest.mark.filterwarnings(
    # of torch's own making, while it traces and saves
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
)

# T and N, none of them equal to another size: the compiler would take equal sizes for the same one.
SIZES = ((5, 8), (7, 2), (13, 6))


@pytest.fixture(autouse=True)
def _compile_once() -> Iterator[None]:
    """Each test begins with nothing compiled, and compiles each function once: a second time is an error."""
    torch._dynamo.reset()
    with torch._dynamo.config.patch(error_on_recompile=True):
        yield


def test_a_second_compilation_is_seen() -> None:
    layer = module("RNN")
    compiled = torch.compile(layer, fullgraph=True, dynamic=False, backend="eager")
    compiled(torch.randn(5, 8, I, dtype=torch.float64))
    with pytest.raises(torch._dynamo.exc.RecompileError):
        compiled(torch.randn(7, 8, I, dtype=torch.float64))


@pytest.mark.parametrize("form", FORMS)
def test_one_graph_for_all_sizes_forward_and_backward(form: str) -> None:
    layer = module(form)
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    for T, N in SIZES:
        x = torch.randn(T, N, I, dtype=torch.float64, requires_grad=True)
        found = []
        for call in (compiled, layer):
            y, last = call(x)
            h = last[0] if isinstance(last, tuple) else last
            leaves = [x, *layer.parameters()]
            found.append((y, h, *torch.autograd.grad((y**2).sum() + h.sum(), leaves, materialize_grads=True)))
        torch.testing.assert_close(found[0], found[1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("grad", [False, True])
def test_one_graph_with_everything_that_a_call_takes(form: str, grad: bool) -> None:
    """Gates without gradients: their own gradients are those of the reference, whose loop has T in it."""
    layer = module(form)
    D = 2 if layer.bidirectional else 1

    def run(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, lengths: torch.Tensor, resets: torch.Tensor) -> tuple:
        hx = (h, c) if layer.mode == "LSTM" else h
        cells = {"return_cells": "all"} if layer.mode == "LSTM" else {}
        return layer(x, hx, lengths=lengths, resets=resets, return_gates=not torch.is_grad_enabled(), **cells)

    compiled = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    for T, N in SIZES:
        steps, rows = (N, T) if layer.batch_first else (T, N)
        x = torch.randn(T, N, I, dtype=torch.float64)
        h = torch.randn(layer.num_layers * D, rows, layer.proj_size or H, dtype=torch.float64)
        c = torch.randn(layer.num_layers * D, rows, H, dtype=torch.float64)
        given = (x, h, c, torch.randint(0, steps + 1, (rows,)), torch.rand(T, N) < 0.3)
        with torch.set_grad_enabled(grad):
            torch.testing.assert_close(compiled(*given), run(*given))


@pytest.mark.parametrize("form", ["LSTM", "GRU", "RNN"])
def test_dropouts_compile(form: str) -> None:
    layer = module(form, recurrent_dropout=0.5)
    layer.dropout = 0.5
    x = torch.randn(5, 8, I, dtype=torch.float64)
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    assert not torch.equal(compiled(x)[0], compiled(x)[0])
    layer.eval()
    torch._dynamo.reset()
    torch.testing.assert_close(compiled(x)[0], layer(x)[0])


@pytest.mark.parametrize("name", CELLS)
def test_cells_compile_to_one_graph(name: str) -> None:
    cell = module(name)
    compiled = torch.compile(cell, fullgraph=True, dynamic=True, backend="aot_eager")
    for _, N in SIZES:
        x, h = torch.randn(N, I, dtype=torch.float64, requires_grad=True), torch.randn(N, H, dtype=torch.float64)
        hx = (h, h) if name == "LSTMCell" else h
        found = []
        for call in (compiled, cell):
            state = call(x, hx)
            first = state[0] if isinstance(state, tuple) else state
            found.append((first, *torch.autograd.grad((first**2).sum(), [x, *cell.parameters()])))
        torch.testing.assert_close(found[0], found[1])


@pytest.mark.parametrize("form", FORMS)
def test_exported_programs_run_at_other_sizes_after_a_file(form: str) -> None:
    layer = module(form).eval()
    dims = {0: Dim("first"), 1: Dim("second")}
    program = torch.export.export(layer, (torch.randn(6, 9, I, dtype=torch.float64),), dynamic_shapes={"input": dims})
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for T, N in (*SIZES, (1, 1), (200, 3)):
        x = torch.randn(T, N, I, dtype=torch.float64)
        torch.testing.assert_close(loaded(x), layer(x))


class _WithLengths(torch.nn.Module):
    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor, lengths: torch.Tensor, resets: torch.Tensor) -> torch.Tensor:
        return self.layer(x, lengths=lengths, resets=resets)[0]


@pytest.mark.parametrize("form", FORMS)
def test_exported_programs_take_lengths_and_resets(form: str) -> None:
    layer = _WithLengths(module(form).eval())
    rows = 0 if layer.layer.batch_first else 1

    def given(T: int, N: int) -> tuple[torch.Tensor, ...]:
        count, steps = ((T, N), (N, T))[rows]
        x = torch.randn(T, N, I, dtype=torch.float64)
        return x, torch.randint(0, steps + 1, (count,)), torch.rand(T, N) < 0.3

    first, second = Dim("first"), Dim("second")
    shapes = {"x": {0: first, 1: second}, "lengths": {0: (first, second)[rows]}, "resets": {0: first, 1: second}}
    program = torch.export.export(layer, given(6, 9), dynamic_shapes=shapes).module()
    for T, N in SIZES:
        arguments = given(T, N)
        torch.testing.assert_close(program(*arguments), layer(*arguments))


def test_inductor_compiles_a_whole_model() -> None:
    model = torch.nn.Sequential(module("LSTM", torch.float32, batch_first=True))
    x = torch.randn(5, 8, I)
    compiled = torch.compile(model, fullgraph=True, dynamic=True)
    y, (h, c) = compiled(x)
    wanted, (wanted_h, wanted_c) = model(x)
    torch.testing.assert_close((y, h, c), (wanted, wanted_h, wanted_c))
    (y**2).sum().backward()
    found = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    (wanted**2).sum().backward()
    torch.testing.assert_close(found, [p.grad for p in model.parameters()])
