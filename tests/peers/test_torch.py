"""torch.nn.LSTM, GRU and RNN: the same outputs, final states and gradients of everything, in four ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oracle.agreement import assert_agree, tol
import pytest
import torch

from peers.mapping import from_torch
from peers.torch_problems import (
    KINDS,
    Answer,
    Configuration,
    Problem,
    asked_of_torch,
    configuration,
    differentiable,
    differentiated,
    problem,
)
import recurra

CONFIGURATIONS = [configuration(kind, seed) for kind in KINDS for seed in range(12)]


def _descriptor(p: Problem, **more: Any) -> Any:
    kind = KINDS[p.configuration.kind]
    return kind.descriptor(bidirectional=p.configuration.bidirectional, **kind.op_options, **more)


def _layers(p: Problem, initial: dict[str, torch.Tensor]) -> list[dict[str, Any]]:
    """The arguments of each layer's op, source and lengths aside."""
    renamed = {"h_0": "init_state", "c_0": "init_cell"}
    return [
        {**from_torch(p.module, layer), **{renamed[k]: p.of_layer(s, layer) for k, s in initial.items()}}
        for layer in range(p.configuration.layers)
    ]


def _forward(p: Problem, x: Any, layers: list[dict[str, Any]], lengths: Any, descriptor: Any) -> list[Any]:
    outs = []
    for arguments in layers:
        outs.append(KINDS[p.configuration.kind].op(x, **arguments, lengths=lengths, descriptor=descriptor))
        x = outs[-1].h
    return outs


def _last_steps(p: Problem) -> torch.Tensor:
    """The step at which each row's forward direction ends; the backward one ends at 0."""
    return torch.full((p.configuration.N,), p.configuration.T) - 1 if p.lengths is None else p.lengths - 1


def _last_visited(p: Problem, sequences: list[torch.Tensor]) -> torch.Tensor:
    """h_n or c_n, [layers*D, N, H], of the layers' [T, N, D*H]."""
    last, rows, H = _last_steps(p), torch.arange(p.configuration.N), p.configuration.H
    parts = []
    for sequence in sequences:
        parts.append(sequence[last, rows, :H])
        if p.directions == 2:
            parts.append(sequence[0, :, H:])
    return torch.stack(parts)


def _results(p: Problem, outs: list[Any]) -> dict[str, torch.Tensor]:
    hs = [torch.as_tensor(out.h) for out in outs]
    results = {"y": hs[-1], "h_n": _last_visited(p, hs)}
    if p.configuration.kind == "lstm":
        results["c_n"] = _last_visited(p, [torch.as_tensor(out.c) for out in outs])
    return results


