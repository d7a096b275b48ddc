"""`gru` and `gru_gradients`: the public functions, their op records, and how they are differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
import warnings

from ..._errors import RecurraWarning
from .. import _call
from .._descriptor import snapshot
from .._pair import op_pair
from .._results import GRUGradients, GRUResults, results, selected
from . import reference
from .spec import GATES, GRUDescriptor

ORDER = ("source", "recurrent_weight", "input_weight", "bias", "init_state", "secondary_bias")


def gru(
    source: Any,
    recurrent_weight: Any,
    *,
    input_weight: Any = None,
    bias: Any = None,
    init_state: Any = None,
    mask: Any = None,
    secondary_bias: Any = None,
    lengths: Any = None,
    resets: Any = None,
    descriptor: GRUDescriptor | None = None,
    name: str | None = None,
) -> GRUResults:
    """Gated recurrent unit over a whole sequence, as MPSGraph's GRU computes it.

        z = f_z(x_z + (mask * h) @ R_z^T)        x = source[t] @ W^T + b, h = h[t-1]
        r = f_r(x_r + (mask * h) @ R_r^T)
        o = f_o(x_o + (mask * r * h) @ R_o^T)               reset_after=False
        o = f_o(x_o + r * ((mask * h) @ R_o^T + b2))        reset_after=True
        h[t] = z * h + (1 - z) * o               flip_z swaps z and 1 - z

    Args:
        source: [T, N, I], or [T, N, D*3H] already projected when there is no `input_weight`.
        recurrent_weight: R, [3H, H], or [2, 3H, H] when bidirectional.
        input_weight: W, [D*3H, I].
        bias: b, [D*3H], or one element.
        init_state: h[-1], [N, D*H]; zeros when absent.
        mask: multiplies h[t-1] inside the recurrent product; broadcast to [N, D*H], or [T, N, D*H].
        secondary_bias: b2, [D*H], of the candidate gate; ignored, with a warning, unless `reset_after`.
        lengths: int [N]: row n has the steps t < lengths[n]; results at the others are 0.
        resets: bool [T, N]: the state does not cross from step t-1 to step t.
        descriptor: the options; a snapshot is taken.
        name: the node's name, in a graph.

    Returns:
        [h], or [h, z] with `training`; also by name: `out.h`. Tensors if an input
        is one, otherwise arrays of the inputs' library, dtype and device.

    Raises:
        ShapeError, DTypeError, DeviceError, ArgumentError: an input breaks a rule; the message says which.

    Example:
        >>> import numpy as np
        >>> x, R = np.ones((5, 2, 24), np.float32), np.zeros((24, 8), np.float32)
        >>> gru(x, R).h.shape
        (5, 2, 8)
    """
    snap = snapshot("gru", descriptor, GRUDescriptor)
    warn_of_idle_bias("gru", secondary_bias, snap)
    named = {
        "source": source,
        "recurrent_weight": recurrent_weight,
        "input_weight": input_weight,
        "bias": bias,
        "init_state": init_state,
        "mask": mask,
        "secondary_bias": secondary_bias,
        "lengths": lengths,
        "resets": resets,
    }
    wanted = (True, snap.training)
    outputs = _call.call(GRU, named, snap, wanted, name)
    return selected(GRUResults, ("h", "z"), outputs, wanted)


def warn_of_idle_bias(op: str, secondary_bias: Any, descriptor: GRUDescriptor, stacklevel: int = 3) -> None:
    """Warn of a secondary bias that plays no part, at the line of the user's call."""
    if secondary_bias is not None and not descriptor.reset_after:
        warnings.warn(
            f"{op}: secondary_bias is used only with reset_after, and the descriptor has reset_after=False: "
            "it is ignored and its gradient is zero",
            RecurraWarning,
            stacklevel=stacklevel,
        )


def gru_gradients(
    source: Any,
    recurrent_weight: Any,
    source_gradient: Any,
    z_state: Any,
    output_fwd: Any,
    *,
    state_gradient: Any = None,
    input_weight: Any = None,
    bias: Any = None,
    init_state: Any = None,
    mask: Any = None,
    secondary_bias: Any = None,
    lengths: Any = None,
    resets: Any = None,
    descriptor: GRUDescriptor | None = None,
    name: str | None = None,
) -> GRUGradients:
    """The gradients of a loss through `gru`, as MPSGraph's GRUGradients.

    Args:
        source, recurrent_weight, input_weight, bias, init_state, mask, secondary_bias, lengths, resets,
            descriptor: as they were given to `gru`.
        source_gradient: dL/dh[t], [T, N, D*H]; None means zeros.
        z_state: the training state, the second result of `gru`.
        output_fwd: h, the first result of `gru`.
        state_gradient: a further gradient of the last visited h, [N, D*H].
        name: the node's name, in a graph.

    Returns:
        The gradients of the inputs that were given, in the order source, recurrent_weight, input_weight, bias,
        init_state, secondary_bias; also by name, None where the input was absent. Each has its input's shape.

    Raises:
        ShapeError, DTypeError, DeviceError, ArgumentError: an input breaks a rule; the message says which.

    Example:
        >>> import numpy as np
        >>> x, R = np.ones((5, 2, 24), np.float32), np.zeros((24, 8), np.float32)
        >>> d = GRUDescriptor(training=True)
        >>> h, z = gru(x, R, descriptor=d)
        >>> gru_gradients(x, R, np.ones_like(h), z, h, descriptor=d).recurrent_weight.shape
        (24, 8)
    """
    snap = snapshot("gru_gradients", descriptor, GRUDescriptor)
    named = {
        "source": source,
        "recurrent_weight": recurrent_weight,
        "input_weight": input_weight,
        "bias": bias,
        "init_state": init_state,
        "secondary_bias": secondary_bias,
        "source_gradient": source_gradient,
        "z_state": _call.required("gru_gradients", "z_state", z_state),
        "output_fwd": _call.required("gru_gradients", "output_fwd", output_fwd),
        "state_gradient": state_gradient,
        "mask": mask,
        "lengths": lengths,
        "resets": resets,
    }
    names = tuple(n for n in ORDER if named[n] is not None)
    outputs = _call.call(GRU_GRADIENTS, named, snap, (True,) * len(names), name)
    return results(GRUGradients, names, outputs)


def _remembered(results: Sequence[Any], cotangents: Sequence[Any]) -> dict[str, Any]:
    h, z = results
    return {"source_gradient": cotangents[0], "z_state": z, "output_fwd": h}


GRU, GRU_GRADIENTS = op_pair(
    "gru",
    gates=GATES,
    outputs={"h": 1, "z": GATES},
    order=ORDER,
    forward=reference.forward,
    backward=reference.backward,
    remembered=_remembered,
)
