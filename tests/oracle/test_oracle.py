"""The oracle against PyTorch's layers, central differences and identities of the contract."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from oracle.cases import OPS, Case, case, reference_results
from oracle.gradients import DIFFERENTIABLE, gradients
from oracle.samples import FORWARD, agree, arguments

DIRECTIONS = [{}, {"reverse": True}, {"bidirectional": True}]
# Plain and every option that changes the equations, so that each identity is checked on both.
OPTIONS = [
    ("single_gate_rnn", {"activation": "tanh"}),
    ("lstm", {}),
    ("lstm", {"forget_gate_last": True, "peephole_output": "current"}),
    ("gru", {}),
    ("gru", {"reset_gate_first": True, "reset_after": True, "flip_z": True}),
]


def torch_layer(op: str, bidirectional: bool, activation: str, seed: int = 0) -> tuple[torch.nn.RNNBase, dict, dict]:
    """A PyTorch layer, and the weights and options that make our op the same (3.6)."""
    torch.manual_seed(seed)
    I, H = 3, 4
    kind = {"single_gate_rnn": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[op]
    extra = {"nonlinearity": activation} if op == "single_gate_rnn" else {}
    layer = kind(I, H, bidirectional=bidirectional, dtype=torch.float64, **extra)
    suffixes = ["_l0", "_l0_reverse"] if bidirectional else ["_l0"]
    recurrent, inputs, input_bias, recurrent_bias = (
        [getattr(layer, name + suffix).detach() for suffix in suffixes]
        for name in ("weight_hh", "weight_ih", "bias_ih", "bias_hh")
    )
    weights = {
        "recurrent_weight": torch.stack(recurrent) if bidirectional else recurrent[0],
        "input_weight": torch.cat(inputs),
        "bias": torch.cat(input_bias) + torch.cat(recurrent_bias),
    }
    options = {"bidirectional": bidirectional}
    if op == "single_gate_rnn":
        options |= {"activation": activation}
    if op == "gru":
        options |= {"reset_gate_first": True, "reset_after": True}
        inside = [torch.cat([b[: 2 * H], torch.zeros_like(b[:H])]) for b in recurrent_bias]
        weights["bias"] = torch.cat(input_bias) + torch.cat(inside)
        weights["secondary_bias"] = torch.cat([b[2 * H :] for b in recurrent_bias])
    return layer, weights, options


@pytest.mark.parametrize("packed", [False, True], ids=["whole", "packed"])
@pytest.mark.parametrize("bidirectional", [False, True], ids=["one_way", "bidirectional"])
@pytest.mark.parametrize(
    ("op", "activation"), [("single_gate_rnn", "tanh"), ("single_gate_rnn", "relu"), ("lstm", "tanh"), ("gru", "tanh")]
)
def test_values_and_gradients_agree_with_torch_layers(op, activation, bidirectional, packed):
    layer, weights, options = torch_layer(op, bidirectional, activation)
    T, N, H, D = 5, 4, 4, 2 if bidirectional else 1
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(T, N, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    starts = [torch.randn(D, N, H, generator=generator, dtype=torch.float64, requires_grad=True) for _ in "hc"]
    lengths = torch.tensor([5, 1, 3, 4]) if packed else None

    given = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False) if packed else x
    y, last = layer(given, tuple(starts) if op == "lstm" else starts[0])
    if packed:
        y = torch.nn.utils.rnn.pad_packed_sequence(y)[0]
    last = last if op == "lstm" else (last,)
    dy, dh, dc = (
        torch.randn(shape, generator=generator, dtype=torch.float64) for shape in (y.shape, *[last[0].shape] * 2)
    )
    loss = (dy * y).sum() + sum((g * s).sum() for g, s in zip((dh, dc), last, strict=False))
    leaves = [
        x,
        starts[0],
        *([starts[1]] if op == "lstm" else []),
        layer.weight_hh_l0,
        layer.weight_ih_l0,
        layer.bias_ih_l0,
    ]
    expected = torch.autograd.grad(loss, leaves)

    def ours(state):  # [D, N, H] -> [N, D*H]
        return state.detach().transpose(0, 1).reshape(N, D * H)

    source = x.detach().clone()
    if packed:
        source[torch.arange(T)[:, None] >= lengths] = math.nan
    inputs = weights | {
        "source": source,
        "init_state": ours(starts[0]),
        "init_cell": ours(starts[1]),
        "lengths": lengths,
    }
    agree(FORWARD[op](inputs, options)["h"], y)
    incoming = {"source_gradient": dy, "state_gradient": ours(dh)}
    if op == "lstm":
        incoming["cell_gradient"] = ours(dc)
    found = gradients(op, inputs, options, incoming)
    agree(found["source"], expected[0])
    agree(found["init_state"], ours(expected[1]))
    if op == "lstm":
        agree(found["init_cell"], ours(expected[2]))
    recurrent, projection, bias = expected[-3:]
    agree(found["recurrent_weight"][0] if bidirectional else found["recurrent_weight"], recurrent)
    agree(found["input_weight"][: len(projection)], projection)
    agree(found["bias"][: len(bias)], bias)


def loss_of(given: Case, inputs: dict) -> float:
    """The gradient ops' loss written again, from the forward results alone."""
    results = {name: value.numpy() for name, value in FORWARD[given.op](inputs, given.options).items()}
    T, N, width = results["h"].shape
    H = inputs["recurrent_weight"].shape[-1]
    lengths = [T] * N if inputs["lengths"] is None else inputs["lengths"].tolist()
    total = 0.0
    for name, of_sequence, of_last, start in (
        ("h", "source_gradient", "state_gradient", "init_state"),
        ("c", "cell_sequence_gradient", "cell_gradient", "init_cell"),
    ):
        sequence, last = given.gradients_in.get(of_sequence), given.gradients_in.get(of_last)
        for n, length in enumerate(lengths):
            if sequence is not None:
                total += float((sequence[:length, n] * results[name][:length, n]).sum())
            if last is None:
                continue
            backward = [width == H and given.options["reverse"], True]
            for d in range(width // H):
                if length:
                    end = results[name][0 if backward[d] else length - 1, n]
                elif inputs[start] is None:
                    continue
                else:
                    end = np.broadcast_to(inputs[start].numpy().reshape(-1, width), (N, width))[n]
                half = slice(d * H, (d + 1) * H)
                total += float(last.reshape(N, width)[n, half] @ end[half])
    return total


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("op", OPS)
def test_gradients_agree_with_central_differences(op, seed):
    given = case(op, seed)
    while given.kink_distance < 1e-3:  # a difference would step over the kink
        given = case(op, given.seed + 1000)
    found = reference_results(given)[1]
    inputs = {name: None if value is None else torch.from_numpy(value) for name, value in given.inputs.items()}
    assert list(found) == [name for name in DIFFERENTIABLE[op] if inputs.get(name) is not None]
    rng, step = np.random.default_rng(seed), 1e-6
    for name, gradient in found.items():
        assert gradient.shape == given.inputs[name].shape
        if gradient.size == 0:
            continue
        for _ in range(3):
            at = tuple(int(rng.integers(size)) for size in gradient.shape)
            losses = []
            for sign in (1, -1):
                moved = inputs[name].clone()
                moved[at] += sign * step
                losses.append(loss_of(given, inputs | {name: moved}))
            assert gradient[at] == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=2e-6, abs=1e-6), (
                name,
                given,
            )