def _pulled_back(p: Problem, dx: Any, by_layer: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """The gradients of the leaves, from those of x and of the arguments of each layer's op."""
    leaves = {name: x for name, x in differentiable(p).items() if name != "x"}
    arguments = _layers(p, {name: leaves[name] for name in p.initial})
    pairs = [(arguments[k][name], torch.as_tensor(g)) for k, grads in enumerate(by_layer) for name, g in grads.items()]
    assert len(pairs) == sum(map(len, arguments))
    found = torch.autograd.grad([a for a, _ in pairs], list(leaves.values()), [g.reshape(a.shape) for a, g in pairs])
    return {"x": dx, **dict(zip(leaves, found, strict=True))}


def _saved(kind: str, out: Any) -> dict[str, Any]:
    """What a gradient op wants to know of the forward results, besides the training state."""
    return {"cell_output_fwd": out.c} if kind == "lstm" else {"output_fwd": out.h} if kind == "gru" else {}


def through_gradient_ops(p: Problem, library: str) -> Answer:
    """Forward with the training state, then the gradient op of each layer, from the last to the first."""

    def as_array(x: torch.Tensor | None) -> Any:
        return x if x is None or library == "torch" else x.detach().numpy()

    with torch.no_grad():
        layers = [{k: as_array(v) for k, v in given.items()} for given in _layers(p, p.initial)]
        x, lengths, descriptor = as_array(p.x), as_array(p.lengths), _descriptor(p, training=True)
        outs = _forward(p, x, layers, lengths, descriptor)
        sources = [x, *(out.h for out in outs[:-1])]
        dy = as_array(p.cotangents.get("y"))
        by_layer: list[dict[str, Any]] = []
        for k in reversed(range(len(layers))):
            out = outs[k]
            finals = {
                renamed: as_array(p.of_layer(p.cotangents[name], k))
                for name, renamed in (("h_n", "state_gradient"), ("c_n", "cell_gradient"))
                if name in p.cotangents
            }
            found = KINDS[p.configuration.kind].gradients(
                sources[k],
                source_gradient=dy,
                z_state=out.z,
                **_saved(p.configuration.kind, out),
                **finals,
                **layers[k],
                lengths=lengths,
                descriptor=descriptor,
            )
            assert found._fields == ("source", *(n for n in type(found)._kind.__annotations__ if n in layers[k]))
            by_layer.insert(0, {name: getattr(found, name) for name in layers[k]})
            dy = found.source
        assert type(dy) is type(x)
        results = _results(p, outs)
    return Answer(results, _pulled_back(p, dy, by_layer))


def through_torch_autograd(p: Problem) -> Answer:
    """recurra's op on tensors that require gradients, and torch's own backward."""
    leaves = differentiable(p)
    options = {"produce_cell": True} if p.configuration.kind == "lstm" else {}
    layers = _layers(p, {name: leaves[name] for name in p.initial})
    outs = _forward(p, leaves["x"], layers, p.lengths, _descriptor(p, **options))
    return differentiated(p, _results(p, outs), leaves)


def through_a_graph(p: Problem) -> Answer:
    """All layers and the loss in one graph with unknown T and N; gradients by Graph.gradients."""
    g = recurra.Graph()
    c = p.configuration
    dtype = str(p.x.dtype).removeprefix("torch.")
    feeds: dict[Any, Any] = {}

    def placeholder(x: torch.Tensor, shape: list[int | None], kind: str = dtype) -> Any:
        tensor = g.placeholder(shape, kind)
        feeds[tensor] = x.detach().numpy()
        return tensor

    x = placeholder(p.x, [None, None, c.I])
    lengths = None if p.lengths is None else placeholder(p.lengths, [None], "int64")
    layers = [{k: placeholder(v, list(v.shape)) for k, v in given.items()} for given in _layers(p, p.initial)]
    options = {"produce_cell": True} if c.kind == "lstm" else {}
    outs = _forward(p, x, layers, lengths, _descriptor(p, **options))
    loss = sum((getattr(outs[k], name) * weight.numpy()).sum() for k, name, weight in _spread_over_time(p))
    wanted = [x, *(tensor for given in layers for tensor in given.values())]
    gradients = g.gradients(loss, wanted)
    outputs = [tensor for out in outs for tensor in out]
    values = iter(g.run(feeds, [*outputs, *(gradients[t] for t in wanted)]))
    outs = [type(out)(*(next(values) for _ in out)) for out in outs]
    dx = next(values)
    by_layer = [{name: next(values) for name in given} for given in layers]
    return Answer(_results(p, outs), _pulled_back(p, dx, by_layer))


def _spread_over_time(p: Problem) -> list[tuple[int, str, torch.Tensor]]:
    """The loss's weights on (layer, h or c), [T, N, D*H]: those of h_n and c_n stand at the steps visited last."""
    c, last = p.configuration, _last_steps(p)
    spread = [(c.layers - 1, "h", p.cotangents["y"])] if "y" in p.cotangents else []
    for name in ("h_n", "c_n"):
        for layer in range(c.layers if name in p.cotangents else 0):
            weight = torch.zeros(c.T, c.N, p.directions * c.H, dtype=p.x.dtype)
            weight[last, torch.arange(c.N), : c.H] = p.cotangents[name][layer * p.directions]
            if p.directions == 2:
                weight[0, :, c.H :] = p.cotangents[name][layer * 2 + 1]
            spread.append((layer, name[0], weight))
    return spread


WAYS: dict[str, Callable[[Problem], Answer]] = {
    "gradient ops on NumPy": lambda p: through_gradient_ops(p, "numpy"),
    "gradient ops on torch": lambda p: through_gradient_ops(p, "torch"),
    "torch autograd": through_torch_autograd,
    "graph": through_a_graph,
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("c", CONFIGURATIONS, ids=str)
def test_results_and_gradients_are_those_of_torch_nn(c: Configuration, way: str, dtype: str) -> None:
    exact = problem(c, dtype)
    wanted = asked_of_torch(exact)
    got = WAYS[way](exact.to(getattr(torch, dtype)))
    assert got.results.keys() == wanted.results.keys()
    assert got.gradients.keys() == wanted.gradients.keys()
    length = max(4 * c.H, c.I)
    for name, value in wanted.results.items():
        assert_agree(name, got.results[name], value, c.layers * tol(dtype, length, c.T, backward=False))
    for name, value in wanted.gradients.items():
        assert_agree(name, got.gradients[name], value, c.layers * tol(dtype, length * c.N, c.T, backward=True))


def test_configurations_have_every_option_of_every_kind() -> None:
    for kind in KINDS:
        own = [c for c in CONFIGURATIONS if c.kind == kind]
        for option in ("bias", "bidirectional", "initial", "packed"):
            assert {getattr(c, option) for c in own} == {True, False}, (kind, option)
        assert {c.layers for c in own} == {1, 2, 3}, kind
        assert {(c.packed, c.bidirectional) for c in own} == {(p, b) for p in (True, False) for b in (True, False)}
        assert len({c.loss for c in own}) == (6 if kind == "lstm" else 3), kind
        lengths = [problem(c, "float64").lengths for c in own if c.packed]
        assert any((row.diff() > 0).any() for row in lengths), f"{kind}: no packed batch is unsorted"
