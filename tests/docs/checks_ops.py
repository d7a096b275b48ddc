"""Checks of the map's rows about the other operations: each on arrays and in a graph, against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from docs.mpsgraph_rows import Check, Row
import recurra
from recurra import ops

X = np.asarray([[1.5, -2.5, 0.5], [-0.25, 3.0, 2.0]], np.float32)
Y = np.asarray([[2.0, 1.5, -0.5], [4.0, -3.0, 0.75]], np.float32)
ROW = np.asarray([0.5, -1.0, 2.0], np.float32)
SMALL = np.asarray([[0.5, -0.25, 0.125], [0.75, -0.5, 0.0]], np.float32)  # in (-1, 1)
POSITIVE = np.asarray([[1.5, 2.5, 0.5], [0.25, 3.0, 2.0]], np.float32)
NAN = np.asarray([[math.nan, 1.0, 2.0], [math.inf, -math.inf, 0.0]], np.float32)
P = np.asarray([True, True, False, False])
Q = np.asarray([True, False, True, False])
IDS = np.asarray([1, 0, 1], np.int32)
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def agrees(expected: Any, *args: Any, **kwargs: Any) -> Check:
    """The function of the row, with the row's arguments, gives `expected`: on arrays, and on tensors of a graph."""

    def check(row: Row) -> None:
        _same(row(*args, **kwargs), expected)
        g = recurra.Graph()
        feeds: dict[Any, Any] = {}

        def fed(value: Any) -> Any:
            if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
                return [fed(part) for part in value]
            if not isinstance(value, np.ndarray):
                return value
            tensor = g.placeholder(value.shape, value.dtype)
            feeds[tensor] = value
            return tensor

        made = row(*map(fed, args), **{name: fed(value) for name, value in kwargs.items()})
        is_several = isinstance(made, tuple)
        values = g.run(feeds, list(made) if is_several else made)
        _same(tuple(values) if is_several else values, expected)

    return check


def _same(got: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert len(got) == len(expected)
        for one, wanted in zip(got, expected, strict=True):
            _same(one, wanted)
        return
    expected = np.asarray(expected)
    assert got.shape == expected.shape
    assert got.dtype == (np.float32 if expected.dtype == np.float64 else expected.dtype)
    assert np.allclose(got, expected, rtol=1e-5, atol=1e-6, equal_nan=True)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x)
    return powers / powers.sum(-1, keepdims=True)


def _written(start: np.ndarray, at: Any, update: Any) -> np.ndarray:
    made = start.copy()
    np.add.at(made, at, update)
    return made


def _replaced(start: np.ndarray, at: Any, update: Any) -> np.ndarray:
    made = start.copy()
    made[at] = update
    return made


