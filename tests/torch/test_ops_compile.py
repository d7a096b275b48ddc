"""The ops under torch.compile, torch.export, checkpointing and autocast."""

from __future__ import annotations

import io
from typing import Any

from oracle.cases import OPS
import pytest
from test_ops_derivatives import smooth
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch.export import Dim
from torch.utils.checkpoint import checkpoint
from torch_samples import call, full

import recurra

# No size of the first is 2, 3 or 12: torch takes equal sizes of one call for one symbol, and H and D do not change.
SIZES = [(4, 5), (7, 3), (5, 6), (2, 9)]


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def loss_of(op: str, **options: Any) -> Any:
    descriptor = smooth(op, **options)

    def loss(inputs: dict, rest: dict) -> torch.Tensor:
        out = call(op, {**inputs, **rest}, descriptor)
        return (out.h**2).sum() + (out.c[-1].sum() if out.c is not None else 0) if op == "lstm" else (out.h**2).sum()

    return loss


def sized(op: str, T: int, N: int, D: int = 1) -> tuple[dict, dict]:
    inputs = {k: v.requires_grad_() for k, v in full(op, T=T, N=N, D=D, seed=T).items()}
    if op == "gru":
        del inputs["secondary_bias"]
    generator = torch.Generator().manual_seed(N)
    rest = {
        "lengths": torch.randint(1, T + 1, (N,), generator=generator),
        "resets": torch.rand(T, N, generator=generator) < 0.3,
        "mask": torch.rand(N, D * 3, generator=generator, dtype=torch.float64),
    }
    return inputs, rest


def compare(compiled: Any, plain: Any, inputs: dict, rest: dict) -> None:
    leaves = list(inputs.values())
    got, wanted = compiled(inputs, rest), plain(inputs, rest)
    torch.testing.assert_close(got, wanted)
    torch.testing.assert_close(torch.autograd.grad(got, leaves), torch.autograd.grad(wanted, leaves))


@pytest.mark.parametrize("options", [{}, {"bidirectional": True}], ids=["one-way", "both-ways"])
@pytest.mark.parametrize("op", OPS)
def test_compile_makes_one_graph_for_all_sizes(op: str, options: dict) -> None:
    more = {"produce_cell": True} if op == "lstm" else {}
    plain = loss_of(op, **options, **more)
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(plain, fullgraph=True, dynamic=True, backend=counter)
    for T, N in SIZES:
        compare(compiled, plain, *sized(op, T, N, D=2 if options else 1))
    assert counter.frame_count == 1


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")  # by inductor
def test_inductor_agrees() -> None:
    plain = loss_of("lstm", produce_cell=True)
    compiled = torch.compile(plain, fullgraph=True, dynamic=True)
    for T, N in SIZES[:2]:
        compare(compiled, plain, *sized("lstm", T, N))


def test_the_training_state_goes_through_compile_at_any_length() -> None:
    descriptor = recurra.LSTMDescriptor(training=True)

    def plain(inputs: dict, rest: dict) -> torch.Tensor:
        out = call("lstm", {**inputs, **rest}, descriptor)
        return (out.z**2).sum() + out.h.sum()

    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(plain, fullgraph=True, dynamic=True, backend=counter)
    for T, N in SIZES:
        compare(compiled, plain, *sized("lstm", T, N))
    assert counter.frame_count == 1


def test_compile_of_a_gradient_function_gives_named_results() -> None:
    inputs, _ = sized("gru", 4, 2)
    descriptor = recurra.GRUDescriptor(training=True, output_gate_activation=("leaky_relu", 0.25))

    def both(x: torch.Tensor, R: torch.Tensor, W: torch.Tensor) -> Any:
        out = recurra.gru(x, R, input_weight=W, descriptor=descriptor)
        more = recurra.gru_gradients(x, R, out.h, out.z, out.h, input_weight=W, descriptor=descriptor)
        return out, more

    given = [inputs[k].detach() for k in ("source", "recurrent_weight", "input_weight")]
    got = torch.compile(both, fullgraph=True, backend="aot_eager")(*given)
    for mine, wanted in zip(got, both(*given), strict=True):
        assert isinstance(mine, type(wanted).__bases__[-1])
        assert mine._fields == wanted._fields
        torch.testing.assert_close(tuple(mine), tuple(wanted))


