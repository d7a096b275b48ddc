"""Calling the ops as a person does: results, descriptors, activations, arguments of every accepted form."""

from __future__ import annotations

import copy
import pickle

import jax
import ml_dtypes
import numpy as np
import pytest
import torch

import recurra
from recurra import Activation, GRUDescriptor, LSTMDescriptor, SingleGateRNNDescriptor

RNG = np.random.default_rng(2)
T, N, I, H = 5, 3, 2, 4


def values(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape) * 0.5


SOURCE, R, W, B = values(T, N, I), values(4 * H, H), values(4 * H, I), values(4 * H)
H0, C0 = values(N, H), values(N, H)


def lstm(**options):
    fields = {k: options.pop(k) for k in list(options) if hasattr(LSTMDescriptor(), k)}
    return recurra.lstm(SOURCE, R, input_weight=W, descriptor=LSTMDescriptor(**fields), **options)


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({}, ("h",)),
        ({"produce_cell": True}, ("h", "c")),
        ({"training": True}, ("h", "c", "z")),
        ({"training": True, "produce_cell": True}, ("h", "c", "z")),
    ],
)
def test_lstm_gives_the_results_of_its_flags(fields, names) -> None:
    out = lstm(**fields)
    assert len(out) == len(names)
    assert out._fields == names
    for name in ("h", "c", "z"):
        assert (getattr(out, name) is not None) == (name in names)
    assert out[0] is out.h
    assert [*out] == [getattr(out, n) for n in names]


@pytest.mark.parametrize(
    ("function", "kind", "gates"),
    [(recurra.gru, GRUDescriptor, 3), (recurra.single_gate_rnn, SingleGateRNNDescriptor, 1)],
)
def test_gru_and_rnn_give_h_and_when_training_z(function, kind, gates) -> None:
    x, weight = values(T, N, gates * H), values(gates * H, H)
    assert function(x, weight)._fields == ("h",)
    h, z = function(x, weight, descriptor=kind(training=True))
    assert h.shape == (T, N, H)
    assert z.shape == (T, N, gates * H)


def test_results_survive_pickle_copy_and_tree_maps() -> None:
    out = lstm(training=True)
    for other in (pickle.loads(pickle.dumps(out)), copy.copy(out), copy.deepcopy(out)):
        assert type(other) is type(out)
        np.testing.assert_array_equal(other.z, out.z)
    assert isinstance(out, recurra.LSTMResults)
    doubled = jax.tree_util.tree_map(lambda a: 2 * a, out)
    np.testing.assert_array_equal(doubled.c, 2 * out.c)
    assert torch.utils._pytree.tree_map(lambda a: 3 * a, out).h is not None
    assert repr(lstm()).startswith("LSTMResults(h=array(")


def test_absent_gradients_answer_none_and_leave_no_gap() -> None:
    out = lstm(training=True)
    gradients = recurra.lstm_gradients(
        SOURCE, R, np.ones_like(out.h), out.z, out.c, input_weight=W, init_cell=C0, descriptor=LSTMDescriptor()
    )
    assert gradients._fields == ("source", "recurrent_weight", "input_weight", "init_cell")
    assert gradients[3] is gradients.init_cell
    assert gradients.bias is None
    assert gradients.peephole is None
    with pytest.raises(AttributeError):
        _ = gradients.mask


def test_descriptors_have_apples_defaults() -> None:
    rnn, lstm_, gru = SingleGateRNNDescriptor(), LSTMDescriptor(), GRUDescriptor()
    assert rnn.activation is Activation.RELU
    sigmoid, tanh = Activation.SIGMOID, Activation.TANH
    assert [lstm_.input_gate_activation, lstm_.forget_gate_activation, lstm_.output_gate_activation] == [sigmoid] * 3
    assert [lstm_.cell_gate_activation, lstm_.activation] == [tanh] * 2
    assert [gru.update_gate_activation, gru.reset_gate_activation, gru.output_gate_activation] == [
        sigmoid,
        sigmoid,
        tanh,
    ]
    assert lstm_.peephole_output == "previous"
    for descriptor in (rnn, lstm_, gru):
        flags = [v for v in vars(descriptor).values() if isinstance(v, bool)]
        assert flags
        assert not any(flags)


