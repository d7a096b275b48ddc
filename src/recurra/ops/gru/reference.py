"""The GRU's equations (contract 3.4 and 4.3) in the Array API standard."""

from __future__ import annotations

from typing import Any

from ..._arrays import Array, Namespace
from .. import _sequence as seq
from .._rules import Sizes
from .._sequence import Arrays, Direction
from .spec import GATES, GRUDescriptor


def forward(
    xp: Namespace, arrays: Arrays, descriptor: GRUDescriptor, wanted: tuple[bool, ...]
) -> tuple[Array | None, ...]:
    """h [T, N, D*H] and the training state z [T, N, D*3H]."""
    s = seq.sizes_of(arrays, GATES, descriptor.directions)
    X = seq.projected(xp, arrays)
    width = GATES * s.H
    parts = [
        _forward(d, X[:, :, i * width : (i + 1) * width], descriptor, wanted)
        for i, d in enumerate(seq.directions(xp, arrays, s, descriptor.reverse, _secondary(xp, arrays, s, descriptor)))
    ]
    return tuple(seq.side_by_side(xp, list(part), 2) for part in zip(*parts, strict=True))


def _secondary(xp: Namespace, arrays: Arrays, s: Sizes, descriptor: GRUDescriptor) -> Array | None:
    """b2 as [D, 1, H]; None where it plays no part."""
    b2 = arrays.get("secondary_bias")
    return None if b2 is None or not descriptor.reset_after else xp.reshape(b2, (s.D, 1, s.H))


def _blocks(x: Array, descriptor: GRUDescriptor, H: int) -> dict[str, Array]:
    """The gates of a [..., 3H] array by name."""
    return {gate: x[..., k * H : (k + 1) * H] for k, gate in enumerate(descriptor.gate_order)}


def _weights(d: Direction, descriptor: GRUDescriptor) -> dict[str, Array]:
    """The recurrent weight of each gate, [H, H]."""
    H = d.sizes.H
    return {gate: d.R[k * H : (k + 1) * H, :] for k, gate in enumerate(descriptor.gate_order)}


def _forward(d: Direction, X: Array, descriptor: GRUDescriptor, wanted: tuple[bool, ...]) -> tuple[Array | None, ...]:
    xp, H, f = d.xp, d.sizes.H, descriptor.functions
    RT = {k: xp.matrix_transpose(R) for k, R in _weights(d, descriptor).items()}
    b2 = d.unit

    def step(states: tuple[Array, ...], mask: Array | None, x: Array) -> Any:
        (h_prev,) = states
        mh = h_prev if mask is None else mask * h_prev
        x_of = _blocks(x, descriptor, H)
        a = {k: x_of[k] + xp.matmul(mh, RT[k]) for k in "zr"}
        y = {k: f[k].value(xp, a[k]) for k in "zr"}
        u, r = y["z"], y["r"]
        if descriptor.reset_after:
            q = xp.matmul(mh, RT["o"])
            candidate = r * (q if b2 is None else q + b2)
        else:
            candidate = xp.matmul(r * mh, RT["o"])
        a["o"] = x_of["o"] + candidate
        y["o"] = o = f["o"].value(xp, a["o"])
        h = (1 - u) * h_prev + u * o if descriptor.flip_z else u * h_prev + (1 - u) * o
        state = xp.concat([f[k].save(a[k], y[k]) for k in descriptor.gate_order], axis=1)
        return (h,), (h, state)

    return d.forward(step, (d.h0,), (X,), like=(d.h0, seq.one_step(xp, X)), wanted=wanted)


def backward(xp: Namespace, arrays: Arrays, descriptor: GRUDescriptor) -> dict[str, Array]:
    """The gradients by input name."""
    s = seq.sizes_of(arrays, GATES, descriptor.directions)
    f, width = descriptor.functions, GATES * s.H
    dXs, dRs, db2s, dh0s = [], [], [], []
    for i, d in enumerate(seq.directions(xp, arrays, s, descriptor.reverse, _secondary(xp, arrays, s, descriptor))):
        own = slice(i * s.H, (i + 1) * s.H)
        state = _blocks(arrays["z_state"][:, :, i * width : (i + 1) * width], descriptor, s.H)
        y = {k: f[k].saved_value(xp, state[k]) for k in state}
        slope = {k: f[k].saved_slope(xp, state[k]) for k in state}
        h_prev = d.previous(arrays["output_fwd"][:, :, own], d.h0)  # [T, N, H]
        mh = d.masked(h_prev)
        # What enters dr: q when the reset gate comes after the product (recomputed here), else mask * h_prev.
        reset_sees = mh
        if descriptor.reset_after:
            reset_sees = seq.times(xp, mh, xp.matrix_transpose(_weights(d, descriptor)["o"]))
            reset_sees = reset_sees if d.unit is None else reset_sees + d.unit
        toward_o, away = (y["z"], 1 - y["z"]) if descriptor.flip_z else (1 - y["z"], y["z"])
        difference = y["o"] - h_prev if descriptor.flip_z else h_prev - y["o"]
        over_time = (
            arrays["source_gradient"][:, :, own],
            difference * slope["z"],
            toward_o * slope["o"],
            away,
            reset_sees * slope["r"],
            y["r"],
        )
        carry = seq.final_gradient(xp, arrays, "state_gradient", s, i)
        (dh0,), da = _backward(d, descriptor, over_time, carry)
        blocks = _blocks(da, descriptor, s.H)
        if descriptor.reset_after:
            dq = blocks["o"] * y["r"]
            left, right = {**blocks, "o": dq}, dict.fromkeys("zro", mh)
            db2s.append(xp.sum(dq, axis=(0, 1)))
        else:
            left, right = blocks, {"z": mh, "r": mh, "o": y["r"] * mh}
        dXs.append(da)
        dRs.append(xp.concat([d.product_over_steps(left[k], right[k]) for k in descriptor.gate_order], axis=0))
        dh0s.append(dh0)
    gradients = seq.after_loop(xp, arrays, s, seq.side_by_side(xp, dXs, 2))
    gradients["recurrent_weight"] = seq.stacked(xp, dRs)
    if "init_state" in arrays:
        gradients["init_state"] = seq.initial_gradient(xp, arrays["init_state"], dh0s)
    if "secondary_bias" in arrays:
        b2 = arrays["secondary_bias"]
        gradients["secondary_bias"] = xp.reshape(xp.concat(db2s), b2.shape) if db2s else xp.zeros_like(b2)
    return gradients


def _backward(
    d: Direction, descriptor: GRUDescriptor, over_time: tuple[Array, ...], carry: Array
) -> tuple[tuple[Array, ...], Array]:
    xp = d.xp
    R = _weights(d, descriptor)

    def step(
        carries: tuple[Array, ...],
        mask: Array | None,
        gy: Array,
        to_z: Array,
        to_o: Array,
        direct: Array,
        to_r: Array,
        r: Array,
    ) -> Any:
        dh = gy + carries[0]
        da = {"z": dh * to_z, "o": dh * to_o}
        if descriptor.reset_after:
            da["r"] = da["o"] * to_r
            product = xp.matmul(da["o"] * r, R["o"])
        else:
            v = xp.matmul(da["o"], R["o"])
            da["r"] = v * to_r
            product = v * r
        product = product + xp.matmul(da["z"], R["z"]) + xp.matmul(da["r"], R["r"])
        dh_prev = dh * direct + (product if mask is None else mask * product)
        return (dh_prev,), xp.concat([da[k] for k in descriptor.gate_order], axis=1)

    return d.backward(step, (carry,), over_time)
