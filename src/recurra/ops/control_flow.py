"""Control flow in graphs: `cond`, `while_loop` and `for_loop`, MPSGraph's if, while and for.

A node runs its blocks in a Python loop where it can read predicate and bounds, and in `jax.lax` under JAX's tracers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
import sys
from typing import Any

import numpy as np

from .. import _arrays
from .._arrays import Array, Namespace
from .._dtypes import int32
from .._errors import ArgumentError, ArgumentTypeError, ShapeError, UnsupportedError
from .._ir import Program, Tensor, number
from .._op import NoGradient, Op, ShapedType, register
from .._plan import Block
from ._block_types import BOUNDS, Types, check_bounds, declared, infer_cond, infer_for, infer_while, merged_types
from ._blocks import add_node, given, several, trace, types_of


def cond(
    graph: Program,
    predicate: Any,
    then_block: Callable[[], Any],
    else_block: Callable[[], Any],
    name: str | None = None,
) -> Any:
    """What `then_block` returns if `predicate` is true, otherwise what `else_block` returns. Only one of them runs.

    Args:
        predicate: a bool tensor of one element.
        then_block, else_block: functions without arguments that return a tensor or a list of tensors: as many, of the
            same dtypes and ranks, and of the same sizes where sizes are known.
        name: a label.

    Returns:
        A tensor, or a list of tensors, as `then_block` returned it.

    Example:
        >>> import numpy as np, recurra
        >>> g = recurra.Graph()
        >>> x = g.placeholder([])
        >>> y = g.cond(x > 0, lambda: x * 2, lambda: x - 1)
        >>> float(g.run({x: 3.0}, y)), float(g.run({x: -3.0}, y))
        (6.0, -4.0)
    """
    chooser = given(graph, "cond: predicate", predicate)
    then, other = trace(graph, "cond: then_block", then_block), trace(graph, "cond: else_block", else_block)
    outputs = add_node(graph, COND, [chooser], {"then_block": then, "else_block": other}, {}, name)
    return outputs[0] if then.is_single else outputs


def while_loop(
    graph: Program,
    initial_inputs: Any,
    before_block: Callable[..., Any],
    after_block: Callable[..., Any],
    name: str | None = None,
) -> Any:
    """Repeat: `predicate, results = before_block(*inputs)`; where it is false, stop; `inputs = after_block(*results)`.

    Args:
        initial_inputs: a tensor or a list of tensors, the first inputs.
        before_block: takes the inputs; returns a bool tensor of one element, and a tensor or a list of tensors.
        after_block: takes those; returns the next inputs, of the same dtypes and ranks, and the same known sizes.
        name: a label.

    Returns:
        The results that came with the false predicate: a tensor, or a list of tensors, as `before_block` returned them.

    Example:
        >>> import numpy as np, recurra
        >>> g = recurra.Graph()
        >>> x = g.placeholder([])
        >>> y = g.while_loop(x, lambda x: (x < 100, x), lambda x: x * 2)
        >>> float(g.run({x: 3.0}, y))
        192.0
    """
    inputs = several(graph, "while_loop: initial_inputs", initial_inputs)
    before = trace(graph, "while_loop: before_block", before_block, types_of(inputs), has_predicate=True)
    after = trace(graph, "while_loop: after_block", after_block, [t.type for t in before.results[1:]])
    blocks = {"before_block": before, "after_block": after}
    outputs = add_node(graph, WHILE_LOOP, inputs, blocks, {"count": len(inputs)}, name)
    return outputs[0] if before.is_single else outputs


def for_loop(
    graph: Program,
    lower_bound: Any = None,
    upper_bound: Any = None,
    step: Any = None,
    initial_body_arguments: Any = None,
    body: Callable[..., Any] | None = None,
    name: str | None = None,
    *,
    number_of_iterations: Any = None,
) -> Any:
    """`arguments = body(index, *arguments)` for every index from `lower_bound` up to, without, `upper_bound`.

    Args:
        lower_bound, upper_bound, step: integers, or int32 or int64 tensors of one element; a step is positive.
        initial_body_arguments: a tensor or a list of tensors, the first arguments.
        body: takes the index, a scalar tensor (int32 if the bounds are numbers), and the arguments; returns the next
            arguments, of the same dtypes and ranks, and the same known sizes.
        name: a label.
        number_of_iterations: instead of the three bounds; the index then starts at 0.

    Returns:
        The last arguments: a tensor, or a list of tensors, as `initial_body_arguments` is.

    Example:
        >>> import numpy as np, recurra
        >>> g = recurra.Graph()
        >>> x = g.placeholder([])
        >>> y = g.for_loop(1, 5, 1, x, lambda i, x: x * i.astype("float32"))
        >>> float(g.run({x: 1.0}, y))
        24.0
    """
    bounds = dict(zip(BOUNDS, (lower_bound, upper_bound, step), strict=True))
    missing = [what for what, value in bounds.items() if value is None]
    if number_of_iterations is not None and len(missing) == 3:
        bounds = dict(zip(BOUNDS, (0, number_of_iterations, 1), strict=True))
    elif number_of_iterations is not None or missing:
        named = {**bounds, "number_of_iterations": number_of_iterations}
        got = " and ".join(what for what, value in named.items() if value is not None)
        raise ArgumentTypeError(
            f"for_loop: bounds must be all of {', '.join(BOUNDS)}, or number_of_iterations, got {got or 'none'}"
        )
    limits = _limits(graph, bounds)
    arguments = several(graph, "for_loop: initial_body_arguments", initial_body_arguments)
    index = ShapedType.trusted((), types_of(limits)[0].dtype)
    traced = trace(graph, "for_loop: body", body, [index, *types_of(arguments)])
    outputs = add_node(graph, FOR_LOOP, [*limits, *arguments], {"body": traced}, {"count": len(arguments)}, name)
    return outputs if isinstance(initial_body_arguments, list | tuple) else outputs[0]


def _limits(graph: Program, bounds: dict[str, Any]) -> list[Any]:
    """Lower bound, upper bound and step as tensors or arrays of one dtype."""
    fixed = {what: v for what, v in bounds.items() if isinstance(v, Tensor) or _arrays.is_array(v)}
    like = types_of(list(fixed.values()))[0].dtype if fixed else int32
    limits = [
        given(graph, f"for_loop: {what}", v) if what in fixed else number(FOR_LOOP, v, like)
        for what, v in bounds.items()
    ]
    check_bounds(types_of(limits))
    if "step" not in fixed:
        _check_step(*limits)
    return limits


# ---- running ------------------------------------------------------------------------------------------------------


def _read(where: str, value: Array) -> Any:
    """The number or truth value in an array of one element; None where JAX traces it."""
    if _arrays.is_readable(value):
        return _arrays.to_numpy(value).reshape(-1)[0].item()
    if not _arrays.is_jax(value):
        raise UnsupportedError(f"{where} must have a value that can be read, got one under a tracer")
    return None


def _check_step(*inputs: Array, **_: Any) -> None:
    step = inputs[2]
    if _arrays.is_readable(step) and (value := _read("for_loop: step", step)) < 1:
        raise ArgumentError(f"for_loop: step must be positive, got {value}")


def _checked(where: str, wanted: Types, block: Block, values: list[Array]) -> list[Array]:
    """What a block returned, after a look at the sizes that nobody could know before."""
    types = [ShapedType.trusted(tuple(v.shape), t.dtype) for t, v in zip(block.targets, values, strict=True)]
    merged_types(where, wanted, wanted, types)
    return values


def _check_traced(op: str, first: Types, second: Types) -> None:
    if list(first) != list(second):
        raise ShapeError(f"{op}: sizes must not change where the run is traced, got {first} and {second}")


def _cond(xp: Namespace, predicate: Array, *captures: Array, then_block: Block, else_block: Block) -> tuple[Array, ...]:
    place = xp, _arrays.device_of(predicate)
    is_true = _read("cond: predicate", predicate)
    if is_true is None:
        types = then_block.types_of(captures)
        _check_traced("cond", then_block.infer(types), else_block.infer(types))
        branches = (partial(b.run, captures, place) for b in (then_block, else_block))
        return tuple(sys.modules["jax"].lax.cond(xp.reshape(predicate, ()), *branches))
    if is_true:
        return tuple(then_block.run(captures, place))
    return tuple(
        _checked("cond: else_block", declared(then_block.targets), else_block, else_block.run(captures, place))
    )


def _while(xp: Namespace, *inputs: Array, before_block: Block, after_block: Block, count: int) -> tuple[Array, ...]:
    place, captures = (xp, _arrays.device_of(inputs[0])), inputs[count:]
    wanted = declared(before_block.feeds[:count])

    def step(state: list[Array]) -> list[Array]:  # of the predicate and the results
        after = after_block.run([*state[1:], *captures], place)
        return before_block.run([*_checked("while_loop: after_block", wanted, after_block, after), *captures], place)

    state = before_block.run(inputs, place)
    while goes_on := _read("while_loop: predicate", state[0]):
        state = step(state)
    if goes_on is None:
        types, last = after_block.types_of([*state[1:], *captures]), len(state) - 1
        _check_traced("while_loop", types[:last], before_block.infer([*after_block.infer(types), *types[last:]])[1:])
        state = sys.modules["jax"].lax.while_loop(lambda state: xp.reshape(state[0], ()), step, state)
    return tuple(state[1:])


def _for(xp: Namespace, *inputs: Array, body: Block, count: int) -> tuple[Array, ...]:
    place, captures = (xp, _arrays.device_of(inputs[0])), inputs[3 + count :]
    wanted = declared(body.feeds[1 : 1 + count])

    def once(index: Array, arguments: Sequence[Array]) -> list[Array]:
        return _checked("for_loop: body", wanted, body, body.run([index, *arguments, *captures], place))

    limits = [_read(f"for_loop: {what}", v) for what, v in zip(BOUNDS, inputs, strict=False)]
    arguments = list(inputs[3 : 3 + count])
    if any(_arrays.is_jax(v) and _arrays.is_traced(v) for v in inputs):
        lower, upper, step = (xp.reshape(v, ()) for v in inputs[:3])
        types = body.types_of([lower, *inputs[3:]])
        _check_traced("for_loop", types[1 : 1 + count], body.infer(types))
        # A known number of iterations lets JAX differentiate the loop.
        trips = -((lower - upper) // step) if None in limits else len(range(*limits))

        def traced(i: Array, arguments: list[Array]) -> list[Array]:
            return once(lower + xp.astype(i, lower.dtype) * step, arguments)

        return tuple(sys.modules["jax"].lax.fori_loop(0, trips, traced, arguments))
    for i in range(*limits):
        index = _arrays.constant(xp, np.asarray(i, body.feeds[0].dtype.numpy), place[1])
        arguments = once(index, arguments)
    return tuple(arguments if range(*limits) else map(_arrays.copy, arguments))


# ---- records ------------------------------------------------------------------------------------------------------


def _no_gradient(reason: str) -> Callable[..., Sequence[NoGradient]]:
    return lambda inputs, outputs, cotangents, **_: [NoGradient(reason)] * len(inputs)


def _names(targets: Sequence[Tensor]) -> tuple[str, ...]:
    return tuple(str(i) for i in range(len(targets)))


_UNROLLED = "has no gradient (a Python loop that makes the iterations one by one has one)"
COND = register(
    Op(
        "cond",
        infer_cond,
        _cond,
        vjp=_no_gradient("has no gradient (select has one, and computes both sides)"),
        outputs=lambda then_block, else_block: _names(then_block.targets),
    )
)
WHILE_LOOP = register(
    Op(
        "while_loop",
        infer_while,
        _while,
        vjp=_no_gradient(_UNROLLED),
        outputs=lambda before_block, after_block, count: _names(before_block.targets[1:]),
    )
)
FOR_LOOP = register(
    Op(
        "for_loop",
        infer_for,
        _for,
        vjp=_no_gradient(_UNROLLED),
        outputs=lambda body, count: _names(body.targets),
        check_values=_check_step,
    )
)