def test_activations_have_apples_raw_values() -> None:
    assert [Activation(i).name for i in range(5)] == ["NONE", "RELU", "TANH", "SIGMOID", "HARD_SIGMOID"]


@pytest.mark.parametrize("given", [Activation.ELU, "elu", ("elu",), ("elu", 1.0), Activation.ELU.value, ["elu", 1]])
def test_an_activation_is_taken_in_every_form(given) -> None:
    assert SingleGateRNNDescriptor(activation=given).activation is Activation.ELU


def test_an_activation_with_parameters_keeps_them() -> None:
    found = SingleGateRNNDescriptor(activation=("leaky_relu", 0.1)).activation
    assert (found.kind, found.parameters) == ("leaky_relu", (0.1,))
    assert SingleGateRNNDescriptor(activation=found).activation == found
    assert SingleGateRNNDescriptor(activation=(Activation.HARD_SIGMOID, 1 / 6)).activation.parameters == (1 / 6, 0.5)


def test_an_op_takes_a_snapshot_of_its_descriptor() -> None:
    graph = recurra.Graph()
    descriptor = LSTMDescriptor(training=True)
    out = graph.lstm(graph.placeholder([T, N, 4 * H], "float64"), R, descriptor=descriptor)
    descriptor.activation = "relu"
    descriptor.reverse = True
    x = values(T, N, 4 * H)
    fed = graph.run({graph.placeholder_tensors[0]: x}, out.h)
    np.testing.assert_array_equal(fed, recurra.lstm(x, R).h)
    assert descriptor.copy() == descriptor
    assert descriptor.copy() is not descriptor


def test_reverse_is_ignored_when_bidirectional() -> None:
    x, weight = values(T, N, 8 * H), values(2, 4 * H, H)
    plain = recurra.lstm(x, weight, descriptor=LSTMDescriptor(bidirectional=True)).h
    reverse = recurra.lstm(x, weight, descriptor=LSTMDescriptor(bidirectional=True, reverse=True)).h
    np.testing.assert_array_equal(plain, reverse)


def test_lengths_and_resets_may_be_lists() -> None:
    resets = np.zeros((T, N), bool)
    resets[2, 1] = True
    a = lstm(lengths=[5, 2, 0], resets=resets.tolist()).h
    b = lstm(lengths=np.int32([5, 2, 0]), resets=resets).h
    np.testing.assert_array_equal(a, b)
    tensor = torch.from_numpy(SOURCE)
    c = recurra.lstm(
        tensor, torch.from_numpy(R), input_weight=torch.from_numpy(W), lengths=[5, 2, 0], resets=resets.tolist()
    )
    np.testing.assert_allclose(c.h, a, atol=1e-14)


@pytest.mark.parametrize("shape", [(), (1,), (H,), (N, 1), (1, H), (N, H), (1, N, H), (1, 1, 1)])
def test_masks_of_every_shape_mean_what_they_broadcast_to(shape) -> None:
    mask = np.asarray(RNG.uniform(0.2, 1.5, size=shape))
    wide = np.broadcast_to(
        mask.reshape((1,) * (2 - mask.ndim) + mask.shape[-2:] if mask.ndim == 3 else mask.shape), (N, H)
    )
    np.testing.assert_array_equal(lstm(mask=mask).h, lstm(mask=np.ascontiguousarray(wide)).h)


def test_a_mask_with_a_time_axis_uses_step_ts_own_mask() -> None:
    per_step = RNG.uniform(0.2, 1.5, size=(T, N, H))
    h, c = H0, C0
    options = LSTMDescriptor(produce_cell=True)
    for t in range(T):
        out = recurra.lstm(
            SOURCE[t : t + 1], R, input_weight=W, init_state=h, init_cell=c, mask=per_step[t], descriptor=options
        )
        h, c = out.h[0], out.c[0]
    whole = recurra.lstm(SOURCE, R, input_weight=W, init_state=H0, init_cell=C0, mask=per_step)
    np.testing.assert_allclose(whole.h[-1], h, atol=1e-14)


