"""The native kernels (csrc/) for NumPy arrays: whole calls in C++, forward and backward, every option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
import os
from typing import Any

import array_api_compat
import numpy as np

from .. import _arrays
from .._arrays import Array, Namespace
from .._errors import ArgumentError
from .._op import Attrs, Kernel, Op, Refusal, ShapedType
from ..ops import _sequence
from ..ops._rules import Sizes
from ..ops.activations import Activation, ActivationFunction
from ..ops.gru import GRUDescriptor
from ..ops.lstm import LSTMDescriptor
from ..ops.rnn import SingleGateRNNDescriptor

try:
    from .. import _native
except ImportError:  # the source tree is on the path, and nothing was built
    _native = None  # type: ignore[assignment]

# Per op: its number in csrc/kernels.h, and its gates in the order of the cell.
_CELLS: dict[type, tuple[int, str]] = {
    SingleGateRNNDescriptor: (0, "a"),
    LSTMDescriptor: (1, "ifzo"),
    GRUDescriptor: (2, "zro"),
}
_FORWARD = ("single_gate_rnn", "lstm", "gru")
_GRADIENTS = tuple(f"{name}_gradients" for name in _FORWARD)
# Below so many multiplications a step, or in all, a second thread costs more than it brings.
_STEP_FOR_THREADS, _CALL_FOR_THREADS = 30_000, 1_000_000


class CpuBackend:
    """Offers the six recurrent ops on NumPy arrays."""

    name = "cpu"

    def offer(self, op: Op, types: Sequence[ShapedType], attrs: Attrs, xp: Namespace) -> Kernel | Refusal:
        """A kernel for these inputs, or the reason why there is none."""
        if op.name not in _FORWARD and op.name not in _GRADIENTS:
            return Refusal("has kernels for the recurrent ops only")
        if _native is None:
            return Refusal("the extension recurra._native is not built")
        if not array_api_compat.is_numpy_namespace(xp):
            return Refusal("has kernels for NumPy arrays only")
        if op.name in _FORWARD:
            return partial(_forward, **attrs)
        return partial(_gradient, names=op.output_names({k: attrs[k] for k in ("slots", "descriptor")}), **attrs)


# A forked child has no OpenMP team, and must not wait for its parent's.
_is_forked = False


def _note_fork() -> None:
    global _is_forked
    _is_forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def _threads(s: Sizes) -> int:
    """How many threads share a call. The numbers that come out do not depend on it."""
    step = s.N * s.H * s.H * s.G
    if _is_forked or step < _STEP_FOR_THREADS or step * s.T < _CALL_FOR_THREADS:
        return 1
    wanted = os.environ.get("RECURRA_NUM_THREADS")
    if not wanted:
        return _native.most_threads()
    if not wanted.isdecimal() or int(wanted) < 1:
        raise ArgumentError(f"cpu: RECURRA_NUM_THREADS must be a number of threads from 1 on, got {wanted!r}")
    return int(wanted)


def _new(shape: tuple[int, ...], dtype: Any) -> Array:
    """Memory for a result: the kernels write every element of it."""
    return np.empty(shape, dtype)


def _activation(function: ActivationFunction) -> tuple[int, float, float]:
    return int(Activation[function.name.upper()]), function.alpha, function.beta


def _cell(descriptor: Any) -> tuple[Any, list[int], int]:
    """The cell for C++, the slot of each of its gates, and how many gates there are."""
    number, gates = _CELLS[type(descriptor)]
    if number == 0:
        functions, order = {"a": descriptor.function}, ("a",)
    else:
        functions, order = descriptor.functions, descriptor.gate_order
    spec = _native.CellSpec(
        number,
        [_activation(functions[g]) for g in gates],
        _activation(functions["g"]) if number == 1 else (0, 0.0, 0.0),
        number == 1 and descriptor.peephole_output == "current",
        number == 2 and descriptor.reset_after,
        number == 2 and descriptor.flip_z,
    )
    return spec, [order.index(g) for g in gates], len(gates)


def _inputs(arrays: Mapping[str, Array], s: Sizes, descriptor: Any) -> list[Array | None]:
    """The arguments of C++ from `source` to `resets`: contiguous, and of the one shape that it knows for each."""
    wide = (s.N, s.D * s.H)
    given = dict(arrays)
    given["recurrent_weight"] = arrays["recurrent_weight"].reshape(s.D, s.G * s.H, s.H)
    if "bias" in given:
        given["bias"] = np.broadcast_to(arrays["bias"].reshape(-1), (s.D * s.G * s.H,))
    for name in ("init_state", "init_cell", "state_gradient", "cell_gradient"):
        if name in given:
            given[name] = np.broadcast_to(arrays[name].reshape(arrays[name].shape[-2:]), wide)
    if "mask" in given:
        mask = arrays["mask"]
        if mask.shape[-1] not in (1, s.D * s.H):
            mask = np.concatenate([mask, mask], axis=-1)  # the same for both directions
        given["mask"] = np.broadcast_to(mask, (*mask.shape[:-2], *wide))
    if "lengths" in given:
        given["lengths"] = given["lengths"].astype(np.int64)
    params = given.get("peephole")
    if isinstance(descriptor, GRUDescriptor) and descriptor.reset_after:
        params = given.get("secondary_bias")
    names = ("source", "recurrent_weight", "input_weight", "bias", "init_state", "init_cell", "mask")
    ordered = [given.get(name) for name in names] + [params, given.get("lengths"), given.get("resets")]
    given_gradients = [given.get(n) for n in ("state_gradient", "cell_gradient")]
    return [None if a is None else np.ascontiguousarray(a) for a in (*ordered, *given_gradients)]


def _contiguous(arrays: Mapping[str, Array], name: str) -> Array | None:
    return np.ascontiguousarray(arrays[name]) if name in arrays else None


def _forward(
    xp: Namespace, *inputs: Array, slots: tuple[str, ...], descriptor: Any, wanted: tuple[bool, ...]
) -> tuple[Array | None, ...]:
    arrays = _sequence.computable(xp, dict(zip(slots, inputs, strict=True)))
    spec, slot, gates = _cell(descriptor)
    s = _sequence.sizes_of(arrays, gates, descriptor.directions)
    dtype, channels = arrays["source"].dtype, s.D * s.H
    counts = (1, 1, gates) if len(wanted) == 3 else (1, gates)
    made = [_new((s.T, s.N, channels * k), dtype) if w else None for k, w in zip(counts, wanted, strict=True)]
    h, c, z = made if len(made) == 3 else (made[0], None, made[1])
    _native.forward(spec, descriptor.reverse, slot, _threads(s), *_inputs(arrays, s, descriptor)[:10], h, c, z)
    result = _arrays.dtype_of(inputs[0])
    return tuple(None if y is None else _arrays.cast(xp, y, result) for y in made)


def _gradient(
    xp: Namespace,
    *inputs: Array,
    slots: Sequence[str],
    descriptor: Any,
    wanted: tuple[bool, ...],
    names: Sequence[str],
) -> tuple[Array, ...]:
    arrays = _sequence.computable(xp, dict(zip(slots, inputs, strict=True)))
    spec, slot, gates = _cell(descriptor)
    s = _sequence.sizes_of(arrays, gates, descriptor.directions)
    dtype, wide = arrays["source"].dtype, s.D * s.H
    projected = _new(
        (
            s.T,
            s.N,
            wide * gates,
        ),
        dtype,
    )
    has_weight = "input_weight" in arrays
    has_params = "peephole" in arrays or ("secondary_bias" in arrays and descriptor.reset_after)
    found: dict[str, Array | None] = {
        "source": _new(
            (
                s.T,
                s.N,
                s.I,
            ),
            dtype,
        )
        if has_weight
        else None,
        "recurrent_weight": _new(arrays["recurrent_weight"].shape, dtype),
        "input_weight": _new(
            (
                wide * gates,
                s.I,
            ),
            dtype,
        )
        if has_weight
        else None,
        "bias": _new((wide * gates,), dtype) if "bias" in arrays else None,
        "init_state": _new(
            (
                s.N,
                wide,
            ),
            dtype,
        )
        if "init_state" in arrays
        else None,
        "init_cell": _new(
            (
                s.N,
                wide,
            ),
            dtype,
        )
        if "init_cell" in arrays
        else None,
        "params": _new((wide * (4 if gates == 4 else 1),), dtype) if has_params else None,
    }
    *ordered, state_gradient, cell_gradient = _inputs(arrays, s, descriptor)
    _native.gradient(
        spec, descriptor.reverse, slot, _threads(s), *ordered,
        _contiguous(arrays, "output_fwd"), _contiguous(arrays, "cell_output_fwd"), _contiguous(arrays, "z_state"),
        _contiguous(arrays, "source_gradient"), _contiguous(arrays, "cell_sequence_gradient"),
        state_gradient, cell_gradient,
        projected, *found.values(),
    )  # fmt: skip
    result = _arrays.dtype_of(inputs[0])
    return tuple(_arrays.cast(xp, g, result) for g in _in_shape_given(xp, arrays, found, projected, names))


def _in_shape_given(
    xp: Namespace, arrays: Mapping[str, Array], found: dict[str, Array | None], projected: Array, names: Sequence[str]
) -> list[Array]:
    """The gradients in the op's order, each in its input's shape."""
    params = found.pop("params")
    named: dict[str, Any] = {**found, "peephole": params, "secondary_bias": params}
    if named["source"] is None:
        named["source"] = projected
    gradients = []
    for name in names:
        value, like = named[name], arrays[name]
        if name == "bias" and like.size == 1:
            value = value.sum()
        elif name in ("init_state", "init_cell"):
            value = _sequence.initial_gradient(xp, like, [value])
        elif value is None:  # a secondary bias that plays no part
            value = np.zeros_like(like)
        gradients.append(np.reshape(value, like.shape))
    return gradients
