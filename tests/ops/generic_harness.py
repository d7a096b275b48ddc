"""The checks that every generic op passes, made from one table of cases per topic.

    CASES = [Case("add: broadcast", add, (normal(2, 1), normal(3)), lambda x, y: x + y), ...]
    test_values, test_types, test_gradients, test_half_types = op_tests(CASES)

`expected` is a formula of its own in NumPy. Gradients are compared with central differences in float64 along random
directions, in first and second order, and the first ones across libraries. Everything runs at once and as a graph,
with all sizes known and with none of them, and under `jax.jit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import functools
import json
from types import SimpleNamespace
from typing import Any
import zlib

import array_api_strict
import jax
import ml_dtypes
import numpy as np
import pytest
import torch

from recurra import _arrays
from recurra._autodiff import gradients
from recurra._dtypes import DType, as_dtype
from recurra._ir import CONSTANT, Operation, Program, Tensor, apply, type_of
from recurra._op import Op, ShapedType
import recurra.ops  # noqa: F401 - gradients apply ops by name

LIBRARIES = ("numpy", "read-only numpy", "torch", "jax", "array_api_strict")
HALF_LIBRARIES = ("numpy", "torch", "jax")
NAMESPACES = {"torch": torch, "jax": jax.numpy, "array_api_strict": array_api_strict}
HALVES = (as_dtype("float16"), as_dtype("bfloat16"))


@dataclass(frozen=True, eq=False)
class Case:
    """One use of an op: `compute` on graph tensors or arrays of any library, against `expected` on NumPy arrays.

    Inputs are NumPy arrays; only the float64 ones are differentiated and take other float types. Random ones come from
    `normal`, `uniform` and `integers` below, so that a case is the same on every run.
    """

    name: str
    compute: Callable[..., Any]
    inputs: tuple[np.ndarray, ...]
    expected: Callable[..., Any]
    # Orders of gradient that are compared with differences. 0 where inputs sit on kinks or nothing is differentiable.
    orders: int = 2
    # Whether to run in float16 and bfloat16 too.
    half: bool = True
    # Whether the op can be inferred with every size unknown.
    dynamic: bool = True
    # Allowed distance in units of eps of the dtype, relative to the largest expected value.
    tolerance: float = 16.0
    # Libraries that cannot run it.
    without: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


def rng(*key: Any) -> np.random.Generator:
    """A generator that depends on the key alone."""
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Standard normal float64."""
    return rng("normal", shape, seed).standard_normal(shape)


def uniform(low: float, high: float, *shape: int, seed: int = 0) -> np.ndarray:
    """Uniform float64 in [low, high)."""
    return rng("uniform", low, high, shape, seed).uniform(low, high, shape)


def integers(low: int, high: int, *shape: int, seed: int = 0, dtype: Any = "int32") -> np.ndarray:
    """Integers in [low, high)."""
    return rng("integers", low, high, shape, seed).integers(low, high, shape).astype(dtype)


def op_tests(cases: Sequence[Case]) -> tuple[Callable[..., None], ...]:
    """The four tests of a table, to be given names at the top of a test module."""
    names = [case.name for case in cases]
    assert len(set(names)) == len(names), (
        f"names of cases must differ: {sorted(n for n in names if names.count(n) > 1)}"
    )
    by_case = pytest.mark.parametrize("case", cases, ids=str)

    @by_case
    @pytest.mark.parametrize("where", LIBRARIES)
    def test_values_agree(case: Case, where: str) -> None:
        if where in case.without:
            pytest.skip(f"{where} does not have what this needs")
        check_values(case, where)

    @by_case
    def test_types_are_inferred(case: Case) -> None:
        check_types(case)

    @pytest.mark.parametrize("case", [c for c in cases if c.orders and _floats(c.inputs)], ids=str)
    def test_gradients_agree_with_differences(case: Case) -> None:
        check_gradients(case)

    @pytest.mark.parametrize("case", [c for c in cases if c.half and _floats(c.inputs)], ids=str)
    @pytest.mark.parametrize("dtype", HALVES, ids=str)
    @pytest.mark.parametrize("where", HALF_LIBRARIES)
    def test_half_types_stay_close(case: Case, dtype: DType, where: str) -> None:
        if where in case.without:
            pytest.skip(f"{where} does not have what this needs")
        check_half(case, dtype, where)

    return test_values_agree, test_types_are_inferred, test_gradients_agree_with_differences, test_half_types_stay_close