def test_a_bool_mask_is_zeros_and_ones() -> None:
    mask = RNG.uniform(size=(N, H)) > 0.5
    np.testing.assert_array_equal(lstm(mask=mask).h, lstm(mask=mask.astype(np.float64)).h)


def test_one_element_of_bias_serves_all_and_its_gradient_is_the_sum() -> None:
    out = lstm(training=True, bias=np.array([0.3]))
    wide = np.full(4 * H, 0.3)
    np.testing.assert_array_equal(out.h, lstm(bias=wide).h)
    one, many = (
        recurra.lstm_gradients(SOURCE, R, np.ones_like(out.h), out.z, out.c, input_weight=W, bias=b).bias
        for b in (np.array([0.3]), wide)
    )
    np.testing.assert_allclose(one, [many.sum()])


def test_directions_are_joined_and_split() -> None:
    state = values(2, N, H)
    joined = recurra.join_directions(state)
    np.testing.assert_array_equal(joined, np.concatenate([state[0], state[1]], axis=1))
    np.testing.assert_array_equal(recurra.split_directions(joined), state)
    graph = recurra.Graph()
    x = graph.placeholder([2, None, H], "float64")
    assert recurra.join_directions(x).shape == (-1, 2 * H)
    np.testing.assert_array_equal(graph.run({x: state}, recurra.split_directions(recurra.join_directions(x))), state)


def test_the_training_state_has_the_activated_gates_in_gate_order() -> None:
    out = lstm(training=True, bias=B, init_state=H0, init_cell=C0, forget_gate_last=True)
    a = SOURCE[0] @ W.T + B + H0 @ R.T
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    i, z, f, o = np.split(a, 4, axis=1)
    wanted = np.concatenate([sigmoid(i), np.tanh(z), sigmoid(f), sigmoid(o)], axis=1)
    np.testing.assert_allclose(out.z[0], wanted, atol=1e-14)


def test_a_gate_whose_slope_the_output_does_not_tell_keeps_its_pre_activation() -> None:
    out = lstm(training=True, bias=B, forget_gate_activation=("elu", -0.5))
    a = SOURCE[0] @ W.T + B
    np.testing.assert_allclose(out.z[0][:, H : 2 * H], a[:, H : 2 * H], atol=1e-14)
    np.testing.assert_allclose(out.z[0][:, 2 * H : 3 * H], np.tanh(a[:, 2 * H : 3 * H]), atol=1e-14)


def test_jax_differentiates_through_the_op() -> None:
    with jax.enable_x64(True):

        def loss(weight):
            out = recurra.lstm(jax.numpy.asarray(SOURCE), weight, input_weight=jax.numpy.asarray(W))
            return (out.h**2).sum()

        slope = jax.jit(jax.grad(loss))(jax.numpy.asarray(R))
    out = lstm(training=True)
    wanted = recurra.lstm_gradients(SOURCE, R, 2 * out.h, out.z, out.c, input_weight=W).recurrent_weight
    np.testing.assert_allclose(slope, wanted, atol=1e-12)


def test_jax_maps_over_a_batch_of_calls() -> None:
    with jax.enable_x64(True):
        many = jax.numpy.asarray(np.stack([SOURCE, 2 * SOURCE]))
        mapped = jax.vmap(lambda s: recurra.lstm(s, jax.numpy.asarray(R), input_weight=jax.numpy.asarray(W)).h)(many)
    np.testing.assert_allclose(mapped[1], recurra.lstm(2 * SOURCE, R, input_weight=W).h, atol=1e-12)


@pytest.mark.parametrize(("dtype", "isa"), [(np.float16, ""), (ml_dtypes.bfloat16, "generic")])
def test_half_types_are_computed_in_float32(dtype, isa: str, monkeypatch) -> None:
    monkeypatch.setenv("RECURRA_ISA", isa)
    cast = [a.astype(dtype) for a in (SOURCE, R, W)]
    half = recurra.lstm(cast[0], cast[1], input_weight=cast[2]).h
    single = recurra.lstm(*(a.astype(np.float32) for a in cast[:2]), input_weight=cast[2].astype(np.float32)).h
    np.testing.assert_array_equal(half, single.astype(dtype))


