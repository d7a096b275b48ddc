"""The types of what goes into blocks and comes out of them: inference of control flow.

A size that was known when the block was built is a promise: it is checked whenever the sizes are known better. A size
that was unknown may be another one in each branch and in each iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._errors import DTypeError, GraphError, ShapeError
from .._ir import Tensor
from .._op import UNKNOWN, ShapedType
from .._plan import Block

Types = Sequence[ShapedType]
BOUNDS = ("lower_bound", "upper_bound", "step")


def _check_one(where: str, given: ShapedType, dtypes: Sequence[str]) -> None:
    if given.dtype not in dtypes:
        raise DTypeError(f"{where} must be {' or '.join(dtypes)}, got {given.dtype}")
    if any(size not in (1, UNKNOWN) for size in given.shape):
        raise ShapeError(f"{where} must have one element, got {list(given.shape)}")


def check_bounds(types: Types) -> None:
    """The bounds of a loop are integers of one dtype."""
    for what, given in zip(BOUNDS, types, strict=True):
        _check_one(f"for_loop: {what}", given, ("int32", "int64") if what == BOUNDS[0] else (str(types[0].dtype),))


def merged_types(where: str, wanted: Types, first: Types, second: Types) -> list[ShapedType]:
    """What is true of both types. `where` returns the second one, which must fit `wanted`, as the first one does."""
    if len(second) != len(wanted):
        raise GraphError(f"{where} must return {len(wanted)} tensors, got {len(second)}")
    merged = []
    for i, (w, a, b) in enumerate(zip(wanted, first, second, strict=True)):
        if b.dtype != w.dtype:
            raise DTypeError(f"{where} must return {w!r} as result {i}, got {b!r}")
        sizes = list(zip(w.shape, a.shape, b.shape, strict=False))
        if len(b.shape) != len(w.shape) or any(UNKNOWN not in (p, r) and p != r for p, _, r in sizes):
            raise ShapeError(f"{where} must return {w!r} as result {i}, got {b!r}")
        shape = tuple(p if p != UNKNOWN else q if q == r else UNKNOWN for p, q, r in sizes)
        merged.append(ShapedType.trusted(shape, w.dtype))
    return merged


def _settled(where: str, wanted: Types, types: Types, once: Callable[[Types], Types]) -> list[ShapedType]:
    """The types of what goes round: a size that changes on the way, and is not wanted, becomes unknown."""
    while True:
        merged = merged_types(where, wanted, types, once(types))
        if merged == list(types):
            return merged
        types = merged


def declared(tensors: Sequence[Tensor]) -> list[ShapedType]:
    """The types that tensors were built with."""
    return [t.type for t in tensors]


def infer_cond(
    predicate: ShapedType, *captures: ShapedType, then_block: Block, else_block: Block
) -> tuple[ShapedType, ...]:
    _check_one("cond: predicate", predicate, ("bool",))
    types = then_block.infer(captures), else_block.infer(captures)
    return tuple(merged_types("cond: else_block", declared(then_block.targets), *types))


def infer_while(*types: ShapedType, before_block: Block, after_block: Block, count: int) -> tuple[ShapedType, ...]:
    captures = types[count:]

    def before(inputs: Types) -> list[ShapedType]:
        predicate, *results = before_block.infer([*inputs, *captures])
        _check_one("while_loop: predicate", predicate, ("bool",))
        return results

    wanted = declared(before_block.feeds[:count])
    settled = _settled(
        "while_loop: after_block",
        wanted,
        types[:count],
        lambda inputs: after_block.infer([*before(inputs), *captures]),
    )
    return tuple(before(settled))


def infer_for(*types: ShapedType, body: Block, count: int) -> tuple[ShapedType, ...]:
    check_bounds(types[:3])
    index, arguments, captures = ShapedType.trusted((), types[0].dtype), types[3 : 3 + count], types[3 + count :]
    wanted = declared(body.feeds[1 : 1 + count])
    return tuple(_settled("for_loop: body", wanted, arguments, lambda types: body.infer([index, *types, *captures])))