# --- checks ---


def check_values(case: Case, where: str) -> None:
    """At once and as a graph, in this library, values, gradients and types are right; the inputs are not touched."""
    inputs = [cast_floats(x, "float32") if where == "jax" else x for x in case.inputs]
    arrays = [as_library(x, where) for x in inputs]
    before = [np.array(_arrays.to_numpy(a)) for a in arrays]
    expected = as_tuple(case.expected(*inputs))
    compare(case, where, as_tuple(case.compute(*arrays)), expected)
    for unknown in (case.dynamic,) if where == "jax" else {False, case.dynamic}:
        check_graph(case, where, arrays, expected, unknown)
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(_arrays.to_numpy(a), b, err_msg=f"{case}: an input was written to")


def check_graph(case: Case, where: str, arrays: Sequence[Any], expected: Sequence[Any], unknown: bool) -> None:
    """The graph of the case and of its gradients, run in this library, gives the expected and NumPy's gradients."""
    program, tensors, results = record(case, [type_of(a) for a in arrays], unknown)
    slopes = weighted_gradients(case, program, tensors, results)
    run = functools.partial(evaluate, [*results, *slopes], tensors)
    values = (jax.jit(run) if where == "jax" else run)(arrays)
    compare(case, where, values[: len(results)], expected)
    compare(case, f"{where}, gradient", values[len(results) :], numpy_gradients(case), slack=8)


def check_types(case: Case) -> None:
    """What is inferred, with all sizes known and with none, is what comes out."""
    actual = [type_of(np.asarray(y)) for y in as_tuple(case.compute(*case.inputs))]
    types = [type_of(x) for x in case.inputs]
    static = [t.type for t in record(case, types, unknown=False)[2]]
    assert static == actual
    if case.dynamic:
        for inferred, real in zip(record(case, types, unknown=True)[2], actual, strict=True):
            assert fits(inferred.type, real), f"{case}: inferred {inferred.type}, got {real}"


def check_gradients(case: Case) -> None:
    """Gradients, and gradients of gradients, are those of central differences; static and dynamic graphs agree."""
    found = [directional_gradients(case, unknown) for unknown in ((False, True) if case.dynamic else (False,))]
    for order in range(case.orders):
        by_graph, by_difference = found[0][order]
        scale = 1 + abs(by_difference)
        assert abs(by_graph - by_difference) < 2e-6 * scale, f"{case}: order {order + 1}: {by_graph} {by_difference}"
    if len(found) == 2:
        np.testing.assert_allclose([f[0] for f in found[1]], [f[0] for f in found[0]], rtol=1e-12, atol=1e-12)


def check_half(case: Case, dtype: DType, where: str) -> None:
    """In a half type the result has that type and is that of float64 on the rounded inputs, within some eps."""
    rounded = [cast_floats(x, dtype) for x in case.inputs]
    arrays = [as_library(x, where) for x in rounded]
    expected = as_tuple(case.expected(*[cast_floats(x, "float64") for x in rounded]))
    compare(case, where, as_tuple(case.compute(*arrays)), expected)
    if where != "jax":  # compiling is slow, and shows nothing that float32 did not
        check_graph(case, where, arrays, expected, case.dynamic)


def compare(case: Case, where: str, results: Sequence[Any], expected: Sequence[Any], slack: float = 1) -> None:
    """Equal shapes, equal kinds, values within the case's tolerance of the result's dtype; NaN and inf in place."""
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        wanted = np.asarray(wanted)
        got = np.asarray(_arrays.to_numpy(result))
        dtype = as_dtype(got.dtype)
        assert got.shape == wanted.shape, f"{case} on {where}: shape {got.shape}, wanted {wanted.shape}"
        assert dtype.kind == as_dtype(wanted.dtype).kind, f"{case} on {where}: {dtype}, wanted {wanted.dtype}"
        if not dtype.is_float:
            np.testing.assert_array_equal(got, wanted, err_msg=f"{case} on {where}")
            continue
        finite = np.abs(wanted[np.isfinite(wanted)])
        distance = slack * case.tolerance * dtype.eps * float(finite.max() if finite.size else 0)
        distance += float(ml_dtypes.finfo(got.dtype).tiny)  # below that, results may be flushed to 0
        np.testing.assert_allclose(
            got.astype("float64"), wanted.astype("float64"), rtol=0, atol=distance, err_msg=f"{case} on {where}"
        )


