"""What the three recurrent references share: directions, the time loop, lengths, resets, and the big products.

A room's reference states one step forward and one step back. This file calls them for every direction in the right
order, and does everything of the contract that is the same for all three: section 3.0 before the loop, 4.4 after it,
lengths and resets (9.1, 9.2) around each step. All arrays here have the compute dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .. import _arrays
from .._arrays import Array, Namespace
from .._errors import ArgumentError
from ._rules import Sizes

Arrays = Mapping[str, Array]


def sizes_of(arrays: Arrays, gates: int, directions: int) -> Sizes:
    """The letters of the contract, read off arrays that were checked before."""
    steps, batch, channels = arrays["source"].shape
    return Sizes(int(steps), int(batch), int(channels), int(arrays["recurrent_weight"].shape[-1]), directions, gates)


@dataclass(frozen=True)
class Direction:
    """One direction of a call: its slices of the weights and its order of visiting the steps."""

    xp: Namespace
    sizes: Sizes
    reverse: bool
    R: Array  # [G*H, H]
    mask: Array | None  # [N, H], or [T, N, H] when it has a time axis
    valid: Array | None  # [T, N, 1]: step t of row n exists (lengths)
    keep: Array | None  # [T, N, 1]: state may enter step t from the step visited before it (resets)
    h0: Array  # [N, H]
    c0: Array | None  # [N, H], LSTM only
    unit: Array | None  # peephole [G, H], or secondary bias [1, H]

    def forward(
        self,
        step: Callable[..., tuple[tuple[Array, ...], tuple[Array, ...]]],
        states: tuple[Array, ...],
        sequences: tuple[Array, ...],
        like: tuple[Array, ...],
        wanted: tuple[bool, ...],
    ) -> tuple[Array | None, ...]:
        """Visit the steps in order: `states, outputs = step(states, mask, *sequences at t)`; the outputs, [T, N, …].

        Outputs that are not wanted are not kept, and come back as None. Padded steps give zeros and leave the states
        alone; a reset clears the states before the step.
        """
        xp = self.xp

        def body(old: tuple[Array, ...], valid: Array, keep: Array, mask: Array, *at_t: Array) -> Any:
            entering = tuple(_only(xp, keep, s) for s in old)
            new, outputs = step(entering, self._mask_at(mask), *at_t)
            states = tuple(_either(xp, valid, n, o) for n, o in zip(new, old, strict=True))
            return states, tuple(_only(xp, valid, y) for y in _chosen(outputs, wanted))

        over_time = (self.valid, self.keep, self._mask_over_time(), *sequences)
        like = tuple(_chosen(like, wanted))
        kept = _arrays.scan(xp, body, states, over_time, length=self.sizes.T, reverse=self.reverse, like=like)[1]
        remaining = iter(kept)
        return tuple(next(remaining) if w else None for w in wanted)

    def backward(
        self,
        step: Callable[..., tuple[tuple[Array, ...], Array]],
        carries: tuple[Array, ...],
        sequences: tuple[Array, ...],
    ) -> tuple[tuple[Array, ...], Array]:
        """Visit the steps in the opposite order: `carries, da = step(carries, mask, *sequences at t)`.

        Returns the carries into the initial states and da, [T, N, G*H]. Padded steps pass the carries on unchanged;
        a reset stops them.
        """
        xp, s = self.xp, self.sizes

        def body(old: tuple[Array, ...], valid: Array, keep: Array, mask: Array, *at_t: Array) -> Any:
            new, da = step(old, self._mask_at(mask), *at_t)
            leaving = tuple(_only(xp, keep, n) for n in new)
            return tuple(_either(xp, valid, n, o) for n, o in zip(leaving, old, strict=True)), (_only(xp, valid, da),)

        over_time = (self.valid, self.keep, self._mask_over_time(), *sequences)
        like = (_arrays.zeros(xp, (s.N, s.G * s.H), self.R),)
        last, (da,) = _arrays.scan(xp, body, carries, over_time, length=s.T, reverse=not self.reverse, like=like)
        return last, da

    def previous(self, states: Array, first: Array) -> Array:
        """For every t, the state that entered it: that of the step visited before, or `first`; zeros after a reset."""
        xp, first = self.xp, first[None, ...]
        if self.reverse:
            entered = xp.concat([states, first])[1:, ...]
            if self.valid is not None:  # a row that ends early starts at its own last step
                never = _arrays.zeros(xp, (1, *self.valid.shape[1:]), self.valid)
                entered = xp.where(xp.concat([self.valid, never])[1:, ...], entered, first)
        else:
            entered = xp.concat([first, states])[: self.sizes.T, ...]
        return _only(xp, self.keep, entered)

    def masked(self, h: Array) -> Array:
        """mask * h for all steps at once, [T, N, H]."""
        return h if self.mask is None else self.mask * h

    def product_over_steps(self, da: Array, rows: Array) -> Array:
        """sum over t and n of da[t, n]^T rows[t, n]: the weight gradient of one product, [columns of da, H]."""
        return _gram(self.xp, da, rows)

    def _mask_over_time(self) -> Array | None:
        return self.mask if self.mask is not None and len(self.mask.shape) == 3 else None

    def _mask_at(self, mask: Array | None) -> Array | None:
        return self.mask if mask is None else mask


def _chosen(values: tuple[Array, ...], wanted: tuple[bool, ...]) -> list[Array]:
    return [value for value, is_wanted in zip(values, wanted, strict=True) if is_wanted]


def _only(xp: Namespace, condition: Array | None, x: Array) -> Array:
    """x where the condition holds, else 0; NaN does not get through."""
    return x if condition is None else xp.where(condition, x, xp.zeros_like(x))


def _either(xp: Namespace, condition: Array | None, yes: Array, no: Array) -> Array:
    return yes if condition is None else xp.where(condition, yes, no)


def _gram(xp: Namespace, a: Array, b: Array) -> Array:
    rows = a.shape[0] * a.shape[1]
    flat_a, flat_b = xp.reshape(a, (rows, a.shape[2])), xp.reshape(b, (rows, b.shape[2]))
    return xp.matmul(xp.matrix_transpose(flat_a), flat_b)


def times(xp: Namespace, x: Array, weight: Array) -> Array:
    """x @ weight as one product over T*N rows."""
    steps, batch, channels = x.shape
    flat = xp.matmul(xp.reshape(x, (steps * batch, channels)), weight)
    return xp.reshape(flat, (steps, batch, weight.shape[1]))


def one_step(xp: Namespace, X: Array) -> Array:
    """An array of the shape and dtype of X[t], which need not exist."""
    return xp.sum(X[:0, ...], axis=0)


def valid_steps(xp: Namespace, arrays: Arrays, s: Sizes) -> Array | None:
    """[T, N, 1]: t < lengths[n]; None without lengths."""
    lengths = arrays.get("lengths")
    if lengths is None:
        return None
    steps = _arrays.cast(xp, _arrays.arange(xp, s.T, lengths), _arrays.dtype_of(lengths))
    return (steps[:, None] < lengths[None, :])[:, :, None]


def directions(
    xp: Namespace, arrays: Arrays, s: Sizes, reverse: bool, unit: Array | None = None
) -> Iterator[Direction]:
    """The one or two directions of a call. `unit` is [D, rows, H]: the peepholes or the secondary bias."""
    valid, resets = valid_steps(xp, arrays, s), arrays.get("resets")
    for d in range(s.D):
        backwards = d == 1 or (reverse and s.D == 1)
        own = slice(d * s.H, (d + 1) * s.H)
        mask = arrays.get("mask")
        if mask is not None:
            mask = xp.broadcast_to(mask, (*mask.shape[:-2], s.N, mask.shape[-1]))
            mask = mask[..., own] if mask.shape[-1] == s.D * s.H else mask
        c0 = arrays.get("init_cell")
        yield Direction(
            xp,
            s,
            backwards,
            R=arrays["recurrent_weight"][d, ...] if s.D == 2 else arrays["recurrent_weight"],
            mask=mask,
            valid=valid,
            keep=_keep(xp, resets, valid, backwards),
            h0=_initial(xp, arrays.get("init_state"), s, own, arrays["recurrent_weight"]),
            c0=_initial(xp, c0, s, own, arrays["recurrent_weight"]),
            unit=None if unit is None else unit[d, ...],
        )


def _keep(xp: Namespace, resets: Array | None, valid: Array | None, backwards: bool) -> Array | None:
    if resets is None:
        return None
    resets = resets[:, :, None]
    if not backwards:
        return ~resets
    # Going back, the state that a reset at t+1 holds back is the one that enters t. A step that does not exist
    # resets nothing, so the initial state always enters a row's last step.
    if valid is not None:
        resets = resets & valid
    never = _arrays.zeros(xp, (1, *resets.shape[1:]), resets)
    return ~xp.concat([resets, never])[1:, ...]


def _initial(xp: Namespace, state: Array | None, s: Sizes, own: slice, like: Array) -> Array:
    if state is None:
        return _arrays.zeros(xp, (s.N, s.H), like)
    state = xp.reshape(state, state.shape[-2:])  # leading axes of 1
    return xp.broadcast_to(state, (s.N, state.shape[-1]))[:, own]


def final_gradient(xp: Namespace, arrays: Arrays, name: str, s: Sizes, d: int) -> Array:
    """A direction's slice of stateGradient or cellGradient, or zeros: what the carry starts from."""
    return _initial(xp, arrays.get(name), s, slice(d * s.H, (d + 1) * s.H), arrays["recurrent_weight"])


