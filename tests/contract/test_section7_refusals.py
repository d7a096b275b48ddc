"""Calls that cannot be right are refused with an error of ours; the process never dies, and nothing else gets out."""

from __future__ import annotations

from collections.abc import Callable
import functools
import random
import re
from typing import Any
import warnings

import ml_dtypes
import numpy as np
import pytest
from recurrent.calls import BACKWARD, FORWARD, compute, descriptor, saved_state
import torch

from contract.full_cases import OPS, full_case
import recurra
from recurra import Graph, RecurraError, RecurraWarning

TRIES = 400
every_op = pytest.mark.parametrize("op", OPS)


def good_call(op: str, choose: random.Random) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Arguments of a forward call, its descriptor, and the further arguments of the gradient op."""
    options: dict[str, Any] = {name: choose.random() < 0.5 for name in ("reverse", "bidirectional")}
    if op == "gru":
        options["reset_after"] = choose.random() < 0.5
    case = full_case(op, T=choose.choice([1, 2, 4]), N=choose.choice([1, 3]), I=choose.choice([1, 2]), H=3, **options)
    inputs = {k: v.astype(np.float32) for k, v in case.inputs.items() if v is not None}
    T, N = inputs["source"].shape[:2]
    inputs |= {
        "mask": np.ones((N, inputs["init_state"].shape[1]), np.float32),
        "lengths": np.full(N, T),
        "resets": np.zeros((T, N), bool),
    }
    for name in [k for k in inputs if k not in ("source", "recurrent_weight")]:
        if choose.random() < 0.4:
            del inputs[name]
    if "input_weight" not in inputs:
        wide = np.prod(inputs["recurrent_weight"].shape[:-1])
        inputs["source"] = np.ones((T, N, wide), np.float32)
    out = FORWARD[op](**inputs, descriptor=descriptor(case))
    further = {k: v.astype(np.float32) for k, v in case.gradients_in.items()} | saved_state(op, out)
    return inputs, descriptor(case), further


def wrong_shape(shape: tuple[int, ...], choose: random.Random) -> tuple[int, ...]:
    """A shape a little or far off."""
    sizes = list(shape)
    kind = choose.randrange(6)
    if kind == 0 and sizes:
        sizes[choose.randrange(len(sizes))] += choose.choice([-1, 1, 2])
    elif kind == 1:
        sizes.insert(choose.randrange(len(sizes) + 1), choose.choice([1, 1, 2]))
    elif kind == 2 and sizes:
        del sizes[choose.randrange(len(sizes))]
    elif kind == 3:
        choose.shuffle(sizes)
    elif kind == 4 and sizes:
        sizes[choose.randrange(len(sizes))] = choose.choice([0, 1])
    else:
        sizes = [choose.randrange(6) for _ in range(choose.randrange(5))]
    return tuple(max(size, 0) for size in sizes)


DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.int8, np.uint64, np.bool_, np.complex64]
DTYPES += [np.dtype(object), np.dtype("U3"), np.dtype("M8[s]"), np.dtype(">f4")]
NO_ARRAYS = [None, 3, 0.5, True, "x", [], [1, 2], [[0.0]], {}, object(), np.float32(1), lambda: None]


def spoiled(value: np.ndarray, choose: random.Random) -> Any:
    """Another shape, another dtype, another library, no array at all, or the same."""
    kind = choose.randrange(8)
    if kind < 4:
        return np.ones(wrong_shape(value.shape, choose), value.dtype)
    if kind == 4:
        return np.ones(value.shape).astype(choose.choice(DTYPES))
    if kind == 5:
        return choose.choice(NO_ARRAYS)
    if kind == 6:
        return torch.ones(wrong_shape(value.shape, choose), dtype=torch.float32)
    return np.full(value.shape, choose.choice([-1, 99, 0])).astype(value.dtype)


def in_torch(value: Any) -> Any:
    """An array in torch, where torch has its dtype; everything else as it is."""
    is_known = isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.dtype.isnative
    return torch.from_numpy(value) if is_known and value.dtype != ml_dtypes.bfloat16 else value


def refused_or_done(call: Callable[[], Any], what: str) -> bool:
    """Whether the call was done; an error that is not ours fails the test, with what was called."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecurraWarning)
            call()
    except Exception as error:
        is_explained = isinstance(error, RecurraError) and re.match(r"\w+: .+", str(error))
        if not is_explained:
            raise AssertionError(f"{type(error).__name__}: {error}, of {what}") from error
        return False
    return True