ARITHMETIC: dict[str, Check] = {
    "addition(_:_:name:)": agrees(X + ROW, X, ROW),
    "subtraction(_:_:name:)": agrees(X - Y, X, Y),
    "multiplication(_:_:name:)": agrees(X * Y, X, Y),
    "division(_:_:name:)": agrees(X / Y, X, Y),
    "divisionNoNaN(_:_:name:)": agrees(np.where(SMALL == 0, 0, X / np.where(SMALL == 0, 1, SMALL)), X, SMALL),
    "modulo(_:_:name:)": agrees(np.fmod(X, Y), X, Y),
    "floorModulo(_:_:name:)": agrees(np.mod(X, Y), X, Y),
    "power(_:_:name:)": agrees(POSITIVE**Y, POSITIVE, Y),
    "maximum(_:_:name:)": agrees(np.fmax(NAN, X), NAN, X),
    "minimum(_:_:name:)": agrees(np.fmin(NAN, X), NAN, X),
    "maximumWithNaNPropagation(_:_:name:)": agrees(np.maximum(NAN, X), NAN, X),
    "minimumWithNaNPropagation(_:_:name:)": agrees(np.minimum(NAN, X), NAN, X),
    "exponent(with:name:)": agrees(np.exp(X), X),
    "exponentBase2(with:name:)": agrees(2.0**X, X),
    "exponentBase10(with:name:)": agrees(10.0**X, X),
    "logarithm(with:name:)": agrees(np.log(POSITIVE), POSITIVE),
    "logarithmBase2(with:name:)": agrees(np.log2(POSITIVE), POSITIVE),
    "logarithmBase10(with:name:)": agrees(np.log10(POSITIVE), POSITIVE),
    "square(with:name:)": agrees(X * X, X),
    "squareRoot(with:name:)": agrees(POSITIVE**0.5, POSITIVE),
    "reverseSquareRoot(with:name:)": agrees(POSITIVE**-0.5, POSITIVE),
    "reciprocal(with:name:)": agrees(1 / X, X),
    "absolute(with:name:)": agrees(np.abs(X), X),
    "negative(with:name:)": agrees(-X, X),
    "sign(with:name:)": agrees(np.sign(SMALL), SMALL),
    "ceil(with:name:)": agrees([[2, -2, 1], [0, 3, 2.0]], X),
    "floor(with:name:)": agrees([[1, -3, 0], [-1, 3, 2.0]], X),
    "round(with:name:)": agrees([[2, -3, 1], [0, 3, 2.0]], X),
    "rint(with:name:)": agrees([[2, -2, 0], [0, 3, 2.0]], X),
    "truncate(_:name:)": agrees([[1, -2, 0], [0, 3, 2.0]], X),
    **{f"{f}(with:name:)": agrees(getattr(np, f)(X), X) for f in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "asin(with:name:)": agrees(np.arcsin(SMALL), SMALL),
    "acos(with:name:)": agrees(np.arccos(SMALL), SMALL),
    "atan(with:name:)": agrees(np.arctan(X), X),
    "atan2(withPrimaryTensor:secondaryTensor:name:)": agrees(np.arctan2(X, Y), X, Y),
    "asinh(with:name:)": agrees(np.arcsinh(X), X),
    "acosh(with:name:)": agrees(np.arccosh(POSITIVE + 1), POSITIVE + 1),
    "atanh(with:name:)": agrees(np.arctanh(SMALL), SMALL),
    "erf(with:name:)": agrees(np.vectorize(math.erf)(X), X),
    "identity(with:name:)": agrees(X, X),
}

COMPARISON: dict[str, Check] = {
    "equal(_:_:name:)": agrees(X == 2, X, np.full_like(X, 2)),
    "notEqual(_:_:name:)": agrees(X != 2, X, np.full_like(X, 2)),
    "lessThan(_:_:name:)": agrees(X < 2, X, np.full_like(X, 2)),
    "lessThanOrEqualTo(_:_:name:)": agrees(X <= 2, X, np.full_like(X, 2)),
    "greaterThan(_:_:name:)": agrees(X > 2, X, np.full_like(X, 2)),
    "greaterThanOrEqualTo(_:_:name:)": agrees(X >= 2, X, np.full_like(X, 2)),
    "logicalAND(_:_:name:)": agrees(P & Q, P, Q),
    "logicalOR(_:_:name:)": agrees(P | Q, P, Q),
    "logicalXOR(_:_:name:)": agrees(P ^ Q, P, Q),
    "logicalNAND(_:_:name:)": agrees(~(P & Q), P, Q),
    "logicalNOR(_:_:name:)": agrees(~(P | Q), P, Q),
    "logicalXNOR(_:_:name:)": agrees(P == Q, P, Q),
    "not(with:name:)": agrees(~P, P),
    "isNaN(with:name:)": agrees(np.isnan(NAN), NAN),
    "isFinite(with:name:)": agrees(np.isfinite(NAN), NAN),
    "isInfinite(with:name:)": agrees(np.isinf(NAN), NAN),
    "select(predicate:trueTensor:falseTensor:name:)": agrees(np.where(X > 0, X, Y), X > 0, X, Y),
    "clamp(_:min:max:name:)": agrees(np.clip(X, -1, ROW + 2), X, np.float32(-1).reshape(()), ROW + 2),
}

_TURNED = np.ascontiguousarray(CUBE[:1].transpose(0, 2, 1))  # [1, 4, 3]: broadcast to both of CUBE
_Q, _K, _V = SMALL, POSITIVE, Y
_MASK = np.asarray([[0, -math.inf], [0, 0]], np.float32)

MATRICES: dict[str, Check] = {
    "matrixMultiplication(primary:secondary:name:)": agrees(CUBE @ _TURNED, CUBE, _TURNED),
    "scaledDotProductAttention(query:key:value:mask:scale:name:)": agrees(
        _softmax(0.5 * _Q @ _K.T + _MASK) @ _V, _Q, _K, _V, _MASK, 0.5
    ),
    "scaledDotProductAttention(query:key:value:scale:name:)": agrees(
        _softmax(0.5 * _Q @ _K.T) @ _V, _Q, _K, _V, scale=0.5
    ),
    "bandPart(_:numLower:numUpper:name:)": agrees(np.triu(np.tril(CUBE, 1), -1), CUBE, 1, 1),
}


def reshape_by_tensor(row: Row) -> None:
    assert row(CUBE, np.asarray([6, 4], np.int32)).shape == (6, 4)
    g = recurra.Graph()
    x, shape = g.placeholder([2, 3, 4]), g.placeholder([2], "int32")
    made = row(x, shape)
    assert made.shape == (-1, -1)
    assert g.run({x: CUBE, shape: np.asarray([6, 4], np.int32)}, made).tolist() == CUBE.reshape(6, 4).tolist()


def no_tensor_for_an_axis(row: Row) -> None:
    g = recurra.Graph()
    x, axis = g.placeholder([2, 3]), g.placeholder([], "int32")
    for call in (
        lambda: ops.sort(x, axis),
        lambda: ops.cumsum(x, axis),
        lambda: ops.expand_dims(x, axis),
        lambda: ops.top_k(x, axis),
        lambda: ops.broadcast(x, g.placeholder([2], "int32")),
    ):
        with pytest.raises((recurra.ArgumentTypeError, TypeError)):
            call()


SHAPE: dict[str, Check] = {
    "reshape(_:shape:name:)": agrees(CUBE.reshape(6, 4), CUBE, (-1, 4)),
    "reshape(_:shapeTensor:name:)": reshape_by_tensor,
    "transpose(_:permutation:name:)": agrees(CUBE.transpose(2, 0, 1), CUBE, (2, 0, 1)),
    "transposeTensor(_:dimension:withDimension:name:)": agrees(CUBE.swapaxes(0, 2), CUBE, 0, 2),
    "expandDims(_:axis:name:)": agrees(X[:, None], X, 1),
    "expandDims(_:axes:name:)": agrees(X[None, :, None], X, (0, 2)),
    "squeeze(_:name:)": agrees(X, X[None, :, None]),
    "squeeze(_:axis:name:)": agrees(X[:, None], X[None, :, None], 0),
    "squeeze(_:axes:name:)": agrees(X, X[None, :, None], (0, 2)),
    "flatten2D(_:axis:name:)": agrees(CUBE.reshape(6, 4), CUBE, 2),
    "broadcast(_:shape:name:)": agrees(np.broadcast_to(ROW, (2, 3)), ROW, (2, 3)),
    "reverse(_:axes:name:)": agrees(X[:, ::-1], X, (1,)),
    "reverse(_:name:)": agrees(X[::-1, ::-1], X),
    "padTensor(_:with:leftPadding:rightPadding:constantValue:name:)": agrees(
        np.pad(X, ((1, 0), (2, 1)), constant_values=7), X, (1, 2), (0, 1), "constant", 7
    ),
    "tileTensor(_:withMultiplier:name:)": agrees(np.tile(X, (2, 3)), X, (2, 3)),
    "shapeOf(_:name:)": agrees(np.asarray([2, 3, 4], np.int32), CUBE),
    "axisTensor:": no_tensor_for_an_axis,
}


def no_interleaving(row: Row) -> None:
    with pytest.raises(TypeError, match="interleave"):
        ops.concat([ROW, ROW], 0, interleave=True)  # type: ignore[call-arg]
    assert ops.reshape(ops.stack([ROW, -ROW], 1), (-1,)).tolist() == [0.5, -0.5, -1, 1, 2, -2], "as the row says"


def no_slice_masks(row: Row) -> None:
    with pytest.raises(TypeError, match="start_mask"):
        ops.slice(X, (0, 0), (1, 1), start_mask=1)  # type: ignore[call-arg]
    assert ops.slice(X, (None, 1), (1, None)).tolist() == X[:1, 1:].tolist(), "as the row says"
    g = recurra.Graph()
    assert g.run({}, g.constant(X)[0]).tolist() == X[0].tolist()


PARTS: dict[str, Check] = {
    "concatTensors(_:dimension:name:)": agrees(np.concatenate([X, Y, X], 1), [X, Y, X], 1),
    "concatTensor(_:with:dimension:name:)": agrees(np.concatenate([X, Y]), [X, Y], 0),
    "concatTensors(_:dimension:interleave:name:)": no_interleaving,
    "stack(_:axis:name:)": agrees(np.stack([X, Y], 1), [X, Y], 1),
    "split(_:numSplits:axis:name:)": agrees(tuple(np.split(CUBE, 2, 2)), CUBE, 2, 2),
    "split(_:splitSizes:axis:name:)": agrees(tuple(np.split(CUBE, [1], 2)), CUBE, (1, 3), 2),
    "sliceTensor(_:dimension:start:length:name:)": agrees(CUBE[:, :, -3:-1], CUBE, 2, -3, 2),
    "sliceTensor(_:starts:ends:strides:name:)": agrees(CUBE[0:2, 1:3, 0:4:2], CUBE, (0, 1, 0), (2, 3, 4), (1, 1, 2)),
    "sliceTensor(_:starts:ends:strides:startMask:endMask:squeezeMask:name:)": no_slice_masks,
    "sliceUpdateDataTensor(_:update:starts:ends:strides:name:)": agrees(
        _replaced(X, (slice(0, 2), slice(0, 3, 2)), Y[:, :2]), X, Y[:, :2], (0, 0), (2, 3), (1, 2)
    ),
}

_AT = np.asarray([[2, 0], [1, 1]], np.int32)  # for each row of a [2, 3] tensor
_UPDATES = np.asarray([[1.0, 2.0], [3.0, 4.0]], np.float32)
_ROWS = np.arange(2)[:, None]


def coordinate(row: Row) -> None:
    g = recurra.Graph()
    assert g.run({}, row(1, (2, 3), graph=g)).tolist() == [[0, 1, 2], [0, 1, 2]]


PLACES: dict[str, Check] = {
    "gather(withUpdatesTensor:indicesTensor:axis:batchDimensions:name:)": agrees(CUBE[:, IDS], CUBE, IDS, 1, 0),
    "gatherND(withUpdatesTensor:indicesTensor:batchDimensions:name:)": agrees(
        CUBE[[1, 0], [2, 1]], CUBE, np.asarray([[1, 2], [0, 1]], np.int32), 0
    ),
    "gatherAlongAxis(_:updates:indices:name:)": agrees(np.take_along_axis(X, _AT, 1), X, _AT, 1),
    "scatter(_:indices:shape:axis:mode:name:)": agrees(
        _written(np.zeros((2, 3), np.float32), IDS, np.stack([ROW] * 3)), np.stack([ROW] * 3), IDS, (2, 3), 0, "add"
    ),
    "scatterWithData(_:updates:indices:axis:mode:name:)": agrees(
        _written(X, IDS, np.stack([ROW] * 3)), X, np.stack([ROW] * 3), IDS, 0, "add"
    ),
    "scatterND(withUpdatesTensor:indicesTensor:shape:batchDimensions:mode:name:)": agrees(
        _written(np.zeros((2, 3), np.float32), ([1, 0], [2, 1]), [5, 6]),
        np.asarray([5, 6], np.float32),
        np.asarray([[1, 2], [0, 1]], np.int32),
        (2, 3),
        0,
        "add",
    ),
    "scatterNDWithData(_:updates:indices:batchDimensions:mode:name:)": agrees(
        _replaced(X, ([1, 0], [2, 1]), [5, 6]),
        X,
        np.asarray([5, 6], np.float32),
        np.asarray([[1, 2], [0, 1]], np.int32),
        0,
        "set",
    ),
    "scatterAlongAxis(_:updates:indices:shape:mode:name:)": agrees(
        _written(np.zeros((2, 3), np.float32), (_ROWS, _AT), _UPDATES), _UPDATES, _AT, (2, 3), 1, "add"
    ),
    "scatterAlongAxis(_:data:updates:indices:mode:name:)": agrees(
        _written(X, (_ROWS, _AT), _UPDATES), X, _UPDATES, _AT, 1, "add"
    ),
    "oneHot(withIndicesTensor:depth:axis:dataType:onValue:offValue:name:)": agrees(
        np.asarray([[9, 8, 9], [8, 9, 8], [9, 9, 9]], np.int32).T, IDS, 3, 1, "int32", 8, 9
    ),
    "nonZeroIndices(_:name:)": agrees(np.argwhere(SMALL).astype(np.int32), SMALL),
    "coordinate(alongAxis:withShape:name:)": coordinate,
    "coordinate(alongAxis:withShapeTensor:name:)": agrees(np.asarray([[0, 1, 2]] * 2, np.int32), 1, like=X),
}

REDUCTION: dict[str, Check] = {
    "reductionSum(with:axes:name:)": agrees(CUBE.sum((0, 2), keepdims=True), CUBE, (0, 2)),
    "reductionSum(with:axis:name:)": agrees(CUBE.sum(1, keepdims=True), CUBE, 1),
    "reductionProduct(with:axes:name:)": agrees(X.prod(1, keepdims=True), X, (1,)),
    "reductionMaximum(with:axes:name:)": agrees(NAN.max(1, keepdims=True), NAN, (1,)),
    "reductionMinimum(with:axes:name:)": agrees(NAN.min(1, keepdims=True), NAN, (1,)),
    "reductionMaximumPropagateNaN(with:axes:name:)": agrees(NAN.max(1, keepdims=True), NAN, (1,)),
    "reductionMinimumPropagateNaN(with:axes:name:)": agrees(NAN.min(1, keepdims=True), NAN, (1,)),
    "reductionAnd(with:axes:name:)": agrees(np.asarray([[True], [False]]), np.stack([P[:2], Q[:2]]), (1,)),
    "reductionOr(with:axes:name:)": agrees(np.asarray([[False], [True]]), np.stack([P[2:], Q[2:]]), (1,)),
    "reductionArgMaximum(with:axis:name:)": agrees(np.asarray([[0], [1]], np.int32), X, 1),
    "reductionArgMinimum(with:axis:name:)": agrees(np.asarray([[1], [0]], np.int32), X, 1),
    "mean(of:axes:name:)": agrees(X.mean(0, keepdims=True), X, (0,)),
    "variance(of:axes:name:)": agrees(X.var(0, keepdims=True), X, (0,)),
    "variance(of:mean:axes:name:)": agrees((X**2).mean(0, keepdims=True), X, (0,), np.zeros((1, 3), np.float32)),
    "cumulativeSum(_:axis:exclusive:reverse:name:)": agrees(
        np.asarray([[0.0, 1.5, -1.0], [0.0, -0.25, 2.75]]), X, 1, True, False
    ),
    "cumulativeProduct(_:axis:exclusive:reverse:name:)": agrees(np.cumprod(X, 1), X, 1, False, False),
    "cumulativeMaximum(_:axis:exclusive:reverse:name:)": agrees(np.maximum.accumulate(X, 1), X, 1, False, False),
    "cumulativeMinimum(_:axis:exclusive:reverse:name:)": agrees(
        np.minimum.accumulate(X[:, ::-1], 1)[:, ::-1], X, 1, False, True
    ),
    "sort(_:axis:descending:name:)": agrees(-np.sort(-X, 1), X, 1, True),
    "argSort(_:axis:descending:name:)": agrees(np.argsort(X, 1).astype(np.int32), X, 1, False),
    "topK(_:k:name:)": agrees((-np.sort(-X, 1)[:, :2], np.argsort(-X, 1)[:, :2].astype(np.int32)), X, 2),
    "topK(_:axis:k:name:)": agrees((X.max(0, keepdims=True), X.argmax(0)[None].astype(np.int32)), X, 1, 0),
}

_LABELS = np.asarray([[0, 1, 0], [0.25, 0.25, 0.5]], np.float32)
_LOSSES = -(_LABELS * np.log(_softmax(X))).sum(1)

ACTIVATIONS: dict[str, Check] = {
    "reLU(with:name:)": agrees(np.maximum(X, 0), X),
    "reLUGradient(withIncomingGradient:sourceTensor:name:)": agrees(Y * (X > 0), Y, X),
    "leakyReLU(with:alpha:name:)": agrees(np.where(X > 0, X, 0.25 * X), X, 0.25),
    "leakyReLU(with:alphaTensor:name:)": agrees(np.where(X > 0, X, ROW * X), X, ROW),
    "leakyReLUGradient(withIncomingGradient:sourceTensor:alphaTensor:name:)": agrees(
        np.where(X > 0, Y, ROW * Y), Y, X, ROW
    ),
    "sigmoid(with:name:)": agrees(_sigmoid(X), X),
    "sigmoidGradient(withIncomingGradient:sourceTensor:name:)": agrees(Y * _sigmoid(X) * (1 - _sigmoid(X)), Y, X),
    "softMax(with:axis:name:)": agrees(_softmax(X), X, -1),
    "softMaxGradient(withIncomingGradient:sourceTensor:axis:name:)": agrees(
        (Y - (Y * _softmax(X)).sum(1, keepdims=True)) * _softmax(X), Y, X, 1
    ),
    "softMaxCrossEntropy(_:labels:axis:reuctionType:name:)": agrees(_LOSSES.mean(), X, _LABELS, 1, "mean"),
    "softMaxCrossEntropyGradient(_:source:labels:axis:reuctionType:name:)": agrees(
        2 * (_softmax(X) - _LABELS), np.float32(2).reshape(()), X, _LABELS, 1, "sum"
    ),
    "normalize(_:mean:variance:gamma:beta:epsilon:name:)": agrees(
        (X - ROW) / np.sqrt(POSITIVE[:1] + 0.1) * 2 + 1,
        X,
        ROW,
        POSITIVE[:1],
        np.full(3, 2, np.float32),
        np.ones(3, np.float32),
        0.1,
    ),
}


def dropout(row: Row) -> None:
    g = recurra.Graph(seed=1)
    x = g.placeholder([1000])
    ones = np.ones(1000, np.float32)
    for rate in (0.25, g.constant(np.float32(0.25))):
        value = g.run({x: ones}, row(x, rate))
        kept = value != 0
        assert np.allclose(value[kept], 1 / 0.75)
        assert 650 < kept.sum() < 850
    assert not row(ones, 1.0).any()


def drawn(low: float, high: float, repeats: bool, *args: Any, like: bool = False, **kwargs: Any) -> Check:
    """Numbers in [low, high): in a graph, the same in every run if `repeats`."""

    def check(row: Row) -> None:
        g = recurra.Graph()
        keywords = {**kwargs, **({"like": g.constant(X)} if like else {"graph": g})}
        tensor = row(*args, **keywords)
        first, second = g.run({}, tensor), g.run({}, tensor)
        assert first.shape == (2, 3)
        assert first.dtype == np.float32
        assert ((first >= low) & (first < high)).all()
        assert (first.tolist() == second.tolist()) is repeats

    return check


def drawn_from_state(*distribution: str) -> Check:
    def check(row: Row) -> None:
        g = recurra.Graph()
        state = ops.random_state(5, g)
        first, state_after = row((2, 3), state, *distribution)
        second, _ = row((2, 3), state_after, *distribution)
        values = g.run({}, [first, second])
        assert values[0].tolist() != values[1].tolist()
        assert g.run({}, first).tolist() == values[0].tolist()

    return check


def random_state(row: Row) -> None:
    g = recurra.Graph()
    assert g.run({}, row(5, g)).tolist() == [5, 0, 0]


def no_state_by_counter(row: Row) -> None:
    with pytest.raises(TypeError, match="counter_low"):
        ops.random_state(counter_low=1, counter_high=2, key=3)  # type: ignore[call-arg]


RANDOM: dict[str, Check] = {
    "dropout(_:rate:name:)": dropout,
    "randomUniformTensor(withShape:name:)": drawn(0, 1, False, (2, 3)),
    "randomUniformTensor(withShape:seed:name:)": drawn(0, 1, True, (2, 3), seed=5),
    "randomUniformTensor(withShape:stateTensor:name:)": drawn_from_state(),
    "randomUniformTensor(withShapeTensor:name:)": drawn(0, 1, False, like=True),
    "randomTensor(withShape:descriptor:name:)": drawn(-2, 2, False, (2, 3), "truncated_normal"),
    "randomTensor(withShape:descriptor:seed:name:)": drawn(-9, 9, True, (2, 3), "normal", seed=5),
    "randomTensor(withShape:descriptor:stateTensor:name:)": drawn_from_state("normal"),
    "randomPhiloxStateTensor(withSeed:name:)": random_state,
    "randomPhiloxStateTensor(withCounterLow:counterHigh:key:name:)": no_state_by_counter,
}


def apply_sgd(row: Row) -> None:
    g = recurra.Graph()
    v = g.variable(X)
    g.run({}, (), [row(g, 0.5, v, g.constant(Y))])
    assert g.run({}, v).tolist() == (X - 0.5 * Y).tolist()


def _adam(rate: float) -> tuple[np.ndarray, ...]:
    m, v = 0.75 * SMALL + 0.25 * Y, 0.5 * POSITIVE + 0.5 * Y * Y
    largest = np.maximum(v, 4)
    return X - rate * m / (np.sqrt(largest) + 0.125), m, v, largest


_SWIFT = "values:momentum:velocity:maximumVelocity:gradient:name:)"
_STATE = (X, SMALL, POSITIVE, np.full_like(X, 4), Y)

TRAINING: dict[str, Check] = {
    "stochasticGradientDescent(learningRate:values:gradient:name:)": agrees(X - 0.5 * Y, 0.5, X, Y),
    "applyStochasticGradientDescent(learningRate:variable:gradient:name:)": apply_sgd,
    f"adam(learningRate:beta1:beta2:epsilon:beta1Power:beta2Power:{_SWIFT}": agrees(
        _adam(0.1 * math.sqrt(1 - 0.25) / (1 - 0.5)), 0.1, 0.75, 0.5, 0.125, 0.5, 0.25, *_STATE
    ),
    f"adam(currentLearningRate:beta1:beta2:epsilon:{_SWIFT}": agrees(_adam(0.1), 0.1, 0.75, 0.5, 0.125, *_STATE),
}

DTYPE: dict[str, Check] = {
    "cast(_:to:name:)": agrees(np.trunc(X).astype(np.int32), X, "int32"),
    "reinterpretCast(_:to:name:)": agrees(X.view(np.int32), X, "int32"),
}

CHECKS: dict[str, Check] = {
    **ARITHMETIC,
    **COMPARISON,
    **MATRICES,
    **SHAPE,
    **PARTS,
    **PLACES,
    **REDUCTION,
    **ACTIVATIONS,
    **RANDOM,
    **TRAINING,
    **DTYPE,
}
