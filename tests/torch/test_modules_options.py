"""What the modules have beyond torch.nn: each option against the op, called by hand."""

from __future__ import annotations

from typing import Any
import warnings

from module_forms import H, I, module
import numpy as np
import pytest
import torch

import recurra
import recurra.torch

T, N = 5, 3


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def weights(layer: torch.nn.Module) -> dict[str, Any]:
    """The first layer's weights for an op without secondary bias."""
    bias = (layer.bias_ih_l0 + layer.bias_hh_l0).detach()
    return {"input_weight": layer.weight_ih_l0.detach(), "bias": bias}


@pytest.mark.parametrize("which", ["previous", "current"])
def test_peephole_is_that_of_the_op(which: str) -> None:
    layer = recurra.torch.LSTM(I, H, peephole=True, peephole_output=which, dtype=torch.float64)
    assert layer.weight_peephole_l0.shape == (4 * H,)
    assert layer.descriptor.peephole_output == which
    y, (_, c) = layer(normal(T, N, I))
    wanted = recurra.lstm(
        normal(T, N, I), layer.weight_hh_l0.detach(), peephole=layer.weight_peephole_l0.detach(), **weights(layer),
        descriptor=recurra.LSTMDescriptor(produce_cell=True, peephole_output=which),
    )  # fmt: skip
    torch.testing.assert_close(y, wanted.h)
    torch.testing.assert_close(c[0], wanted.c[-1])
    assert not torch.allclose(y, recurra.lstm(normal(T, N, I), layer.weight_hh_l0.detach(), **weights(layer)).h)


def test_activations_reach_the_gates() -> None:
    options = {"cell_gate_activation": ("leaky_relu", 0.2), "activation": "softsign", "input_gate_activation": "elu"}
    layer = recurra.torch.LSTM(I, H, dtype=torch.float64, **options)
    wanted = recurra.lstm(
        normal(T, N, I), layer.weight_hh_l0.detach(), **weights(layer), descriptor=recurra.LSTMDescriptor(**options)
    )
    torch.testing.assert_close(layer(normal(T, N, I))[0], wanted.h)
    assert repr(layer) == (
        "LSTM(3, 4, input_gate_activation=elu, cell_gate_activation=leaky_relu(0.2), activation=softsign)"
    )
    rnn = recurra.torch.RNN(I, H, nonlinearity=("leaky_relu", 0.2), dtype=torch.float64)
    wanted = recurra.single_gate_rnn(
        normal(T, N, I), rnn.weight_hh_l0.detach(), **weights(rnn),
        descriptor=recurra.SingleGateRNNDescriptor(activation=("leaky_relu", 0.2)),
    )  # fmt: skip
    torch.testing.assert_close(rnn(normal(T, N, I))[0], wanted.h)
    assert repr(rnn) == "RNN(3, 4, nonlinearity=leaky_relu(0.2))"


def test_gru_resets_before_the_product_on_demand() -> None:
    layer = recurra.torch.GRU(I, H, reset_after=False, reset_gate_activation="hard_sigmoid", dtype=torch.float64)
    wanted = recurra.gru(
        normal(T, N, I), layer.weight_hh_l0.detach(), **weights(layer),
        descriptor=recurra.GRUDescriptor(reset_gate_first=True, reset_gate_activation="hard_sigmoid"),
    )  # fmt: skip
    torch.testing.assert_close(layer(normal(T, N, I))[0], wanted.h)


@pytest.mark.parametrize("form", ["LSTM", "GRU", "RNN"])
def test_recurrent_dropout_is_one_scaled_mask_for_all_steps(form: str) -> None:
    layer = getattr(recurra.torch, form)(I, H, recurrent_dropout=0.25, dtype=torch.float64)
    x = normal(T, N, I)
    torch.manual_seed(7)
    y = layer(x)[0]
    torch.manual_seed(7)
    mask = torch.nn.functional.dropout(torch.ones(N, H, dtype=torch.float64), 0.25)
    assert set(mask.unique().tolist()) <= {0.0, 1 / 0.75}
    op, secondary = {"LSTM": ("lstm", 0), "GRU": ("gru", H), "RNN": ("single_gate_rnn", 0)}[form]
    given = weights(layer)
    if secondary:
        recurrent = torch.cat([layer.bias_hh_l0[:-H], torch.zeros(H, dtype=torch.float64)])
        given["bias"] = (layer.bias_ih_l0 + recurrent).detach()
        given["secondary_bias"] = layer.bias_hh_l0[-H:].detach()
    wanted = getattr(recurra, op)(x, layer.weight_hh_l0.detach(), mask=mask, descriptor=layer.descriptor, **given)
    torch.testing.assert_close(y, wanted.h)
    assert not torch.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    plain = getattr(torch.nn, form)(I, H, dtype=torch.float64)
    plain.load_state_dict(layer.state_dict())
    torch.testing.assert_close(layer(x)[0], plain(x)[0])


