"""Large shapes, shapes that follow other shapes, and large or missing numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from oracle.agreement import tol
import pytest
from recurrent.calls import BACKWARD, DESCRIPTORS, FORWARD, distance, saved_state, to_numpy
import torch

from contract.full_cases import OPS
from recurra import Graph, GRUDescriptor, Tensor

GATES = {"single_gate_rnn": 1, "lstm": 4, "gru": 3}
# What makes our ops those of torch.nn.
TORCH = {"single_gate_rnn": {"activation": "tanh"}, "lstm": {}, "gru": {"reset_gate_first": True, "reset_after": True}}
MODULES = {"single_gate_rnn": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
every_op = pytest.mark.parametrize("op", OPS)


class Net:
    """One layer of torch.nn in float64 without biases, as a reference for shapes that the oracle's loops cannot do."""

    def __init__(self, op: str, I: int, H: int, bidirectional: bool = False) -> None:
        torch.manual_seed(12)
        self.op, self.directions = op, 2 if bidirectional else 1
        self.module = MODULES[op](I, H, bias=False, bidirectional=bidirectional).double()
        self.options = {**TORCH[op], "bidirectional": bidirectional}

    def weights(self, dtype: str) -> dict[str, np.ndarray]:
        p = {name: value.detach().numpy().astype(dtype) for name, value in self.module.named_parameters()}
        R, W = ([p[name] for name in p if name.startswith(kind)] for kind in ("weight_hh", "weight_ih"))
        return {"recurrent_weight": np.stack(R) if len(R) == 2 else R[0], "input_weight": np.concatenate(W)}

    def expected(self, source: np.ndarray, seeds: np.ndarray) -> dict[str, np.ndarray]:
        """h, and the gradients of the sum of seeds * h."""
        x = torch.from_numpy(source.astype(np.float64)).requires_grad_()
        h = self.module(x)[0]
        parameters = dict(self.module.named_parameters())
        gradients = torch.autograd.grad((h * torch.from_numpy(seeds).double()).sum(), [x, *parameters.values()])
        found = dict(zip(parameters, (g.numpy() for g in gradients[1:]), strict=True))
        R, W = ([found[name] for name in found if name.startswith(kind)] for kind in ("weight_hh", "weight_ih"))
        return {
            "h": h.detach().numpy(),
            "source": gradients[0].numpy(),
            "recurrent_weight": np.stack(R) if len(R) == 2 else R[0],
            "input_weight": np.concatenate(W),
        }


def seeds_like(net: Net, T: int, N: int, H: int) -> np.ndarray:
    return np.random.default_rng(4).standard_normal((T, N, net.directions * H)).astype(np.float32)


def check(found: dict[str, Any], wanted: dict[str, np.ndarray], T: int, N: int, H: int) -> None:
    for name, value in wanted.items():
        allowed = tol("float32", H if name == "h" else H * N, T, name != "h")
        assert distance(to_numpy(found[name]), value) <= allowed, name


@every_op
def test_more_rows_than_a_gpu_grid_has_blocks(op: str) -> None:
    """#177834: a bidirectional LSTM was wrong from T*N = 65,536 on, the limit of a launch grid.

    On CUDA this is repeated by the tests of that backend; here it guards the reference and whatever runs on a CPU.
    """
    T, N, H = 20, 3500, 2
    net = Net(op, 2, H, bidirectional=True)
    source = np.random.default_rng(3).standard_normal((T, N, 2)).astype(np.float32)
    seeds, weights = seeds_like(net, T, N, H), net.weights("float32")
    options = DESCRIPTORS[op](training=True, **net.options)
    out = FORWARD[op](source, **weights, descriptor=options)
    gradients = BACKWARD[op](source, **weights, source_gradient=seeds, **saved_state(op, out), descriptor=options)
    check({"h": out.h, **gradients._asdict()}, net.expected(source, seeds), T, N, H)


