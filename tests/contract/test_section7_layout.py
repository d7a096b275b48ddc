"""Where time, batch, directions and parameters lie: no axis is swapped, no slice is off by one, no gradient is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
from oracle.cases import Case, reference_results
from oracle.gradients import DIFFERENTIABLE
import pytest
from recurrent.calls import (
    BACKWARD,
    DESCRIPTORS,
    FORWARD,
    arguments,
    compute,
    descriptor,
    distance,
    saved_state,
    tolerance,
)
import torch

from contract.full_cases import OPS, assert_agrees, full_case
import recurra

every_op = pytest.mark.parametrize("op", OPS)
EXACT = 1e-12  # float64: two ways through the same equations


def results(case: Case, **changed: Any) -> Any:
    """The forward results of a case in NumPy, with some arguments replaced."""
    return FORWARD[case.op](**{**arguments(case.inputs, "numpy", "float64"), **changed}, descriptor=descriptor(case))


@every_op
def test_output_is_time_major(op: str) -> None:
    """#80306: the output came back with time and batch swapped."""
    case = full_case(op, T=4, N=3)
    whole = results(case)
    assert whole.h.shape == (4, 3, 3)
    state = {name: case.inputs[name] for name in ("init_state", "init_cell") if name in case.inputs}
    for t in range(4):
        step = results(case, source=case.inputs["source"][t : t + 1], **state)
        np.testing.assert_allclose(whole.h[t], step.h[0], rtol=0, atol=EXACT)
        state = {"init_state": step.h[0]} | ({"init_cell": step.c[0]} if op == "lstm" else {})


@pytest.mark.parametrize("where", ["numpy", "torch"])
@pytest.mark.parametrize(("T", "N"), [(3, 5), (5, 3)])
@every_op
def test_gradients_take_inputs_of_any_memory_order(op: str, T: int, N: int, where: str) -> None:
    """#83144, #87579, #90277: the backward pass took [1, T, H] for [1, N, H], and batch-first memory for time-major."""
    case = full_case(op, T, N)
    forward, backward = assert_agrees(case, where)

    def turned(array: Any) -> Any:
        """The same values, with the axes in the opposite order in memory."""
        if where == "torch":
            return array.permute(*reversed(range(array.ndim))).contiguous().permute(*reversed(range(array.ndim)))
        return np.asfortranarray(array)

    inputs, gradients_in = (
        {k: turned(v) for k, v in arguments(given, where, "float64").items()} for given in both(case)
    )
    out, gradients = compute(op, descriptor(case), inputs, gradients_in)
    for name, value in forward.items():
        np.testing.assert_allclose(np.asarray(getattr(out, name)), value, rtol=0, atol=EXACT)
    for name, value in backward.items():
        np.testing.assert_allclose(np.asarray(getattr(gradients, name)), value, rtol=0, atol=EXACT)


def both(case: Case) -> tuple[Any, Any]:
    return case.inputs, case.gradients_in


@pytest.mark.parametrize("N", [1, 2, 7])
@every_op
def test_two_directions_are_two_runs_in_one_direction(op: str, N: int) -> None:
    """#90421, #94754: bidirectional results were right for one row and wrong for two."""
    H = 3
    case = full_case(op, N=N, H=H, bidirectional=True)
    forward, backward = assert_agrees(case)
    for d, reverse in enumerate((False, True)):
        one = full_case(op, N=N, H=H, reverse=reverse)
        one.inputs.update(one_direction(case.inputs, d, H))
        one.gradients_in.update(one_direction(case.gradients_in, d, H))
        found_forward, found_backward = assert_agrees(one)
        own = slice(d * H, (d + 1) * H)
        np.testing.assert_allclose(found_forward["h"], forward["h"][..., own], rtol=0, atol=EXACT)
        np.testing.assert_allclose(found_backward["init_state"], backward["init_state"][:, own], rtol=0, atol=EXACT)
        weight = backward["recurrent_weight"][d]
        np.testing.assert_allclose(found_backward["recurrent_weight"], weight, rtol=0, atol=EXACT)


def one_direction(arrays: dict[str, Any], d: int, H: int) -> dict[str, Any]:
    """The half of every array that belongs to direction d."""
    found = {}
    for name, array in arrays.items():
        if name == "source" or array is None:
            found[name] = array
        elif name in ("recurrent_weight", "peephole"):
            found[name] = array[d]
        else:
            axis = 0 if name in ("input_weight", "bias", "secondary_bias") else -1
            found[name] = np.split(array, 2, axis)[d]
    return found