def test_recurrent_dropout_keeps_the_mean() -> None:
    layer = recurra.torch.RNN(I, H, nonlinearity="none", recurrent_dropout=0.5, dtype=torch.float64)
    x = normal(2, 1, I).expand(2, 20000, I)
    torch.manual_seed(0)
    y = layer(x)[0].mean(1)
    torch.testing.assert_close(y, layer.eval()(x[:, :1])[0][:, 0], rtol=0, atol=0.02)


@pytest.mark.parametrize("rate", ["dropout", "recurrent_dropout"])
def test_rates_of_one_give_zeros_and_finite_gradients(rate: str) -> None:
    layer = recurra.torch.LSTM(I, H, 2, dtype=torch.float64, **{rate: 1.0})
    x = normal(T, N, I).requires_grad_()
    y, _ = layer(x)
    y.sum().backward()
    assert y.isfinite().all()
    assert all(p.grad.isfinite().all() for p in layer.parameters())
    if rate == "recurrent_dropout":
        assert not layer.weight_hh_l0.grad.any()
    else:
        assert not x.grad.any()


def test_dropout_between_layers_draws_what_torch_draws() -> None:
    theirs = torch.nn.GRU(I, H, 3, dropout=0.4, dtype=torch.float64)
    ours = recurra.torch.GRU(I, H, 3, dropout=0.4, dtype=torch.float64)
    ours.load_state_dict(theirs.state_dict())
    found = []
    for layer in (theirs, ours):
        torch.manual_seed(11)
        y, h = layer(normal(T, N, I))
        found.append((y, h, *torch.autograd.grad(y.sum(), list(layer.parameters()))))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("form", ["LSTM", "GRU", "RNN"])
def test_learnable_initial_state_stands_for_hx(form: str, bidirectional: bool) -> None:
    layer = getattr(recurra.torch, form)(
        I, H, 2, bidirectional=bidirectional, learnable_initial_state=True, dtype=torch.float64
    )
    names = [name for name, _ in layer.named_parameters()]
    states = ["h_0", "c_0"] if form == "LSTM" else ["h_0"]
    assert names[-len(states) :] == states
    assert not any(getattr(layer, name).any() for name in states)
    for name in states:
        torch.nn.init.normal_(getattr(layer, name))
    hx = tuple(getattr(layer, name)[:, None].expand(-1, N, -1) for name in states)
    given = hx if form == "LSTM" else hx[0]
    y, last = layer(normal(T, N, I))
    torch.testing.assert_close((y, last), layer(normal(T, N, I), given))
    y.sum().backward()
    assert all(getattr(layer, name).grad.any() for name in states)
    zeros = torch.zeros(layer.h_0.shape[0], N, H, dtype=torch.float64)
    plain = getattr(torch.nn, form)(I, H, 2, bidirectional=bidirectional, dtype=torch.float64)
    plain.load_state_dict({k: v for k, v in layer.state_dict().items() if k not in states})
    torch.testing.assert_close(
        layer(normal(T, N, I), (zeros, zeros) if form == "LSTM" else zeros), plain(normal(T, N, I))
    )


def test_options_draw_their_numbers_behind_those_of_torch() -> None:
    torch.manual_seed(3)
    theirs = torch.nn.LSTM(I, H, 2, bidirectional=True)
    torch.manual_seed(3)
    ours = recurra.torch.LSTM(I, H, 2, bidirectional=True, peephole=True, learnable_initial_state=True)
    for name, parameter in theirs.named_parameters():
        assert torch.equal(getattr(ours, name), parameter)
    missing = ours.load_state_dict(theirs.state_dict(), strict=False).missing_keys
    assert missing == [f"weight_peephole_l{i}" for i in ("0", "0_reverse", "1", "1_reverse")] + ["h_0", "c_0"]