class Layer(torch.nn.Module):
    def __init__(self, op: str, D: int) -> None:
        super().__init__()
        self.op = op
        given = full(op, D=D)
        given = {k: given[k] for k in ("recurrent_weight", "input_weight", "bias")}
        self.weights = torch.nn.ParameterDict(given)
        self.descriptor = smooth(op, bidirectional=D == 2)

    def forward(self, source: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return call(self.op, {"source": source, "lengths": lengths, **self.weights}, self.descriptor).h


@pytest.mark.parametrize("strict", [False, True], ids=["non-strict", "strict"])
@pytest.mark.parametrize("op", OPS)
def test_export_runs_at_other_sizes_after_a_file(op: str, strict: bool) -> None:
    layer = Layer(op, 2)
    T, N = Dim("T"), Dim("N")
    example = (torch.zeros(4, 3, 3, dtype=torch.float64), torch.tensor([4, 2, 1]))
    exported = torch.export.export(layer, example, dynamic_shapes=({0: T, 1: N}, {0: N}), strict=strict)
    ops = [n.target for n in exported.graph.nodes if n.op == "call_function"]
    assert getattr(torch.ops.recurra, op).default in ops
    file = io.BytesIO()
    torch.export.save(exported, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for steps, batch in ((4, 3), (9, 2), (1, 1), (2, 7), (30, 1)):
        x = torch.randn(steps, batch, 3, dtype=torch.float64)
        lengths = torch.randint(0, steps + 1, (batch,))
        torch.testing.assert_close(loaded(x, lengths), layer(x, lengths))


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpointing_changes_nothing(use_reentrant: bool) -> None:
    inputs, rest = sized("lstm", 5, 3)
    names, leaves = list(inputs), list(inputs.values())

    def run(*values: torch.Tensor) -> torch.Tensor:
        return call("lstm", {**dict(zip(names, values, strict=True)), **rest}, None).h

    wanted = torch.autograd.grad((run(*leaves) ** 2).sum(), leaves)
    (checkpoint(run, *leaves, use_reentrant=use_reentrant) ** 2).sum().backward()
    torch.testing.assert_close(tuple(x.grad for x in leaves), wanted, rtol=0, atol=0)


@pytest.mark.parametrize("op", OPS)
def test_two_calls_are_equal_bit_for_bit(op: str) -> None:
    inputs, rest = sized(op, 40, 9)
    plain = loss_of(op)
    leaves = list(inputs.values())
    first, second = (torch.autograd.grad(plain(inputs, rest), leaves) for _ in range(2))
    torch.testing.assert_close(first, second, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("op", OPS)
def test_autocast_runs_in_the_lower_precision(op: str, dtype: torch.dtype) -> None:
    inputs = {k: v.detach().float().requires_grad_() for k, v in sized(op, 5, 3)[0].items()}
    with torch.autocast("cpu", dtype):
        out = call(op, inputs, smooth(op)).h
        assert out.dtype == dtype
        gradients = torch.autograd.grad(out.float().sum(), list(inputs.values()))
    assert {g.dtype for g in gradients} == {torch.float32}
    low = {k: v.detach().to(dtype) for k, v in inputs.items()}
    torch.testing.assert_close(out, call(op, low, smooth(op)).h, rtol=0, atol=0)


def test_autocast_leaves_float64_alone_like_torch() -> None:
    inputs = {k: v.detach() for k, v in sized("lstm", 5, 3)[0].items()}
    with torch.autocast("cpu", torch.bfloat16):
        assert call("lstm", inputs, None).h.dtype == torch.float64
        layer = torch.nn.LSTM(3, 3).double()
        assert layer(inputs["source"])[0].dtype == torch.float64
        assert torch.nn.LSTM(3, 3)(inputs["source"].float())[0].dtype == torch.bfloat16


def test_recurra_alone_compiles_without_the_package_being_imported() -> None:
    """In a process of its own: here recurra.torch is loaded already."""
    import subprocess
    import sys

    code = (
        "import torch, recurra, sys; assert 'recurra.torch' not in sys.modules\n"
        "f = torch.compile(lambda x, R: recurra.gru(x, R).h, fullgraph=True, backend='aot_eager')\n"
        "x, R = torch.ones(2, 1, 6), torch.ones(6, 2)\n"
        "print(torch.equal(f(x, R), recurra.gru(x, R).h))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["True"], done.stderr
