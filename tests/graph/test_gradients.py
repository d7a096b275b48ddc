"""Autodiff of the graph: what it makes, what it refuses, what it leaves alone."""

from __future__ import annotations

import numpy as np
import pytest

import recurra
from recurra import _ir, _plan, _verify, ops
from recurra.ops import _composed

RNG = np.random.default_rng(5)


def weights(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def kinds(graph: recurra.Graph) -> list[str]:
    return [o.kind.name for o in graph.operations]


@pytest.mark.parametrize(
    ("method", "gates", "made"),
    [
        ("lstm", 4, "lstm_gradients"),
        ("gru", 3, "gru_gradients"),
        ("single_gate_rnn", 1, "single_gate_rnn_gradients"),
    ],
)
def test_differentiating_an_op_makes_its_gradient_op(method: str, gates: int, made: str) -> None:
    graph = recurra.Graph()
    x, R = graph.placeholder([None, None, gates * 3]), graph.variable(weights(gates * 3, 3))
    out = getattr(graph, method)(x, R)
    assert len(out) == 1, "training is off: only h is shown"
    graph.gradients((out.h * out.h).sum(), [R, x])
    assert kinds(graph).count(made) == 1
    assert "composed_vjp" not in kinds(graph)
    _verify.verify(graph)


def test_gradients_of_two_directions_one_call() -> None:
    graph = recurra.Graph()
    x = graph.variable(np.float32([1, 2, 3]))
    y = (x * x).sum()
    slopes = graph.gradients(y, x, name="slope")
    assert list(slopes) == [x]
    assert slopes[x].name.startswith("slope/")
    assert graph.run({}, slopes[x]).tolist() == [2, 4, 6]


def test_a_tensor_without_influence_has_a_gradient_of_zeros() -> None:
    graph = recurra.Graph()
    x, y = graph.variable(weights(3)), graph.placeholder([None, 2])
    slope = graph.gradients((x * x).sum(), [y])[y]
    np.testing.assert_array_equal(graph.run({y: weights(4, 2)}, slope), np.zeros((4, 2)))


def test_a_primary_with_several_elements_counts_as_their_sum() -> None:
    graph = recurra.Graph()
    x = graph.variable(weights(3))
    np.testing.assert_allclose(graph.run({}, graph.gradients(x * x, [x])[x]), 2 * graph.run({}, x))


def test_a_gradient_with_respect_to_itself_is_one() -> None:
    graph = recurra.Graph()
    x = graph.variable(weights(3))
    assert graph.run({}, graph.gradients(x, [x])[x]).tolist() == [1, 1, 1]


def test_gradients_stop_at_integers_without_error() -> None:
    graph = recurra.Graph()
    x = graph.variable(weights(3))
    y = (x * ops.cast(ops.cast(x, "int32"), "float32")).sum()
    np.testing.assert_allclose(graph.run({}, graph.gradients(y, [x])[x]), np.trunc(graph.run({}, x)), rtol=1e-6)


@pytest.mark.parametrize("order", [1, 2])
def test_the_mask_has_no_gradient(order: int) -> None:
    graph = recurra.Graph()
    m = graph.variable(np.ones((2, 3), np.float32))
    R = graph.variable(weights(12, 3))
    h = graph.lstm(graph.placeholder([4, 2, 12]), R, mask=m).h
    value = h.sum() if order == 1 else graph.gradients(h.sum(), [R])[R].sum()
    with pytest.raises(recurra.GradientError, match="mask has no gradient: MPSGraph defines none"):
        graph.gradients(value, [m])
    graph.gradients(value, [R])


def test_the_mask_does_not_stop_other_gradients_that_pass_by() -> None:
    graph = recurra.Graph()
    R, scale = graph.variable(weights(12, 3)), graph.variable(np.float32(0.5))
    mask = graph.constant(np.ones((2, 3), np.float32))
    h = graph.lstm(graph.placeholder([4, 2, 12]) * scale, R, mask=mask).h
    assert set(graph.gradients(h.sum(), [R, scale])) == {R, scale}


def test_only_what_is_asked_for_is_kept(monkeypatch) -> None:
    """Running h alone makes no training state; asking for its gradient does."""
    seen = []
    real = _plan.choose

    def watching(op, types, attrs, xp, wanted, *more):
        seen.append((op.name, wanted))
        return real(op, types, attrs, xp, wanted, *more)

    monkeypatch.setattr(_plan, "choose", watching)
    graph = recurra.Graph()
    x, R = graph.placeholder([None, 2, 12]), graph.variable(weights(12, 3))
    out = graph.lstm(x, R)
    graph.run({x: weights(4, 2, 12)}, out.h)
    assert seen == [("lstm", (True, False, False))]
    slope = graph.gradients(out.h.sum(), [R])[R]
    graph.run({x: weights(4, 2, 12)}, slope)
    assert ("lstm", (True, True, True)) in seen


def test_gradients_reach_an_op_from_every_consumer() -> None:
    graph = recurra.Graph()
    x = graph.variable(np.float32([2.0]))
    y = ops.exp(x)
    z = (y * y + y / x + ops.tanh(y)).sum()
    slope = float(graph.run({}, graph.gradients(z, [x])[x])[0])
    f = lambda t: np.exp(2 * t) + np.exp(t) / t + np.tanh(np.exp(t))  # noqa: E731
    assert slope == pytest.approx((f(2 + 1e-6) - f(2 - 1e-6)) / 2e-6, rel=1e-4)


def test_programs_of_second_derivatives_are_forgotten_when_they_grow_large(monkeypatch) -> None:
    monkeypatch.setattr(_composed, "_MOST_NODES", 2000)
    graph = recurra.Graph()
    x, R = graph.placeholder([None, 1, 4]), graph.variable(weights(4, 1))
    slope = graph.gradients(graph.lstm(x, R).h.sum(), [R])[R]
    curve = graph.gradients((slope * slope).sum(), [R])[R]
    for steps in range(1, 12):
        graph.run({x: weights(steps, 1, 4)}, curve)
        assert len(_composed._plans) >= 1
        assert len(_composed._plans) == 1 or sum(len(p.operations) for p in _composed._plans.values()) <= 2000


def test_verify_finds_a_broken_program() -> None:
    graph = recurra.Graph()
    x = graph.placeholder([2])
    y = ops.tanh(ops.exp(x))
    _verify.verify(graph)
    graph.operations[1], graph.operations[2] = graph.operations[2], graph.operations[1]
    with pytest.raises(recurra.GraphError, match="verify: operations must stay"):
        _verify.verify(graph)
    graph.operations[1], graph.operations[2] = graph.operations[2], graph.operations[1]
    y.op.input_tensors = (y,)
    with pytest.raises(recurra.GraphError, match="verify: inputs must be made before"):
        _verify.verify(graph)
    y.op.input_tensors = (x,)
    y.type = recurra.ShapedType([3], "float32")
    with pytest.raises(recurra.GraphError, match=r"verify: outputs of .* must be as inferred"):
        _verify.verify(graph)


def test_every_registered_op_says_how_it_is_differentiated() -> None:
    """An op without a vjp stops gradients with an error: only sources that hold no floats may do that."""
    without = {name for name, op in _ir.OPS.items() if op.vjp is None}
    assert without <= {"placeholder", "constant", "variable", "run_seed", "assign"} | NOT_DIFFERENTIABLE


NOT_DIFFERENTIABLE: set[str] = set()
