"""The oracle's cells, activations and accepted shapes against numbers worked out otherwise."""

from __future__ import annotations

import math

import pytest
import torch

from oracle.cases import ACTIVATIONS, OPS
from oracle.forward import activate, gru, kinks, lstm, slope_follows_from_output
from oracle.gradients import gradients
from oracle.samples import FORWARD, GATES, agree, arguments


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def one(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("flip_z", [False, True])
@pytest.mark.parametrize("reset_after", [False, True])
def test_gru_of_one_number_is_the_formula(reset_after, flip_z):
    h, x, m, b2 = 0.6, (0.3, -0.4, 0.8), 0.5, 0.7
    R = (1.1, -0.9, 0.4)  # z, r, o
    inputs = {"source": one(*x).reshape(1, 1, 3), "recurrent_weight": one(*R).reshape(3, 1), "mask": one(m)}
    inputs |= {"init_state": one(h).reshape(1, 1), "secondary_bias": one(b2)}
    u, r = sigmoid(x[0] + m * h * R[0]), sigmoid(x[1] + m * h * R[1])
    o = math.tanh(x[2] + (r * (m * h * R[2] + b2) if reset_after else m * r * h * R[2]))
    expected = (1 - u) * h + u * o if flip_z else u * h + (1 - u) * o
    results = gru(inputs, {"reset_after": reset_after, "flip_z": flip_z})
    agree(results["h"].reshape(1), one(expected))
    agree(results["z"].reshape(3), one(u, r, o))
    if not reset_after:
        found = gradients("gru", inputs, {}, {"source_gradient": torch.ones(1, 1, 1, dtype=torch.float64)})
        assert found["secondary_bias"].tolist() == [0.0]


@pytest.mark.parametrize("current", [False, True])
@pytest.mark.parametrize("forget_gate_last", [False, True])
def test_lstm_of_one_number_is_the_formula(forget_gate_last, current):
    h, c, m = 0.6, -0.5, 0.5
    x = {"i": 0.3, "f": -0.4, "z": 0.8, "o": 0.1}
    R = {"i": 1.1, "f": -0.9, "z": 0.4, "o": 0.7}
    p = {"i": 0.2, "f": 0.5, "z": -0.3, "o": 0.9}
    order = "izfo" if forget_gate_last else "ifzo"
    a = {k: x[k] + m * h * R[k] + p[k] * c for k in order}
    i, f, z = sigmoid(a["i"]), sigmoid(a["f"]), math.tanh(a["z"])
    cell = f * c + i * z
    o = sigmoid(x["o"] + m * h * R["o"] + p["o"] * (cell if current else c))
    inputs = {"source": one(*(x[k] for k in order)).reshape(1, 1, 4), "mask": one(m)}
    inputs |= {"recurrent_weight": one(*(R[k] for k in order)).reshape(4, 1), "peephole": one(*(p[k] for k in order))}
    inputs |= {"init_state": one(h).reshape(1, 1), "init_cell": one(c).reshape(1, 1)}
    options = {"forget_gate_last": forget_gate_last, "peephole_output": "current" if current else "previous"}
    results = lstm(inputs, options)
    agree(results["h"].reshape(1), one(o * math.tanh(cell)))
    agree(results["c"].reshape(1), one(cell))
    agree(results["z"].reshape(4), one(*({"i": i, "f": f, "z": z, "o": o}[k] for k in order)))


@pytest.mark.parametrize("op", OPS)
def test_every_short_shape_is_the_full_one(op):
    options = {"bidirectional": True}
    full = arguments(op, options)
    H, N = 3, 4
    short = {
        "mask": [
            (2 * H,),
            (1, 2 * H),
            (N, 1),
            (1,),
            (),
            (H,),
            (N, H),
            (1, N, 2 * H),
            (5, 1, 2 * H),
            (5, N, H),
            (5, N, 1),
        ],
        "init_state": [(1, N, 2 * H), (1, 2 * H), (1, 1, 2 * H)],
        "bias": [(1,), (1, 1), (1, 1, GATES[op] * 2 * H)],
    }
    if op == "lstm":
        short |= {"init_cell": short["init_state"], "peephole": [(8 * H,)]}
    for name, shapes in short.items():
        for shape in shapes:
            value = torch.randn(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
            if name == "mask" and shape[-1:] == (H,):
                wide = torch.cat([value, value], dim=-1).expand(full[name].shape)
            elif name == "peephole":
                wide = value.reshape(full[name].shape)
            else:
                wide = value.reshape(shape[-full[name].ndim :]).expand(full[name].shape)
            found, expected = (FORWARD[op](full | {name: form}, options) for form in (value, wide))
            for result in expected:
                agree(found[result], expected[result])


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("op", OPS)
def test_a_projected_source_is_the_projection_done_outside(op, bidirectional):
    options = {"bidirectional": bidirectional}
    inputs = arguments(op, options)
    projected = inputs["source"] @ inputs["input_weight"].T
    expected = FORWARD[op](inputs, options)
    for name, value in FORWARD[op](inputs | {"source": projected, "input_weight": None}, options).items():
        agree(value, expected[name])


def test_activations_agree_with_torch():
    x = torch.linspace(-4, 4, 41, dtype=torch.float64)
    F = torch.nn.functional
    agree(activate("leaky_relu", x), F.leaky_relu(x, 0.01))
    agree(activate(("elu", 0.5), x), F.elu(x, 0.5))
    agree(activate(("thresholded_relu", 0.1), x), F.threshold(x, 0.1, 0.0))
    agree(activate("hard_sigmoid", x), torch.clamp(0.2 * x + 0.5, 0, 1))
    agree(activate("softsign", x), F.softsign(x))
    agree(activate("softplus", x), torch.log1p(torch.exp(x)))
    agree(activate(("scaled_tanh", 1.3, 0.6), x), 1.3 * torch.tanh(0.6 * x))
    agree(activate(("affine", 0.6, 0.2), x), 0.6 * x + 0.2)
    agree(activate("relu", x), F.relu(x))


@pytest.mark.parametrize("activation", [form for forms in ACTIVATIONS.values() for form in forms], ids=str)
def test_slope_follows_from_output_where_it_is_said_to(activation):
    x = torch.linspace(-3, 3, 601, dtype=torch.float64).requires_grad_()
    y = activate(activation, x)
    slope = torch.autograd.grad(y.sum(), x)[0]
    away = torch.ones_like(x, dtype=torch.bool)
    for kink in kinks(activation):
        away &= (x - kink).abs() > 1e-9
    y, slope = y.detach()[away], slope[away]
    order = y.argsort()
    same_output = (y[order].diff().abs() < 1e-12) & ((slope[order].diff()).abs() > 1e-6)
    if slope_follows_from_output(activation):
        assert not same_output.any()


def test_training_state_holds_the_preactivation_where_the_output_is_not_enough():
    inputs = arguments("gru", {})
    plain = gru(inputs, {"update_gate_activation": "none"})["z"]
    folded = gru(inputs, {"update_gate_activation": ("leaky_relu", -0.3)})["z"]
    agree(folded[0, :, :3], plain[0, :, :3])
    agree(folded[0, :, 3:6], plain[0, :, 3:6])