def test_bfloat16_products_round_no_more_than_what_enters_them() -> None:
    """Where the CPU multiplies bfloat16, h enters the next product as the result that it is; sums are float32."""
    cast = [a.astype(ml_dtypes.bfloat16) for a in (SOURCE, R, W)]
    half = recurra.lstm(cast[0], cast[1], input_weight=cast[2]).h.astype(np.float32)
    single = recurra.lstm(*(a.astype(np.float32) for a in cast[:2]), input_weight=cast[2].astype(np.float32)).h
    # Half a place of the result itself, and as much again of each of the H states that a step multiplies.
    np.testing.assert_allclose(half, single, rtol=2.0**-8, atol=2.0**-9 * float(np.abs(cast[1]).sum(axis=1).max()))


def test_inputs_are_never_written_to() -> None:
    given = [a.copy() for a in (SOURCE, R, W, B, H0, C0)]
    lstm(bias=B, init_state=H0, init_cell=C0, lengths=[5, 1, 0])
    for before, after in zip(given, (SOURCE, R, W, B, H0, C0), strict=True):
        np.testing.assert_array_equal(before, after)


def test_results_share_no_memory_with_the_inputs() -> None:
    """Where no step runs, the gradient of the state is the caller's own stateGradient: a copy of it."""
    empty = np.zeros((0, N, 4 * H))
    seed = values(N, H)
    nothing = np.zeros((0, N, H))
    gradients = recurra.lstm_gradients(
        empty, R, nothing, np.zeros((0, N, 4 * H)), nothing, init_state=H0, state_gradient=seed
    )
    np.testing.assert_array_equal(gradients.init_state, seed)
    assert not np.shares_memory(gradients.init_state, seed)


def test_graph_methods_take_constants_of_their_graph() -> None:
    graph = recurra.Graph()
    out = graph.lstm(SOURCE, R, input_weight=W)
    assert isinstance(out.h, recurra.Tensor)
    np.testing.assert_array_equal(graph.run({}, out.h), lstm().h)


def test_lengths_and_indices_may_be_mapped_by_torch() -> None:
    x, weight = torch.from_numpy(np.stack([SOURCE, -SOURCE])), torch.from_numpy(R)
    lengths = torch.tensor([[5, 0, 2], [1, 5, 4]])

    def last(source, lengths, row):
        h = recurra.lstm(source, weight, input_weight=torch.from_numpy(W), lengths=lengths).h
        return recurra.ops.gather(h, row)

    mapped = torch.func.vmap(last)(x, lengths, torch.tensor([3, 0]))
    for i, row in enumerate((3, 0)):
        torch.testing.assert_close(mapped[i], last(x[i], lengths[i], torch.tensor(row)))


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_bias_of_one_element_is_added_to_every_gate(library, shape) -> None:
    given = [library(a) for a in (SOURCE, R)]
    one, whole = library(np.full(shape, 0.3)), library(np.full(4 * H, 0.3))
    options = {"input_weight": library(W), "descriptor": LSTMDescriptor(training=True)}
    out, wanted = (recurra.lstm(*given, bias=b, **options) for b in (one, whole))
    np.testing.assert_array_equal(out.h, wanted.h)
    slopes, all_slopes = (
        recurra.lstm_gradients(*given, y.h, y.z, y.c, bias=b, **options) for y, b in ((out, one), (wanted, whole))
    )
    assert tuple(slopes.bias.shape) == shape
    np.testing.assert_allclose(slopes.bias, np.broadcast_to(all_slopes.bias.sum(), shape), rtol=1e-12)


def test_lists_of_no_rows_are_lengths_and_resets() -> None:
    out = recurra.lstm(SOURCE[:, :0], R, input_weight=W, lengths=[], resets=[[]] * T)
    assert out.h.shape == (T, 0, H)


def test_results_of_rank_0_are_arrays() -> None:
    total = recurra.ops.softmax_cross_entropy(SOURCE[0], SOURCE[0], reduction="sum")
    assert type(total) is np.ndarray
    assert total.shape == ()