def computable(xp: Namespace, arrays: Arrays) -> dict[str, Array]:
    """The inputs in the compute dtype, the mask with at least two axes, padded steps cleared (NaN in them included)."""
    compute = _arrays.dtype_of(arrays["source"]).compute
    ready = {name: x if name in ("lengths", "resets") else _arrays.cast(xp, x, compute) for name, x in arrays.items()}
    mask = ready.get("mask")
    if mask is not None:
        if len(mask.shape) == 3 and mask.shape[0] == 1:
            mask = mask[0, ...]
        ready["mask"] = xp.reshape(mask, (1,) * (2 - len(mask.shape)) + tuple(mask.shape))
    valid = valid_steps(xp, ready, Sizes(int(arrays["source"].shape[0]), 0, 0, 0, 0, 0))
    if valid is not None:
        for name in ("source", "source_gradient", "z_state", "cell_output_fwd", "output_fwd", "cell_sequence_gradient"):
            if name in ready:
                ready[name] = _only(xp, valid, ready[name])
    return ready


def projected(xp: Namespace, arrays: Arrays) -> Array:
    """X of contract 3.0, [T, N, D*G*H]."""
    x = arrays["source"]
    if "input_weight" in arrays:
        x = times(xp, x, xp.matrix_transpose(arrays["input_weight"]))
    bias = arrays.get("bias")
    return x if bias is None else x + xp.reshape(bias, (-1,))