@pytest.mark.parametrize(("op", "extra"), OPTIONS)
def test_reverse_is_the_flipped_sequence_and_bidirectional_is_both(op, extra):
    inputs = arguments(op, {"bidirectional": True})
    both = FORWARD[op](inputs, extra | {"bidirectional": True, "reverse": True})
    H = 3
    for d, reverse in enumerate([False, True]):
        mine = slice(d * H, (d + 1) * H)
        split = {"recurrent_weight": inputs["recurrent_weight"][d], "source": inputs["source"]}
        for name in ("input_weight", "bias", "peephole", "secondary_bias"):
            if name in inputs:
                split[name] = (
                    inputs[name].reshape(2, -1, *inputs[name].shape[1:])[d].reshape(-1, *inputs[name].shape[1:])
                )
        if "peephole" in split:
            split["peephole"] = inputs["peephole"][d]
        for name in ("init_state", "init_cell", "mask"):
            if name in inputs:
                split[name] = inputs[name][..., mine]
        alone = FORWARD[op](split, extra | {"reverse": reverse})
        for name, value in alone.items():
            agree(value, both[name].unflatten(-1, (2, -1))[..., d, :])
        if reverse:
            flipped = split | {"source": split["source"].flip(0), "mask": split["mask"].flip(0)}
            for name, value in FORWARD[op](flipped, extra).items():
                agree(value.flip(0), alone[name])


