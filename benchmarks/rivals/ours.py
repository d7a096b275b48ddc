"""recurra on NumPy arrays: packing inside the call, outputs new in each call, dh0 and dc0 computed."""

from __future__ import annotations

from typing import Any

from cases import Case
from inputs import Numbers
import numpy as np

import recurra
from rivals import Rival, Unavailable

# The op, its gradients, its descriptor and that descriptor's options.
OPS: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {
    "lstm": (recurra.lstm, recurra.lstm_gradients, recurra.LSTMDescriptor, {}),
    "gru": (
        recurra.gru,
        recurra.gru_gradients,
        recurra.GRUDescriptor,
        {"reset_gate_first": True, "reset_after": True},
    ),
    "rnn": (
        recurra.single_gate_rnn,
        recurra.single_gate_rnn_gradients,
        recurra.SingleGateRNNDescriptor,
        {"activation": "tanh"},
    ),
}
NAMES = {
    "source": "dx",
    "input_weight": "dW",
    "recurrent_weight": "dR",
    "bias": "db",
    "peephole": "dpeephole",
    "init_state": "dh0",
    "init_cell": "dc0",
}


def weights(case: Case, given: Numbers) -> dict[str, Any]:
    """torch.nn's weights as the op takes them."""
    H, sums = case.H, [(i + s).astype(i.dtype) for i, s in zip(given.b_input, given.b_state, strict=True)]
    arguments = {
        "recurrent_weight": np.stack(given.R) if case.bidirectional else given.R[0],
        "input_weight": np.concatenate(given.W),
        "bias": np.concatenate(sums),
    }
    if case.op == "gru":  # the candidate's recurrent bias is inside the product that the reset gate multiplies
        outer = [np.concatenate([s[: 2 * H], i[2 * H :]]) for i, s in zip(given.b_input, sums, strict=True)]
        arguments["bias"] = np.concatenate(outer)
        arguments["secondary_bias"] = np.concatenate([s[2 * H :] for s in given.b_state])
    return arguments


def arguments(case: Case, given: Numbers, with_options: bool = True) -> dict[str, Any]:
    """Every argument of the op but `source`."""

    def side_by_side(state: Any) -> Any:  # [D, N, H] -> [N, D*H]
        return np.ascontiguousarray(np.concatenate(list(state), axis=-1))

    found = weights(case, given) | {"init_state": side_by_side(given.h0)}
    if case.op == "lstm":
        found["init_cell"] = side_by_side(given.c0)
    for option in case.options if with_options else ():
        found[option] = getattr(given, option)
    return found


def offer(case: Case, given: Numbers, variant: str, threads: int) -> Rival:
    if variant == "stream":
        return _stream(case, given)
    if variant == "float32":
        given = given.as_dtype("float32")
    op, gradients, descriptor, options = OPS[case.op]
    inputs = arguments(case, given, with_options=variant != "plain")
    x, dy = given.x, given.dy
    if variant == "tensors":
        x, dy, inputs = _tensors(case, x, dy, inputs)
    options = {**options, "bidirectional": case.bidirectional}
    if not case.trains:
        d = descriptor(**options)
        return Rival(lambda: op(x, **inputs, descriptor=d), lambda out: {"y": _as_numpy(out.h)})
    d = descriptor(training=True, **options)

    def forward() -> Any:
        return op(x, **inputs, descriptor=d)

    def backward(out: Any) -> Any:
        saved = {"lstm": {"cell_output_fwd": "c"}, "gru": {"output_fwd": "h"}, "rnn": {}}[case.op]
        known = {name: getattr(out, result) for name, result in saved.items()}
        return gradients(x, source_gradient=dy, z_state=out.z, **known, **inputs, descriptor=d)

    def named(results: tuple[Any, Any]) -> dict[str, Any]:
        out, found = results
        by_name = {ours: getattr(found, name, None) for name, ours in NAMES.items()} if found is not None else {}
        return {name: _as_numpy(value) for name, value in {"y": out.h, **by_name}.items() if value is not None}

    if case.mode == "fwd":
        return Rival(forward, lambda out: named((out, None)))
    if case.mode == "fb":

        def both() -> Any:
            out = forward()
            return out, backward(out)

        return Rival(both, named)
    kept = forward()
    return Rival(lambda: backward(kept), lambda found: named((kept, found)))


def _as_numpy(array: Any) -> Any:
    # NumPy does not know torch's bfloat16.
    return array if isinstance(array, np.ndarray) else array.float().numpy()


def _tensors(case: Case, x: Any, dy: Any, inputs: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """The same as torch tensors, if recurra has kernels for them."""
    import torch

    def tensor(array: Any) -> Any:
        if array.dtype.name == "bfloat16":
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)

    x, dy, inputs = tensor(x), tensor(dy), {name: tensor(value) for name, value in inputs.items()}
    told = recurra.explain(OPS[case.op][0], x, inputs["recurrent_weight"], input_weight=inputs["input_weight"])
    if told.splitlines()[2].split()[-1] != "cpu":
        raise Unavailable("recurra has no kernels for torch tensors")
    return x, dy, inputs


def _stream(case: Case, given: Numbers) -> Rival:
    """A step of recurra.Stream: weights packed before, state updated in place."""
    if not hasattr(recurra, "Stream"):  # as before the commit that --base may name
        raise Unavailable("recurra has no Stream")
    inputs = weights(case, given)
    made = getattr(recurra.Stream, {"rnn": "single_gate_rnn"}.get(case.op, case.op))
    R = inputs.pop("recurrent_weight")
    _, _, descriptor, options = OPS[case.op]
    stream = made(R, **inputs, **({"descriptor": descriptor(**options)} if options else {}))
    state, frame = stream.state(case.N), np.ascontiguousarray(given.x[0])

    def first_step(_: Any) -> dict[str, Any]:
        # The timed state moves on with every call: the numbers of the others are those of the first one.
        begin = stream.state(case.N)
        begin.set(h=given.h0[0], c=given.c0[0] if case.op == "lstm" else None)
        return {"y": stream.step(frame, begin)[None]}

    return Rival(lambda: stream.step(frame, state), first_step)