# --- arrays of the libraries ---


def as_library(x: np.ndarray, where: str) -> Any:
    """`x` as an array of a library."""
    if where == "numpy":
        return x.copy()
    if where == "read-only numpy":
        x = x.copy()
        x.setflags(write=False)
        return x
    return _arrays.constant(NAMESPACES[where], x)


def cast_floats(x: np.ndarray, dtype: Any) -> np.ndarray:
    """`x` in another float dtype; integers and booleans stay."""
    is_float = x.dtype.kind == "f" or x.dtype == ml_dtypes.bfloat16
    return x.astype(as_dtype(dtype).numpy) if is_float else x


def as_tuple(value: Any) -> tuple[Any, ...]:
    """The outputs of an op that has one or several."""
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _floats(inputs: Sequence[np.ndarray]) -> list[int]:
    return [i for i, x in enumerate(inputs) if x.dtype == np.float64]


# --- graphs, evaluated node by node ---


def record(case: Case, types: Sequence[ShapedType], unknown: bool) -> tuple[Program, list[Tensor], tuple[Tensor, ...]]:
    """The case as a program, its inputs and its results; with `unknown`, no size is known."""
    program = Program()
    shapes = [(-1,) * len(t.shape) if unknown else t.shape for t in types]
    tensors = [program.placeholder(s, t.dtype) for s, t in zip(shapes, types, strict=True)]
    return program, tensors, as_tuple(case.compute(*tensors))