@pytest.mark.parametrize("batch_first", [False, True])
def test_cells_and_gates_are_those_of_every_step(batch_first: bool) -> None:
    layer = module("LSTM", batch_first=batch_first)
    x = normal(N, T, I) if batch_first else normal(T, N, I)
    lengths = torch.tensor([5, 2, 4])
    y, (_h, c), cells, gates = layer(x, lengths=lengths, return_cells=True, return_gates=True)
    every = layer(x, lengths=lengths, return_cells="all", return_gates="all")
    assert cells.shape == (*x.shape[:2], 2 * H)
    assert gates.shape == (*x.shape[:2], 8 * H)
    assert [len(part) for part in every[2:]] == [2, 2]
    assert torch.equal(every[2][-1], cells)
    assert torch.equal(every[3][-1], gates)
    turned = cells.transpose(0, 1) if batch_first else cells
    for layer_number, sequence in enumerate(every[2]):
        sequence = sequence.transpose(0, 1) if batch_first else sequence
        for row, length in enumerate(lengths):
            assert torch.equal(sequence[length - 1, row, :H], c[2 * layer_number, row])
            assert torch.equal(sequence[0, row, H:], c[2 * layer_number + 1, row])
    # h = o tanh(c), with the gates i, f, z, o of both directions
    o = (gates.transpose(0, 1) if batch_first else gates).reshape(T, N, 2, 4, H)[..., 3, :].reshape(T, N, 2 * H)
    torch.testing.assert_close(o * turned.tanh(), y.transpose(0, 1) if batch_first else y)
    (cells.sum() + gates.sum()).backward()
    assert layer.weight_ih_l0.grad.any()


def test_gates_of_gru_and_rnn() -> None:
    gru = recurra.torch.GRU(I, H, dtype=torch.float64)
    x = normal(T, N, I)
    y, _, gates = gru(x, return_gates=True)
    r, z, n = gates.chunk(3, -1)
    before = torch.cat([torch.zeros(1, N, H, dtype=torch.float64), y[:-1]])
    torch.testing.assert_close(z * before + (1 - z) * n, y)
    assert ((r > 0) & (r < 1)).all()
    rnn = recurra.torch.RNN(I, H, dtype=torch.float64)
    y, _, gates = rnn(x, return_gates=True)
    torch.testing.assert_close(gates.tanh(), y)


def test_extras_follow_the_form_of_the_input() -> None:
    layer = module("projected")
    y, _last, cells, gates = layer(normal(T, I), return_cells=True, return_gates=True)
    assert (y.shape, cells.shape, gates.shape) == ((T, 4), (T, 2 * H), (T, 8 * H))
    packed = torch.nn.utils.rnn.pack_sequence([normal(3, I), normal(5, I)], enforce_sorted=False)
    _, _, cells, gates = layer(packed, return_cells=True, return_gates=True)
    assert torch.equal(cells.sorted_indices, packed.sorted_indices)
    assert (cells.data.shape, gates.data.shape) == ((8, 2 * H), (8, 8 * H))


def test_half_of_a_peephole_module_goes_through_files_and_copies() -> None:
    layer = module("peephole")
    other = recurra.torch.LSTM(
        I, H, peephole=True, peephole_output="current", learnable_initial_state=True, dtype=torch.float64
    )
    other.load_state_dict(layer.state_dict())
    torch.testing.assert_close(other(normal(T, N, I)), layer(normal(T, N, I)))


@pytest.mark.parametrize("form", ["LSTM", "GRU", "RNN", "peephole"])
@pytest.mark.parametrize("steps", [1, 4])
def test_a_stream_of_a_module_says_the_same(form: str, steps: int) -> None:
    layer = module(form, torch.float32, bidirectional=False)
    stream = layer.stream()
    state = stream.state(batch=2)
    x = normal(8, 2, I).float()
    blocks = [stream.block(part.numpy(), state) for part in x.split(steps)]
    wanted, _ = layer.eval()(x.transpose(0, 1) if layer.batch_first else x)
    wanted = wanted.transpose(0, 1) if layer.batch_first else wanted
    np.testing.assert_allclose(np.concatenate(blocks), wanted.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["LSTMCell", "GRUCell", "RNNCell"])
