"""Derivatives that no kernel offers: of gradient ops, and of the training state. Right first, then fast.

`composed_vjp` is one node. When it runs, sizes are known: the inner op's reference is unrolled into a program of
elementary ops (see _traced.py), differentiated there, and the result is kept for the next call of the same sizes.
Since the inner op may be `composed_vjp` itself, there are derivatives of every order.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
import threading
from typing import Any

from .. import _autodiff
from .._arrays import Array, Namespace, device_of
from .._dtypes import as_dtype
from .._ir import Program, Tensor, graph_of, lift, run_now, type_of
from .._op import OPS, Attrs, NoGradient, Op, ShapedType, register
from .._plan import Plan

NO_MASK_GRADIENT = NoGradient(
    "mask has no gradient: MPSGraph defines none (it is a constant of the call, such as a dropout mask)"
)
# Two ends: a program grows with the number of time steps, so few long ones fill about 100 MB; and a thousand short
# ones, one for each batch size that ever came by, are not worth keeping either.
_MOST_NODES, _MOST_PROGRAMS = 50_000, 128


def composed_vjp(op: Op, inputs: Sequence[Any], cotangents: Sequence[Any], attrs: Attrs) -> list[Any]:
    """One gradient, None or `NoGradient` per input of `op`, for tensors or for arrays."""
    given = tuple(c is not None for c in cotangents)
    kinds = [as_dtype(v.dtype) for v in inputs]
    wrt = [i for i, k in enumerate(kinds) if k.is_float and i not in _refused(attrs)]
    own = {"of": op.name, "attrs": dict(attrs), "wrt": wrt, "count": len(inputs), "given": given}
    values = [*inputs, *(c for c in cotangents if c is not None)]
    graph = graph_of(values)
    outputs: Sequence[Any]
    if graph is not None:
        outputs = graph.add(COMPOSED_VJP, [lift(graph, v) for v in values], own).output_tensors
    else:
        outputs = run_now(COMPOSED_VJP, values, own)
    gradients: list[Any] = [NO_MASK_GRADIENT if i in _refused(attrs) else None for i in range(len(inputs))]
    for i, gradient in zip(wrt, outputs, strict=True):
        gradients[i] = gradient
    return gradients


def _refused(attrs: Attrs) -> set[int]:
    """Which inputs have no gradient by definition: the mask, however deep the op that takes it."""
    while "slots" not in attrs:
        attrs = attrs["attrs"]
    return {i for i, name in enumerate(attrs["slots"]) if name == "mask"}


def _infer(*types: ShapedType, of: str, attrs: Attrs, wrt: Sequence[int], count: int, given: Sequence[bool]) -> Any:
    return tuple(types[i] for i in wrt)


def _reference(xp: Namespace, *inputs: Array, **attrs: Any) -> tuple[Array, ...]:
    plan = _plan(_Key(attrs, tuple(type_of(x) for x in inputs)))
    return tuple(plan.run(inputs, (xp, device_of(inputs[0]))))


class _Key:
    """Attributes and types as a key for the cache: equal when they print alike."""

    def __init__(self, attrs: Attrs, types: tuple[ShapedType, ...]) -> None:
        self.attrs, self.types = attrs, types
        self._text = f"{attrs!r} {types!r}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


_plans: OrderedDict[_Key, Plan] = OrderedDict()
_lock = threading.Lock()


def _plan(key: _Key) -> Plan:
    with _lock:
        found = _plans.pop(key, None)
        if found is None:
            program = Program()
            feeds = [program.placeholder(t.shape, t.dtype) for t in key.types]
            found = Plan(program, feeds, _write(program, COMPOSED_VJP, feeds, key.attrs))
        _plans[key] = found
        while len(_plans) > 1 and (len(_plans) > _MOST_PROGRAMS or _nodes() > _MOST_NODES):
            _plans.popitem(last=False)
    return found


def _nodes() -> int:
    return sum(len(plan.operations) for plan in _plans.values())


def _write(program: Program, op: Op, inputs: Sequence[Tensor], attrs: Attrs) -> list[Tensor]:
    """The outputs of `op` as elementary nodes of `program`."""
    if op is not COMPOSED_VJP:
        from . import _traced

        wanted = (True,) * len(op.infer_all([t.type for t in inputs], attrs))
        return [lift(program, y) for y in op.reference(_traced, *inputs, **attrs, wanted=wanted)]
    inner, count = attrs["attrs"], attrs["count"]
    outputs = _write(program, OPS[attrs["of"]], inputs[:count], inner)
    cotangents = iter(inputs[count:])
    seeds = [next(cotangents) if is_given else None for is_given in attrs["given"]]
    roots = [inputs[i] for i in attrs["wrt"]]
    found = _autodiff.gradients(program, outputs, seeds, roots)
    return [_zeros(program, root) if g is None else g for root, g in zip(roots, found, strict=True)]


def _zeros(program: Program, like: Tensor) -> Tensor:
    return program.constant(0, shape=like.shape, dtype=like.dtype)


def _vjp(inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any], **attrs: Any) -> Sequence[Any]:
    return composed_vjp(COMPOSED_VJP, inputs, cotangents, attrs)


COMPOSED_VJP = register(
    Op(
        "composed_vjp",
        _infer,
        _reference,
        vjp=_vjp,
        outputs=lambda of, attrs, wrt, count, given: tuple(f"d{i}" for i in wrt),
    )
)
