"""Gradients against central differences: first order, second order, and through everything that autodiff may meet."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from oracle.cases import OPS, Case, case
import pytest

import recurra
from recurrent.calls import BACKWARD, FORWARD, compute, descriptor, saved_state

pytestmark = pytest.mark.filterwarnings("ignore:gru.* secondary_bias is used only:recurra.RecurraWarning")
STEP = 1e-5
DIFFERENTIABLE = (
    "source",
    "recurrent_weight",
    "input_weight",
    "bias",
    "peephole",
    "init_state",
    "init_cell",
    "secondary_bias",
)


@functools.cache
def smooth_cases(op: str, count: int, kinks: bool = True) -> tuple[Case, ...]:
    """The first cases with steps and rows whose arguments stay away from kinks: where differences mean something.

    Without `kinks`, the cases have none at all.
    """
    found = []
    seed = 0
    while len(found) < count:
        drawn = case(op, seed)
        is_smooth = drawn.kink_distance > 100 * STEP and (kinks or not drawn.has_kinks)
        if drawn.sizes["T"] and drawn.sizes["N"] and is_smooth:
            found.append(drawn)
        seed += 1
    return tuple(found)


def smooth(count: int):
    return pytest.mark.parametrize(("op", "index"), [(op, i) for op in OPS for i in range(count)], ids=lambda v: str(v))


def finite(array: np.ndarray | None) -> np.ndarray | None:
    """Padding without NaN, so that a loss over everything is a number."""
    return np.nan_to_num(array) if array is not None and array.dtype.kind == "f" else array


class Problem:
    """A case as a graph whose differentiable inputs are variables, with random weights for a scalar loss."""

    def __init__(self, drawn: Case) -> None:
        self.graph = recurra.Graph()
        self.random = np.random.default_rng(drawn.seed)
        self.op = drawn.op
        self.options = descriptor(drawn)
        self.inputs: dict[str, Any] = {}
        for name, value in drawn.inputs.items():
            if value is not None:
                value = finite(value)
                is_variable = name in DIFFERENTIABLE
                self.inputs[name] = self.graph.variable(value) if is_variable else self.graph.constant(value)
        self.variables = {n: t for n, t in self.inputs.items() if n in DIFFERENTIABLE}

    def forward(self) -> Any:
        return FORWARD[self.op](**self.inputs, descriptor=self.options)

    def weighted(self, tensor: recurra.Tensor, shape: tuple[int, ...]) -> recurra.Tensor:
        """A sum over the tensor with random weights."""
        return (tensor * self.graph.constant(self.random.normal(size=shape))).sum()

    def check(self, loss: recurra.Tensor, gradients: dict[recurra.Tensor, recurra.Tensor], bound: float = 2e-6) -> None:
        """One random direction over all variables at once, and one for each alone."""
        directions = {n: self.random.normal(size=t.shape) for n, t in self.variables.items()}
        slopes = dict(zip(gradients, self.graph.run({}, list(gradients.values())), strict=True))
        for names in ([*self.variables], *([n] for n in self.variables)):
            analytic = sum(float((slopes[self.variables[n]] * directions[n]).sum()) for n in names)
            numeric = self.slope_along(loss, {n: directions[n] for n in names})
            assert abs(analytic - numeric) <= bound * max(1.0, abs(numeric)), f"{names}: {analytic} against {numeric}"

    def slope_along(self, loss: recurra.Tensor, direction: dict[str, np.ndarray]) -> float:
        at = []
        originals = {n: self.graph.variables[self.variables[n].op] for n in direction}
        for sign in (1, -1):
            for name, step in direction.items():
                self.graph.variables[self.variables[name].op] = originals[name] + sign * STEP * step
            at.append(float(self.graph.run({}, loss)))
        for name, value in originals.items():
            self.graph.variables[self.variables[name].op] = value
        return (at[0] - at[1]) / (2 * STEP)


def total(problem: Problem, out: Any, names: tuple[str, ...]) -> recurra.Tensor:
    """A loss over some of the results."""
    shapes = {n: problem.graph.run({}, getattr(out, n)).shape for n in names}
    parts = [problem.weighted(getattr(out, n), shapes[n]) for n in names]
    return functools.reduce(lambda a, b: a + b, parts)


@smooth(60)
def test_autodiff_through_h_and_every_cell_agrees_with_differences(op: str, index: int) -> None:
    problem = Problem(smooth_cases(op, 60)[index])
    out = problem.forward()
    loss = total(problem, out, ("h", "c") if op == "lstm" else ("h",))
    problem.check(loss, problem.graph.gradients(loss, list(problem.variables.values())))


@smooth(15)
def test_autodiff_through_the_training_state_agrees_with_differences(op: str, index: int) -> None:
    problem = Problem(smooth_cases(op, 60)[index])
    out = problem.forward()
    loss = total(problem, out, out._fields)
    problem.check(loss, problem.graph.gradients(loss, list(problem.variables.values())))


@smooth(25)
def test_second_order_agrees_with_differences_of_first_order(op: str, index: int) -> None:
    problem = Problem(smooth_cases(op, 60)[index])
    out = problem.forward()
    loss = total(problem, out, ("h", "c") if op == "lstm" else ("h",))
    first = problem.graph.gradients(loss * loss, list(problem.variables.values()))
    along = [problem.weighted(g, t.shape) for t, g in first.items()]
    slope = functools.reduce(lambda a, b: a + b, along)
    problem.check(slope, problem.graph.gradients(slope, list(problem.variables.values())), bound=2e-5)


@smooth(3)
def test_third_order_agrees_with_differences_of_second_order(op: str, index: int) -> None:
    problem = Problem(smooth_cases(op, 60)[index])
    wrt = list(problem.variables.values())
    value = total(problem, problem.forward(), ("h",))
    for _ in range(2):
        gradients = problem.graph.gradients(value, wrt)
        value = functools.reduce(lambda a, b: a + b, [problem.weighted(g, t.shape) for t, g in gradients.items()])
    problem.check(value, problem.graph.gradients(value, wrt), bound=2e-5)


@smooth(15)
def test_gradient_ops_are_differentiable_in_all_their_inputs(op: str, index: int) -> None:
    """d/d(source_gradient, z_state, …) of a sum over the gradient op's own results, as a user may write it.

    A relu that is off has stored its kink, 0, so that a difference in z_state would step over it: no kinks here.
    """
    drawn = smooth_cases(op, 15, kinks=False)[index]
    problem = Problem(drawn)
    state = {k: problem.graph.run({}, v) for k, v in saved_state(op, problem.forward()).items()}
    given = {k: finite(v) for k, v in drawn.gradients_in.items() if v is not None}
    for name, value in {**state, **given}.items():
        problem.variables[name] = problem.graph.variable(value)
    extra = {n: problem.variables[n] for n in (*state, *given)}
    extra.setdefault("source_gradient", None)
    gradients = BACKWARD[op](**problem.inputs, **extra, descriptor=problem.options)
    parts = [problem.weighted(g, g.shape) for g in gradients]
    value = functools.reduce(lambda a, b: a + b, parts)
    wrt = list(problem.variables.values())
    problem.check(value, problem.graph.gradients(value, wrt), bound=2e-5)


@smooth(10)
def test_eager_gradient_op_is_the_gradient_of_the_eager_op(op: str, index: int) -> None:
    drawn = smooth_cases(op, 60)[index]
    random = np.random.default_rng(index)
    inputs = {k: finite(v) for k, v in drawn.inputs.items() if v is not None}
    options = descriptor(drawn)
    shape = FORWARD[op](**inputs, descriptor=options).h.shape
    weights = random.normal(size=shape)
    _, gradients = compute(op, options, inputs, {"source_gradient": weights})
    for name in gradients._fields:
        direction = random.normal(size=inputs[name].shape)
        ends = [
            float(
                (
                    FORWARD[op](**{**inputs, name: inputs[name] + s * STEP * direction}, descriptor=options).h * weights
                ).sum()
            )
            for s in (1, -1)
        ]
        numeric = (ends[0] - ends[1]) / (2 * STEP)
        analytic = float((getattr(gradients, name) * direction).sum())
        assert abs(analytic - numeric) <= 2e-6 * max(1.0, abs(numeric)), name
