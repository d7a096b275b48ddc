"""An installed recurra, without torch and without the tests: the native kernels agree with the reference."""

import sys
import time

import numpy as np

begin = time.perf_counter()
import recurra  # noqa: E402
from recurra import _native, _op  # noqa: E402

took = time.perf_counter() - begin
T, N, I, H = 20, 7, 9, 33


def results(op: str, G: int, dtype: str) -> list[np.ndarray]:
    """Forward and gradients of an op on the same numbers each time."""
    rng = np.random.default_rng(1)
    draw = lambda *shape: (0.3 * rng.normal(size=shape)).astype(dtype)  # noqa: E731
    x, W, R, b = draw(T, N, I), draw(G * H, I), draw(G * H, H), draw(G * H)
    options = {
        "lstm": recurra.LSTMDescriptor,
        "gru": recurra.GRUDescriptor,
        "single_gate_rnn": recurra.SingleGateRNNDescriptor,
    }[op](training=True)
    out = getattr(recurra, op)(x, R, input_weight=W, bias=b, descriptor=options)
    saved = {"cell_output_fwd": out.c} if op == "lstm" else {"output_fwd": out.h} if op == "gru" else {}
    gradients = getattr(recurra, f"{op}_gradients")(
        x, R, source_gradient=draw(T, N, H), z_state=out.z, input_weight=W, bias=b, descriptor=options, **saved
    )
    return [a for a in (*out, *gradients) if a is not None]


compared = 0
for op, G in {"lstm": 4, "gru": 3, "single_gate_rnn": 1}.items():
    for dtype, bound in {"float32": 1e-4, "float64": 1e-12}.items():
        assert (
            recurra.explain(getattr(recurra, op), np.ones((2, 1, G), dtype), np.ones((G, 1), dtype)).split()[-1]
            == "cpu"
        )
        native = results(op, G, dtype)
        backends, _op.BACKENDS[:] = list(_op.BACKENDS), []
        reference = results(op, G, dtype)
        _op.BACKENDS[:] = backends
        for a, b in zip(native, reference, strict=True):
            assert np.abs(a - b).max() <= bound * max(1, np.abs(b).max()), (op, dtype)
            compared += 1
x, R = np.ones((T, N, 4 * H), np.float32), np.full((4 * H, H), 0.1, np.float32)
stream = recurra.Stream.lstm(R)
state, h = stream.state(batch=N), recurra.lstm(x, R).h
np.testing.assert_allclose(stream.block(x[:-1], state), h[:-1], rtol=1e-5)
np.testing.assert_allclose(stream.step(x[-1], state), h[-1], rtol=1e-5)
print(
    f"smoke: Python {sys.version.split()[0]}, NumPy {np.__version__}, {_native.isa()}: {compared} results agree;"
    f" import recurra takes {1000 * took:.0f} ms after NumPy's"
)