@every_op
def test_gradients_are_right_after_a_run_at_another_shape(op: str) -> None:
    """#177116, #153957: gradients were wrong after another batch size, and beyond 32,768 elements."""
    H = 3
    net = Net(op, 2, H)
    graph = Graph()
    x = graph.placeholder([None, None, 2])
    seeds = graph.placeholder([None, None, H])
    p = {name: graph.variable(value, name) for name, value in net.weights("float32").items()}
    h = FORWARD[op](x, **p, descriptor=DESCRIPTORS[op](**net.options)).h
    found = graph.gradients((h * seeds).sum(), [x, *p.values()])
    targets: dict[str, Tensor] = {"h": h, "source": found[x], **{name: found[t] for name, t in p.items()}}
    for T, N in [(4, 3), (20, 2000), (3, 4), (4, 3)]:
        source = np.random.default_rng([T, N]).standard_normal((T, N, 2)).astype(np.float32)
        fed = seeds_like(net, T, N, H)
        values = graph.run({x: source, seeds: fed}, list(targets.values()))
        check(dict(zip(targets, values, strict=True)), net.expected(source, fed), T, N, H)


def test_one_long_row_through_a_wide_bidirectional_gru() -> None:
    """#123148: 1 row, 128 steps, 384 features, H = 256, bidirectional took 67 s on a GPU against 8.9 s on a CPU.

    The time is the benchmarks' business; that the numbers of this shape are right is this test's.
    """
    T, N, H = 128, 1, 256
    net = Net("gru", 384, H, bidirectional=True)
    source = np.random.default_rng(3).standard_normal((T, N, 384)).astype(np.float32)
    seeds, weights = seeds_like(net, T, N, H), net.weights("float32")
    options = GRUDescriptor(training=True, **net.options)
    out = FORWARD["gru"](source, **weights, descriptor=options)
    saved = saved_state("gru", out)
    gradients = BACKWARD["gru"](source, **weights, source_gradient=seeds, **saved, descriptor=options)
    check({"h": out.h, **gradients._asdict()}, net.expected(source, seeds), T, 384, H)


DTYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
VARIANTS = [{"reset_after": after, "flip_z": flip} for after in (False, True) for flip in (False, True)]


@pytest.mark.parametrize("where", ["numpy", "torch"])
@pytest.mark.parametrize("options", VARIANTS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_large_inputs_stay_finite_and_nan_stays_in_its_row(dtype: str, options: dict[str, bool], where: str) -> None:
    """#94691, #102911: GRU gave NaN, and losses of 1e33."""
    rng = np.random.default_rng(8)
    x = rng.uniform(-1e3, 1e3, (6, 3, 2))
    arrays = {
        "source": x,
        "recurrent_weight": rng.standard_normal((12, 4)),
        "input_weight": rng.standard_normal((12, 2)),
        "bias": rng.standard_normal(12),
        "init_state": rng.uniform(-1, 1, (3, 4)),
    }
    out, gradients = gru(arrays, dtype, options, where)
    assert all(np.isfinite(value).all() for value in (*out.values(), *gradients.values()))
    assert np.abs(out["h"]).max() <= 1.0 + 2.0**-6  # a blend of values within [-1, 1], rounded

    arrays["source"] = x.copy()
    arrays["source"][2, 1, 0] = np.nan
    spoiled, spoiled_gradients = gru(arrays, dtype, options, where)
    others = [0, 2]
    np.testing.assert_array_equal(spoiled["h"][:, others], out["h"][:, others])
    np.testing.assert_array_equal(spoiled_gradients["source"][:, others], gradients["source"][:, others])
    np.testing.assert_array_equal(spoiled["h"][:2], out["h"][:2])  # before the NaN
    assert np.isnan(spoiled["h"][2:, 1]).all()  # a NaN is shown, never made into a number


def gru(arrays: dict[str, np.ndarray], dtype: str, options: dict[str, bool], where: str) -> Any:
    """Results and gradients by name, in float64."""

    def make(array: np.ndarray) -> Any:
        array = array.astype(DTYPES[dtype])
        return array if where == "numpy" else torch.from_numpy(array.astype(np.float64)).to(getattr(torch, dtype))

    given = {name: make(array) for name, array in arrays.items()}
    descriptor = GRUDescriptor(training=True, **options)
    out = FORWARD["gru"](**given, descriptor=descriptor)
    seeds = {"source_gradient": make(np.ones((6, 3, 4))), "state_gradient": make(np.ones((3, 4)))}
    found = BACKWARD["gru"](**given, **seeds, **saved_state("gru", out), descriptor=descriptor)
    return tuple({name: to_numpy(getattr(r, name)) for name in r._fields} for r in (out, found))
