"""`lstm` and `lstm_gradients`: the public functions, their op records, and how they are differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _call
from .._descriptor import snapshot
from .._pair import op_pair
from .._results import LSTMGradients, LSTMResults, results, selected
from . import reference
from .spec import GATES, LSTMDescriptor

ORDER = ("source", "recurrent_weight", "input_weight", "bias", "peephole", "init_state", "init_cell")


def lstm(
    source: Any,
    recurrent_weight: Any,
    *,
    input_weight: Any = None,
    bias: Any = None,
    init_state: Any = None,
    init_cell: Any = None,
    mask: Any = None,
    peephole: Any = None,
    lengths: Any = None,
    resets: Any = None,
    descriptor: LSTMDescriptor | None = None,
    name: str | None = None,
) -> LSTMResults:
    """Long short-term memory over a whole sequence, as MPSGraph's LSTM computes it.

        a[t] = source[t] @ W^T + b + (mask * h[t-1]) @ R^T + p * c[t-1]      blocks i, f, z, o
        c[t] = f(a_f) c[t-1] + i(a_i) z(a_z)
        h[t] = o(a_o) g(c[t])

    Args:
        source: [T, N, I], or [T, N, D*4H] already projected when there is no `input_weight`.
        recurrent_weight: R, [4H, H], or [2, 4H, H] when bidirectional.
        input_weight: W, [D*4H, I].
        bias: b, [D*4H], or one element.
        init_state, init_cell: h[-1] and c[-1], [N, D*H]; zeros when absent.
        mask: multiplies h[t-1] inside the recurrent product; broadcast to [N, D*H], or [T, N, D*H].
        peephole: p, [4H], or [2, 4H] when bidirectional.
        lengths: int [N]: row n has the steps t < lengths[n]; results at the others are 0.
        resets: bool [T, N]: the state does not cross from step t-1 to step t.
        descriptor: the options; a snapshot is taken.
        name: the node's name, in a graph.

    Returns:
        [h], [h, c] with `produce_cell`, or [h, c, z] with `training`; also by name: `out.h`. Tensors if an input
        is one, otherwise arrays of the inputs' library, dtype and device.

    Raises:
        ShapeError, DTypeError, DeviceError, ArgumentError: an input breaks a rule; the message says which.

    Example:
        >>> import numpy as np
        >>> x, R = np.ones((5, 2, 32), np.float32), np.zeros((32, 8), np.float32)
        >>> lstm(x, R).h.shape
        (5, 2, 8)
    """
    snap = snapshot("lstm", descriptor, LSTMDescriptor)
    named = {
        "source": source,
        "recurrent_weight": recurrent_weight,
        "input_weight": input_weight,
        "bias": bias,
        "init_state": init_state,
        "init_cell": init_cell,
        "mask": mask,
        "peephole": peephole,
        "lengths": lengths,
        "resets": resets,
    }
    wanted = (True, snap.produce_cell or snap.training, snap.training)
    outputs = _call.call(LSTM, named, snap, wanted, name)
    return selected(LSTMResults, ("h", "c", "z"), outputs, wanted)


def lstm_gradients(
    source: Any,
    recurrent_weight: Any,
    source_gradient: Any,
    z_state: Any,
    cell_output_fwd: Any,
    *,
    state_gradient: Any = None,
    cell_gradient: Any = None,
    input_weight: Any = None,
    bias: Any = None,
    init_state: Any = None,
    init_cell: Any = None,
    mask: Any = None,
    peephole: Any = None,
    cell_sequence_gradient: Any = None,
    lengths: Any = None,
    resets: Any = None,
    descriptor: LSTMDescriptor | None = None,
    name: str | None = None,
) -> LSTMGradients:
    """The gradients of a loss through `lstm`, as MPSGraph's LSTMGradients.

    Args:
        source, recurrent_weight, input_weight, bias, init_state, init_cell, mask, peephole, lengths, resets,
            descriptor: as they were given to `lstm`.
        source_gradient: dL/dh[t], [T, N, D*H]; None means zeros.
        z_state: the training state, the third result of `lstm`.
        cell_output_fwd: the cell, the second result of `lstm`.
        state_gradient, cell_gradient: further gradients of the last visited h and c, [N, D*H].
        cell_sequence_gradient: dL/dc[t] for every t, [T, N, D*H].
        name: the node's name, in a graph.

    Returns:
        The gradients of the inputs that were given, in the order source, recurrent_weight, input_weight, bias,
        peephole, init_state, init_cell; also by name, None where the input was absent. Each has its input's shape.

    Raises:
        ShapeError, DTypeError, DeviceError, ArgumentError: an input breaks a rule; the message says which.

    Example:
        >>> import numpy as np
        >>> x, R = np.ones((5, 2, 32), np.float32), np.zeros((32, 8), np.float32)
        >>> d = LSTMDescriptor(training=True)
        >>> h, c, z = lstm(x, R, descriptor=d)
        >>> lstm_gradients(x, R, np.ones_like(h), z, c, descriptor=d).recurrent_weight.shape
        (32, 8)
    """
    snap = snapshot("lstm_gradients", descriptor, LSTMDescriptor)
    named = {
        "source": source,
        "recurrent_weight": recurrent_weight,
        "input_weight": input_weight,
        "bias": bias,
        "peephole": peephole,
        "init_state": init_state,
        "init_cell": init_cell,
        "source_gradient": source_gradient,
        "z_state": _call.required("lstm_gradients", "z_state", z_state),
        "cell_output_fwd": _call.required("lstm_gradients", "cell_output_fwd", cell_output_fwd),
        "state_gradient": state_gradient,
        "cell_gradient": cell_gradient,
        "cell_sequence_gradient": cell_sequence_gradient,
        "mask": mask,
        "lengths": lengths,
        "resets": resets,
    }
    names = tuple(n for n in ORDER if named[n] is not None)
    outputs = _call.call(LSTM_GRADIENTS, named, snap, (True,) * len(names), name)
    return results(LSTMGradients, names, outputs)


def _remembered(results: Sequence[Any], cotangents: Sequence[Any]) -> dict[str, Any]:
    _, c, z = results
    dh, dc, _ = cotangents
    return {"source_gradient": dh, "cell_sequence_gradient": dc, "z_state": z, "cell_output_fwd": c}


LSTM, LSTM_GRADIENTS = op_pair(
    "lstm",
    gates=GATES,
    outputs={"h": 1, "c": 1, "z": GATES},
    order=ORDER,
    forward=reference.forward,
    backward=reference.backward,
    remembered=_remembered,
)
