"""The recurrent ops as plain loops over directions, rows and steps, in float64 torch so that autograd applies.

This is the oracle. It shares no code with the package and follows sections 3 and 9 of the contract equation by
equation; nothing here is meant to be fast. `inputs` holds tensors (or None) under the argument names of contract 1.4,
`options` the descriptor's fields of 2.1 (Apple's default where missing), activations as "tanh" or ("leaky_relu", 0.1).
"""

from __future__ import annotations

from collections.abc import Callable
import itertools

import torch
from torch import Tensor

Activation = str | tuple
Inputs = dict[str, Tensor | None]
Vectors = dict[str, Tensor]  # one [H] vector per gate or per state

# ONNX's defaults of alpha and beta (9.5).
PARAMETERS = {
    "affine": (1.0, 0.0),
    "leaky_relu": (0.01,),
    "thresholded_relu": (1.0,),
    "scaled_tanh": (1.0, 1.0),
    "hard_sigmoid": (0.2, 0.5),
    "elu": (1.0,),
}

# The conditions read `x <= kink`: f' there is the left side's (2.2), and NaN is passed on instead of swallowed.
FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "none": lambda x: x,
    "relu": lambda x: torch.where(x <= 0, 0.0, x),
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "hard_sigmoid": lambda x, alpha, beta: _unit_clamp(alpha * x + beta),
    "affine": lambda x, alpha, beta: alpha * x + beta,
    "leaky_relu": lambda x, alpha: torch.where(x <= 0, alpha * x, x),
    "thresholded_relu": lambda x, alpha: torch.where(x <= alpha, 0.0, x),
    "scaled_tanh": lambda x, alpha, beta: alpha * torch.tanh(beta * x),
    # The clamp keeps expm1 finite on the side that is not taken: inf * 0 would be NaN in the backward pass.
    "elu": lambda x, alpha: torch.where(x <= 0, alpha * torch.expm1(torch.clamp(x, max=0.0)), x),
    "softsign": lambda x: x / (1 + x.abs()),
    # Not torch's softplus, which is linear above 20 and so wrong by 2e-9 there.
    "softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
}

RECURRENT = {"reverse": False, "bidirectional": False, "training": False}
DEFAULTS: dict[str, dict] = {
    "single_gate_rnn": {**RECURRENT, "activation": "relu"},
    "lstm": {
        **RECURRENT,
        "produce_cell": False,
        "forget_gate_last": False,
        "input_gate_activation": "sigmoid",
        "forget_gate_activation": "sigmoid",
        "cell_gate_activation": "tanh",
        "output_gate_activation": "sigmoid",
        "activation": "tanh",
        "peephole_output": "previous",
    },
    "gru": {
        **RECURRENT,
        "reset_gate_first": False,
        "reset_after": False,
        "flip_z": False,
        "update_gate_activation": "sigmoid",
        "reset_gate_activation": "sigmoid",
        "output_gate_activation": "tanh",
    },
}


def single_gate_rnn(inputs: Inputs, options: dict) -> Vectors:
    """Contract 3.1: {"h": [T, N, D*H], "z": [T, N, D*H]}; z is the pre-activation."""
    return visit("single_gate_rnn", inputs, options)[0]


def lstm(inputs: Inputs, options: dict) -> Vectors:
    """Contract 3.2: {"h": [T, N, D*H], "c": [T, N, D*H], "z": [T, N, D*4H]}; z holds the activated gates."""
    return visit("lstm", inputs, options)[0]


def gru(inputs: Inputs, options: dict) -> Vectors:
    """Contract 3.4: {"h": [T, N, D*H], "z": [T, N, D*3H]}; z holds the activated gates."""
    return visit("gru", inputs, options)[0]


def named_activation(activation: Activation) -> tuple[str, tuple[float, ...]]:
    """("elu", (0.5,)) of ("elu", 0.5), and ("elu", (1.0,)) of "elu"."""
    name, *given = (activation,) if isinstance(activation, str) else activation
    return name, (*given, *PARAMETERS.get(name, ())[len(given) :])


def activate(activation: Activation, x: Tensor) -> Tensor:
    name, parameters = named_activation(activation)
    return FUNCTIONS[name](x, *parameters)


def slope_follows_from_output(activation: Activation) -> bool:
    """Whether f'(x) is a function of f(x); with a negative alpha these three map x from both sides to one y (9.5)."""
    name, parameters = named_activation(activation)
    return not (name in ("leaky_relu", "thresholded_relu", "elu") and parameters[0] < 0)


