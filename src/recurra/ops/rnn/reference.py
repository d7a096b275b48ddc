"""The single-gate RNN's equations (contract 3.1 and 4.1) in the Array API standard."""

from __future__ import annotations

from typing import Any

from ..._arrays import Array, Namespace
from .. import _sequence as seq
from .._sequence import Arrays, Direction
from ..activations import ActivationFunction
from .spec import GATES, SingleGateRNNDescriptor


def forward(
    xp: Namespace, arrays: Arrays, descriptor: SingleGateRNNDescriptor, wanted: tuple[bool, ...]
) -> tuple[Array | None, ...]:
    """h [T, N, D*H] and the training state z [T, N, D*H], the pre-activation."""
    s = seq.sizes_of(arrays, GATES, descriptor.directions)
    X = seq.projected(xp, arrays)
    parts = [
        _forward(d, X[:, :, i * s.H : (i + 1) * s.H], descriptor.function, wanted)
        for i, d in enumerate(seq.directions(xp, arrays, s, descriptor.reverse))
    ]
    return tuple(seq.side_by_side(xp, list(part), 2) for part in zip(*parts, strict=True))


def _forward(d: Direction, X: Array, f: ActivationFunction, wanted: tuple[bool, ...]) -> tuple[Array | None, ...]:
    xp = d.xp
    RT = xp.matrix_transpose(d.R)

    def step(states: tuple[Array, ...], mask: Array | None, x: Array) -> Any:
        (h,) = states
        a = x + xp.matmul(h if mask is None else mask * h, RT)
        h = f.value(xp, a)
        return (h,), (h, a)

    return d.forward(step, (d.h0,), (X,), like=(d.h0, d.h0), wanted=wanted)


def backward(xp: Namespace, arrays: Arrays, descriptor: SingleGateRNNDescriptor) -> dict[str, Array]:
    """The gradients by input name."""
    s = seq.sizes_of(arrays, GATES, descriptor.directions)
    f = descriptor.function
    dXs, dRs, dh0s = [], [], []
    for i, d in enumerate(seq.directions(xp, arrays, s, descriptor.reverse)):
        own = slice(i * s.H, (i + 1) * s.H)
        a = arrays["z_state"][:, :, own]  # [T, N, H]
        carry = seq.final_gradient(xp, arrays, "state_gradient", s, i)
        (dh0,), da = _backward(d, arrays["source_gradient"][:, :, own], a, f, carry)
        h_prev = d.previous(f.value(xp, a), d.h0)
        dXs.append(da)
        dRs.append(d.product_over_steps(da, d.masked(h_prev)))
        dh0s.append(dh0)
    gradients = seq.after_loop(xp, arrays, s, seq.side_by_side(xp, dXs, 2))
    gradients["recurrent_weight"] = seq.stacked(xp, dRs)
    if "init_state" in arrays:
        gradients["init_state"] = seq.initial_gradient(xp, arrays["init_state"], dh0s)
    return gradients


def _backward(d: Direction, Gy: Array, a: Array, f: ActivationFunction, carry: Array) -> Any:
    xp = d.xp

    def step(carries: tuple[Array, ...], mask: Array | None, gy: Array, slope: Array) -> Any:
        dh = gy + carries[0]
        da = dh * slope
        back = xp.matmul(da, d.R)
        return (back if mask is None else mask * back,), da

    return d.backward(step, (carry,), (Gy, f.slope(xp, a)))
