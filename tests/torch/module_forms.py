"""The modules in the forms that the tests of transformations and compilers share."""

from __future__ import annotations

from typing import Any

import torch

import recurra.torch

FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "LSTM": ("LSTM", {"num_layers": 2, "bidirectional": True}),
    "GRU": ("GRU", {"num_layers": 2, "batch_first": True}),
    "RNN": ("RNN", {}),
    "projected": ("LSTM", {"num_layers": 2, "proj_size": 2, "bidirectional": True}),
    "peephole": ("LSTM", {"peephole": True, "peephole_output": "current", "learnable_initial_state": True}),
    "reset-before": ("GRU", {"reset_after": False, "bidirectional": True, "update_gate_activation": "hard_sigmoid"}),
}
CELLS = ("LSTMCell", "GRUCell", "RNNCell")
I, H = 3, 4


def module(form: str, dtype: torch.dtype = torch.float64, **more: Any) -> torch.nn.Module:
    """A module of a form; the initial states are not zero, so that they matter."""
    torch.manual_seed(0)
    kind, options = FORMS.get(form, (form, {}))
    made = getattr(recurra.torch, kind)(I, H, dtype=dtype, **{**options, **more})
    for name, parameter in made.named_parameters():
        if name in ("h_0", "c_0"):
            torch.nn.init.normal_(parameter)
    return made
