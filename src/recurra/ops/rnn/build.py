"""`single_gate_rnn` and `single_gate_rnn_gradients`: functions, op records, derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _call
from .._descriptor import snapshot
from .._pair import op_pair
from .._results import SingleGateRNNGradients, SingleGateRNNResults, results, selected
from . import reference
from .spec import GATES, SingleGateRNNDescriptor

ORDER = ("source", "recurrent_weight", "input_weight", "bias", "init_state")


def single_gate_rnn(
    source: Any,
    recurrent_weight: Any,
    *,
    input_weight: Any = None,
    bias: Any = None,
    init_state: Any = None,
    mask: Any = None,
    lengths: Any = None,
    resets: Any = None,
    descriptor: SingleGateRNNDescriptor | None = None,
    name: str | None = None,
) -> SingleGateRNNResults:
    """Single-gate ("Elman") RNN over a whole sequence, as MPSGraph's singleGateRNN computes it.

        a[t] = source[t] @ W^T + b + (mask * h[t-1]) @ R^T
        h[t] = f(a[t])                           f is relu unless the descriptor says otherwise

    Args:
        source: [T, N, I], or [T, N, D*H] already projected when there is no `input_weight`.
        recurrent_weight: R, [H, H], or [2, H, H] when bidirectional.
        input_weight: W, [D*H, I].
        bias: b, [D*H], or one element.
        init_state: h[-1], [N, D*H]; zeros when absent.
        mask: multiplies h[t-1] inside the recurrent product; broadcast to [N, D*H], or [T, N, D*H].
        lengths: int [N]: row n has the steps t < lengths[n]; results at the others are 0.
        resets: bool [T, N]: the state does not cross from step t-1 to step t.
        descriptor: the options; a snapshot is taken.
        name: the node's name, in a graph.

    Returns:
        [h], or [h, z] with `training`, where z is the pre-activation a; also by name: `out.h`. Tensors if an input
        is one, otherwise arrays of the inputs' library, dtype and device.

    Raises:
        ShapeError, DTypeError, DeviceError, ArgumentError: an input breaks a rule; the message says which.

    Example:
        >>> import numpy as np
        >>> x, R = np.ones((5, 2, 8), np.float32), np.zeros((8, 8), np.float32)
        >>> single_gate_rnn(x, R).h.shape
        (5, 2, 8)
    """
    snap = snapshot("single_gate_rnn", descriptor, SingleGateRNNDescriptor)
    named = {
        "source": source,
        "recurrent_weight": recurrent_weight,
        "input_weight": input_weight,
        "bias": bias,
        "init_state": init_state,
        "mask": mask,
        "lengths": lengths,
        "resets": resets,
    }
    wanted = (True, snap.training)
    outputs = _call.call(SINGLE_GATE_RNN, named, snap, wanted, name)
    return selected(SingleGateRNNResults, ("h", "z"), outputs, wanted)


def single_gate_rnn_gradients(
    source: Any,
    recurrent_weight: Any,
    source_gradient: Any,
    z_state: Any,
    *,
    state_gradient: Any = None,
    input_weight: Any = None,
    bias: Any = None,
    init_state: Any = None,
    mask: Any = None,
    lengths: Any = None,
    resets: Any = None,
    descriptor: SingleGateRNNDescriptor | None = None,
    name: str | None = None,
) -> SingleGateRNNGradients:
    """The gradients of a loss through `single_gate_rnn`, as MPSGraph's singleGateRNNGradients.

    Args:
        source, recurrent_weight, input_weight, bias, init_state, mask, lengths, resets,
            descriptor: as they were given to `single_gate_rnn`.
        source_gradient: dL/dh[t], [T, N, D*H]; None means zeros.
        z_state: the training state, the second result of `single_gate_rnn`.
        state_gradient: a further gradient of the last visited h, [N, D*H].
        name: the node's name, in a graph.

    Returns:
        The gradients of the inputs that were given, in the order source, recurrent_weight, input_weight, bias,
        init_state; also by name, None where the input was absent. Each has its input's shape.

    Raises:
        ShapeError, DTypeError, DeviceError, ArgumentError: an input breaks a rule; the message says which.

    Example:
        >>> import numpy as np
        >>> x, R = np.ones((5, 2, 8), np.float32), np.zeros((8, 8), np.float32)
        >>> d = SingleGateRNNDescriptor(training=True)
        >>> h, z = single_gate_rnn(x, R, descriptor=d)
        >>> single_gate_rnn_gradients(x, R, np.ones_like(h), z, descriptor=d).recurrent_weight.shape
        (8, 8)
    """
    snap = snapshot("single_gate_rnn_gradients", descriptor, SingleGateRNNDescriptor)
    named = {
        "source": source,
        "recurrent_weight": recurrent_weight,
        "input_weight": input_weight,
        "bias": bias,
        "init_state": init_state,
        "source_gradient": source_gradient,
        "z_state": _call.required("single_gate_rnn_gradients", "z_state", z_state),
        "state_gradient": state_gradient,
        "mask": mask,
        "lengths": lengths,
        "resets": resets,
    }
    names = tuple(n for n in ORDER if named[n] is not None)
    outputs = _call.call(SINGLE_GATE_RNN_GRADIENTS, named, snap, (True,) * len(names), name)
    return results(SingleGateRNNGradients, names, outputs)


def _remembered(results: Sequence[Any], cotangents: Sequence[Any]) -> dict[str, Any]:
    return {"source_gradient": cotangents[0], "z_state": results[1]}


SINGLE_GATE_RNN, SINGLE_GATE_RNN_GRADIENTS = op_pair(
    "single_gate_rnn",
    gates=GATES,
    outputs={"h": 1, "z": GATES},
    order=ORDER,
    forward=reference.forward,
    backward=reference.backward,
    remembered=_remembered,
)
