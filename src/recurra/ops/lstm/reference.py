"""The LSTM's equations (contract 3.2 and 4.2) in the Array API standard."""

from __future__ import annotations

from typing import Any

from ..._arrays import Array, Namespace
from .. import _sequence as seq
from .._rules import Sizes
from .._sequence import Arrays, Direction
from .spec import GATES, LSTMDescriptor


def forward(
    xp: Namespace, arrays: Arrays, descriptor: LSTMDescriptor, wanted: tuple[bool, ...]
) -> tuple[Array | None, ...]:
    """h and c, [T, N, D*H], and the training state z, [T, N, D*4H]."""
    s = seq.sizes_of(arrays, GATES, descriptor.directions)
    X = seq.projected(xp, arrays)
    width = GATES * s.H
    parts = [
        _forward(d, X[:, :, i * width : (i + 1) * width], descriptor, wanted)
        for i, d in enumerate(seq.directions(xp, arrays, s, descriptor.reverse, _peepholes(xp, arrays, s)))
    ]
    return tuple(seq.side_by_side(xp, list(part), 2) for part in zip(*parts, strict=True))


def _peepholes(xp: Namespace, arrays: Arrays, s: Sizes) -> Array | None:
    p = arrays.get("peephole")
    return None if p is None else xp.reshape(p, (s.D, GATES, s.H))


def _blocks(x: Array, descriptor: LSTMDescriptor, axis_size: int) -> dict[str, Array]:
    """The gates of a [..., 4H] array by name."""
    return {gate: x[..., k * axis_size : (k + 1) * axis_size] for k, gate in enumerate(descriptor.gate_order)}


def _forward(d: Direction, X: Array, descriptor: LSTMDescriptor, wanted: tuple[bool, ...]) -> tuple[Array | None, ...]:
    xp, H, f = d.xp, d.sizes.H, descriptor.functions
    RT = xp.matrix_transpose(d.R)
    p = _peephole_by_gate(d, descriptor)

    def step(states: tuple[Array, ...], mask: Array | None, x: Array) -> Any:
        h_prev, c_prev = states
        a = _blocks(x + xp.matmul(h_prev if mask is None else mask * h_prev, RT), descriptor, H)
        if p is not None:
            a = {k: a[k] if k == "o" else a[k] + p[k] * c_prev for k in a}
        y = {k: f[k].value(xp, a[k]) for k in "ifz"}
        c = y["f"] * c_prev + y["i"] * y["z"]
        if p is not None:
            a["o"] = a["o"] + p["o"] * (c if descriptor.peephole_output == "current" else c_prev)
        y["o"] = f["o"].value(xp, a["o"])
        h = y["o"] * f["g"].value(xp, c)
        state = xp.concat([f[k].save(a[k], y[k]) for k in descriptor.gate_order], axis=1)
        return (h, c), (h, c, state)

    assert d.c0 is not None
    return d.forward(step, (d.h0, d.c0), (X,), like=(d.h0, d.c0, seq.one_step(xp, X)), wanted=wanted)


def _peephole_by_gate(d: Direction, descriptor: LSTMDescriptor) -> dict[str, Array] | None:
    if d.unit is None:
        return None
    return {gate: d.unit[k, ...] for k, gate in enumerate(descriptor.gate_order)}


def backward(xp: Namespace, arrays: Arrays, descriptor: LSTMDescriptor) -> dict[str, Array]:
    """The gradients by input name."""
    s = seq.sizes_of(arrays, GATES, descriptor.directions)
    f, width = descriptor.functions, GATES * s.H
    dXs, dRs, dps, dh0s, dc0s = [], [], [], [], []
    for i, d in enumerate(seq.directions(xp, arrays, s, descriptor.reverse, _peepholes(xp, arrays, s))):
        own = slice(i * s.H, (i + 1) * s.H)
        state = _blocks(arrays["z_state"][:, :, i * width : (i + 1) * width], descriptor, s.H)
        y = {k: f[k].saved_value(xp, state[k]) for k in state}
        slope = {k: f[k].saved_slope(xp, state[k]) for k in state}
        c = arrays["cell_output_fwd"][:, :, own]  # [T, N, H]
        g = f["g"].value(xp, c)
        assert d.c0 is not None
        c_prev = d.previous(c, d.c0)
        Gc = arrays["cell_sequence_gradient"][:, :, own] if "cell_sequence_gradient" in arrays else xp.zeros_like(c)
        carries = tuple(seq.final_gradient(xp, arrays, name, s, i) for name in ("state_gradient", "cell_gradient"))
        # What each gate's da is proportional to, for all steps at once: the loop only multiplies.
        factors = (
            slope["o"] * g,
            y["o"] * f["g"].slope(xp, c),
            y["z"] * slope["i"],
            c_prev * slope["f"],
            y["i"] * slope["z"],
            y["f"],
        )
        Gy = arrays["source_gradient"][:, :, own]
        (dh0, dc0), da = _backward(d, descriptor, (Gy, Gc, *factors), carries)
        h_prev = d.previous(y["o"] * g, d.h0)
        dXs.append(da)
        dRs.append(d.product_over_steps(da, d.masked(h_prev)))
        if d.unit is not None:
            seen = {k: c if k == "o" and descriptor.peephole_output == "current" else c_prev for k in state}
            blocks = _blocks(da, descriptor, s.H)
            dps.append(xp.concat([xp.sum(blocks[k] * seen[k], axis=(0, 1)) for k in descriptor.gate_order]))
        dh0s.append(dh0)
        dc0s.append(dc0)
    gradients = seq.after_loop(xp, arrays, s, seq.side_by_side(xp, dXs, 2))
    gradients["recurrent_weight"] = seq.stacked(xp, dRs)
    if "peephole" in arrays:
        gradients["peephole"] = xp.reshape(seq.stacked(xp, dps), arrays["peephole"].shape)
    if "init_state" in arrays:
        gradients["init_state"] = seq.initial_gradient(xp, arrays["init_state"], dh0s)
    if "init_cell" in arrays:
        gradients["init_cell"] = seq.initial_gradient(xp, arrays["init_cell"], dc0s)
    return gradients


def _backward(
    d: Direction, descriptor: LSTMDescriptor, over_time: tuple[Array, ...], carries: tuple[Array, ...]
) -> tuple[tuple[Array, ...], Array]:
    xp = d.xp
    p = _peephole_by_gate(d, descriptor)
    current = descriptor.peephole_output == "current"

    def step(
        carries: tuple[Array, ...],
        mask: Array | None,
        gy: Array,
        gc: Array,
        to_o: Array,
        h_to_c: Array,
        to_i: Array,
        to_f: Array,
        to_z: Array,
        c_to_prev: Array,
    ) -> Any:
        dh = gy + carries[0]
        da = {"o": dh * to_o}
        dc = dh * h_to_c + carries[1] + gc
        if p is not None and current:
            dc = dc + p["o"] * da["o"]
        da["i"], da["f"], da["z"] = dc * to_i, dc * to_f, dc * to_z
        dc_prev = dc * c_to_prev
        if p is not None:
            for k in "ifz" if current else "ifzo":
                dc_prev = dc_prev + p[k] * da[k]
        stacked = xp.concat([da[k] for k in descriptor.gate_order], axis=1)  # [N, 4H]
        dh_prev = xp.matmul(stacked, d.R)
        return (dh_prev if mask is None else mask * dh_prev, dc_prev), stacked

    return d.backward(step, carries, over_time)