def test_a_stream_of_a_cell_says_the_same(name: str) -> None:
    cell = module(name, torch.float32)
    stream = cell.stream()
    state, hx = stream.state(batch=2), None
    for frame in normal(4, 2, I).float():
        found = stream.step(frame.numpy(), state)
        hx = cell(frame, hx)
        wanted = hx[0] if name == "LSTMCell" else hx
        np.testing.assert_allclose(found, wanted.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_stream_does_not_follow_the_module() -> None:
    layer = recurra.torch.GRU(I, H)
    stream = layer.stream()
    state = stream.state()
    before = stream.step(np.ones((1, I), np.float32), state)
    with torch.no_grad():
        layer.weight_ih_l0.zero_()
    state.reset()
    assert np.array_equal(stream.step(np.ones((1, I), np.float32), state), before)


def test_cells_have_the_options_too() -> None:
    cell = recurra.torch.LSTMCell(I, H, peephole=True, peephole_output="current", activation="relu")
    layer = recurra.torch.LSTM(I, H, peephole=True, peephole_output="current", activation="relu")
    layer.load_state_dict({f"{name}_l0": value for name, value in cell.state_dict().items()})
    x, hx = normal(T, N, I).float(), None
    wanted, _ = layer(x)
    for t in range(T):
        hx = cell(x[t], hx)
        torch.testing.assert_close(hx[0], wanted[t])
    assert repr(cell) == "LSTMCell(3, 4, peephole=True, peephole_output=current, activation=relu)"
    gru, own = recurra.torch.GRUCell(I, H, reset_after=False), recurra.torch.GRU(I, H, reset_after=False)
    own.load_state_dict({f"{name}_l0": value for name, value in gru.state_dict().items()})
    torch.testing.assert_close(gru(x[0]), own(x[:1])[0][0])
    assert gru.descriptor.reset_after is False


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_positions_and_attributes_are_those_of_torch(kind: str) -> None:
    nonlinearity = ("relu",) if kind == "RNN" else ()
    arguments = (I, H, 2, *nonlinearity, False, True, 0.25, True)
    theirs, ours = getattr(torch.nn, kind)(*arguments), getattr(recurra.torch, kind)(*arguments)
    attributes = ("mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout")
    for name in (*attributes, "bidirectional", "proj_size", "training", *(["nonlinearity"] if nonlinearity else [])):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert repr(ours) == repr(theirs)
    assert [len(ws) for ws in ours.all_weights] == [len(ws) for ws in theirs.all_weights]
    assert [w.shape for ws in ours.all_weights for w in ws] == [w.shape for ws in theirs.all_weights for w in ws]
    assert ours.flatten_parameters() is None
    x = torch.randn(2, 3, I)
    torch.testing.assert_close(ours(input=x, hx=None)[0].shape, theirs(input=x, hx=None)[0].shape)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_reset_parameters_draws_what_torch_draws(kind: str) -> None:
    theirs, ours = getattr(torch.nn, kind)(I, H, 2), getattr(recurra.torch, kind)(I, H, 2)
    for layer in (theirs, ours):
        torch.manual_seed(4)
        layer.reset_parameters()
    for a, b in zip(theirs.parameters(), ours.parameters(), strict=True):
        assert torch.equal(a, b)


def test_dropout_of_a_single_layer_warns_as_torch_does() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.nn.LSTM(I, H, dropout=0.5)
        recurra.torch.LSTM(I, H, dropout=0.5)
    theirs, ours = caught
    assert str(ours.message) == f"LSTM: {theirs.message}"
    assert issubclass(ours.category, theirs.category)
    assert ours.filename == __file__


def test_weights_may_be_put_in_place_and_changed() -> None:
    """What is computed is what the attributes hold at the call: nothing is kept from one call to the next."""
    layer = recurra.torch.LSTM(I, H).eval()
    x = torch.randn(1, 1, I)
    with torch.no_grad():
        layer(x)
        layer.weight_hh_l0.data.mul_(2)
        layer.weight_ih_l0.data.zero_()
        layer.bias_ih_l0 = torch.nn.Parameter(torch.ones(4 * H))
        y = layer(x)[0]
        plain = torch.nn.LSTM(I, H)
        plain.load_state_dict(layer.state_dict())
        torch.testing.assert_close(y, plain(x)[0])
