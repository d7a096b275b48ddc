"""Weights of other libraries as the arguments of recurra's ops.

Gates are named as recurra names them: LSTM i, f, z (candidate), o; GRU z (update), r, o (candidate).
"""

from __future__ import annotations

import numpy as np
import torch

# The gates in the order of their blocks. PyTorch stacks LSTM as recurra does, GRU as recurra with reset_gate_first.
RECURRA = {"lstm": "ifzo", "gru": "zro", "single_gate_rnn": "h"}
ONNX = {"lstm": "iofz", "gru": "zro", "single_gate_rnn": "h"}
ONNX_PEEPHOLES = "iof"

Arrays = dict[str, np.ndarray]


def reordered(blocks: np.ndarray, order: str, wanted: str, axis: int) -> np.ndarray:
    """Blocks along an axis in another order; a block that is wanted and not there is zeros."""
    by_gate = dict(zip(order, np.split(blocks, len(order), axis), strict=True))
    absent = np.zeros_like(by_gate[order[0]])
    return np.concatenate([by_gate.get(gate, absent) for gate in wanted], axis)


def from_torch(module: torch.nn.RNNBase, layer: int) -> dict[str, torch.Tensor]:
    """The weights of one layer of torch.nn.LSTM, GRU or RNN, made so that gradients flow back to the parameters.

    The op is lstm with the default gate order, gru with reset_gate_first and reset_after, or single_gate_rnn.
    """
    suffixes = ["", "_reverse"] if module.bidirectional else [""]

    def parameters(name: str) -> list[torch.Tensor]:
        return [getattr(module, f"{name}_l{layer}{suffix}") for suffix in suffixes]

    R = parameters("weight_hh")
    arguments = {
        "recurrent_weight": torch.stack(R) if module.bidirectional else R[0],
        "input_weight": torch.cat(parameters("weight_ih")),
    }
    if not module.bias:
        return arguments
    biases = list(zip(parameters("bias_ih"), parameters("bias_hh"), strict=True))
    if isinstance(module, torch.nn.GRU):
        # The candidate's recurrent bias is inside the product that the reset gate multiplies.
        gates = 2 * module.hidden_size
        outside = [torch.cat([hh[:gates], torch.zeros_like(hh[gates:])]) for _, hh in biases]
        arguments["bias"] = torch.cat([ih + hh for (ih, _), hh in zip(biases, outside, strict=True)])
        arguments["secondary_bias"] = torch.cat([hh[gates:] for _, hh in biases])
    else:
        arguments["bias"] = torch.cat([ih + hh for ih, hh in biases])
    return arguments


def from_onnx(
    op: str,
    W: np.ndarray,  # [D, G*H, I]
    R: np.ndarray,  # [D, G*H, H]
    B: np.ndarray | None = None,  # [D, 2*G*H]: input biases, recurrent biases
    P: np.ndarray | None = None,  # [D, 3*H]
    linear_before_reset: bool = False,
) -> Arrays:
    """The weights of ONNX's LSTM, GRU or RNN. The op is lstm with peephole_output "current", gru or single_gate_rnn."""
    directions, _, hidden = R.shape
    W, R = (reordered(weight, ONNX[op], RECURRA[op], 1) for weight in (W, R))
    arguments = {"input_weight": W.reshape(-1, W.shape[2]), "recurrent_weight": R if directions == 2 else R[0]}
    if B is not None:
        of_input, of_state = (reordered(half, ONNX[op], RECURRA[op], 1) for half in np.split(B, 2, 1))
        if linear_before_reset:
            arguments["secondary_bias"] = of_state[:, 2 * hidden :].reshape(-1)
            of_state = reordered(of_state[:, : 2 * hidden], "zr", RECURRA[op], 1)
        arguments["bias"] = (of_input + of_state).reshape(-1)
    if P is not None:
        P = reordered(P, ONNX_PEEPHOLES, RECURRA[op], 1)
        arguments["peephole"] = P if directions == 2 else P[0]
    return arguments


def from_keras_gru(
    kernel: np.ndarray,  # [I, 3*H]
    recurrent_kernel: np.ndarray,  # [H, 3*H]
    bias: np.ndarray | None,  # [2, 3*H] with reset_after: input, recurrent; [3*H] without
    reset_after: bool,
) -> Arrays:
    """The weights of a Keras GRU. The op is gru with the same reset_after."""
    arguments = {"input_weight": kernel.T, "recurrent_weight": recurrent_kernel.T}
    if bias is not None and reset_after:
        of_input, of_state = bias
        hidden = recurrent_kernel.shape[0]
        arguments["secondary_bias"] = of_state[2 * hidden :]
        arguments["bias"] = of_input + reordered(of_state[: 2 * hidden], "zr", RECURRA["gru"], 0)
    elif bias is not None:
        arguments["bias"] = bias
    return arguments
