"""Running an oracle case through recurra, in any array library and dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
from typing import Any

import array_api_strict
import jax
import ml_dtypes
import numpy as np
from oracle.agreement import tol
from oracle.cases import Case
import torch

import recurra

FORWARD = {"lstm": recurra.lstm, "gru": recurra.gru, "single_gate_rnn": recurra.single_gate_rnn}
BACKWARD = {
    "lstm": recurra.lstm_gradients,
    "gru": recurra.gru_gradients,
    "single_gate_rnn": recurra.single_gate_rnn_gradients,
}
DESCRIPTORS = {
    "lstm": recurra.LSTMDescriptor,
    "gru": recurra.GRUDescriptor,
    "single_gate_rnn": recurra.SingleGateRNNDescriptor,
}
Results = dict[str, np.ndarray]


def _read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def _to_torch(array: np.ndarray) -> torch.Tensor:
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(array.copy())


FROM_NUMPY: dict[str, Callable[[np.ndarray], Any]] = {
    "numpy": np.copy,
    "read-only numpy": _read_only,
    "torch": _to_torch,
    "array_api_strict": array_api_strict.asarray,
    "jax": jax.numpy.asarray,
}


def to_numpy(array: Any) -> np.ndarray:
    """Values in float64 (or as they are, for lengths and resets)."""
    if isinstance(array, torch.Tensor):
        array = array.to(torch.float64) if array.is_floating_point() else array
        return array.numpy()
    array = np.asarray(array)
    return array.astype(np.float64) if array.dtype.kind in "fV" or array.dtype == ml_dtypes.bfloat16 else array


@contextlib.contextmanager
def double_precision(where: str) -> Iterator[None]:
    """JAX keeps float64 only where it is told to."""
    with jax.enable_x64(True) if where == "jax" else contextlib.nullcontext():
        yield


def arguments(named: dict[str, np.ndarray | None], where: str, dtype: str) -> dict[str, Any]:
    """A case's arrays in a library, the floating ones in `dtype`; absent ones left out."""
    float_type = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    given = {k: v for k, v in named.items() if v is not None}
    return {k: FROM_NUMPY[where](v.astype(float_type) if v.dtype == np.float64 else v) for k, v in given.items()}


def descriptor(case: Case, **more: Any) -> Any:
    """The case's descriptor, with the training state."""
    return DESCRIPTORS[case.op](**case.options, training=True, **more)


def saved_state(op: str, out: Any) -> dict[str, Any]:
    """What the gradient op wants to know of the forward results."""
    if op == "lstm":
        return {"z_state": out.z, "cell_output_fwd": out.c}
    return {"z_state": out.z, "output_fwd": out.h} if op == "gru" else {"z_state": out.z}


def compute(op: str, options: Any, inputs: dict[str, Any], gradients_in: dict[str, Any]) -> tuple[Any, Any]:
    """The forward results and the gradients."""
    out = FORWARD[op](**inputs, descriptor=options)
    gradients_in = {"source_gradient": None, **gradients_in}
    return out, BACKWARD[op](**inputs, **gradients_in, **saved_state(op, out), descriptor=options)


def run(case: Case, where: str, dtype: str = "float64") -> tuple[Results, Results]:
    """A case's results in a library and dtype; under `jax.jit` in JAX."""
    with double_precision(where):
        options = descriptor(case)
        inputs, gradients_in = arguments(case.inputs, where, dtype), arguments(case.gradients_in, where, dtype)
        both = lambda i, g: compute(case.op, options, i, g)  # noqa: E731
        out, gradients = (jax.jit(both) if where == "jax" else both)(inputs, gradients_in)
        wanted = inputs["source"].dtype
        for name in (*out._fields, *gradients._fields):
            value = getattr(out, name) if name in out._fields else getattr(gradients, name)
            assert type(value) is type(inputs["source"]), f"{name} is of another library"
            assert value.dtype == wanted, f"{name} has dtype {value.dtype}"
        return (
            {name: to_numpy(getattr(out, name)) for name in out._fields},
            {name: to_numpy(getattr(gradients, name)) for name in gradients._fields},
        )


def tolerance(case: Case, dtype: str, backward: bool) -> float:
    """The derived tolerance of a case: its sums run over units, or, for weight gradients, over steps and rows."""
    sizes = case.sizes
    length = max(4 * sizes["H"], sizes.get("I", 1)) * (max(sizes["N"], 1) if backward else 1)
    return tol(dtype, length, max(sizes["T"], 1), backward)


def distance(got: np.ndarray, wanted: np.ndarray) -> float:
    """The greatest error, relative to the greatest value (or to 1, if that is smaller)."""
    assert got.shape == wanted.shape, f"shape {got.shape} instead of {wanted.shape}"
    if not wanted.size:
        return 0.0
    assert np.isfinite(got).all(), "not finite"
    return float(np.abs(got - wanted).max() / max(np.abs(wanted).max(), 1.0))