def kinks(activation: Activation) -> tuple[float, ...]:
    """The x at which f or f' jumps."""
    name, parameters = named_activation(activation)
    if name == "hard_sigmoid":
        alpha, beta = parameters
        return (-beta / alpha, (1 - beta) / alpha)
    if name == "thresholded_relu":
        return parameters
    return (0.0,) if name in ("relu", "leaky_relu", "elu") else ()


def visit(
    op: str, inputs: Inputs, options: dict, watch: Callable[[Activation, Tensor], None] | None = None
) -> tuple[Vectors, Vectors]:
    """The results by name, and the last visited h (and c) as [N, D*H].

    `watch`, if given, is called with every activation and the vector it is applied to.
    """
    options = DEFAULTS[op] | options
    source, recurrent_weight = inputs["source"], inputs["recurrent_weight"]
    T, N = source.shape[:2]
    H = recurrent_weight.shape[-1]
    D = 2 if options["bidirectional"] else 1
    gates = gate_order(op, options)
    G = len(gates)
    step = STEPS[op]

    def f(slot: str, x: Tensor) -> Tensor:
        if watch is not None:
            watch(options[slot], x.detach())
        return activate(options[slot], x)

    lengths, resets = inputs.get("lengths"), inputs.get("resets")
    row_lengths = [T] * N if lengths is None else lengths.tolist()
    reset_at = torch.zeros(T, N, dtype=torch.bool).tolist() if resets is None else resets.tolist()
    rows = [row.unbind() for row in source.unbind()]
    masks = _mask(inputs.get("mask"), source, T, N, D, H)
    start = {"h": _start(inputs.get("init_state"), source, N, D, H)}
    if op == "lstm":
        start["c"] = _start(inputs.get("init_cell"), source, N, D, H)

    produced: dict[str, dict] = {name: {} for name in (*start, "z")}  # name -> (t, n, d) -> vector
    last: dict[str, dict] = {name: {} for name in start}  # name -> (n, d) -> vector
    zeros = source.new_zeros(H)
    for d in range(D):
        weights = _direction_weights(inputs, gates, D, d, H)
        backward = d == 1 or (D == 1 and options["reverse"])
        for n in range(N):
            state = {name: start[name][n, d] for name in start}
            steps = range(row_lengths[n])
            for t in reversed(steps) if backward else steps:
                # resets[t] parts t-1 from t. Coming backwards it is t + 1 that parts; the state that enters at the last
                # step of the row has crossed nothing, whatever `resets` says about the padding.
                parted = (t + 1 < row_lengths[n] and reset_at[t + 1][n]) if backward else reset_at[t][n]
                if parted:
                    state = dict.fromkeys(state, zeros)
                projected = _project(rows[t][n], weights)
                x = dict(zip(gates, projected.reshape(G, H), strict=True))
                state, z = step(x, masks[t, n, d], state, weights, options, f)
                for name in state:
                    produced[name][t, n, d] = state[name]
                produced["z"][t, n, d] = torch.cat([z[gate] for gate in gates])
            for name in state:
                last[name][n, d] = state[name]

    def gathered(vectors: dict, width: int, *axes: range) -> Tensor:
        padding = source.new_zeros(width)
        found = [vectors.get(position, padding) for position in itertools.product(*axes)]
        shape = (*(len(axis) for axis in axes[:-1]), D * width)
        return torch.stack(found).reshape(shape) if found else source.new_zeros(shape)

    results = {
        name: gathered(vectors, G * H if name == "z" else H, range(T), range(N), range(D))
        for name, vectors in produced.items()
    }
    return results, {name: gathered(vectors, H, range(N), range(D)) for name, vectors in last.items()}


def gate_order(op: str, options: dict) -> tuple[str, ...]:
    if op == "lstm":
        return ("i", "z", "f", "o") if options["forget_gate_last"] else ("i", "f", "z", "o")
    if op == "gru":
        return ("r", "z", "o") if options["reset_gate_first"] else ("z", "r", "o")
    return ("a",)


def _rnn_step(x: Vectors, m: Tensor, state: Vectors, w: dict, options: dict, f: Callable) -> tuple[Vectors, Vectors]:
    a = x["a"] + w["R"]["a"] @ (m * state["h"])
    return {"h": f("activation", a)}, {"a": a}


