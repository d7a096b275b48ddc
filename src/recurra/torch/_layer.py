"""One layer of a module: from weights as torch.nn keeps them to the arguments of an op, and its last states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.nn import functional as F

from ._kind import Kind

Tensor: TypeAlias = Any  # mypy does not follow torch: its Tensor is Any too, and says so nowhere


class Weights(NamedTuple):
    """The weights of one direction of one layer, as torch.nn names them, None where there is none.

    P is H without projection.
    """

    weight_ih: Tensor  # [G*H, I]
    weight_hh: Tensor  # [G*H, P]
    bias_ih: Tensor = None  # [G*H]
    bias_hh: Tensor = None  # [G*H]
    weight_hr: Tensor = None  # [P, H]
    peephole: Tensor = None  # [4*H]


class LayerResult(NamedTuple):
    """What a layer gives at every step, and where it ends."""

    h: Tensor  # [T, N, D*P]
    c: Tensor | None  # [T, N, D*H], LSTM only
    z: Tensor | None  # [T, N, D*G*H], if asked for
    last: tuple[Tensor, ...]  # h_n [D, N, P], and of an LSTM c_n [D, N, H]


def op_weights(kind: Kind, weights: Sequence[Weights]) -> dict[str, Tensor]:
    """The directions' weights as the op takes them.

    torch.nn has two biases everywhere. An op has one; a GRU that resets after the product has a second one for the
    candidate only, which is the last third of bias_hh (contract 3.6).
    """
    named = {
        "recurrent_weight": _stacked([w.weight_hh for w in weights]),
        "input_weight": _joined([w.weight_ih for w in weights]),
    }
    if weights[0].bias_ih is not None and kind.has_secondary_bias:
        H = weights[0].weight_hh.shape[1]
        named["bias"] = _joined([w.bias_ih + F.pad(w.bias_hh[:-H], (0, H)) for w in weights])
        named["secondary_bias"] = _joined([w.bias_hh[-H:] for w in weights])
    elif weights[0].bias_ih is not None:
        named["bias"] = _joined([w.bias_ih + w.bias_hh for w in weights])
    if weights[0].peephole is not None:
        named["peephole"] = _stacked([w.peephole for w in weights])
    return named


def run(
    kind: Kind,
    x: Tensor,
    weights: Sequence[Weights],
    initial: Sequence[Tensor] | None,
    lengths: Tensor | None,
    resets: Tensor | None,
    mask: Tensor | None,
    wants_gates: bool,
) -> LayerResult:
    """Run a layer.

    Args:
        kind: what it computes.
        x: [T, N, I].
        weights: those of each direction.
        initial: h_0 [D, N, P], and for an LSTM c_0 [D, N, H]; None for zeros.
        lengths, resets, mask: as for the op.
        wants_gates: whether the training state is wanted.
    """
    if weights[0].weight_hr is not None:
        return _run_projected(kind, x, weights, initial, lengths, resets, wants_gates)
    named = op_weights(kind, weights)
    if initial is not None:
        named["init_state"] = _side_by_side(initial[0])
        if kind.has_cell:
            named["init_cell"] = _side_by_side(initial[1])
    h, c, z = kind.call(x, wants_gates, None, lengths=lengths, resets=resets, mask=mask, **named)
    return _result(h, c, z, len(weights), initial, lengths)


def _run_projected(
    kind: Kind,
    x: Tensor,
    weights: Sequence[Weights],
    initial: Sequence[Tensor] | None,
    lengths: Tensor | None,
    resets: Tensor | None,
    wants_gates: bool,
) -> LayerResult:
    """Run an LSTM whose state is projected: h[t] = P s[t] with s[t] = o g(c[t]).

    The op knows no projection, and needs none: R h[t-1] = (R P) s[t-1], so it runs on s with R P for its weight, and
    the outputs are projected afterwards, all at once. Only h_0 is not a projection of anything. Its product R h_0
    enters at the first step of each row as part of the input: x gets h_0 as further channels there, zeros elsewhere,
    and the input weight gets R for them.
    """
    ys, cs, zs = [], [], []
    for d, w in enumerate(weights):
        source, named = x, op_weights(kind, [w])
        named["recurrent_weight"] = w.weight_hh @ w.weight_hr
        if initial is not None:
            first = _first_steps(x, d == 1, lengths, resets)
            source = torch.cat([x, torch.where(first, initial[0][d], 0.0)], -1)
            named["input_weight"] = torch.cat([w.weight_ih, w.weight_hh], 1)
            named["init_cell"] = initial[1][d]
        s, c, z = kind.call(source, wants_gates, d, lengths=lengths, resets=resets, **named)
        ys.append(s @ w.weight_hr.T)
        cs.append(c)
        zs.append(z)
    gates = torch.cat(zs, -1) if wants_gates else None
    return _result(torch.cat(ys, -1), torch.cat(cs, -1), gates, len(weights), initial, lengths)


def _first_steps(x: Tensor, backwards: bool, lengths: Tensor | None, resets: Tensor | None) -> Tensor:
    """[T, N, 1] (or [T, 1, 1]): the steps that the initial state enters, as the op has it (contract 9.1, 9.2)."""
    T = x.shape[0]
    steps = torch.arange(T, device=x.device)[:, None]
    if backwards:
        return (steps == (T if lengths is None else lengths) - 1)[..., None]
    first = steps == 0
    return (first if resets is None else first & ~resets)[..., None]


def _result(
    h: Tensor, c: Tensor, z: Tensor, D: int, initial: Sequence[Tensor] | None, lengths: Tensor | None
) -> LayerResult:
    sequences = (h,) if c is None else (h, c)
    starts = initial or (None,) * len(sequences)
    last = tuple(_last_states(y, D, start, lengths) for y, start in zip(sequences, starts, strict=True))
    return LayerResult(h, c, z, last)


def _last_states(y: Tensor, D: int, start: Tensor | None, lengths: Tensor | None) -> Tensor:
    """[D, N, K]: the last state that each row and direction visited, in memory of its own; y is [T, N, D*K]."""
    T, N, wide = y.shape
    K = wide // D
    if T == 0:
        return y.new_zeros((D, N, K)) if start is None else start.clone()
    if lengths is None:
        if D == 1:
            return y[-1:].clone()
        return torch.stack([y[-1, :, :K], y[0, :, K:]])
    at = (lengths - 1).clamp(min=0)
    ends = [y.gather(0, at[None, :, None].expand(1, N, wide))[0, :, :K]]
    if D == 2:
        ends.append(y[0, :, K:])
    last = torch.stack(ends)
    # A row without steps ends where it began. y is 0 there, which is right if it began with zeros.
    return last if start is None else torch.where((lengths == 0)[None, :, None], start, last)


def _side_by_side(state: Tensor) -> Tensor:
    """[D, N, K] as the op has it, [N, D*K]."""
    return state[0] if state.shape[0] == 1 else torch.cat([state[0], state[1]], -1)


def _stacked(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.stack(list(tensors))


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(list(tensors))