def text(named: dict[str, Any]) -> str:
    """Arguments in short."""
    return ", ".join(f"{k}={v.dtype}{list(v.shape)}" if hasattr(v, "shape") else f"{k}={v!r}" for k, v in named.items())


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "gradients"])
@every_op
def test_wrong_arguments_raise_our_errors_and_nothing_else(op: str, backward: bool) -> None:
    """#91694: an LSTM call of the wrong shape killed the process."""
    done = 0
    for seed in range(TRIES):
        choose = random.Random(seed)
        inputs, options, further = good_call(op, choose)
        given = {**inputs, **(further if backward else {})}
        for _ in range(choose.choice([1, 1, 1, 2, 5])):
            name = choose.choice(list(given))
            if isinstance(given[name], np.ndarray):
                given[name] = spoiled(given[name], choose)
        function = BACKWARD[op] if backward else FORWARD[op]
        if choose.random() < 0.3:
            given = {name: in_torch(value) for name, value in given.items()}
        call = functools.partial(function, **given, descriptor=options)
        done += refused_or_done(call, f"seed {seed}: {text(given)}")
    assert 0.05 * TRIES < done < 0.7 * TRIES  # both happen


@every_op
def test_wrong_feeds_of_unknown_sizes_raise_our_errors_and_nothing_else(op: str) -> None:
    """#91694, in a graph that cannot know all sizes before it runs."""
    done = 0
    for seed in range(TRIES // 2):
        choose = random.Random(seed)
        inputs, options, _ = good_call(op, choose)
        fed = {k: spoiled(v, choose) if choose.random() < 0.3 else v for k, v in inputs.items()}
        what = f"seed {seed}: {text(fed)}"
        done += refused_or_done(functools.partial(build_and_run, op, inputs, fed, options), what)
    assert 0.05 * TRIES / 2 < done < 0.9 * TRIES / 2


def build_and_run(op: str, inputs: dict[str, np.ndarray], fed: dict[str, Any], options: Any) -> None:
    """Placeholders of the good shapes with some sizes unknown, fed with something else."""
    graph, choose = Graph(), random.Random(1)

    def placeholder(name: str, array: np.ndarray) -> recurra.Tensor:
        static = name in ("recurrent_weight", "input_weight", "bias", "peephole", "secondary_bias")
        shape = [size if static or choose.random() < 0.3 else None for size in array.shape]
        return graph.placeholder(shape, array.dtype)

    tensors = {name: placeholder(name, array) for name, array in inputs.items()}
    h = FORWARD[op](**tensors, descriptor=options).h
    gradients = graph.gradients(h, [tensors["source"], tensors["recurrent_weight"]])
    graph.run({tensor: fed[name] for name, tensor in tensors.items()}, [h, *gradients.values()])


@every_op
def test_a_refused_call_leaves_nothing_behind(op: str) -> None:
    """#91694: after the error, the next call is as if nothing had happened."""
    case = full_case(op)
    given = [{k: v for k, v in named.items() if v is not None} for named in (case.inputs, case.gradients_in)]
    before = compute(op, descriptor(case), *given)
    with pytest.raises(recurra.ShapeError):
        FORWARD[op](**{**given[0], "init_state": np.ones((2, 2))}, descriptor=descriptor(case))
    after = compute(op, descriptor(case), *given)
    for a, b in zip((*before[0], *before[1]), (*after[0], *after[1]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_projected_lstms_are_refused_by_name() -> None:
    """RnnOps.mm, check: projections are not supported, and the error says so."""
    torch_weights = torch.nn.LSTM(4, 8, proj_size=3).state_dict()
    R, W = torch_weights["weight_hh_l0"], torch_weights["weight_ih_l0"]
    said = r"\[12, 3\], got \[32, 3\] \(projections of the state, PyTorch's proj_size, are not supported\)$"
    with pytest.raises(recurra.ShapeError, match=said):
        recurra.lstm(torch.ones(2, 1, 4), R, input_weight=W)


@pytest.mark.parametrize("op", ["gru", "gru_gradients"])
def test_a_gru_weight_of_one_gate_is_refused_with_both_shapes(op: str) -> None:
    """MPSGraphDSL: the recurrent weight of a GRU was built as [H, H] instead of [3H, H]."""
    x, h = np.ones((3, 2, 12), np.float32), np.ones((3, 2, 4), np.float32)
    more = {} if op == "gru" else {"source_gradient": h, "z_state": x, "output_fwd": h}
    said = rf"^{op}: recurrent_weight must have shape \[3\*H, H\] = \[12, 4\], got \[4, 4\] \(RNN weights have 1 gate"
    with pytest.raises(recurra.ShapeError, match=said):
        getattr(recurra, op)(x, np.ones((4, 4), np.float32), **more)