@every_op
def test_reverse_is_the_flipped_input_with_the_flipped_output(op: str) -> None:
    """webnn-baseline #96: GRU was wrong in reverse and in both directions."""
    forwards, backwards = full_case(op, reverse=False), full_case(op, reverse=True)
    flipped = results(forwards, source=forwards.inputs["source"][::-1])
    np.testing.assert_allclose(results(backwards).h, flipped.h[::-1], rtol=0, atol=EXACT)
    assert_agrees(backwards)


@every_op
def test_gradients_are_complete_without_a_bias(op: str) -> None:
    """PR #94889: without a bias the gradients crashed, or one was missing and the next took its place."""
    order = DIFFERENTIABLE[op]
    options = {"reset_after": True} if op == "gru" else {}
    for without in [(), ("bias",), ("bias", "init_state"), ("bias", "peephole"), ("bias", "secondary_bias")]:
        case = full_case(op, without=without, **options)
        _, gradients = compute(op, descriptor(case), *(arguments(given, "numpy", "float64") for given in both(case)))
        expected = [name for name in order if name in case.inputs and name not in without]
        assert list(gradients._fields) == expected
        assert [g.shape for g in gradients] == [case.inputs[name].shape for name in expected]
        wanted = reference_results(case)[1]
        for position, name in enumerate(expected):
            assert distance(gradients[position], wanted[name]) < EXACT
        assert all(getattr(gradients, name) is None for name in without if name in order)


@every_op
def test_a_call_without_bias_does_not_reuse_one_with_bias(op: str) -> None:
    """PR #95563: the key of the cached graph left out whether there was a bias."""
    graph = recurra.Graph()
    for without in [(), ("bias",), (), ("bias",)]:
        case = full_case(op, without=without)
        assert_agrees(case)
        tensors = {k: graph.placeholder(v.shape, "float64") for k, v in case.inputs.items() if v is not None}
        h = FORWARD[op](**tensors, descriptor=descriptor(case)).h
        found = graph.run({t: case.inputs[k] for k, t in tensors.items()}, h)
        assert distance(found, reference_results(case)[0]["h"]) < EXACT


@every_op
def test_a_loss_of_the_last_state_needs_no_gradient_of_the_output(op: str) -> None:
    """#96416: a loss of h_n and c_n alone failed, for want of a gradient of the output."""
    case = full_case(op)
    for name in ("source_gradient", "cell_sequence_gradient"):
        case.gradients_in.pop(name, None)
    _, gradients = assert_agrees(case)
    assert np.abs(gradients["recurrent_weight"]).max() > 0.01


@every_op
def test_gradients_have_the_shapes_of_their_parameters(op: str) -> None:
    """RnnOps.mm, comment: the gradient of the bidirectional bias came back as [1, 1, 8H]."""
    for directions in (False, True):
        case = full_case(op, bidirectional=directions)
        inputs = case.inputs | {
            "bias": case.inputs["bias"][None, None],
            "init_state": case.inputs["init_state"][None],
        }
        for given in (case.inputs, inputs):
            named = arguments(given, "torch", "float64"), arguments(case.gradients_in, "torch", "float64")
            _, gradients = compute(op, descriptor(case), *named)
            assert {n: tuple(getattr(gradients, n).shape) for n in gradients._fields} == {
                n: given[n].shape for n in DIFFERENTIABLE[op] if given.get(n) is not None
            }


def test_an_absent_state_keeps_the_recurrent_bias_at_the_first_step() -> None:
    """mlx #3249: GRU without a state left the recurrent bias out of step 0."""
    case = full_case("gru", without=["init_state"], reset_after=True)
    zeros = np.zeros((3, 3))
    np.testing.assert_array_equal(results(case).h, results(case, init_state=zeros).h)
    without_bias = results(case, secondary_bias=zeros[0])
    assert np.abs(results(case).h[0] - without_bias.h[0]).max() > 0.01
    assert_agrees(case)


SLOTS = [(op, name) for op in OPS for name in DESCRIPTORS[op].__dataclass_fields__ if name.endswith("activation")]


@pytest.mark.parametrize("activation", ["none", "relu", "tanh", "sigmoid", "hard_sigmoid"])
@pytest.mark.parametrize(("op", "slot"), SLOTS)
def test_every_activation_is_differentiated_in_every_slot_with_a_mask(op: str, slot: str, activation: str) -> None:
    """apple/tensorflow_macos #170: training failed with other activations and with recurrent dropout."""
    case = full_case(op, **{slot: activation})
    rng = np.random.default_rng(11)
    case.inputs["mask"] = np.where(rng.random((3, 3)) < 0.7, 1 / 0.7, 0.0)
    assert case.kink_distance > 1e-9
    assert_agrees(case)


