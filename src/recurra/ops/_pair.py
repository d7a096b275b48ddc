"""A recurrent op and its gradient op as records: what is the same for the three rooms, around their equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _arrays
from .._arrays import Array, Namespace
from .._op import Op, ShapedType, register
from . import _rules, _sequence
from ._call import Slots, call
from ._composed import NO_MASK_GRADIENT, composed_vjp
from ._descriptor import Descriptor

Remembered = Callable[[Sequence[Any], Sequence[Any]], dict[str, Any]]


def op_pair(
    name: str,
    *,
    gates: int,
    outputs: dict[str, int],
    order: Slots,
    forward: Callable[..., tuple[Array | None, ...]],
    backward: Callable[..., dict[str, Array]],
    remembered: Remembered,
) -> tuple[Op, Op]:
    """Register `name` and `name_gradients`.

    Args:
        name: the forward op.
        gates: G of the contract.
        outputs: the forward results in order, each with its channels as a multiple of D*H; the training state last.
        order: the inputs that have gradients, in the order of the gradients.
        forward, backward: the equations of the room.
        remembered: from the forward op's results and their cotangents, the further inputs of the gradient op.
    """
    names = tuple(outputs)
    gradient_name = f"{name}_gradients"
    gradient_op = register(
        Op(
            gradient_name,
            infer=_infer_gradients(gradient_name, gates, order),
            reference=_gradient_reference(backward, order),
            vjp=lambda inputs, outputs, cotangents, **attrs: composed_vjp(gradient_op, inputs, cotangents, attrs),
            outputs=lambda slots, descriptor: _present(order, slots),
            selects_outputs=True,
            check_values=_check_values(gradient_name),
        )
    )

    def vjp(
        inputs: Sequence[Any],
        results: Sequence[Any],
        cotangents: Sequence[Any],
        *,
        slots: Slots,
        descriptor: Descriptor,
    ) -> Sequence[Any]:
        if cotangents[-1] is not None:  # of the training state: the gradient op has no input for it
            return composed_vjp(op, inputs, cotangents, {"slots": slots, "descriptor": descriptor})
        named = {**dict(zip(slots, inputs, strict=True)), **remembered(results, cotangents)}
        wanted = _present(order, slots)
        found = dict(zip(wanted, call(gradient_op, named, descriptor, (True,) * len(wanted), None), strict=True))
        return [NO_MASK_GRADIENT if slot == "mask" else found.get(slot) for slot in slots]

    op = register(
        Op(
            name,
            infer=_infer_forward(name, gates, tuple(outputs.values())),
            reference=_forward_reference(forward),
            vjp=vjp,
            outputs=names,
            selects_outputs=True,
            check_values=_check_values(name),
        )
    )
    return op, gradient_op


def _infer_forward(op: str, gates: int, outputs: tuple[int, ...]) -> Callable[..., tuple[ShapedType, ...]]:
    """Inference of a forward op; `outputs` has each output's channels as a multiple of D*H."""

    def infer(*types: ShapedType, slots: Slots, descriptor: Descriptor) -> tuple[ShapedType, ...]:
        s = _rules.check(op, dict(zip(slots, types, strict=True)), gates, descriptor.directions)
        return tuple(ShapedType.trusted((s.T, s.N, s.D * s.H * k), types[0].dtype) for k in outputs)

    return infer


def _infer_gradients(op: str, gates: int, order: Slots) -> Callable[..., tuple[ShapedType, ...]]:
    """Inference of a gradient op: each gradient is like its input."""

    def infer(*types: ShapedType, slots: Slots, descriptor: Descriptor) -> tuple[ShapedType, ...]:
        given = dict(zip(slots, types, strict=True))
        s = _rules.check(op, given, gates, descriptor.directions)
        given["source"] = ShapedType.trusted((s.T, s.N, s.I), given["source"].dtype)
        return tuple(given[name] for name in _present(order, slots))

    return infer


def _present(order: Slots, slots: Slots) -> Slots:
    """The names in `order` that were given."""
    return tuple(name for name in order if name in slots)


def _forward_reference(forward: Callable[..., tuple[Array | None, ...]]) -> Callable[..., tuple[Array | None, ...]]:
    """A room's forward equations as an op's reference: named inputs, compute dtype, results like source."""

    def reference(
        xp: Namespace, *inputs: Array, slots: Slots, descriptor: Descriptor, wanted: tuple[bool, ...]
    ) -> tuple[Array | None, ...]:
        arrays = _sequence.computable(xp, dict(zip(slots, inputs, strict=True)))
        dtype = _arrays.dtype_of(inputs[0])
        return tuple(None if y is None else _arrays.cast(xp, y, dtype) for y in forward(xp, arrays, descriptor, wanted))

    return reference


def _gradient_reference(backward: Callable[..., dict[str, Array]], order: Slots) -> Callable[..., tuple[Array, ...]]:
    """A room's backward equations as an op's reference."""

    def reference(
        xp: Namespace, *inputs: Array, slots: Slots, descriptor: Descriptor, wanted: tuple[bool, ...]
    ) -> tuple[Array, ...]:
        arrays = _sequence.computable(xp, dict(zip(slots, inputs, strict=True)))
        if "source_gradient" not in arrays:
            steps, batch, _ = arrays["source"].shape
            hidden = arrays["recurrent_weight"].shape[-1] * descriptor.directions
            arrays["source_gradient"] = _arrays.zeros(xp, (steps, batch, hidden), arrays["source"])
        gradients = backward(xp, arrays, descriptor)
        dtype = _arrays.dtype_of(inputs[0])
        return tuple(_arrays.cast(xp, gradients[name], dtype) for name in _present(order, slots))

    return reference


def _check_values(op: str) -> Callable[..., None]:
    """The run-time check of an op's inputs: lengths within [0, T]."""

    def check(*inputs: Array, slots: Slots, descriptor: Descriptor) -> None:
        if "lengths" in slots:
            _sequence.check_lengths(op, inputs[slots.index("lengths")], inputs[0].shape[0])

    return check