def row_of(inputs: dict, n: int, start: int, stop: int) -> dict:
    """The arguments of row n alone, steps start..stop-1."""
    alone = dict(inputs)
    for name in ("source", "mask"):
        alone[name] = inputs[name][start:stop, n : n + 1]
    for name in ("init_state", "init_cell"):
        if name in inputs:
            alone[name] = inputs[name][n : n + 1]
    return alone


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("op", "extra"), OPTIONS)
def test_lengths_are_each_row_truncated(op, extra, direction):
    options = extra | direction
    inputs = arguments(op, options)
    lengths = torch.tensor([3, 0, 5, 1])
    inputs["source"][torch.arange(5)[:, None] >= lengths] = math.nan
    D = 2 if options.get("bidirectional") else 1
    incoming = {
        name: torch.randn(shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
        for name, shape in (
            ("source_gradient", (5, 4, D * 3)),
            ("state_gradient", (4, D * 3)),
            ("cell_gradient", (4, D * 3)),
        )
        if op == "lstm" or name != "cell_gradient"
    }
    results = FORWARD[op](inputs | {"lengths": lengths}, options)
    found = gradients(op, inputs | {"lengths": lengths}, options, incoming)
    total = {name: torch.zeros_like(value) for name, value in found.items()}
    for n, length in enumerate(lengths.tolist()):
        alone = row_of(inputs, n, 0, length)
        for name, value in FORWARD[op](alone, options).items():
            agree(results[name][:length, n], value[:, 0])
            assert not results[name][length:, n].any()
        cut = {
            name: value[:length, n : n + 1] if name == "source_gradient" else value[n : n + 1]
            for name, value in incoming.items()
        }
        for name, value in gradients(op, alone, options, cut).items():
            if name == "source":
                total[name][:length, n] = value[:, 0]
            elif name in ("init_state", "init_cell"):
                total[name][n] = value[0]
            else:
                total[name] += value
    for name, value in found.items():
        agree(value, total[name])
    agree(found["init_state"][1], incoming["state_gradient"][1])


@pytest.mark.parametrize("lengths", [None, [5, 0, 2, 4]], ids=["whole", "lengths"])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("op", "extra"), OPTIONS)
def test_resets_are_separate_sequences(op, extra, direction, lengths):
    options = extra | direction
    inputs = arguments(op, options)
    resets = torch.tensor([[0, 1, 0, 1], [0, 0, 1, 0], [1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 0, 1]], dtype=torch.bool)
    row_lengths = lengths or [5] * 4
    given = inputs | {"resets": resets, "lengths": torch.tensor(row_lengths)}
    results = FORWARD[op](given, options)
    for n, length in enumerate(row_lengths):
        cuts = [0, *(t for t in range(1, length) if resets[t, n]), length]
        for start, stop in itertools.pairwise(cuts):
            alone = row_of(inputs, n, start, stop)
            enters = [start == 0 and not resets[0, n], stop == length]  # forwards, backwards
            halves = enters if options.get("bidirectional") else [enters[options.get("reverse", False)]]
            keep = torch.tensor(halves, dtype=torch.float64).repeat_interleave(3)
            for name in ("init_state", "init_cell"):
                if name in alone:
                    alone[name] = alone[name] * keep
            for name, value in FORWARD[op](alone, options).items():
                agree(results[name][start:stop, n], value[:, 0])


@pytest.mark.parametrize("op", OPS)
def test_no_steps_passes_the_gradient_of_the_state_through(op):
    inputs = arguments(op, {}, T=0)
    dh = torch.ones(4, 3, dtype=torch.float64)
    incoming = {"state_gradient": dh, "cell_gradient": 2 * dh} if op == "lstm" else {"state_gradient": dh}
    found = gradients(op, inputs, {}, incoming)
    agree(found["init_state"], dh)
    assert not any(value.any() for name, value in found.items() if not name.startswith("init"))
    if op == "lstm":
        agree(found["init_cell"], 2 * dh)
    without = gradients(op, inputs | {"init_state": None, "init_cell": None}, {}, {"state_gradient": dh})
    assert not any(value.any() for value in without.values())