@pytest.mark.parametrize("where", ["numpy", "torch"])
@every_op
def test_rows_of_different_lengths_are_rows_alone(op: str, where: str) -> None:
    """#95118, #97552, #102911: packed sequences gave wrong values or crashed for more than one row."""
    for reverse in (False, True):
        case = full_case(op, T=5, N=4, reverse=reverse)
        lengths = np.asarray([5, 0, 3, 1])
        case.inputs["lengths"] = lengths
        padded = np.arange(5)[:, None] >= lengths
        case.inputs["source"][padded] = np.nan
        case.gradients_in["source_gradient"][padded] = np.nan
        if op == "lstm":
            case.gradients_in["cell_sequence_gradient"][padded] = np.nan
        together, gradients = assert_agrees(case, where)
        assert not together["h"][padded].any()
        assert not gradients["source"][padded].any()
        for n, length in enumerate(lengths):
            alone = full_case(op, T=5, N=4, reverse=reverse)
            state = {k: alone.inputs[k][n : n + 1] for k in ("init_state", "init_cell") if k in alone.inputs}
            h = results(alone, source=alone.inputs["source"][:length, n : n + 1], **state).h
            np.testing.assert_allclose(together["h"][:length, n], h[:, 0], rtol=0, atol=EXACT)


@every_op
def test_the_mask_gives_the_same_bits_fifty_times(op: str) -> None:
    """tensorflow #60192: a masked cuDNN RNN was corrupt now and then."""
    case = full_case(op)
    case.inputs["mask"] = np.asarray([[0.0, 2.0, 1.0]])
    given = [arguments(arrays, "numpy", "float32") for arrays in both(case)]
    first = [np.copy(a) for a in flat(compute(op, descriptor(case), *given))]
    for _ in range(49):
        for a, b in zip(flat(compute(op, descriptor(case), *given)), first, strict=True):
            np.testing.assert_array_equal(a, b)


def flat(found: Any) -> list[Any]:
    out, gradients = found
    return [*out, *gradients]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_gru_takes_the_weights_of_torch(dtype: str) -> None:
    """PR #192727: a fused GRU needs torch's gate order r, z, n, its two biases, and the half types."""
    torch.manual_seed(3)
    theirs = torch.nn.GRU(4, 5).double()
    kind = getattr(torch, dtype)
    x = torch.randn(6, 3, 4).to(kind)
    rounded = {name: p.detach().to(kind) for name, p in theirs.named_parameters()}
    with torch.no_grad():
        for name, p in theirs.named_parameters():
            p.copy_(rounded[name])
    b_ih, b_hh = rounded["bias_ih_l0"].float(), rounded["bias_hh_l0"].float()
    bias = (b_ih + torch.cat([b_hh[:10], torch.zeros(5)])).to(kind)
    ours = recurra.gru(
        x,
        rounded["weight_hh_l0"],
        input_weight=rounded["weight_ih_l0"],
        bias=bias,
        secondary_bias=rounded["bias_hh_l0"][10:],
        descriptor=recurra.GRUDescriptor(reset_gate_first=True, reset_after=True),
    ).h
    assert ours.dtype == kind
    case = full_case("gru", T=6, N=3, I=4, H=5)
    # One rounding more than in torch: that of the sum of the two biases.
    allowed = tolerance(case, dtype, backward=False) + torch.finfo(kind).eps
    assert distance(ours.double().numpy(), theirs(x.double())[0].detach().numpy()) <= allowed


@every_op
def test_gradient_ops_read_the_results_of_any_forward_run(op: str) -> None:
    """PR #192727: what inference does not save, training gives back; the outputs are those of inference."""
    case = full_case(op)
    given = arguments(case.inputs, "numpy", "float64")
    inference = FORWARD[op](**given, descriptor=DESCRIPTORS[op](**case.options))
    training = results(case)
    assert inference._fields == ("h",)
    np.testing.assert_array_equal(inference.h, training.h)
    saved = saved_state(op, training) | ({"output_fwd": inference.h} if op == "gru" else {})
    gradients = BACKWARD[op](
        **given, source_gradient=None, state_gradient=training.h[-1], **saved, descriptor=descriptor(case)
    )
    assert all(np.isfinite(g).all() for g in gradients)