def evaluate(wanted: Sequence[Tensor], inputs: Sequence[Tensor], arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The values of tensors.

    Each node's result must have the type that was inferred for it, when it was made and with the sizes of now. The
    attributes go through JSON, as in a saved graph; inputs of which only the shape may be read have no values.
    """
    xp = _arrays.namespace(*arrays)
    values: dict[Tensor, Any] = dict(zip(inputs, arrays, strict=True))
    for operation in _needed(wanted):
        op, outputs = operation.kind, operation.output_tensors
        if op is CONSTANT:
            values[outputs[0]] = _arrays.convert(operation.attrs["value"], xp)
        if outputs[0] in values:
            continue
        attrs = json.loads(json.dumps(operation.attrs))
        given = [values[t] for t in operation.input_tensors]
        types = op.infer_all([type_of(a) for a in given], attrs)
        if op.check_values is not None:
            op.check_values(*given, **attrs)
        if op.selects_outputs:
            attrs["wanted"] = (True,) * len(outputs)
        results = as_tuple(op.reference(xp, *(_stand_in(op, i, a) for i, a in enumerate(given)), **attrs))
        for type_, tensor, result in zip(types, outputs, results, strict=True):
            assert type_of(result) == type_, f"{operation}: inferred {type_}, got {type_of(result)}"
            assert fits(tensor.type, type_), f"{operation}: built as {tensor.type}, ran as {type_}"
        values.update(zip(outputs, results, strict=True))
    return tuple(values[t] for t in wanted)


def _stand_in(op: Op, i: int, array: Any) -> Any:
    if i not in op.shape_only:
        return array
    return SimpleNamespace(shape=array.shape, dtype=array.dtype, device=_arrays.device_of(array))


def _needed(wanted: Sequence[Tensor]) -> list[Operation]:
    found: set[Operation] = set()
    stack = [t.op for t in wanted]
    while stack:
        operation = stack.pop()
        if operation not in found:
            found.add(operation)
            stack += [t.op for t in operation.input_tensors]
    return sorted(found, key=lambda o: o.position)


def fits(inferred: ShapedType, real: ShapedType) -> bool:
    """Whether a real type is one that was inferred with some sizes unknown."""
    same_rank = len(inferred.shape) == len(real.shape)
    return (
        same_rank
        and inferred.dtype == real.dtype
        and all(i in (-1, r) for i, r in zip(inferred.shape, real.shape, strict=True))
    )


def weighted_gradients(
    case: Case, program: Program, tensors: Sequence[Tensor], results: Sequence[Tensor]
) -> list[Tensor]:
    """The gradients of the floats among the inputs, of the float results' sum with random weights."""
    outputs = as_tuple(case.compute(*case.inputs)) if case.orders else ()
    floats = [(i, y) for i, y in enumerate(results[: len(outputs)]) if y.dtype.is_float]
    seeds = [
        program.constant(rng(case.name, "seed", i).standard_normal(np.shape(outputs[i])), dtype=y.dtype)
        for i, y in floats
    ]
    found = gradients(program, [y for _, y in floats], seeds, [tensors[i] for i in _floats(case.inputs)])
    return [g for g in found if g is not None]


@functools.lru_cache(maxsize=1000)
def numpy_gradients(case: Case) -> tuple[np.ndarray, ...]:
    """`weighted_gradients` in float64, the one that is checked by differences."""
    program, tensors, results = record(case, [type_of(x) for x in case.inputs], unknown=False)
    return evaluate(weighted_gradients(case, program, tensors, results), tensors, case.inputs)


def gradient_of(compute: Callable[..., Any], inputs: Sequence[np.ndarray]) -> list[np.ndarray | None]:
    """The gradients of the sum of the first output with respect to all inputs, in NumPy."""
    case = Case("gradient_of", compute, tuple(inputs), compute)
    program, tensors, results = record(case, [type_of(x) for x in inputs], unknown=False)
    found = gradients(program, [results[0]], [apply("ones_like", results[0])], tensors)
    values = iter(evaluate([g for g in found if g is not None], tensors, inputs))
    return [None if g is None else np.asarray(next(values)) for g in found]


def directional_gradients(case: Case, unknown: bool) -> list[tuple[float, float]]:
    """Per order: the slope along a random direction by the graph, and by central differences of the order below.

    The loss is the sum of the float outputs with random weights; the loss of the second order is the first gradient
    along a random direction.
    """
    program, tensors, results = record(case, [type_of(x) for x in case.inputs], unknown)
    places = _floats(case.inputs)
    weighted = [
        apply("multiply", y, program.constant(rng(case.name, "weight", i).standard_normal(np.shape(value))))
        for i, (y, value) in enumerate(zip(results, as_tuple(case.compute(*case.inputs)), strict=True))
        if y.dtype.is_float
    ]
    if not weighted:
        return [(0.0, 0.0)] * case.orders
    loss = total(weighted)
    found = []
    for order in range(case.orders):
        directions = [rng(case.name, order, i).standard_normal(case.inputs[i].shape) for i in places]
        slopes = gradients(program, [loss], [apply("ones_like", loss)], [tensors[i] for i in places])
        for i, slope in zip(places, slopes, strict=True):
            assert slope is None or fits(slope.type, type_of(case.inputs[i])), f"{case}: gradient is {slope!r}"
        products = [
            apply("multiply", s, program.constant(d)) for s, d in zip(slopes, directions, strict=True) if s is not None
        ]
        if not products:  # as for ops that are steps, or second derivatives of linear ones
            found.append((0.0, difference(loss, tensors, case.inputs, places, directions)))
            break
        slope = total(products)
        exact = float(evaluate([slope], tensors, case.inputs)[0])
        found.append((exact, difference(loss, tensors, case.inputs, places, directions)))
        loss = slope
    return found + [(0.0, 0.0)] * (case.orders - len(found))


def total(tensors: Sequence[Tensor]) -> Tensor:
    """The sum of all elements of all of them, as a scalar."""
    sums = [apply("reduce_sum", t, axes=None, keepdims=False) for t in tensors]
    return functools.reduce(lambda a, b: apply("add", a, b), sums)


def difference(loss: Tensor, tensors: Sequence[Tensor], inputs: Sequence[Any], places: Any, directions: Any) -> float:
    """The slope of `loss` along the directions, by a central difference."""
    step = 1e-6
    ends = []
    for sign in (1, -1):
        moved = list(inputs)
        for i, d in zip(places, directions, strict=True):
            moved[i] = inputs[i] + sign * step * d
        ends.append(float(evaluate([loss], tensors, moved)[0]))
    return (ends[0] - ends[1]) / (2 * step)
