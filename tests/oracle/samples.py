"""Full-shape arguments of an op, and an exact comparison, for the oracle's own tests."""

from __future__ import annotations

import torch

from oracle.forward import gru, lstm, single_gate_rnn

FORWARD = {"single_gate_rnn": single_gate_rnn, "lstm": lstm, "gru": gru}
GATES = {"single_gate_rnn": 1, "lstm": 4, "gru": 3}


def arguments(op: str, options: dict, T: int = 5, N: int = 4, I: int = 2, H: int = 3, seed: int = 0) -> dict:
    """Every argument of the op in its full shape, lengths and resets aside."""
    generator = torch.Generator().manual_seed(seed)
    D, G = (2 if options.get("bidirectional") else 1), GATES[op]

    def normal(*shape: int) -> torch.Tensor:
        return 0.7 * torch.randn(shape, generator=generator, dtype=torch.float64)

    inputs = {
        "source": normal(T, N, I),
        "recurrent_weight": normal(2, G * H, H) if D == 2 else normal(G * H, H),
        "input_weight": normal(D * G * H, I),
        "bias": normal(D * G * H),
        "init_state": normal(N, D * H),
        "mask": 1 + normal(T, N, D * H),
    }
    if op == "lstm":
        inputs |= {"init_cell": normal(N, D * H), "peephole": normal(2, 4 * H) if D == 2 else normal(4 * H)}
    if op == "gru":
        inputs |= {"secondary_bias": normal(D * H)}
    return inputs


def agree(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