def _lstm_step(x: Vectors, m: Tensor, state: Vectors, w: dict, options: dict, f: Callable) -> tuple[Vectors, Vectors]:
    h_prev, c_prev = state["h"], state["c"]
    R, p = w["R"], w["p"]
    a = {k: x[k] + R[k] @ (m * h_prev) for k in ("i", "f", "z", "o")}
    for k in ("i", "f", "z"):
        a[k] = a[k] + p[k] * c_prev
    i = f("input_gate_activation", a["i"])
    forget = f("forget_gate_activation", a["f"])
    z = f("cell_gate_activation", a["z"])
    c = forget * c_prev + i * z
    a["o"] = a["o"] + p["o"] * (c if options["peephole_output"] == "current" else c_prev)
    o = f("output_gate_activation", a["o"])
    h = o * f("activation", c)
    kept = {
        "i": _kept(options["input_gate_activation"], a["i"], i),
        "f": _kept(options["forget_gate_activation"], a["f"], forget),
        "z": _kept(options["cell_gate_activation"], a["z"], z),
        "o": _kept(options["output_gate_activation"], a["o"], o),
    }
    return {"h": h, "c": c}, kept


def _gru_step(x: Vectors, m: Tensor, state: Vectors, w: dict, options: dict, f: Callable) -> tuple[Vectors, Vectors]:
    h_prev = state["h"]
    R = w["R"]
    a = {k: x[k] + R[k] @ (m * h_prev) for k in ("z", "r")}
    u = f("update_gate_activation", a["z"])
    r = f("reset_gate_activation", a["r"])
    if options["reset_after"]:
        a["o"] = x["o"] + r * (R["o"] @ (m * h_prev) + w["b2"])
    else:
        a["o"] = x["o"] + R["o"] @ (m * r * h_prev)
    o = f("output_gate_activation", a["o"])
    h = (1 - u) * h_prev + u * o if options["flip_z"] else u * h_prev + (1 - u) * o
    kept = {
        "z": _kept(options["update_gate_activation"], a["z"], u),
        "r": _kept(options["reset_gate_activation"], a["r"], r),
        "o": _kept(options["output_gate_activation"], a["o"], o),
    }
    return {"h": h}, kept


STEPS = {"single_gate_rnn": _rnn_step, "lstm": _lstm_step, "gru": _gru_step}


def _kept(activation: Activation, a: Tensor, y: Tensor) -> Tensor:
    return y if slope_follows_from_output(activation) else a


def _project(row: Tensor, weights: dict) -> Tensor:
    """X_d[t] of 3.0 for one row: [I] or [D*G*H] -> [G*H]."""
    W, own_channels = weights["W"], weights["own_channels"]
    return (row[own_channels] if W is None else W @ row) + weights["b"]


def _direction_weights(inputs: Inputs, gates: tuple[str, ...], D: int, d: int, H: int) -> dict:
    """Direction d's share of every weight, split by gate where there is one vector or matrix per gate."""
    G = len(gates)
    R = inputs["recurrent_weight"].reshape(D, G, H, H)[d]
    input_weight, bias = inputs.get("input_weight"), inputs.get("bias")
    peephole, secondary_bias = inputs.get("peephole"), inputs.get("secondary_bias")
    return {
        "R": dict(zip(gates, R, strict=True)),
        "W": None if input_weight is None else input_weight[d * G * H : (d + 1) * G * H],
        "own_channels": slice(d * G * H, (d + 1) * G * H),
        # A bias of one element serves every channel (5.12).
        "b": R.new_zeros(G * H) if bias is None else bias.reshape(-1).expand(D * G * H).reshape(D, G * H)[d],
        "p": dict(zip(gates, R.new_zeros(G, H) if peephole is None else peephole.reshape(D, G, H)[d], strict=True)),
        "b2": R.new_zeros(H) if secondary_bias is None else secondary_bias.reshape(D, H)[d],
    }


def _start(given: Tensor | None, source: Tensor, N: int, D: int, H: int) -> Tensor:
    """initState or initCell as [N, D, H] (5.12)."""
    if given is None:
        return source.new_zeros(N, D, H)
    return given.reshape(given.shape[-2], D, H).expand(N, D, H)


def _mask(mask: Tensor | None, source: Tensor, T: int, N: int, D: int, H: int) -> Tensor:
    """The mask as [T, N, D, H] (5.9, 9.3)."""
    if mask is None:
        return source.new_ones(T, N, D, H)
    if D == 2 and mask.ndim > 0 and mask.shape[-1] == H:
        mask = torch.cat([mask, mask], dim=-1)
    return mask.expand(T, N, D * H).reshape(T, N, D, H)


def _unit_clamp(y: Tensor) -> Tensor:
    return torch.where(y <= 0, 0.0, torch.where(y >= 1, 1.0, y))