def after_loop(xp: Namespace, arrays: Arrays, s: Sizes, dX: Array) -> dict[str, Array]:
    """Contract 4.4: the gradients of source, input weight and bias from dX, [T, N, D*G*H]."""
    gradients = {}
    weight = arrays.get("input_weight")
    gradients["source"] = dX if weight is None else times(xp, dX, weight)
    if weight is not None:
        gradients["input_weight"] = _gram(xp, dX, arrays["source"])
    if "bias" in arrays:
        shape = arrays["bias"].shape
        total = xp.sum(dX, axis=(0, 1))
        gradients["bias"] = xp.reshape(total if _count(shape) > 1 else xp.sum(total), shape)
    return gradients


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def initial_gradient(xp: Namespace, given: Array, parts: list[Array]) -> Array:
    """The gradient of initState or initCell in the shape given, from the carries of the directions, each [N, H]."""
    # Where no step ran the carry is the caller's own stateGradient: adding 0 gives it memory of its own.
    carry = side_by_side(xp, parts, 1) + 0
    if given.shape[-2] == 1:
        carry = xp.sum(carry, axis=0, keepdims=True)
    return xp.reshape(carry, given.shape)


def side_by_side(xp: Namespace, parts: list[Array], axis: int) -> Array:
    """The directions' results joined along an axis; None where they were not wanted."""
    if parts[0] is None:
        return None
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=axis)


def stacked(xp: Namespace, parts: list[Array]) -> Array:
    """The directions' weight gradients: as they are for one, [2, …] for two."""
    return parts[0] if len(parts) == 1 else xp.stack(parts)


def check_lengths(op: str, lengths: Array, steps: int) -> None:
    """Refuse lengths outside [0, T], where the values can be looked at."""
    if not _arrays.is_readable(lengths):
        return
    values = _arrays.to_numpy(lengths)
    bad = values[(values < 0) | (values > steps)]
    if bad.size:
        raise ArgumentError(f"{op}: lengths must lie in [0, T] = [0, {steps}], got {int(bad[0])}")
